"""Whether a record names a task by its id, or a file by its path: whatever else it says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from commonplace.recall.hits import Hit
    from commonplace.records import Record

# Where episodes, ledgers and handoffs name their task.
_TASK_FIELDS = ("task_id", "current_task", "task", "bead")


def is_of_task(record: Record, task_id: str) -> bool:
    """Whether the record, its context or its `meta` says that it belongs to that task.

    A ledger may add words to the id: `t-4: the login`.
    """
    for place in (record.fields, record.fields.get("context"), record.meta):
        if not isinstance(place, Mapping):
            continue
        for name in _TASK_FIELDS:
            value = place.get(name)
            words = value.split() if isinstance(value, str) else []
            if words and task_id in (value, words[0].rstrip(":,;.")):
                return True
    return False


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
