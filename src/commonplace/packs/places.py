"""Where packs may be: in the home's `packs/`, and in folders that the user's settings name.

An agent names the file, so nothing else may be written or read: no other folder, no other kind of
file, and nothing through a link.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from commonplace.errors import PackRefused
from commonplace.files.nofollow import is_link

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commonplace.where.home import Home

SUFFIX = ".kpack"
_NAME_CHARS_MAX = 120
_PARTS_MAX = 8
_FORBIDDEN = frozenset('\\:*?"<>|')


def find(home: Home, folders: Sequence[str], given: str) -> Path:
    """Return the file that *given* names: below `packs/`, or whole, below one of *folders*."""
    if not given.strip():
        raise PackRefused(given, "has no name", f"name a file, e.g. `packs/cpp-core{SUFFIX}`")
    path = Path(given).expanduser() if given.startswith("~/") else Path(given)
    if path.is_absolute():
        base, rest = _allowed(home, folders, path)
    else:
        parts = path.parts
        base, rest = home.packs_folder, parts[1:] if parts[:1] == ("packs",) else parts
    _check(given, rest)
    found = base.joinpath(*rest)
    for part in (found, *found.parents):
        if part == base:
            break
        if is_link(part):
            raise PackRefused(given, "leads through a link, which is not followed")
    return found


def _allowed(home: Home, folders: Sequence[str], path: Path) -> tuple[Path, tuple[str, ...]]:
    """Return the folder that *path* is in, and the rest of it."""
    # The user may name a folder that is itself a link; below it, there may be none.
    named = [(home.packs_folder, home.packs_folder)]
    for folder in folders:
        whole = Path(folder).expanduser().absolute()
        named += [(whole, whole.resolve()), (whole.resolve(), whole.resolve())]
    for outside, real in named:
        if path.is_relative_to(outside):
            return real, path.relative_to(outside).parts
    raise PackRefused(
        path,
        "is in no folder for packs",
        "name a file in the home's `packs/`, or have the user add the folder to `packs.folders`",
    )


def _check(given: str, parts: Sequence[str]) -> None:
    is_plain = all(
        part.isprintable() and not part.startswith((".", "~")) and not _FORBIDDEN & set(part)
        for part in parts
    )
    is_short = 0 < len(parts) <= _PARTS_MAX and all(len(part) <= _NAME_CHARS_MAX for part in parts)
    if not is_plain or not is_short:
        raise PackRefused(
            given, "is not the name of a pack", f"name a file such as `packs/cpp-core{SUFFIX}`"
        )
    if not parts[-1].endswith(SUFFIX) or parts[-1] == SUFFIX:
        raise PackRefused(given, f"does not end with `{SUFFIX}`", "add that to its name")
