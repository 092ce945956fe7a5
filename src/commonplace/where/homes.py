"""Find the homes that apply in a folder, and create a home."""

from __future__ import annotations

import os
from pathlib import Path

from commonplace.errors import HomeUnusable, UsageError, unusable
from commonplace.where.home import FOLDER, Home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from commonplace.where.repository import Repository

GITIGNORE = (
    "# Derived from the log, or this machine's own.\n.index/\n.state/\n*.rewriting\n*.lock\n"
)
GITATTRIBUTES = (
    "# Two branches that both append merge without a conflict.\n*.jsonl text eol=lf merge=union\n"
)


def find(
    given: str | Path | None, cwd: Path, repository: Repository, environment: Mapping[str, str]
) -> list[Home]:
    """Return the homes that apply in *cwd*, the nearest first.

    The first is written to; all are read. If a home is *given* (`--home`, `Memory.open(home=…)`),
    it is the only one.
    """
    if given is not None:
        return [Home(Path(given).expanduser().absolute(), of_user=True, why="it was named")]
    user = user_home(environment)
    nearest = _nearest(cwd, repository, user.path, user_folder(environment))
    return [nearest, user] if nearest else [user]


def current_folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise UsageError(
            "the current folder no longer exists", "change to another folder"
        ) from None


def check_usable(path: Path) -> None:
    """Raise `HomeUnusable` if the home at *path* exists and cannot be read."""
    try:
        os.scandir(f"{path}{os.sep}.").close()
    except FileNotFoundError:
        return  # It is created on first use.
    except NotADirectoryError:
        raise HomeUnusable(path, "it, or a folder above it, is a file") from None
    except OSError as error:
        raise unusable(path, error) from error


def user_home(environment: Mapping[str, str]) -> Home:
    """Return the user's home: `COMMONPLACE_HOME` if set and not empty, else `~/.commonplace`."""
    named = environment.get("COMMONPLACE_HOME")
    if named:
        return Home(
            Path(named).expanduser().absolute(), of_user=True, why="COMMONPLACE_HOME names it"
        )
    return Home(user_folder(environment) / FOLDER, of_user=True, why="it is the user's")


def _nearest(cwd: Path, repository: Repository, user: Path, own: Path) -> Home | None:
    """Return the home at the root of the repository or of its main worktree.

    Outside git, return the home in this folder or one above it. That search stays within the
    user's own folder: another user may own a `.commonplace` in a shared folder such as `/tmp`.
    """
    if repository.root is not None:
        for root in dict.fromkeys((repository.root, repository.main_root)):
            if root is not None and _is_another(root / FOLDER, user):
                return Home(
                    root / FOLDER, of_user=False, why="it is at the root of this repository"
                )
        return None
    own, cwd = own.resolve(), cwd.resolve()
    for folder in (cwd, *cwd.parents):
        if _is_another(folder / FOLDER, user):
            return Home(folder / FOLDER, of_user=False, why="it is in this folder or one above it")
        if not folder.is_relative_to(own) or folder == own:
            return None
    return None


def _is_another(path: Path, user: Path) -> bool:
    """Whether there is a home at *path* other than the user's, links resolved."""
    return path.is_dir() and path.resolve() != user.resolve()


def make(home: Home) -> list[Path]:
    """Create the missing folders and files of *home*; return those that were created."""
    path, made = home.path, list[Path]()
    try:
        for folder in (path, home.log_folder):
            if not folder.is_dir():
                # Another process may create it at the same time.
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                made.append(folder)
        for name, text in ((".gitignore", GITIGNORE), (".gitattributes", GITATTRIBUTES)):
            if not (path / name).exists():
                (path / name).touch(mode=0o600)
                (path / name).write_text(text, encoding="utf-8", newline="\n")
                made.append(path / name)
    except (FileExistsError, NotADirectoryError):
        raise HomeUnusable(path, "it, or a folder above it, is a file") from None
    except OSError as error:
        raise unusable(path, error) from error
    return made


def user_folder(environment: Mapping[str, str]) -> Path:
    named = environment.get("HOME") or environment.get("USERPROFILE")
    return Path(named) if named else Path.home()
