"""Remove the records of a pack from everywhere in a home: logs, snapshots, index and state.

The log of the pack goes after what is found by its ids, so a removal that was interrupted is done
again from the start. A pack may have a million records: ids are looked up, not searched for.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from commonplace.erasure import sections
from commonplace.erasure.lines import remove_temporaries, strip_line
from commonplace.errors import CommonplaceError, unusable
from commonplace.files import atomic
from commonplace.files.database import files_of
from commonplace.files.lock import hold
from commonplace.files.plain import read_all
from commonplace.index import removal as index_removal
from commonplace.log import pack_logs, read
from commonplace.log.logs import files, is_of_git, log_files
from commonplace.packs import arriving
from commonplace.records import from_line
from commonplace.snapshots import removal as snapshots
from commonplace.usage import Usage
from commonplace.where.home import is_pack_log, repo_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from commonplace.where.home import Home

# What an id may stand among in a text. Ids with other characters are not looked for there.
_WORD = re.compile(rb"[\w.:@/-]{4,200}")
_MARKS = b".:@/-"


class Removed(NamedTuple):
    """What was removed with a pack, and the files that still name one of its records."""

    name: str
    records: int
    # Versions of its records that were edited here.
    edited: int
    # Other lines: feedback, links and contexts that were about its records.
    lines_about: int
    left_in: list[str]


def remove_records(home: Home, name: str, progress: Callable[[int], None]) -> Removed:
    """Remove the records of a pack from *home*, which may be the quarantine; not its description.

    The caller holds the packs of the home.
    """
    count = pack_logs.count(home, name)
    if home.is_quarantine:
        return _remove_from_quarantine(home, name, count)
    ids = _ids_of(home, name)
    own, edited = _ids_in_other_logs(home, name)
    ids = (ids | edited) - own
    lines = sum(_rewrite(path, ids) for path in _other_logs(home))
    lines += snapshots.rewrite(home, lambda raw: _without(raw, ids))
    usage = Usage(home.usage_file)
    usage.forget(ids)
    usage.close()
    _remove_states(home, ids)
    for file, lock in sections.noted(home).items():
        sections.remove_from(file, lock, ids, (), ())
    if name not in pack_logs.names(home.quarantine):
        _clear_quarantine(home.quarantine, name, ids)
    pack_logs.remove_log(home, name)
    _rebuild_index(home, ids, progress)
    left = [str(path) for path in _mentions(home, ids)]
    return Removed(name, count, len(edited - own), lines, left)


def _ids_of(home: Home, name: str) -> set[str]:
    """Return the ids of a pack, also of its earlier versions where no other pack has them now."""
    ids = pack_logs.dropped_ids(home, name)
    for other in pack_logs.names(home) if ids else ():
        if other != name:
            ids.difference_update(record.id for record in pack_logs.records(home, other))
    ids.update(record.id for record in pack_logs.records(home, name))
    return ids


def _remove_from_quarantine(home: Home, name: str, count: int) -> Removed:
    ids = _ids_of(home, name)
    pack_logs.remove_log(home, name)
    _clear_quarantine(home, name, ids)
    return Removed(name, count, 0, 0, [])


def _clear_quarantine(home: Home, name: str, ids: set[str]) -> None:
    """Remove what the quarantine has derived from a pack that is, or was, in it."""
    if not home.path.is_dir():
        return
    index_removal.remove(home)
    usage = Usage(home.usage_file)
    usage.forget(ids)
    usage.close()
    if not set(pack_logs.names(home)) - {name}:
        try:
            shutil.rmtree(home.path)
        except OSError as error:
            raise unusable(home.path, error) from error


def _other_logs(home: Home) -> list[Path]:
    return [path for path in log_files(home) if not is_pack_log(repo_of(path))]


def _ids_in_other_logs(home: Home, name: str) -> tuple[set[str], set[str]]:
    """Return the ids that the user's own records have, and those of edited records of the pack."""
    last: dict[str, bool] = {}
    for path in _other_logs(home):
        for line in read.lines(path):
            with suppress(ValueError):
                record = from_line(line.raw)
                last[record.id] = arriving.is_of(name, record.fields)
    return (
        {ident for ident, is_of_pack in last.items() if not is_of_pack},
        {ident for ident, is_of_pack in last.items() if is_of_pack},
    )


