"""Find the homes that apply in a folder, and create a home."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from commonplace.errors import FolderRefused, HomeUnusable, UsageError, unusable
from commonplace.files import atomic
from commonplace.files.nofollow import is_link
from commonplace.files.plain import allow_owner, is_allowed_owner, make_folder
from commonplace.where import state, trust
from commonplace.where.home import FOLDER, Home
from commonplace.where.marker import MARKER, MARKER_FILE, foreign_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from commonplace.where.repository import Repository

GITIGNORE = (
    "# Derived from the log, or this machine's own.\n.index/\n.state/\n*.rewriting\n*.lock\n"
)
_NAMED = "it was named"
_NAMED_BY_VARIABLE = "COMMONPLACE_HOME names it"


def find(
    given: str | Path | None, cwd: Path, repository: Repository, environment: Mapping[str, str]
) -> list[Home]:
    """Return the homes that apply in *cwd*, the nearest first.

    The first is written to; all are read. If a home is *given* (`--home`, `Memory.open(home=…)`),
    it is the only one.
    """
    if given is not None:
        return [at(Path(given).expanduser(), environment, why=_NAMED)]
    user = user_home(environment)
    nearest = _nearest(cwd, repository, user.path, user_folder(environment))
    return [at(nearest[0], environment, why=nearest[1]), user] if nearest else [user]


def at(path: Path, environment: Mapping[str, str], *, why: str = "") -> Home:
    """Return the home at *path*, which may have come with a repository.

    In its path no link is followed later on; so the links above it are resolved here. The home of
    the user may be a link itself, that of a repository may not.
    """
    path = path.parent.resolve() / path.name
    elsewhere = state.state_of_repository_home(str(path), str(user_home(environment).path))
    if elsewhere:
        home = Home(path, of_user=False, why=why, state_elsewhere=Path(elsewhere))
        return home._replace(trusted=trust.is_trusted(home))
    return Home(path.resolve(), of_user=True, why=why)


def current_folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise UsageError(
            "the current folder no longer exists", "change to another folder"
        ) from None


def check_usable(home: Home) -> None:
    """Raise `HomeUnusable` if *home* exists and cannot be read, is no home, not ours, or a link."""
    path = home.path
    if home.state_elsewhere is not None:
        _check_state_elsewhere(home.state_elsewhere)
    if is_link(path):
        raise HomeUnusable(
            path,
            "it is a symbolic link, and a repository could bring a link to anywhere",
            "name the folder itself with `--home` or `COMMONPLACE_HOME`",
        )
    try:
        os.scandir(f"{path}{os.sep}.").close()
        _check_owner(home)
        _check_marker(home.path)
    except FileNotFoundError:
        _check_restored(path)
        return  # It is created on first use.
    except NotADirectoryError:
        raise HomeUnusable(path, "it, or a folder above it, is a file") from None
    except OSError as error:
        raise unusable(path, error) from error
    for folder in home.folders():
        if is_link(folder):
            raise unusable(folder, OSError(errno.ELOOP, "")) from None


def _check_state_elsewhere(state: Path) -> None:
    """Raise `HomeUnusable` if the state is kept in a user's home that is no home."""
    user = state.parents[2]  # `.state/homes/NAME` in it.
    with suppress(OSError):  # It is missing, or `check_usable` says why it cannot be read.
        _check_marker(user)


def check_exists(home: Home) -> None:
    """Raise `HomeUnusable` if *home* was named and is not there: nothing but a write makes it.

    The user's home that nobody named is empty before its first use.
    """
    if home.why in (_NAMED, _NAMED_BY_VARIABLE) and not home.path.is_dir():
        raise HomeUnusable(
            home.path,
            "there is no such folder",
            "check the path; the first write, e.g. `commonplace log`, makes a new home there",
        )


def _check_restored(path: Path) -> None:
    from commonplace.where import restoring  # noqa: PLC0415 (only for a home that is missing)

    restoring.check(path)


def _check_marker(path: Path) -> None:
    name = foreign_name(path)
    if name:
        raise HomeUnusable(
            path,
            f"it is not a home of Commonplace, since it holds `{name}`; nothing in it was changed",
            "name a home, or a new or empty folder to make one; `commonplace where` without"
            " `--home` and `COMMONPLACE_HOME` shows yours",
        )


def _check_owner(home: Home) -> None:
    owner = os.stat(home.path).st_uid
    if is_allowed_owner(owner):
        return
    if home.of_user:
        hint = "make it yours (`chown -R`), or set `COMMONPLACE_HOME` to a folder of yours"
        raise HomeUnusable(home.path, "it belongs to another user", hint)
    if not home.trusted:
        hint = f"if you trust them, run `commonplace trust {home.path.parent}`"
        raise HomeUnusable(home.path, "it belongs to another user", hint)
    allow_owner(owner)


def user_home(environment: Mapping[str, str]) -> Home:
    """Return the user's home: `COMMONPLACE_HOME` if set and not empty, else `~/.commonplace`."""
    named = environment.get("COMMONPLACE_HOME")
    if named:
        return Home(Path(named).expanduser().resolve(), why=_NAMED_BY_VARIABLE)
    return Home((user_folder(environment) / FOLDER).resolve(), why="it is the user's")


def _nearest(cwd: Path, repository: Repository, user: Path, own: Path) -> tuple[Path, str] | None:
    """Return the home at the root of the repository or of its main worktree, and why it is used.

    Outside git, return the home in this folder or one above it. That search stays within the
    user's own folder: another user may own a `.commonplace` in a shared folder such as `/tmp`.
    """
    if repository.root is not None:
        for root in dict.fromkeys((repository.root, repository.main_root)):
            if root is not None and _is_another(root / FOLDER, user):
                return root / FOLDER, "it is at the root of this repository"
        return None
    own, cwd = own.resolve(), cwd.resolve()
    for folder in (cwd, *cwd.parents):
        if _is_another(folder / FOLDER, user):
            return folder / FOLDER, "it is in this folder or one above it"
        if not folder.is_relative_to(own) or folder == own:
            return None
    return None


def _is_another(path: Path, user: Path) -> bool:
    """Whether there is a home at *path* other than the user's, links resolved."""
    return path.is_dir() and path.resolve() != user.resolve()


def make(home: Home) -> list[Path]:
    """Create the missing folders and files of *home*; return those that were created."""
    path, made = home.path, list[Path]()
    check_usable(home)
    if not os.path.lexists(path / MARKER_FILE):
        _check_restored(path)  # A hook may have made the folder meanwhile, for its state.
    is_new = not path.exists() or trust.is_empty(home)
    try:
        for folder in (path, home.log_folder):
            if not folder.is_dir():
                make_folder(folder)
                made.append(folder)
        for name, text in ((".gitignore", GITIGNORE), (MARKER_FILE, MARKER)):
            if not os.path.lexists(path / name):
                atomic.write(path / name, [text.encode()])
                made.append(path / name)
    except (FileExistsError, NotADirectoryError):
        raise HomeUnusable(path, "it, or a folder above it, is a file") from None
    except OSError as error:
        raise unusable(path, error) from error
    if is_new and not home.of_user:
        trust.trust(home)  # Nobody but us has written into it.
    return made


def user_folder(environment: Mapping[str, str]) -> Path:
    return Path(state.user_folder(environment))


def check_outside(folder: Path, homes: Iterable[Home]) -> None:
    """Refuse a folder within one of *homes*: its files have writers and locks of their own."""
    whole = folder.resolve()
    if any(whole.is_relative_to(home.path.resolve()) for home in homes):
        raise FolderRefused(
            folder, "it is in a home of Commonplace", "name a folder outside the home"
        )
