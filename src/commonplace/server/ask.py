"""Answer `commonplace recall` in the server, as the command itself would.

The command sends what the user typed. Where the server cannot be sure to give the same answer, it
refuses, and the command opens the memory itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import commonplace
from commonplace.errors import UsageError
from commonplace.sessions import drain_waiting
from commonplace.where import homes, repository

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from commonplace.memory import Memory
    from commonplace.recall.query import Narrowing
    from commonplace.where.home import Home
    from commonplace.where.repository import Repository

ADDRESS = "/api/v1/ask"


def answer(memory: Memory, request: Mapping[str, Any]) -> Any:  # noqa: ANN401 (what JSON can hold)
    """Return what `commonplace recall` prints as JSON: an answer, the latest memories or counts."""
    logs = logs_to_search(memory.repository, request["repo"], all_repos=request["all_repos"])
    if request["want"] == "counts":
        return memory.stats(logs)
    narrowing = cast("Narrowing", {**request["narrowing"], "repo": logs})
    if request["want"] == "recent":
        return [hit.as_dict() for hit in memory.recent(request["count"], **narrowing)]
    return memory.recall(request["text"], **narrowing).as_dict()


def answer_for_command(
    memory: Memory, request: Mapping[str, Any], settings_read_at: Sequence[int]
) -> Any:  # noqa: ANN401 (see `answer`)
    """Return the answer to a command in another process; `None` if its own could differ."""
    folder = Path(request["cwd"])
    here = repository.find(folder)
    found = homes.find(request["home"], folder, here, request["environment"])
    is_same = (
        request["version"] == commonplace.__version__
        and [home.path for home in found] == [home.path for home in memory.homes]
        and settings_times(memory.homes) == settings_read_at
        # While the model loads, the command could search by meaning and the server could not.
        and not memory.engine().embedding.is_loading()
    )
    if not is_same:
        return None
    asker = memory.beside(agent_id=request["agent"] or "default", cwd=folder)
    drain_waiting(asker)
    return answer(asker, request)


def settings_times(served: Sequence[Home]) -> list[int]:
    """Return when the settings of each home were last changed; 0 where there are none."""
    times = []
    for home in served:
        try:
            times.append(home.settings_file.stat().st_mtime_ns)
        except OSError:
            times.append(0)
    return times


def logs_of(here: Repository) -> list[str]:
    """Return the logs of this repository: by its full name, and by the short one of scripts."""
    return list(dict.fromkeys((here.name, here.short)))


def logs_to_search(here: Repository, repo: str | None, *, all_repos: bool) -> list[str] | None:
    """Return the log *repo*, else those of this repository; `None` stands for all logs."""
    if all_repos:
        if repo is not None:
            raise UsageError("`--repo` and `--all-repos` exclude each other", "give one of them")
        return None
    return logs_of(here) if repo is None else [repo]
