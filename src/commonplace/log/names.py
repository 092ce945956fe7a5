"""Find logs by the name that a user gives: the whole name, the plain one, or an older one."""

from __future__ import annotations

from commonplace.errors import RecordInvalid, RepoAmbiguous, RepoUnknown
from commonplace.foreign import one_line
from commonplace.log.logs import list_repos
from commonplace.records import check_repo_name
from commonplace.where.aliases import Aliases
from commonplace.where.repository import plain_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from commonplace.where.home import Home

# Shorter names are too often alike.
_TYPO_CHARS_MIN = 4


def logs_to_read(homes: Sequence[Home], name: str) -> list[str]:
    """Return the logs that *name* stands for, with their older names; none if unknown."""
    aliases = Aliases(homes)
    found = _find(homes, aliases, name)
    now = (aliases.log_of(log) or log for log in found)
    return list(dict.fromkeys(name for log in now for name in aliases.names_of(log)))


def one_log(homes: Sequence[Home], name: str) -> str:
    """Return the one log that *name* stands for. Raises if it is unknown or there are several."""
    found = _one(homes, name)
    if not found:
        raise unknown(homes, name)
    return found


def log_to_write(homes: Sequence[Home], name: str) -> str:
    """Return the log that *name* stands for, or *name* for a new one.

    Raises if several logs have that plain name, or if *name* looks like a typing mistake.
    """
    found = _one(homes, name)
    if found:
        return found
    meant = next((one for one in _plain_names(homes) if _is_typo(name, one)), "")
    if meant:
        raise RepoUnknown(
            one_line(name),
            one_line(meant),
            f"`commonplace repos new {one_line(name)}` starts a log of that name",
        )
    return name


def unknown(homes: Sequence[Home], name: str) -> RepoUnknown:
    """Return the error for a name that no log has, with the name that was probably meant."""
    from difflib import get_close_matches  # noqa: PLC0415 (only a typo needs it)

    known = _plain_names(homes)
    nearest = next(iter(get_close_matches(name, known, 1)), "")
    lists = "`commonplace repos` lists all repositories"
    return RepoUnknown(one_line(name), one_line(nearest), lists if known else "there are none yet")


def check(name: object) -> str:
    try:
        return check_repo_name(name)
    except ValueError as error:
        raise RecordInvalid("repo", str(error)) from None


def plain_name_note(name: str, logs: Sequence[str]) -> str:
    """Return a sentence if repositories in different places have the plain name *name*; else ""."""
    hashed = [log for log in logs if plain_name(log) != log]
    if name in hashed or len({plain_name(log) for log in hashed}) == len(hashed):
        return ""
    listed = ", ".join(f"`{one_line(log)}`" for log in logs)
    return f"several repositories are called `{one_line(name)}`; all were searched: {listed}"


def _one(homes: Sequence[Home], name: str) -> str:
    aliases = Aliases(homes)
    if aliases.has_log(check(name)):
        return name
    found = _find(homes, aliases, name)
    if len(found) > 1:
        raise RepoAmbiguous(one_line(name), [one_line(log) for log in found])
    return found[0] if found else ""


def _find(homes: Sequence[Home], aliases: Aliases, name: str) -> list[str]:
    logs = _logs(homes)
    if check(name) in logs and plain_name(name) != name:
        return [name]
    found = _matching(name, logs, aliases, str)
    return found or _matching(name.casefold(), logs, aliases, str.casefold)


def _matching(
    name: str, logs: Iterable[str], aliases: Aliases, form: Callable[[str], str]
) -> list[str]:
    """Return the logs whose name or plain name is *name*, else those with such an alias."""
    named = [log for log in logs if name in (form(log), form(plain_name(log)))]
    if named:
        return named
    known = [
        aliases.log_of(alias) for alias in aliases if name in (form(alias), form(plain_name(alias)))
    ]
    return list(dict.fromkeys(log for log in known if aliases.has_log(log)))


def _logs(homes: Sequence[Home]) -> list[str]:
    return sorted({repo for home in homes for repo in list_repos(home)})


def _plain_names(homes: Sequence[Home]) -> list[str]:
    return list(dict.fromkeys(plain_name(log) for log in _logs(homes)))


def _is_typo(name: str, known: str) -> bool:
    """Whether *name* is *known* with one letter too many, one too few, or two letters swapped.

    A digit more or another letter is usually meant: `api2`, `service-b`.
    """
    name, known = name.casefold(), known.casefold()
    short, long = sorted((name, known), key=len)
    if len(short) < _TYPO_CHARS_MIN or name == known:
        return False
    at = next((n for n, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    if len(long) == len(short) + 1:
        return short[at:] == long[at + 1 :] and long[at].isalpha()
    swapped = short[:at] + short[at : at + 2][::-1] + short[at + 2 :]
    return len(short) == len(long) and swapped == long
