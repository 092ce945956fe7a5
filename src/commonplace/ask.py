"""Answer what `commonplace recall` asks: in the command itself, or in the server for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commonplace.memory import Memory
    from commonplace.recall.query import Narrowing
    from commonplace.where.repository import Repository


def answer(memory: Memory, request: Mapping[str, Any]) -> Any:  # noqa: ANN401 (what JSON can hold)
    """Return what `commonplace recall` prints as JSON: an answer, the latest memories or counts."""
    logs = logs_to_search(memory.repository, request["repo"], all_repos=request["all_repos"])
    narrowing = cast("Narrowing", {**request["narrowing"], "repo": logs})
    if request["want"] == "counts":
        return memory.stats(query=memory.query(**narrowing))
    if request["want"] == "recent":
        return [hit.as_dict() for hit in memory.recent(request["count"], **narrowing)]
    return memory.recall(request["text"], **narrowing).as_dict()


def logs_of(here: Repository) -> list[str]:
    """Return the logs of this repository: by its full name, and by the short one of scripts."""
    return list(dict.fromkeys((here.name, here.short)))


def logs_to_search(here: Repository, repo: str | None, *, all_repos: bool) -> list[str] | None:
    """Return the log *repo*, else those of this repository; `None` stands for all logs."""
    if all_repos:
        return None
    return logs_of(here) if repo is None else [repo]
