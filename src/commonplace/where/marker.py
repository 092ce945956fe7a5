"""What makes a folder a home: the marker that we put there, or nothing in it that is not ours.

Commands write into a home, change the modes of its files and remove secrets from them. A folder
that was named by mistake (`--home .` in a project) must not be taken for one.
"""

from __future__ import annotations

import os

from commonplace.files.plain import read_small
from commonplace.where.state import INDEX, STATE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

MARKER_FILE = ".gitattributes"
# Every home has had these two lines since the first version. Other programs may merge `*.jsonl`
# like this; our comment makes the pair unmistakable.
MARKER = (
    "# Two branches that both append merge without a conflict.\n*.jsonl text eol=lf merge=union\n"
)
_MARKER_BYTES_MAX = 64 << 10
# What a home without the marker may hold: one that was made by hand, or of which hooks or a server
# have written only the state so far. `.DS_Store` is the work of a file manager.
_NAMES = frozenset([
    "config.toml", "log", "repos.jsonl", "agents", "skills", "scripts", "CONTINUITY.md", STATE,
    "snapshots", "packs", ".git", ".gitignore", MARKER_FILE, ".DS_Store",
])  # fmt: skip
# One of these shows that a repository without the marker is a home; these others many have.
_SIGNS = frozenset(["log", "config.toml", "repos.jsonl", STATE])
_COMMON = frozenset(["agents", "skills", "scripts"])
_ENDINGS = (".rewriting", ".lock")


def foreign_name(folder: Path) -> str:
    """Return the name of something in *folder* that no home has; "" if the folder is a home.

    An empty folder is one: the first write makes the rest. Raises `OSError` if it cannot be read.
    """
    if _has_marker(folder):
        return ""
    names = sorted(os.listdir(folder))
    foreign = next((name for name in names if not _is_of_home(name)), "")
    if foreign or ".git" not in names or not _SIGNS.isdisjoint(names):
        return foreign
    # A repository with a collection of skills is no home; one that is a home has the marker.
    return next((name for name in names if name in _COMMON), "")


def _has_marker(folder: Path) -> bool:
    try:
        text = read_small(folder / MARKER_FILE, _MARKER_BYTES_MAX)
    except OSError:
        return False
    # git may have changed the line ends.
    return MARKER.encode() in text.replace(b"\r\n", b"\n")


def _is_of_home(name: str) -> bool:
    return name in _NAMES or name.startswith(INDEX) or name.endswith(_ENDINGS)
