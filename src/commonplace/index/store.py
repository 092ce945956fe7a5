"""The index's tables: every line of the logs, notes and skills, with what ranking needs to know of it.

SQLite holds them, shared by any number of processes. The tables say how far each file was read; `catch_up` reads on
from there. A file that was replaced or edited is compared line by line, so only what changed is indexed again.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from commonplace.files.plain import READ_BUFFER_BYTES
from commonplace.index import terms
from commonplace.index.document import UNSEARCHED_KINDS
from commonplace.log import read
from commonplace.records import KINDS, Record, decode, encode, from_line, to_utc
from commonplace.where.home import LOG_SUFFIX, repo_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from typing import BinaryIO

    from commonplace.where.home import Home

# Bump when the tables or the terms change; an old index is thrown away and rebuilt.
SCHEMA_VERSION = 300 + terms.VERSION
BUSY_MS_MAX = 30_000
# How many lines are taken in before other processes get their turn.
BATCH_LINES = 5_000
TAIL_BYTES = 64
NOTE_BYTES_MAX = 1 << 20
# SQLite maps its shared memory in pieces of this size; touching one that was cut off would end the process.
SHARED_BYTES_MIN = 32_768
_SWITCH_TRIES_MAX = 100

TABLES = """
CREATE TABLE file (path TEXT PRIMARY KEY, inode INTEGER, size INTEGER, mtime INTEGER, "end" INTEGER, tail BLOB);
CREATE TABLE doc (
    key INTEGER PRIMARY KEY AUTOINCREMENT, digest BLOB NOT NULL, id TEXT NOT NULL, log TEXT NOT NULL,
    repo TEXT NOT NULL, kind TEXT NOT NULL, timestamp TEXT NOT NULL, of TEXT, outcome TEXT,
    archived INTEGER NOT NULL, place INTEGER NOT NULL, raw BLOB NOT NULL);
CREATE UNIQUE INDEX doc_line ON doc (log, digest);
CREATE INDEX doc_id ON doc (id, log, place);
CREATE INDEX doc_of ON doc (of) WHERE of IS NOT NULL;
CREATE INDEX doc_time ON doc (timestamp);
CREATE TABLE edge (key INTEGER, of TEXT, rel TEXT, "to" TEXT);
CREATE INDEX edge_of ON edge (of);
CREATE INDEX edge_to ON edge ("to");
CREATE INDEX edge_key ON edge (key);
CREATE TABLE head (id TEXT PRIMARY KEY, key INTEGER NOT NULL);
CREATE INDEX head_key ON head (key);
CREATE TABLE dropped (key INTEGER PRIMARY KEY);
CREATE TABLE length (key INTEGER PRIMARY KEY, terms INTEGER NOT NULL);
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


class File(NamedTuple):
    """How far a file was read: what `stat` said of the part that was, where the next line starts, what lies before."""

    inode: int
    size: int
    mtime: int
    end: int
    tail: bytes


class Changes(NamedTuple):
    """What a catch-up did."""

    added: int
    removed: int


