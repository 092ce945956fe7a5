"""Find what a killed `backup restore` has left: a new home beside the place of the old one.

Between the moment the old home is set aside and the moment the new one is in its place there is no
home. A command that made an empty one then would hide that both are still there.
"""

from __future__ import annotations

from glob import escape
from typing import TYPE_CHECKING

from commonplace.errors import HomeUnusable

if TYPE_CHECKING:
    from pathlib import Path

_SUFFIX = ".restoring"
_BEFORE = ".before-"


def new_path(home: Path, word: str) -> Path:
    """Return where the files of a backup are written before they become *home*."""
    return home.with_name(f".{home.name}.{word}{_SUFFIX}")


def old_path(home: Path, stamp: str) -> Path:
    """Return where a home that is replaced is kept."""
    return home.with_name(f"{home.name}{_BEFORE}{stamp}")


def unfinished(home: Path) -> list[Path]:
    """Return what unfinished restores of *home* have left."""
    return sorted(home.parent.glob(f".{escape(home.name)}.*{_SUFFIX}"))


def check(home: Path) -> None:
    """Raise `HomeUnusable` if *home*, which is missing or empty, was to be restored."""
    left = unfinished(home)
    if not left:
        return
    kept = sorted(home.parent.glob(f"{escape(home.name)}{_BEFORE}*"))
    hint = (
        f"rename `{left[-1]}` to `{home}` to finish it, or `{kept[-1]}` to have the old home back"
        if kept
        else f"if it is not running, remove `{left[-1]}` and restore the backup again"
    )
    raise HomeUnusable(home, "it is missing, and a `backup restore` of it is not finished", hint)
