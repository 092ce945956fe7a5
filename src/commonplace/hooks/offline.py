"""A hook without a server: spool the event, and answer a start from the files."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from commonplace.errors import CommonplaceError
from commonplace.files.plain import make_folder
from commonplace.memory import Memory
from commonplace.sessions import add_to_spool, answer_from_files
from commonplace.sessions.payload import read_event
from commonplace.where import aliases, homes, repository

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

# If another process holds the log, the event stays in the spool.
LOG_WAIT_S_MAX = 0.1


def answer(agent: str, raw: bytes, cwd: str, variables: Collection[str]) -> str:
    """Return the reply. The event is spooled first, so that damaged settings do not lose it."""
    event = read_event(agent, raw, at=time.time(), cwd=cwd, environment=variables)
    if event is None:
        return ""
    folder = Path(event.cwd).resolve()
    here = repository.find(folder)
    found = homes.find(None, folder, here, os.environ)
    with suppress(CommonplaceError):
        event = event._replace(repo=aliases.resolve(here, found).name)
    home = found[0]
    homes.check_usable(home)
    add_to_spool(home, event)
    if home.path.is_dir():
        make_folder(home.hook_marks_folder)
    with Memory.open(cwd=folder, agent_id=event.name, wait_s_max=LOG_WAIT_S_MAX) as memory:
        reply = answer_from_files(memory, event)
        if event.kind == "end":
            _maintain(memory, folder)
        return reply


def _maintain(memory: Memory, folder: Path) -> None:
    # Only the end of a session needs these, and every import makes a hook slower.
    from commonplace.hooks.background import start_maintenance  # noqa: PLC0415
    from commonplace.maintenance.due import is_due  # noqa: PLC0415

    if is_due(memory):
        start_maintenance(memory.home.path, folder)
