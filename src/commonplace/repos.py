"""Name, join, archive and delete the repositories of a home: `commonplace repos`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from commonplace.errors import RecordInvalid, UsageError
from commonplace.files.plain import ensure
from commonplace.log import move, names
from commonplace.log.logs import list_repos
from commonplace.redaction.text import redact_text
from commonplace.where import aliases, homes
from commonplace.where.repository import is_of_all, plain_name

if TYPE_CHECKING:
    from commonplace.memory import Memory


class Moved(NamedTuple):
    """The log that lines left, the one they are in now, and how many."""

    repo: str
    now: str
    lines: int


def new(memory: Memory, name: str) -> str:
    """Start an empty log called *name*."""
    _check_new(memory, name)
    homes.make(memory.home)
    if memory.known_aliases().log_of(name):
        aliases.add(memory.home, {name: name})  # No longer an older name of another log.
    ensure(memory.home.log(name))
    return name


def find(memory: Memory, name: str) -> str:
    """Return the one log of the nearest home that *name* stands for."""
    return names.one_log([memory.home], name)


def rename(memory: Memory, old: str, name: str) -> Moved:
    """Give the log of *old* another name. Its older names still find it."""
    log = find(memory, old)
    known = aliases.Aliases([memory.home._replace(trusted=True)])
    earlier = known.of_log(name)
    # A rename that was killed has noted the new name, and may have made the log of that name.
    is_begun = log in earlier or (
        log == name and any(old in (one, plain_name(one)) for one in earlier)
    )
    if not is_begun:
        _check_new(memory, name)
    return Moved(log, name, move.move(memory.home, log, name))


def merge(memory: Memory, source: str, target: str) -> Moved:
    """Move all records of *source* to *target*; the names of both then stand for it."""
    _refuse_name_of_all(target)
    log, into = find(memory, source), find(memory, target)
    if log == into:
        raise UsageError(f"`{source}` and `{target}` are the same log", "name two repositories")
    return Moved(log, into, move.move(memory.home, log, into))


def archive(memory: Memory, name: str) -> Moved:
    """Move all records of a repository to its archive, which only `recall --all` searches."""
    log = find(memory, name)
    return Moved(log, log, move.archive(memory.home, log))


def delete(memory: Memory, name: str) -> Moved:
    """Remove the log and the archive of a repository from the home and its index."""
    log = find(memory, name)
    if name not in (log, plain_name(log)):
        raise UsageError(
            f"`{name}` is an older name of `{log}`, or was merged with it",
            f"`commonplace repos delete {log}` deletes all of it",
        )
    deleted = Moved(log, "", move.delete(memory.home, log))
    memory.engine().catch_up()
    return deleted


def _refuse_name_of_all(name: str) -> None:
    if is_of_all(name):
        raise UsageError(
            f"`{name}` is what several repositories have taught, and is searched from each of them",
            "choose another name",
        )


def _check_new(memory: Memory, name: str) -> None:
    names.check(name)
    _refuse_name_of_all(name)
    if redact_text(name)[1]:
        raise RecordInvalid("repo", "looks like a secret", "name the repository without it")
    if name in list_repos(memory.home):
        raise UsageError(
            f"there is a repository `{name}` already",
            f"choose another name, or join the two with `commonplace repos merge NAME {name}`",
        )