class Store:
    """The open tables of one home."""

    def __init__(self, path: Path | None, *, until: str = "") -> None:
        self.path = path
        self._until = until  # Nothing later is taken in: the home as it stood then.
        self._home = Path()
        self._files_seen: dict[str, File] = {}
        self._files_state: tuple[Path, int, int] | None = None
        if path is not None:
            os.close(
                os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            )  # SQLite would make it for everybody to read.
        self.connection = sqlite3.connect(
            str(path) if path else ":memory:",
            timeout=BUSY_MS_MAX / 1000,
            isolation_level=None,
            check_same_thread=False,
        )
        self._touched: set[str] = set()  # Ids whose current line may have become another.
        self._known_until = 0  # The newest key before this transaction.
        try:
            self._shares = self._switch_to_wal()
            # The index can be rebuilt; what must not be lost is in the logs.
            self.connection.execute("PRAGMA synchronous = OFF")
            # Small: the system keeps the file's pages anyway, and a larger one was no faster.
            self.connection.execute("PRAGMA cache_size = -4000")
            self.inode = path.stat().st_ino if path else 0
            self._create()
        except BaseException:
            self.connection.close()
            raise

    def _switch_to_wal(self) -> bool:
        for left in reversed(range(_SWITCH_TRIES_MAX)):
            try:
                (mode,) = self.connection.execute("PRAGMA journal_mode = WAL").fetchone()
            except sqlite3.OperationalError as error:
                if not is_busy(error) or not left:
                    raise
                time.sleep(0.02)  # For this statement SQLite does not always wait by itself.
            else:
                return bool(mode == "wal")
        raise AssertionError("the last try returns or raises")

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
        if self._is_cut():
            with suppress(OSError):
                os.truncate(f"{self.path}-shm", SHARED_BYTES_MIN)  # Closing reads it.
        self.connection.close()

    def is_current(self) -> bool:
        """Whether what lies at the path is still what is open: another process may have rebuilt or broken it."""
        try:
            return self.path is None or (
                os.stat(self.path).st_ino == self.inode and not self._is_cut()
            )
        except FileNotFoundError:
            return False

    def _is_cut(self) -> bool:
        try:
            return self._shares and os.stat(f"{self.path}-shm").st_size < SHARED_BYTES_MIN
        except OSError:
            return False

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One transaction, alone; other processes wait their turn instead of failing."""
        self._begin()
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            self._touched.clear()
            with suppress(
                sqlite3.OperationalError
            ):  # A full disk makes SQLite roll back by itself.
                self.connection.execute("ROLLBACK")
            raise

    def _begin(self) -> None:
        while True:
            before = self._others_wrote()
            try:
                self.connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                # Somebody builds a large index, batch by batch: as long as they get on, it is worth waiting.
                if not is_busy(error) or self._others_wrote() == before:
                    raise
            else:
                return

    def _others_wrote(self) -> int:
        """A number that changes when another connection commits."""
        return int(self.connection.execute("PRAGMA data_version").fetchone()[0])

    # --- Catching up ----------------------------------------------------------------------------------------------

    def catch_up(self, home: Home, progress: Callable[[int], None] = lambda _done: None) -> Changes:
        """Read what the files of *home* hold beyond what was read before."""
        self._home = home.path
        added = removed = 0
        while True:
            texts = list(_texts(home))
            stamps = _stamps(home, texts)
            changed = _differing(stamps, self._files())
            if not changed:
                return Changes(added, removed)
            left = BATCH_LINES
            with self.writing():
                seen = self._files()  # Another process may have been quicker while we waited.
                (self._known_until,) = self.connection.execute(
                    "SELECT coalesce(max(key), 0) FROM doc"
                ).fetchone()
                for log, archive, path in _logs(home, stamps):
                    if left > 0 and (str(archive) in changed or str(path) in changed):
                        taken, changes = self._catch_up_log(
                            seen, log, archive, path, left, progress
                        )
                        left -= taken
                        added, removed = added + changes.added, removed + changes.removed
                for path, ident, kind in texts:
                    if left > 0 and str(path) in changed and not _unchanged(seen, path):
                        added += self._take_text(path, ident, kind)
                        left -= 1
                logs = {_log_of(name) for name in stamps}
                for name in seen:
                    # A log that went to its archive whole was compared above; what is new since we looked is not gone.
                    if (
                        name not in stamps
                        and _log_of(name) not in logs
                        and not os.path.exists(name)
                    ):
                        removed += self._forget_file(name)
                self._settle()
            if left > 0:
                return Changes(added, removed)

    def _files(self) -> dict[str, File]:
        state = (self._home, self._others_wrote(), self.connection.total_changes)
        if state != self._files_state:
            rows = self.connection.execute('SELECT path, inode, size, mtime, "end", tail FROM file')
            self._files_seen = {os.path.join(self._home, path): File(*rest) for path, *rest in rows}  # noqa: PTH118
            self._files_state = state
        return self._files_seen

    def _within(self, path: str | Path) -> str:
        """How the tables name a file: from the home, which may be moved, copied or mounted elsewhere."""
        return os.path.relpath(path, self._home)

    def _catch_up_log(
        self,
        seen: dict[str, File],
        log: str,
        archive: Path,
        path: Path,
        lines_max: int,
        progress: Callable[[int], None],
    ) -> tuple[int, Changes]:
        """Take in what is new of a log and its archive, of a long one no more than *lines_max* lines; how many."""
        old, new = not _unchanged(seen, archive), not _unchanged(seen, path)
        if not old and not new:
            return 0, Changes(0, 0)
        try:
            # The log is opened before the archive is read; see `log.view.all_lines`.
            streams = [
                (found, stream)
                for found in (path, archive)
                if (stream := _opened(found)) is not None
            ]
        except OSError:
            return 0, Changes(0, 0)  # It may not be read; the other logs answer.
        try:
            there = {str(found): stream for found, stream in streams}
            is_whole = all(str(found) in there for found in (archive, path) if str(found) in seen)
            # What comes to the archive after something of the log was read is out of order.
            in_order = is_whole and not (old and str(path) in seen)
            if in_order and all(
                _only_grew(stream, seen.get(name)) for name, stream in there.items()
            ):
                return self._append(seen, log, archive, streams[::-1], lines_max, progress)
            return self._compare(log, archive, streams[::-1], progress)
        finally:
            for _found, stream in streams:
                stream.close()

    def _append(
        self,
        seen: dict[str, File],
        log: str,
        archive: Path,
        streams: list[tuple[Path, BinaryIO]],
        lines_max: int,
        progress: Callable[[int], None],
    ) -> tuple[int, Changes]:
        (place,) = self.connection.execute(
            "SELECT coalesce(max(place), 0) FROM doc WHERE log = ?", (log,)
        ).fetchone()
        added = taken = 0
        for found, stream in streams:
            known = seen.get(str(found))
            end = known.end if known else 0
            for line in read.lines_of(stream, end):
                if taken == lines_max:
                    stream.seek(line.offset)
                    self._note(found, stream, line.offset)
                    return taken, Changes(added, 0)
                taken, place = taken + 1, place + 1
                new = self._take_line(log, line.raw, place, archived=found is archive)
                added += new == 1
                end = line.offset if line.torn and new is None else stream.tell()
                progress(1)
            self._note(found, stream, end)
        return taken, Changes(added, 0)

    def _compare(
        self,
        log: str,
        archive: Path,
        streams: list[tuple[Path, BinaryIO]],
        progress: Callable[[int], None],
    ) -> tuple[int, Changes]:
        """Index a log and its archive anew where they differ from what is known, in their order."""
        rows = self.connection.execute(
            "SELECT digest, key, place, archived FROM doc WHERE log = ?", (log,)
        ).fetchall()
        gone = {digest: key for digest, key, _place, _archived in rows}
        stands = {digest: (place, bool(archived)) for digest, _key, place, archived in rows}
        added = place = 0
        for found, stream in streams:
            end = stream.seek(0)
            archived = found is archive
            for line in read.lines_of(stream):
                place += 1
                digest = _digest(line.raw)
                gone.pop(digest, None)
                new: int | None = 0
                if stands.get(digest) != (place, archived):
                    new = self._take_line(log, line.raw, place, archived=archived)
                    added += new == 1
                    stands[digest] = (place, archived)
                end = line.offset if line.torn and new is None else stream.tell()
                progress(1)
            self._note(found, stream, end)
        self._drop(gone.values())
        for missing in {archive, archive.parent.parent / archive.name} - {
            found for found, _stream in streams
        }:
            self.connection.execute("DELETE FROM file WHERE path = ?", (self._within(missing),))
        return place, Changes(added, len(gone))

    def _take_line(self, log: str, raw: bytes, place: int, *, archived: bool) -> int | None:
        """How many lines became known, which is none for one that was; `None` if it holds no record."""
        try:
            record = from_line(raw)
        except ValueError:
            return None  # `doctor` tells of damages.
        if self._until and record.timestamp > self._until:
            return 0
        return self._insert(log, record.repo or log, raw, record, place, archived=archived)

    def _insert(
        self, log: str, repo: str, raw: bytes, record: Record, place: int, *, archived: bool
    ) -> int:
        of = record.fields.get("of")
        digest = _digest(raw)
        self._touched.add(record.id)
        cursor = self.connection.execute(
            "INSERT INTO doc (digest, id, log, repo, kind, timestamp, of, outcome, archived, place, raw)"
            " VALUES (?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT (log, digest) DO NOTHING",
            (digest, record.id, log, repo, record.kind, record.timestamp,
             of if isinstance(of, str) else None, record.fields["outcome"] if record.kind == "feedback" else None,
             archived, place, raw),
        )  # fmt: skip
        if not cursor.rowcount:
            # The same line again (a merge, a line that got its newline): it stands where it stands last.
            moved = (place, archived, log, digest)
            self.connection.execute(
                "UPDATE doc SET place = ?, archived = ? WHERE log = ? AND digest = ?", moved
            )
            return 0
        key = cursor.lastrowid
        if record.kind not in UNSEARCHED_KINDS:
            self.connection.execute("INSERT INTO unembedded VALUES (?)", (key,))
        edges = [(key, record.id, edge.rel, edge.to) for edge in record.edges]
        edges += [(key, record.id, "derived_from", source) for source in record.sources]
        if record.kind == "link" and isinstance(of, str):
            edges.append((key, of, str(record.fields["rel"]), str(record.fields["to"])))
        if edges:
            self.connection.executemany("INSERT INTO edge VALUES (?,?,?,?)", edges)
        return 1

    def _settle(self) -> None:
        """Find the current line of each id that was touched: the last of its log, and of several logs the latest."""
        for ident in self._touched:
            lines = self.connection.execute(
                "SELECT key, timestamp, log, max(place) FROM doc WHERE id = ? GROUP BY log",
                (ident,),
            ).fetchall()
            was = self.connection.execute("SELECT key FROM head WHERE id = ?", (ident,)).fetchone()
            if len(lines) > 1:
                lines.sort(key=lambda line: (datetime.fromisoformat(to_utc(line[1])), line[2]))
            key = lines[-1][0] if lines else None
            if was and was[0] != key:
                self.connection.execute("INSERT OR IGNORE INTO dropped VALUES (?)", was)
                self.connection.execute("DELETE FROM head WHERE id = ?", (ident,))
            if key is not None and not (was and was[0] == key):
                # The text index has passed an older line by, or thrown it away: to be found again it must be new.
                current = key if key > self._known_until else self._renewed(key)
                self.connection.execute("INSERT INTO head VALUES (?, ?)", (ident, current))
        self._touched.clear()

    def _renewed(self, key: int) -> int:
        """The same line under a new key."""
        self.connection.execute("UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'doc'")
        (new,) = self.connection.execute(
            "SELECT seq FROM sqlite_sequence WHERE name = 'doc'"
        ).fetchone()
        for table in ("doc", "edge", "unembedded"):
            self.connection.execute(f"UPDATE {table} SET key = ? WHERE key = ?", (new, key))  # noqa: S608 (our own names)
        # New rows, since rows are what tells other processes of new vectors.
        self.connection.execute(
            "INSERT INTO vector (key, v) SELECT ?, v FROM vector WHERE key = ? ORDER BY row",
            (new, key),
        )
        self.connection.execute("DELETE FROM vector WHERE key = ?", (key,))
        return int(new)

    def _drop(self, keys: Iterable[int]) -> None:
        for key in keys:
            self._touched.update(
                self.connection.execute("SELECT id FROM doc WHERE key = ?", (key,)).fetchone()
            )
            for table in ("doc", "edge", "vector", "unembedded"):
                self.connection.execute(f"DELETE FROM {table} WHERE key = ?", (key,))  # noqa: S608 (our own names)

    def _note(self, path: Path, stream: BinaryIO, end: int) -> None:
        """Remember how far a file was read: to *end*, or beyond it to where the stream stands if its end is torn."""
        size = stream.tell()
        found = os.fstat(stream.fileno())
        stream.seek(max(0, end - TAIL_BYTES))
        tail = stream.read(min(TAIL_BYTES, end))
        row = (self._within(path), found.st_ino, size, found.st_mtime_ns, end, tail)
        self.connection.execute("INSERT OR REPLACE INTO file VALUES (?,?,?,?,?,?)", row)

    def _take_text(self, path: Path, ident: str, kind: str) -> int:
        """Index a note or a skill: one document a file, replaced when the file changes."""
        name = self._within(path)
        self._forget_file(str(path), forget_path=False)
        try:
            text = path.read_bytes()[:NOTE_BYTES_MAX].decode("utf-8", "replace")
            found = path.stat()
        except OSError:
            return 0
        when = datetime.fromtimestamp(int(found.st_mtime), UTC).isoformat().replace("+00:00", "Z")
        if self._until and when > self._until:
            return 0
        title = next(
            (line.lstrip("# ").strip() for line in text.splitlines() if line.startswith("#")),
            path.stem,
        )
        fields = {
            "id": ident,
            "kind": kind,
            "timestamp": when,
            "repo": "",
            "title": title,
            "text": text,
            "path": name,
        }
        if kind == "note":
            fields["agent_id"] = ident.removeprefix("note:").partition("/")[0]
        self._insert(name, "", encode(fields).encode(), Record(fields), 1, archived=False)
        row = (name, *_stamp(found), found.st_size, b"")
        self.connection.execute("INSERT OR REPLACE INTO file VALUES (?,?,?,?,?,?)", row)
        return 1

    def _forget_file(self, name: str, *, forget_path: bool = True) -> int:
        """Drop a file that is gone; a log goes under its repository's name, a text under its path."""
        log = _log_of(self._within(name))
        keys = [
            key for (key,) in self.connection.execute("SELECT key FROM doc WHERE log = ?", (log,))
        ]
        self._drop(keys)
        if forget_path:
            self.connection.execute("DELETE FROM file WHERE path = ?", (self._within(name),))
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

    def has_edges(self) -> bool:
        """Whether any record is linked to another; most homes have none, and then nobody need ask whose."""
        return self.connection.execute("SELECT 1 FROM edge LIMIT 1").fetchone() is not None

    def has_references(self) -> bool:
        """Whether any record speaks of another, as feedback and forgetting do."""
        return (
            self.connection.execute("SELECT 1 FROM doc WHERE of IS NOT NULL LIMIT 1").fetchone()
            is not None
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
            for (
                key,
                ident,
                repo,
                kind,
                timestamp,
                archived,
                place,
                log,
                raw,
            ) in self.connection.execute(query, some):
                record = _record(raw)
                found[key] = Row(
                    key, ident, repo, kind, timestamp, bool(archived), place, log, record
                )
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

    def log_bytes(self, logs: Collection[str] | None = None, *, archived: bool = False) -> int:
        """How many bytes the logs of these names hold, or all; with *archived*, their archives too."""
        found = self.connection.execute(
            "SELECT path, size FROM file WHERE path LIKE '%.jsonl'"
        ).fetchall()
        names = [(*os.path.split(path), size) for path, size in found]
        return sum(
            size
            for folder, name, size in names
            if (logs is None or name.removesuffix(".jsonl") in logs)
            and (archived or not folder.endswith("archive"))
        )

    def column(self, query: str, arguments: Iterable[object] = ()) -> list[tuple[object, ...]]:
        return self.connection.execute(query, tuple(arguments)).fetchall()


def _record(raw: bytes) -> Record:
    """A line that was checked when it was taken in."""
    fields = decode(raw)
    return KINDS.get(fields["kind"], Record)(fields)


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another process was in the way (SQLite's codes carry details above their first byte)."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
    )


def _logs(home: Home, stamps: Iterable[str]) -> Iterator[tuple[str, Path, Path]]:
    """(name, archive, log) of every log."""
    for repo in sorted({repo_of(Path(path)) for path in stamps if path.endswith(LOG_SUFFIX)}):
        yield repo, home.archive(repo), home.log(repo)


def _stamps(home: Home, texts: Iterable[tuple[Path, str, str]]) -> dict[str, tuple[int, int, int]]:
    """What would change if a file did: inode, size and time of every file that is indexed, by its path."""
    found: dict[str, tuple[int, int, int]] = {}
    for folder in (home.log_folder, home.archive_folder):
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
            for entry in entries:
                if (
                    entry.name.endswith(".jsonl")
                    and not entry.name.startswith(".")
                    and entry.is_file()
                ):
                    with suppress(FileNotFoundError):
                        found[entry.path] = _stamp(entry.stat())
    for path, _ident, _kind in texts:
        with suppress(FileNotFoundError):
            found[str(path)] = _stamp(path.stat())
    return found


def _differing(stamps: dict[str, tuple[int, int, int]], seen: dict[str, File]) -> set[str]:
    """The files that changed, came or went; one that may not be read is as it was."""
    changed = {
        path for path, stamp in stamps.items() if path not in seen or seen[path][:3] != stamp
    }
    return {path for path in changed if os.access(path, os.R_OK)} | (seen.keys() - stamps.keys())


def _unchanged(seen: dict[str, File], path: Path) -> bool:
    try:
        found = os.stat(path)
    except OSError:
        return str(path) not in seen
    known = seen.get(str(path))
    return known is not None and known[:3] == _stamp(found)


def _stamp(stat: os.stat_result) -> tuple[int, int, int]:
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def _names(folder: Path) -> list[str]:
    """The names in a folder, hidden ones left out; none if there is no such folder."""
    try:
        return [name for name in os.listdir(folder) if not name.startswith(".")]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _texts(home: Home) -> Iterator[tuple[Path, str, str]]:
    """(path, id, kind) of every note and skill."""
    for path in sorted(home.notes_folder.glob("*/**/*.md")) if _names(home.notes_folder) else ():
        if path.is_file() and not path.is_symlink():
            yield path, f"note:{path.relative_to(home.notes_folder).as_posix()}", "note"
    for path in sorted(home.skills_folder.glob("*/SKILL.md")) if _names(home.skills_folder) else ():
        if path.is_file() and not path.is_symlink():
            yield path, f"skill:{path.parent.name}", "skill"


def _log_of(name: str) -> str:
    """Under what a file's lines are kept: a log's repository, a text's own path."""
    return Path(name).name.removesuffix(".jsonl") if name.endswith(".jsonl") else name


def _only_grew(stream: BinaryIO, known: File | None) -> bool:
    if known is None:
        return True
    found = os.fstat(stream.fileno())
    if found.st_ino != known.inode or found.st_size < known.size:
        return False
    if found.st_size == known.size:
        return found.st_mtime_ns == known.mtime
    stream.seek(max(0, known.end - TAIL_BYTES))
    same = stream.read(min(TAIL_BYTES, known.end)) == known.tail
    # A last line that was taken without a newline must have got it; anything else made another line of it.
    return same and (known.tail[-1:] in (b"", b"\n") or stream.read(1) == b"\n")


def _opened(path: Path) -> BinaryIO | None:
    try:
        return path.open("rb", buffering=READ_BUFFER_BYTES)
    except FileNotFoundError:
        return None


def _digest(raw: bytes) -> bytes:
    return blake2b(raw, digest_size=12).digest()
