"""How far a step of learning has read the index of a home.

A mark names the index by its build: one that was built again has other keys, and is read from the
start.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from commonplace.errors import unusable
from commonplace.files import atomic
from commonplace.files.plain import read_small

if TYPE_CHECKING:
    from pathlib import Path

MARK_BYTES_MAX = 4096


class Mark(NamedTuple):
    """Which index was read, and the key of its last line that was looked at."""

    build: str
    key: int
    # A step that looks at recent records only looked at none that is older than this.
    since_micros: int = 0


def read(path: Path, build: str) -> Mark:
    """Return the mark at *path*; the start if it is missing, damaged or of another build.

    Raises `HomeUnusable` if something else is in its place.
    """
    try:
        fields = json.loads(read_small(path, MARK_BYTES_MAX))
        if fields["build"] == build:
            return Mark(build, int(fields["key"]), int(fields.get("since_micros", 0)))
    except FileNotFoundError:
        pass
    except OSError as error:
        raise unusable(path, error) from error
    except (ValueError, TypeError, KeyError):
        pass  # A damaged mark: everything is looked at again.
    return Mark(build, 0)


def write(path: Path, mark: Mark) -> None:
    """Write *mark* to the file at *path*."""
    atomic.replace(path, [json.dumps(mark._asdict()).encode()])
