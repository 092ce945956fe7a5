"""Whether a record names a file by its path, whatever else it says."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from commonplace.recall.hits import Hit


def paths_in_repository(files: Iterable[str], root: Path | None) -> list[str]:
    """Return the paths as records write them: relative to the repository, with slashes."""
    found = []
    for file in files:
        path = Path(file)
        if root is not None and path.is_absolute() and path.is_relative_to(root):
            path = path.relative_to(root)
        name = PurePosixPath(path.as_posix().replace("\\", "/")).as_posix()
        if name not in ("", "."):
            found.append(name)
    return list(dict.fromkeys(found))


def folders_of(path: str) -> list[str]:
    """Return the folders that a file is in, the nearest first."""
    return [str(one) for one in PurePosixPath(path).parents if str(one) not in (".", "/")]


def names_path(hit: Hit, paths: Sequence[str]) -> bool:
    """Whether the record names one of *paths*, or a folder of it, as `db/migrations/`.

    An episode must name the file: it may have passed through any folder.
    """
    text = hit.document.text.replace("\\", "/")
    if any(re.search(rf"(?<![\w.-]){re.escape(path)}(?![\w-])", text) for path in paths):
        return True
    folders = {folder for path in paths for folder in folders_of(path)}
    return hit.kind != "episode" and any(
        re.search(rf"(?<![\w./-]){re.escape(folder)}/(?![\w.-])", text) for folder in folders
    )
