"""Answer `commonplace recall` in the server, as the command itself would.

The command sends what the user typed. Where the server cannot be sure to give the same answer, it
refuses, and the command opens the memory itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import commonplace
from commonplace.ask import answer
from commonplace.sessions import drain_waiting
from commonplace.where import homes, repository

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from commonplace.memory import Memory
    from commonplace.where.home import Home


def answer_for_command(
    memory: Memory, request: Mapping[str, Any], settings_read_at: Sequence[int]
) -> Any:  # noqa: ANN401 (what JSON can hold)
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
