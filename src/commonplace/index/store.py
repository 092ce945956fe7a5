"""The index's tables: every line of the logs, notes and skills, with what ranking needs to know of it.

SQLite holds them, shared by any number of processes. The tables say how far each file was read; `catch_up` reads on
from there. A file that was replaced or edited is compared line by line, so only what changed is indexed again.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from commonplace.index import tokens
from commonplace.index.document import UNSEARCHED_KINDS
from commonplace.log import read
from commonplace.records import KINDS, Record, decode, encode, from_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

# Bump when the tables or the terms change; an old index is thrown away and rebuilt.
SCHEMA_VERSION = 100 + tokens.VERSION
BUSY_MS_MAX = 30_000
TAIL_BYTES = 64
NOTE_BYTES_MAX = 1 << 20

TABLES = """
CREATE TABLE file (path TEXT PRIMARY KEY, inode INTEGER, size INTEGER, mtime INTEGER, tail BLOB, lines INTEGER);
CREATE TABLE doc (
    key INTEGER PRIMARY KEY AUTOINCREMENT, digest BLOB NOT NULL, id TEXT NOT NULL, log TEXT NOT NULL,
    repo TEXT NOT NULL, kind TEXT NOT NULL, timestamp TEXT NOT NULL, of TEXT, outcome TEXT,
    archived INTEGER NOT NULL, place INTEGER NOT NULL, raw BLOB NOT NULL);
