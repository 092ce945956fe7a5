"""Catching up: index what was added to the files since they were last read.

The tables say how far each file was read, and reading goes on from there. A file that was replaced
or edited is compared line by line, so that only what changed is indexed again.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from commonplace.files.plain import read_start
from commonplace.index.document import document, has_nothing_to_search
from commonplace.index.embedded import sources
from commonplace.index.embedded.settle import Settling
from commonplace.index.embedded.tables import FOREVER
from commonplace.index.ports import no_progress
from commonplace.index.topics import topics_of
from commonplace.index.units import dump, has_markup, units_of
from commonplace.log import read
from commonplace.records import Pattern, Record, encode, from_line, micros, parse_rate
from commonplace.records.ids import blake2b
from commonplace.records.nodes import NODE_KIND, tags_of, type_of
from commonplace.rules import Standing, edges, is_statement, stated_rate, written_micros
from commonplace.where.home import LOG_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import BinaryIO

    from commonplace.index.embedded.sources import ReadPosition, TextFile
    from commonplace.index.embedded.tables import Tables
    from commonplace.where.home import Home

# How many lines are indexed in one transaction; then other processes can write.
BATCH_LINES = 5_000
NOTE_BYTES_MAX = 1 << 20
USES_MAX = 10**9


class Changes(NamedTuple):
    """How many lines a catch-up added and removed."""

    added: int
    removed: int


class CatchUp:
    """Brings the tables of one home up to date with its files."""

    def __init__(self, tables: Tables, home: Home) -> None:
        self._tables = tables
        self._connection = tables.connection
        self._home = home
        self._sources = sources.Sources(home)
        self._settling = Settling(tables.connection)
        self._seen: dict[str, ReadPosition] = {}
        self._seen_at: tuple[int, int] | None = None

    def run(self, progress: Callable[[int], None] = no_progress) -> Changes:
        """Index what was added to the files since they were last read."""
        added = removed = 0
        while True:
            texts = self._sources.texts()
            stats = self._sources.logs() | {text.path: stat for text, stat in texts.items()}
            changed = sources.changed_files(stats, self.read_positions())
            if not changed:
                return Changes(added, removed)
            left = BATCH_LINES
            try:
                with self._tables.writing():
                    self._settling.begin()
                    seen = (
                        self.read_positions()
                    )  # Another process may have caught up while we waited.
                    for log, archive, path in sources.pairs(self._home, stats):
                        if left > 0 and (str(archive) in changed or str(path) in changed):
                            taken, some = self._index_log(seen, log, archive, path, left, progress)
                            left -= taken
                            added, removed = added + some.added, removed + some.removed
                    for text in texts:
                        if left > 0 and text.path in changed:
                            added += self._index_text(seen, text)
                            left -= 1
                    removed += self._drop_gone_files(seen, stats)
                    self._settling.finish()
                    version = self._tables.version()
            except BaseException:
                self._seen_at = None
                raise
            # What this transaction read is in `_seen` already, unless another process wrote since.
            now = self._tables.changes()
            self._seen_at = now if now[0] == version else None
            if left > 0:
                return Changes(added, removed)

    def read_positions(self) -> dict[str, ReadPosition]:
        """Return how far each file was read, by its path."""
        now = self._tables.changes()
        if now != self._seen_at:
            rows = self._connection.execute(
                'SELECT path, inode, size, mtime, "end", tail FROM file'
            )
            self._seen = {
                os.path.join(self._home.path, path): sources.ReadPosition(*rest)  # noqa: PTH118
                for path, *rest in rows
            }
            self._seen_at = now
        return self._seen

    def take_changed_keys(self) -> set[int]:
        """Return the keys of lines that changed since the last call, without those of new lines."""
        changed, self._settling.changed_keys = self._settling.changed_keys, set()
        return changed

    def log_sizes(self) -> dict[tuple[str, bool], int]:
        """Return how many bytes of each log, and of each archive, were read."""
        found: dict[tuple[str, bool], int] = {}
        archive = str(self._home.archive_folder)
        for path, progress in self.read_positions().items():
            if path.endswith(LOG_SUFFIX):
                found[sources.log_of(path), path.startswith(archive)] = progress.size
        return found

    # --- Logs -------------------------------------------------------------------------------------

    def _index_log(
        self,
        seen: dict[str, ReadPosition],
        log: str,
        archive: Path,
        path: Path,
        lines_max: int,
        progress: Callable[[int], None],
    ) -> tuple[int, Changes]:
        """Index the new lines of a log and its archive, at most *lines_max*."""
        archive_changed = not sources.is_unchanged(seen, archive)
        if not archive_changed and sources.is_unchanged(seen, path):
            return 0, Changes(0, 0)
        try:
            # The log is opened before the archive is read; see `log.fold.log_lines`.
            streams = [
                (found, stream)
                for found in (path, archive)
                if (stream := sources.open_log(found)) is not None
            ]
        except OSError:
            return 0, Changes(0, 0)  # It cannot be read; the other logs can.
        try:
            by_name = {str(found): stream for found, stream in streams}
            is_whole = all(str(found) in by_name for found in (archive, path) if str(found) in seen)
            # Lines that are added to the archive after the log was read are out of order.
            in_order = is_whole and not (archive_changed and str(path) in seen)
            if in_order and all(
                sources.has_only_grown(stream, seen.get(name)) for name, stream in by_name.items()
            ):
                return self._append(seen, log, archive, streams[::-1], lines_max, progress)
            return self._compare(log, archive, path, streams[::-1], progress)
        finally:
            for _found, stream in streams:
                stream.close()

    def _append(
        self,
        seen: dict[str, ReadPosition],
        log: str,
        archive: Path,
        streams: list[tuple[Path, BinaryIO]],
        lines_max: int,
        progress: Callable[[int], None],
    ) -> tuple[int, Changes]:
        (position,) = self._connection.execute(
            "SELECT coalesce(max(position), 0) FROM line WHERE log = ?", (log,)
        ).fetchone()
        added = taken = 0
        for found, stream in streams:
            known = seen.get(str(found))
            end = known.end if known else 0
            for line in read.lines_of(stream, end):
                if taken == lines_max:
                    stream.seek(line.offset)
                    self._save_position(found, sources.position_of(stream, line.offset))
                    return taken, Changes(added, 0)
                taken, position = taken + 1, position + 1
                new = self._index_line(log, line.raw, position, archived=found is archive)
                added += new == 1
                end = line.offset if line.torn and new is None else stream.tell()
                progress(1)
            self._save_position(found, sources.position_of(stream, end))
        return taken, Changes(added, 0)

    def _compare(
        self,
        log: str,
        archive: Path,
        path: Path,
        streams: list[tuple[Path, BinaryIO]],
        progress: Callable[[int], None],
    ) -> tuple[int, Changes]:
        """Index a log and its archive again where they differ from the tables."""
        self._settling.only_appended = False
        rows = self._connection.execute(
            "SELECT digest, key, position, archived FROM line WHERE log = ?", (log,)
        ).fetchall()
        gone = {digest: key for digest, key, _position, _archived in rows}
        places = {digest: (position, bool(archived)) for digest, _, position, archived in rows}
        added = position = 0
        for found, stream in streams:
            end = stream.seek(0)
            archived = found is archive
            for line in read.lines_of(stream):
                position += 1
                digest = digest_of(line.raw)
                gone.pop(digest, None)
                new: int | None = 0
                if places.get(digest) != (position, archived):
                    new = self._index_line(log, line.raw, position, archived=archived)
                    added += new == 1
                    places[digest] = (position, archived)
                end = line.offset if line.torn and new is None else stream.tell()
                progress(1)
            self._save_position(found, sources.position_of(stream, end))
        self._settling.remove(gone.values())
        for missing in {archive, path} - {found for found, _stream in streams}:
            self._drop_progress(str(missing))
        return position, Changes(added, len(gone))

    def _index_line(self, log: str, raw: bytes, position: int, *, archived: bool) -> int | None:
        """Return how many lines were added, 0 if it is known; `None` if *raw* holds no record."""
        try:
            record = from_line(raw)
        except ValueError:
            return None  # `doctor` reports damage.
        return self._insert(log, record.repo or log, raw, record, position, archived=archived)

    def _insert(
        self, log: str, repo: str, raw: bytes, record: Record, position: int, *, archived: bool
    ) -> int:
        fields = record.fields
        digest = digest_of(raw)
        of, to, outcome = _statement(record)
        stated = _stated_rate(record)
        event_type = type_of(record) if record.kind == NODE_KIND else fields.get("event_type")
        cursor = self._connection.execute(
            "INSERT INTO line (digest, log, position, archived, id, kind, repo, timestamp, micros,"
            ' written, until, agent, type, tags, of, "to", outcome, stated_worked, stated_tried,'
            " confidence, used, standing) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
            " ON CONFLICT (log, digest) DO NOTHING",
            (
                digest, log, position, archived, record.id, record.kind, repo, record.timestamp,
                micros(record.timestamp), written_micros(record), FOREVER, record.agent_id,
                event_type if isinstance(event_type, str) else "",
                "\n".join(tags_of(record)), of, to, outcome,
                stated[0], stated[1], *_own_counts(record), Standing.REPLACED,
            ),
        )  # fmt: skip
        if not cursor.rowcount:
            # The same line again (a merge, a line that got its newline): its last position applies.
            (key,) = self._connection.execute(
                "SELECT key FROM line WHERE log = ? AND digest = ?", (log, digest)
            ).fetchone()
            self._connection.execute(
                "UPDATE line SET position = ?, archived = ? WHERE key = ?",
                (position, archived, key),
            )
            self._settling.only_appended = False
            self._settling.changed_keys.add(key)
            self._settling.touch(record.id, (of, to), edges(record))
            return 0
        key = cursor.lastrowid
        assert key is not None, "a row was inserted"
        self._connection.execute("INSERT INTO body VALUES (?, ?)", (key, raw))
        if b"\\n" in raw and has_markup(shown := document(record).shown):
            self._connection.execute(
                "INSERT INTO units VALUES (?, ?)", (key, dump(units_of(shown)))
            )
        if not (is_statement(record.kind) or has_nothing_to_search(record)):
            self._connection.execute("INSERT INTO unembedded VALUES (?)", (key,))
        named = topics_of(record, repo)
        if named:
            self._connection.executemany(
                "INSERT OR IGNORE INTO topic VALUES (?, ?, ?)",
                [(name, micros(record.timestamp), key) for name in named],
            )
        found = edges(record)
        if found:
            self._connection.executemany(
                "INSERT INTO edge VALUES (?,?,?,?,?,?)", [(key, *edge) for edge in found]
            )
        self._settling.touch(record.id, (of, to), found)
        return 1

    def _save_position(self, path: str | Path, progress: ReadPosition) -> None:
        row = (self._name(path), *progress)
        self._connection.execute("INSERT OR REPLACE INTO file VALUES (?,?,?,?,?,?)", row)
        self._seen[str(path)] = progress

    def _drop_progress(self, path: str) -> None:
        self._seen.pop(path, None)
        self._connection.execute("DELETE FROM file WHERE path = ?", (self._name(path),))

    def _name(self, path: str | Path) -> str:
        """Return the path from the home, by which the tables know a file wherever the home is."""
        return os.path.relpath(path, self._home.path)

    # --- Notes and skills -------------------------------------------------------------------------

    def _index_text(self, seen: dict[str, ReadPosition], text: TextFile) -> int:
        """Index a note or a skill: one document for each file, replaced when the file changes."""
        if sources.is_unchanged(seen, text.path):
            return 0
        name = self._name(text.path)
        self._settling.remove(self._keys_of(name))
        try:
            found = os.stat(text.path, follow_symlinks=False)
            content = read_start(Path(text.path), NOTE_BYTES_MAX).decode("utf-8", "replace")
        except OSError:
            return 0
        record = _text_record(text, content, name, found.st_mtime)
        self._insert(name, "", encode(record.fields).encode(), record, 1, archived=False)
        progress = sources.ReadPosition(*sources.stat_of(found), found.st_size, b"")
        self._save_position(text.path, progress)
        return 1

    def _drop_gone_files(self, seen: dict[str, ReadPosition], stats: Iterable[str]) -> int:
        names = set(stats)
        logs = {sources.log_of(name) for name in names}
        removed = 0
        for name in [name for name in seen if name not in names]:
            # A log that was archived as a whole was compared already; a new file is not gone.
            if sources.log_of(name) not in logs and not os.path.exists(name):
                keys = self._keys_of(sources.log_of(self._name(name)))
                self._settling.remove(keys)
                self._drop_progress(name)
                removed += len(keys)
        return removed

    def _keys_of(self, log: str) -> list[int]:
        rows = self._connection.execute("SELECT key FROM line WHERE log = ?", (log,))
        return [key for (key,) in rows]


def digest_of(raw: bytes) -> bytes:
    return blake2b(raw, digest_size=12).digest()


def _statement(record: Record) -> tuple[str | None, str | None, str | None]:
    """Return what the record states about others: `of`, `to` and `outcome`."""
    if not is_statement(record.kind):
        return None, None, None
    of, to, outcome = (record.fields.get(name) for name in ("of", "to", "outcome"))
    return (
        of if isinstance(of, str) else None,
        to if record.kind == "link" and isinstance(to, str) else None,
        outcome if record.kind == "feedback" and isinstance(outcome, str) else None,
    )


def _stated_rate(record: Record) -> tuple[int, int] | tuple[None, None]:
    stated = stated_rate(record)
    return parse_rate(stated) if stated else (None, None)


def _own_counts(record: Record) -> tuple[float, int]:
    """Return the confidence and the number of uses that a pattern states; of others, none."""
    if not isinstance(record, Pattern):
        return 0.0, 0
    # A line may hold any number; SQLite's integers have 64 bits.
    return min(max(float(record.confidence), 0.0), 1.0), min(record.usage_count, USES_MAX)


def _text_record(text: TextFile, content: str, name: str, mtime: float) -> Record:
    title = next(
        (line.lstrip("# ").strip() for line in content.splitlines() if line.startswith("#")),
        Path(text.path).stem,
    )
    moment = datetime.fromtimestamp(int(mtime), UTC).isoformat().replace("+00:00", "Z")
    fields = {
        "id": text.ident,
        "kind": text.kind,
        "timestamp": moment,
        "repo": "",
        "title": title,
        "text": content,
        "path": name,
    }
    if text.kind == "note":
        fields["agent_id"] = text.ident.removeprefix("note:").partition("/")[0]
    return Record(fields)
