"""A hook without a server: the event goes into the spool, a start is answered from the files alone."""

from __future__ import annotations

from commonplace.memory import Memory
from commonplace.sessions import answered_from_files

# A log that somebody holds is not waited for: what is said stays in the spool.
LOG_WAIT_S_MAX = 0.1


def answered(agent: str, raw: bytes, cwd: str, host: str) -> str:
    """What to print."""

    def memory_of(name: str, folder: str) -> Memory:
        return Memory.open(cwd=folder, agent_id=name, wait_s_max=LOG_WAIT_S_MAX)

    return answered_from_files(memory_of, agent, raw, cwd=cwd, host=host)
