"""List what is below a folder, within limits and without following links.

Other programs write into a home as well. A link to a parent folder, or a tree without end, may cost
a command an error, but neither its memory nor an hour.
"""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

from commonplace.errors import HomeUnusable, unusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

DEPTH_MAX = 32
ENTRIES_MAX = 250_000


def walk(
    folder: Path,
    *,
    depth_max: int = DEPTH_MAX,
    entries_max: int = ENTRIES_MAX,
    skip_deeper: bool = False,
) -> Iterator[Path]:
    """Yield all files, folders and links below *folder*, in no particular order.

    Raises `HomeUnusable` if there are more than *entries_max*, or if a folder is more than
    *depth_max* levels deep, unless the caller wants to *skip_deeper* ones.
    """
    count = 0
    waiting = [(os.fspath(folder), 1)]
    while waiting:
        place, depth = waiting.pop()
        if depth > depth_max:
            if skip_deeper:
                continue
            raise HomeUnusable(
                place, f"it is more than {depth_max} folders deep", "move it out of the home"
            )
        try:
            with os.scandir(place) as entries:
                found = list(islice(entries, entries_max - count + 1))
        except (FileNotFoundError, NotADirectoryError):
            continue  # Another process removed it, or there never was such a folder.
        except OSError as error:
            raise unusable(place, error) from error
        count += len(found)
        if count > entries_max:
            raise HomeUnusable(
                folder,
                f"it holds more than {entries_max:,} files and folders",
                "move what Commonplace did not write out of it",
            )
        waiting += [
            (entry.path, depth + 1) for entry in found if entry.is_dir(follow_symlinks=False)
        ]
        yield from (Path(entry.path) for entry in found)