CREATE UNIQUE INDEX doc_line ON doc (log, digest);
CREATE INDEX doc_id ON doc (id);
CREATE INDEX doc_of ON doc (of) WHERE of IS NOT NULL;
CREATE INDEX doc_time ON doc (timestamp);
CREATE TABLE edge (key INTEGER, of TEXT, rel TEXT, "to" TEXT);
CREATE INDEX edge_of ON edge (of);
CREATE INDEX edge_to ON edge ("to");
CREATE INDEX edge_key ON edge (key);
CREATE TABLE head (id TEXT PRIMARY KEY, key INTEGER NOT NULL);
CREATE INDEX head_key ON head (key);
CREATE TABLE dropped (key INTEGER PRIMARY KEY);
CREATE TABLE vector (row INTEGER PRIMARY KEY AUTOINCREMENT, key INTEGER NOT NULL, v BLOB NOT NULL);
CREATE INDEX vector_key ON vector (key);
CREATE TABLE unembedded (key INTEGER PRIMARY KEY);
CREATE TABLE state (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
"""


class Row(NamedTuple):
    """One searchable line, as ranking sees it."""

    key: int
    id: str
    repo: str
    kind: str
    timestamp: str
    archived: bool
    place: int
    log: str
    record: Record


class Changes(NamedTuple):
    """What a catch-up did."""

    added: int
    removed: int


class Store:
    """The open tables of one home."""

    def __init__(self, path: Path | None, *, until: str = "") -> None:
        self.path = path
        self._until = until  # Nothing later is taken in: the home as it stood then.
        self.connection = sqlite3.connect(
            str(path) if path else ":memory:",
            timeout=BUSY_MS_MAX / 1000,
            isolation_level=None,
            check_same_thread=False,
        )
        self.connection.execute("PRAGMA journal_mode = WAL")
        # The index can be rebuilt; what must not be lost is in the logs.
        self.connection.execute("PRAGMA synchronous = OFF")
        self.connection.execute("PRAGMA cache_size = -16000")
        self._inode = path.stat().st_ino if path else 0
        self._create()

    def _create(self) -> None:
        (version,) = self.connection.execute("PRAGMA user_version").fetchone()
        if version == SCHEMA_VERSION:
            return
        if version:
            raise sqlite3.DatabaseError(f"the index has schema {version}, not {SCHEMA_VERSION}")
        with self.writing():
            (version,) = self.connection.execute("PRAGMA user_version").fetchone()
            if not version:
                for statement in TABLES.split(";"):
                    self.connection.execute(statement)
                self.connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def close(self) -> None:
        self.connection.close()

    def is_current(self) -> bool:
        """Whether the file at the path is still the one that is open: another process may have rebuilt it."""
        try:
            return self.path is None or self.path.stat().st_ino == self._inode
        except FileNotFoundError:
            return False

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One transaction, alone; other processes wait their turn instead of failing."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")

    # --- Catching up ----------------------------------------------------------------------------------------------

    def catch_up(self, home: Path, progress: Callable[[int], None] = lambda _done: None) -> Changes:
        """Read what the files of *home* hold beyond what was read before."""
        texts = list(_texts(home))
        stamps = _stamps(home, texts)
        if stamps == {path: known[:3] for path, known in self._files().items()}:
            return Changes(0, 0)
        pairs = list(_logs(home))
        added = removed = 0
        with self.writing():
            seen = self._files()  # Another process may have been quicker while we waited.
            for log, archive, path in pairs:
                changes = self._catch_up_log(seen, log, archive, path, progress)
                added, removed = added + changes.added, removed + changes.removed
            for path, ident, kind in texts:
                if not self._unchanged(seen, path):
                    added += self._take_text(path, ident, kind)
            logs = {log for log, _archive, _path in pairs}
            for name in seen:
                # A log that went to its archive whole was compared above; what is new since we looked is not gone.
                if name not in stamps and _log_of(name) not in logs and not os.path.exists(name):
                    removed += self._forget_file(name)
        return Changes(added, removed)

    def _files(self) -> dict[str, tuple[int, int, int, bytes, int]]:
        rows = self.connection.execute("SELECT path, inode, size, mtime, tail, lines FROM file")
        return {path: (inode, size, mtime, tail, lines) for path, inode, size, mtime, tail, lines in rows}

    @staticmethod
    def _unchanged(seen: dict[str, tuple[int, int, int, bytes, int]], path: Path) -> bool:
        try:
            found = os.stat(path)
        except OSError:
            return str(path) not in seen
        known = seen.get(str(path))
        return known is not None and known[:3] == (found.st_ino, found.st_size, found.st_mtime_ns)

    def _catch_up_log(
        self,
        seen: dict[str, tuple[int, int, int, bytes, int]],
        log: str,
        archive: Path,
        path: Path,
        progress: Callable[[int], None],
    ) -> Changes:
        if self._unchanged(seen, archive) and self._unchanged(seen, path):
            return Changes(0, 0)
        known = seen.get(str(path))
        if known and self._unchanged(seen, archive) and _only_grew(path, known):
            return self._append(log, path, known, progress)
        return self._compare(log, archive, path, progress)

    def _append(
        self,
        log: str,
        path: Path,
        known: tuple[int, int, int, bytes, int],
        progress: Callable[[int], None],
    ) -> Changes:
        (place,) = self.connection.execute("SELECT coalesce(max(place), 0) FROM doc WHERE log = ?", (log,)).fetchone()
        added, end, lines = 0, known[1], known[4]
        with path.open("rb") as stream:
            for line in read.lines_of(stream, known[1]):
                if line.torn:
                    break  # Somebody is writing it, or died: the next line tells.
                end, lines = line.offset + len(line.raw) + 1, lines + 1
                place += 1
                added += self._take_line(log, line.raw, place, archived=False)
                progress(1)
            self._note(path, stream.fileno(), end, lines)
        return Changes(added, 0)

    def _compare(self, log: str, archive: Path, path: Path, progress: Callable[[int], None]) -> Changes:
        """Index a log and its archive anew where they differ from what is known, in their order."""
        known = dict(self.connection.execute("SELECT digest, key FROM doc WHERE log = ?", (log,)).fetchall())
        kept: set[int] = set()
        added = place = 0
        # The log is opened before the archive is read; see `log.view.all_lines`.
        streams = [(found, stream) for found in (path, archive) if (stream := _opened(found)) is not None]
        self.connection.execute("DELETE FROM head WHERE key IN (SELECT key FROM doc WHERE log = ?)", (log,))
        try:
            for found, stream in reversed(streams):
                end = lines = 0
                for line in read.lines_of(stream):
                    if line.torn:
                        break
                    end, lines, place = line.offset + len(line.raw) + 1, lines + 1, place + 1
                    digest = _digest(line.raw)
                    key = known.get(digest)
                    if key is None or key in kept:
                        added += self._take_line(log, line.raw, place, archived=found is archive)
                    else:
                        kept.add(key)
                        self._move(key, place, archived=found is archive)
                    progress(1)
                self._note(found, stream.fileno(), end, lines)
        finally:
            for _found, stream in streams:
                stream.close()
        gone = [key for key in known.values() if key not in kept]
        self._drop(gone)
        self._find_heads()
        for found in (path, archive):
            if not found.exists():
                self.connection.execute("DELETE FROM file WHERE path = ?", (str(found),))
        return Changes(added, len(gone))

    def _take_line(self, log: str, raw: bytes, place: int, *, archived: bool) -> int:
        if not raw.strip():
            return 0
        try:
            record = from_line(raw)
        except ValueError:
            return 0  # `doctor` tells of damages.
        if self._until and record.timestamp > self._until:
            return 0
        self._insert(log, raw, record, place, archived=archived)
        return 1

    def _insert(self, log: str, raw: bytes, record: Record, place: int, *, archived: bool) -> None:
        of = record.fields.get("of")
        digest = _digest(raw)
        self.connection.execute("DELETE FROM doc WHERE log = ? AND digest = ?", (log, digest))
        cursor = self.connection.execute(
            "INSERT INTO doc (digest, id, log, repo, kind, timestamp, of, outcome, archived, place, raw)"
            " VALUES (?,?,?,?,?,?,?,?,?,?,?)",
            (digest, record.id, log, record.repo or log, record.kind, record.timestamp,
             of if isinstance(of, str) else None, record.fields["outcome"] if record.kind == "feedback" else None,
             archived, place, raw),
        )  # fmt: skip
        key = cursor.lastrowid
        assert key is not None
        self._set_head(record.id, key)
        if record.kind not in UNSEARCHED_KINDS:
            self.connection.execute("INSERT INTO unembedded VALUES (?)", (key,))
        edges = [(key, record.id, edge.rel, edge.to) for edge in record.edges]
        edges += [(key, record.id, "derived_from", source) for source in record.sources]
        if record.kind == "link" and isinstance(of, str):
            edges.append((key, of, str(record.fields["rel"]), str(record.fields["to"])))
        if edges:
            self.connection.executemany("INSERT INTO edge VALUES (?,?,?,?)", edges)

    def _move(self, key: int, place: int, *, archived: bool) -> None:
        self.connection.execute("UPDATE doc SET place = ?, archived = ? WHERE key = ?", (place, archived, key))
        (ident,) = self.connection.execute("SELECT id FROM doc WHERE key = ?", (key,)).fetchone()
        self._set_head(ident, key)

    def _find_heads(self) -> None:
        """Give ids that lost theirs to a comparison the last line another log has of them."""
        lost = "SELECT id, log, max(place) FROM doc WHERE id NOT IN (SELECT id FROM head) GROUP BY id, log"
        for ident, log, place in self.connection.execute(lost).fetchall():
            query = "SELECT key FROM doc WHERE id = ? AND log = ? AND place = ?"
            (key,) = self.connection.execute(query, (ident, log, place)).fetchone()
            self._set_head(ident, key)

    def _set_head(self, ident: str, key: int) -> None:
        """Make *key* the current line of *ident*, unless another log has a later one."""
        replaced = self.connection.execute(
            "SELECT head.key, old.log != new.log AND old.timestamp > new.timestamp FROM head"
            " JOIN doc AS old ON old.key = head.key JOIN doc AS new ON new.key = ? WHERE head.id = ?",
            (key, ident),
        ).fetchone()
        if replaced and replaced[1]:
            self.connection.execute("INSERT OR IGNORE INTO dropped VALUES (?)", (key,))
            return
        if replaced:
            self.connection.execute("INSERT OR IGNORE INTO dropped VALUES (?)", replaced[:1])
        self.connection.execute("INSERT OR REPLACE INTO head VALUES (?, ?)", (ident, key))
        self.connection.execute("DELETE FROM dropped WHERE key = ?", (key,))

    def _drop(self, keys: Iterable[int]) -> None:
        for key in keys:
            for table in ("doc", "edge", "vector", "head", "unembedded"):
                self.connection.execute(f"DELETE FROM {table} WHERE key = ?", (key,))  # noqa: S608 (our own names)
            self.connection.execute("INSERT OR IGNORE INTO dropped VALUES (?)", (key,))

    def _note(self, path: Path, descriptor: int, end: int, lines: int) -> None:
        """Remember how far a file was read. A torn end is left out, so the file counts as changed until it is whole."""
        found = os.fstat(descriptor)
        tail = os.pread(descriptor, TAIL_BYTES, max(0, end - TAIL_BYTES)) if hasattr(os, "pread") else b""
        tail = tail[: min(TAIL_BYTES, end)]
        row = (str(path), found.st_ino, end, found.st_mtime_ns, tail, lines)
        self.connection.execute("INSERT OR REPLACE INTO file VALUES (?,?,?,?,?,?)", row)

    def _take_text(self, path: Path, ident: str, kind: str) -> int:
        """Index a note or a skill: one document a file, replaced when the file changes."""
        self._forget_file(str(path), forget_path=False)
        try:
            raw_text = path.read_bytes()[:NOTE_BYTES_MAX]
            text = raw_text.decode("utf-8")
            found = path.stat()
        except (OSError, UnicodeDecodeError):
            return 0
        when = datetime.fromtimestamp(int(found.st_mtime), UTC).isoformat().replace("+00:00", "Z")
        if self._until and when > self._until:
            return 0
        title = next((line.lstrip("# ").strip() for line in text.splitlines() if line.startswith("#")), path.stem)
        fields = {
            "id": ident,
            "kind": kind,
            "timestamp": when,
            "repo": "",
            "title": title,
            "text": text,
            "path": str(path),
        }
        if kind == "note":
            fields["agent_id"] = ident.removeprefix("note:").partition("/")[0]
        self._insert(str(path), encode(fields).encode(), Record(fields), 1, archived=False)
        row = (str(path), found.st_ino, found.st_size, found.st_mtime_ns, b"", 1)
        self.connection.execute("INSERT OR REPLACE INTO file VALUES (?,?,?,?,?,?)", row)
        return 1

    def _forget_file(self, name: str, *, forget_path: bool = True) -> int:
        """Drop a file that is gone; a log goes under its repository's name, a text under its path."""
        log = _log_of(name)
        keys = [key for (key,) in self.connection.execute("SELECT key FROM doc WHERE log = ?", (log,))]
        self._drop(keys)
        if forget_path:
            self.connection.execute("DELETE FROM file WHERE path = ?", (name,))
        return len(keys)

    # --- Looking things up ----------------------------------------------------------------------------------------

    def state(self, name: str, default: int | str = 0) -> int | str:
        row = self.connection.execute("SELECT value FROM state WHERE name = ?", (name,)).fetchone()
        return row[0] if row else default

    def set_state(self, name: str, value: int | str) -> None:
        self.connection.execute("INSERT OR REPLACE INTO state VALUES (?, ?)", (name, value))

    def searchable(self, after: int, until: int = 1 << 62) -> Iterator[tuple[int, str, str, bytes]]:
        """Current searchable lines with a key greater than *after*: (key, repo, kind, raw)."""
        marks = ",".join("?" * len(UNSEARCHED_KINDS))
        return self.connection.execute(
            "SELECT doc.key, doc.repo, doc.kind, doc.raw FROM doc JOIN head ON head.key = doc.key"  # noqa: S608
            f" WHERE doc.key > ? AND doc.key <= ? AND doc.kind NOT IN ({marks}) ORDER BY doc.key",
            (after, until, *sorted(UNSEARCHED_KINDS)),
        )

    def rows(self, keys: Iterable[int]) -> dict[int, Row]:
        """The current lines among *keys*."""
        wanted = list(keys)
        found: dict[int, Row] = {}
        for start in range(0, len(wanted), 500):
            some = wanted[start : start + 500]
            marks = ",".join("?" * len(some))
            query = (
                "SELECT doc.key, doc.id, repo, kind, timestamp, archived, place, log, raw FROM doc"  # noqa: S608
                f" JOIN head ON head.key = doc.key WHERE doc.key IN ({marks})"
            )
            for key, ident, repo, kind, timestamp, archived, place, log, raw in self.connection.execute(query, some):
                record = _record(raw)
                found[key] = Row(key, ident, repo, kind, timestamp, bool(archived), place, log, record)
        return found

    def recent(self, limit: int, where: str, arguments: tuple[object, ...]) -> list[Row]:
        """The newest current lines for which the SQL condition *where* holds."""
        marks = ",".join("?" * len(UNSEARCHED_KINDS))
        keys = self.connection.execute(
            "SELECT doc.key FROM doc JOIN head ON head.key = doc.key"  # noqa: S608
            f" WHERE kind NOT IN ({marks}) AND {where} ORDER BY timestamp DESC, place DESC LIMIT ?",
            (*sorted(UNSEARCHED_KINDS), *arguments, limit),
        ).fetchall()
        rows = self.rows(key for (key,) in keys)
        return [rows[key] for (key,) in keys if key in rows]

    def column(self, query: str, arguments: Iterable[object] = ()) -> list[tuple[object, ...]]:
        return self.connection.execute(query, tuple(arguments)).fetchall()


def _record(raw: bytes) -> Record:
    """A line that was checked when it was taken in."""
    fields = decode(raw)
    return KINDS.get(fields["kind"], Record)(fields)


def _logs(home: Path) -> Iterator[tuple[str, Path, Path]]:
    """(name, archive, log) of every log."""
    folder = home / "log"
    archive = folder / "archive"
    names = {name for where in (folder, archive) for name in _names(where) if name.endswith(".jsonl")}
    for name in sorted(names):
        yield name.removesuffix(".jsonl"), archive / name, folder / name


def _stamps(home: Path, texts: Iterable[tuple[Path, str, str]]) -> dict[str, tuple[int, int, int]]:
    """What would change if a file did: inode, size and time of every file that is indexed, by its path."""
    found: dict[str, tuple[int, int, int]] = {}
    for folder in (home / "log", home / "log" / "archive"):
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name.endswith(".jsonl") and not entry.name.startswith(".") and entry.is_file():
                        found[entry.path] = _stamp(entry.stat())
        except (FileNotFoundError, NotADirectoryError):
            continue
    for path, _ident, _kind in texts:
        found[str(path)] = _stamp(path.stat())
    return found


def _stamp(stat: os.stat_result) -> tuple[int, int, int]:
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def _names(folder: Path) -> list[str]:
    """The names in a folder, hidden ones left out; none if there is no such folder."""
    try:
        return [name for name in os.listdir(folder) if not name.startswith(".")]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _texts(home: Path) -> Iterator[tuple[Path, str, str]]:
    """(path, id, kind) of every note and skill."""
    for path in sorted((home / "agents").glob("*/**/*.md")) if _names(home / "agents") else ():
        if path.is_file() and not path.is_symlink():
            yield path, f"note:{path.relative_to(home / 'agents').as_posix()}", "note"
    for path in sorted((home / "skills").glob("*/SKILL.md")) if _names(home / "skills") else ():
        if path.is_file() and not path.is_symlink():
            yield path, f"skill:{path.parent.name}", "skill"


def _log_of(name: str) -> str:
    """Under what a file's lines are kept: a log's repository, a text's own path."""
    return Path(name).name.removesuffix(".jsonl") if name.endswith(".jsonl") else name


def _only_grew(path: Path, known: tuple[int, int, int, bytes, int]) -> bool:
    inode, size, _mtime, tail, _lines = known
    try:
        with path.open("rb") as stream:
            found = os.fstat(stream.fileno())
            if found.st_ino != inode or found.st_size <= size:
                return False
            stream.seek(max(0, size - TAIL_BYTES))
            return stream.read(min(TAIL_BYTES, size)) == tail
    except OSError:
        return False


def _opened(path: Path):  # type: ignore[no-untyped-def]  # noqa: ANN202
    try:
        return path.open("rb")
    except FileNotFoundError:
        return None


def _digest(raw: bytes) -> bytes:
    return blake2b(raw, digest_size=12).digest()
