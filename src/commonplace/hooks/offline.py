"""A hook without a server: the event goes into the spool, a start is answered from the files alone."""

from __future__ import annotations

import os
import time
from pathlib import Path

from commonplace.memory import Memory
from commonplace.sessions import answered_from_files, events, keep
from commonplace.where import homes, repository

# A log that somebody holds is not waited for: what is said stays in the spool.
LOG_WAIT_S_MAX = 0.1


def answered(agent: str, raw: bytes, cwd: str, host: str) -> str:
    """What to print. The event is kept before anything else is tried, so that not even damaged settings lose it."""
    event = events.taken(agent, raw, at=time.time(), cwd=cwd, host=host)
    if event is None:
        return ""
    folder = Path(event.cwd).resolve()
    keep(homes.find(None, folder, repository.find(folder), os.environ)[0], event)
    with Memory.open(cwd=folder, agent_id=event.name, wait_s_max=LOG_WAIT_S_MAX) as memory:
        return answered_from_files(memory, event)