def edited_ids(home: Home, name: str) -> set[str]:
    """Return the ids of the records of a pack that were edited here."""
    return _ids_in_other_logs(home, name)[1]


def _rewrite(path: Path, ids: set[str]) -> int:
    """Remove the lines about *ids* from a log, and links to them; return how many lines changed."""
    if not any(kept != line.raw for line, kept in _stripped(path, ids)):
        return 0
    changed = 0
    with hold(path):
        remove_temporaries(path)

        def lines() -> Iterator[bytes]:
            nonlocal changed
            for line, kept in _stripped(path, ids):
                changed += kept != line.raw
                if kept is not None:
                    yield kept if line.torn else kept + b"\n"

        atomic.replace(path, lines())
    return changed


def _stripped(path: Path, ids: set[str]) -> Iterator[tuple[read.Line, bytes | None]]:
    found = frozenset(ids)
    for line in read.lines(path, whole=True):
        yield line, strip_line(line.raw, found)


def _without(lines: bytes, ids: set[str]) -> tuple[bytes, int]:
    """Return what stays of some lines of a snapshot, and how many changed."""
    found = frozenset(ids)
    before = [raw for raw in lines.split(b"\n") if raw]
    after = [strip_line(raw, found) for raw in before]
    kept = b"".join(raw + b"\n" for raw in after if raw is not None)
    return kept, sum(new != old for new, old in zip(after, before, strict=True))


def _remove_states(home: Home, ids: set[str]) -> None:
    """Remove what is made again from use: the working set, and files of hooks that name a record.

    The working set is a database, in which an id does not stand apart: it goes in any case.
    """
    for path in files_of(home.resonance_file):
        _unlink(path)
    folders = {*home.hook_folders, home.clients_folder}
    if not any(folder.is_dir() for folder in folders):
        return
    with hold(home.spool_lock):
        for path in files(home):
            if folders.intersection(path.parents) and _names_any(path, ids):
                _unlink(path)


def _rebuild_index(home: Home, ids: set[str], progress: Callable[[int], None]) -> None:
    """Remove the index, and make it again with the vectors of all other records."""
    from commonplace.index.embedded import kept_vectors  # noqa: PLC0415 (it loads Tantivy)
    from commonplace.index.embedded.index import EmbeddedIndex  # noqa: PLC0415

    kept = kept_vectors.read(home, ids) if home.index_folder.is_dir() else None
    index_removal.remove(home)
    if kept is not None:
        # The records are gone by now: if this fails, the next recall makes the index.
        with suppress(CommonplaceError, OSError, sqlite3.Error):
            index = EmbeddedIndex(home)
            try:
                index.restore_vectors(kept, progress)
            finally:
                index.close()


def _mentions(home: Home, ids: set[str]) -> Iterator[Path]:
    """Yield the files of *home* that still name a record, such as notes of agents."""
    apart = {home.snapshot_objects, home.pack_logs_folder, home.index_folder, home.packs_folder}
    for path in files(home):
        is_searched = apart.isdisjoint(path.parents) and not is_of_git(home, path)
        if is_searched and home.quarantine.path not in path.parents and _names_any(path, ids):
            yield path


def _names_any(path: Path, ids: set[str]) -> bool:
    for match in _WORD.finditer(read_all(path)):
        word = match[0].decode("utf-8", "replace")
        if word in ids or word.strip(_MARKS.decode()) in ids:
            return True
    return False


def _unlink(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise unusable(path, error) from error
