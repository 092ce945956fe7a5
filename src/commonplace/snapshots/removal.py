"""Remove text from all snapshots of a home: for erasures, and for secrets that `scan` finds.

An object that held it is replaced by one with another name, and so is all that names it; then the
old ones are removed. Until the files of the snapshots name the new ones, nothing is removed, so a
process that was killed is finished by doing it again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.snapshots import store
from commonplace.snapshots.objects import Objects

if TYPE_CHECKING:
    from collections.abc import Callable

    from commonplace.where.home import Home


def rewrite(home: Home, change: Callable[[bytes], tuple[bytes, int]]) -> int:
    """Change the lines of all snapshots of *home*; return how many were changed or removed.

    *change* is given some whole lines, and returns what stays of them and how many it changed.
    """
    if not home.snapshots_folder.is_dir():
        return 0
    objects = Objects(home.snapshot_objects)
    count = 0

    def counted(lines: bytes) -> bytes:
        nonlocal count
        kept, changed = change(lines)
        count += changed
        return kept

    known: dict[str, str] = {}
    with store.holding(home):
        for error in store.damaged(home):
            if error.is_newer:
                raise error  # Its objects would be removed as if nothing named them.
        found = store.listed(home)
        rewritten: list[store.Snapshot] = []
        for snapshot in found:
            rows = store.logs(home, snapshot)
            new = [
                row._replace(
                    archive=objects.rewrite(row.archive, counted, known),
                    log=objects.rewrite(row.log, counted, known),
                )
                for row in rows
            ]
            if new != rows:
                root = objects.put_lines(store.table(new))
                rewritten.append(snapshot._replace(root=root, erased=snapshot.erased + 1))
        objects.sync()
        for snapshot in rewritten:
            store.save(home, snapshot)
        _remove_unused(home, objects)
    return count


def visit(home: Home, see: Callable[[bytes], None]) -> None:
    """Call *see* with all lines of all snapshots of *home*, those of each object once."""
    objects = Objects(home.snapshot_objects)

    def look(lines: bytes) -> bytes:
        see(lines)
        return lines

    if home.snapshots_folder.is_dir():
        known: dict[str, str] = {}
        with store.holding(home):
            for snapshot in store.listed(home):
                for row in store.logs(home, snapshot):
                    objects.rewrite(row.archive, look, known)
                    objects.rewrite(row.log, look, known)


def _remove_unused(home: Home, objects: Objects) -> None:
    """Remove the objects that no snapshot names: those replaced here, or left by a killed one."""
    used: set[str] = set()
    for snapshot in store.listed(home):
        objects.reach(snapshot.root, used)
        for row in store.logs(home, snapshot):
            objects.reach(row.archive, used)
            objects.reach(row.log, used)
    objects.remove_except(used)
