"""Find the repository of a folder, and the name that a new log of it gets.

That name comes from the address of the git remote, else from the path of the git common directory.
Worktrees share their common directory and clones share their remote, so they share one log. Two
repositories in folders with the same name do not. `aliases.py` finds the log of a repository whose
address or path has changed. The files of git are read; git is not run.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from commonplace.files.plain import read_named
from commonplace.records import check_repo_name
from commonplace.records.ids import blake2b
from commonplace.where.home import is_pack_log

FOLLOWED_MAX = 5
# The log of folders without a name.
GENERAL = "general"
# The log of what several repositories have taught. It is searched from every repository, so no
# folder may have it as its own.
ALL_REPOSITORIES = "all-repositories"
_NAME_BYTES_MAX = 60


GIT_FILE_BYTES_MAX = 8 << 20


class Repository(NamedTuple):
    """`name` is the name of the log, `short` the plain name; the paths are `None` outside git.

    `common` is the git common directory. `origin` is that of the repository on this machine which
    this one is a clone of. `address_name` is the name made from the address of the remote, "" if
    there is none; `path_name` the one made from the path of `common`. A server that is shared by
    all folders has a repository that is not `known`: it searches every log.
    """

    name: str
    short: str
    root: Path | None = None
    main_root: Path | None = None
    common: Path | None = None
    origin: Path | None = None
    address_name: str = ""
    path_name: str = ""
    known: bool = True


def find(cwd: Path) -> Repository:
    """Return the repository that *cwd* is in; outside git, one named after the folder."""
    folders = (cwd, *cwd.parents)
    for folder in folders:
        git = folder / ".git"
        if git.exists():
            common = _common_directory(git)
            if common is not None:
                return _make(folder, common)
    # git checks out a folder that looks like a bare repository, so one below a worktree is none.
    for folder in folders:
        if _is_bare(folder):
            return _make(folder, folder.resolve())
    short = safe_name(cwd.name)
    return Repository(short, short)


def _is_bare(folder: Path) -> bool:
    """Whether *folder* is a bare repository."""
    return folder.name != ".git" and (folder / "HEAD").is_file() and (folder / "objects").is_dir()


def at_common_directory(common: Path) -> Repository:
    """Return the repository with the git common directory *common*."""
    return _make(None, common)


def _make(root: Path | None, common: Path) -> Repository:
    origin, address = _remote_identity(common, FOLLOWED_MAX)
    folder = _folder_of(origin)
    path_name = hashed_name(safe_name(folder.name.removesuffix(".git")), str(origin))
    short = safe_name(address.rpartition("/")[2]) if address else path_name[:-9]
    address_name = hashed_name(short, address) if address else ""
    return Repository(
        address_name or path_name,
        short,
        root,
        common.parent if common.name == ".git" else None,
        common,
        origin if origin != common else None,
        address_name,
        path_name,
    )


def hashed_name(short: str, identity: str) -> str:
    """Return *short* with eight hex digits of the hash of *identity*."""
    digest = blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{short}-{digest}"


def plain_name(log: str) -> str:
    """Return the name of a log without the digits that `hashed_name` adds."""
    short, _hyphen, digest = log.rpartition("-")
    is_hashed = len(digest) == 8 and all(char in "0123456789abcdef" for char in digest)  # noqa: PLR2004
    return short if short and is_hashed else log


def _folder_of(common: Path) -> Path:
    return common.parent if common.name == ".git" else common


def _remote_identity(common: Path, followed_max: int) -> tuple[Path, str]:
    """Return the common directory that identifies the repository, and the address or ""."""
    url = _remote(common)
    if url is None:
        return common, ""
    local = _local_path(url, common)
    if local is not None and followed_max > 0:
        # A clone of a folder on this machine is identified by the repository in that folder.
        origin = local if (local / "HEAD").is_file() else _common_directory(local / ".git")
        if origin is not None and origin != common:
            return _remote_identity(origin, followed_max - 1)
    return common, _normalise_address(url)


def _common_directory(git: Path) -> Path | None:
    """Return the directory that all worktrees share; *git* is a folder or a file that names one."""
    try:
        if git.is_dir():
            directory = git
        else:
            directory = Path(
                os.path.normpath(git.parent / read_of_git(git).removeprefix("gitdir:").strip())
            )
        pointer = directory / "commondir"
        if pointer.is_file():
            directory = Path(os.path.normpath(directory / read_of_git(pointer).strip()))
        return directory.resolve() if (directory / "HEAD").is_file() else None
    except (OSError, UnicodeDecodeError):
        return None


def read_of_git(path: Path, errors: str = "strict") -> str:
    """Return the text of one of git's files. Raises `OSError`: it may be a pipe, or endless."""
    return read_named(path, GIT_FILE_BYTES_MAX).decode("utf-8", errors)


def _remote(common: Path) -> str | None:
    """Return the address of `origin`, else of the first remote."""
    try:
        text = read_of_git(common / "config", errors="replace")
    except OSError:
        return None
    urls: dict[str, str] = {}
    section = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            section = line
        elif section.startswith('[remote "') and line.partition("=")[0].strip().lower() == "url":
            urls.setdefault(
                section[9:].partition('"')[0], line.partition("=")[2].strip().strip('"')
            )
    return urls.get("origin") or next(iter(urls.values()), None)


def _local_path(url: str, common: Path) -> Path | None:
    """Return the folder that a remote names (`/srv/x`, `../x`, `file:///srv/x`), else `None`."""
    if url.startswith("file://"):
        return Path(url.removeprefix("file://"))
    if "://" in url or (":" in url.partition("/")[0] and not Path(url).drive):
        return None
    return Path(os.path.normpath(_folder_of(common) / url))


def _normalise_address(url: str) -> str:
    """Return `host/path` for an address written with https, ssh or `git@host:owner/name.git`."""
    scheme, found, rest = url.partition("://")
    if not found:
        host, _, path = scheme.partition(":")
        rest = f"{host}/{path}" if path else scheme
    host, _, path = rest.partition("/")
    host = host.rpartition("@")[2].partition(":")[0].lower()
    return f"{host}/{path.strip('/').removesuffix('.git')}".strip("/")


def safe_name(name: str) -> str:
    """Return *name* with characters that are not valid in every file system replaced."""
    safe = "".join(char if char.isalnum() or char in "._-+@" else "-" for char in name)
    kept = safe.encode()[:_NAME_BYTES_MAX].decode("utf-8", "ignore").lstrip(".-").rstrip(".")
    if is_of_all(kept):
        return f"repo-{kept}"
    try:
        return check_repo_name(kept)
    except ValueError:
        return f"repo-{kept}" if kept else GENERAL


def is_of_all(name: str) -> bool:
    """Whether the log *name* is that of all repositories, on a system that ignores case, too."""
    return name.casefold() == ALL_REPOSITORIES


def log_for_changes(log: str) -> str:
    """Return the log to which what is said about a record of *log* is written.

    The log of a pack is replaced and removed as a whole, so it takes no lines of the user.
    """
    return ALL_REPOSITORIES if is_pack_log(log) else log
