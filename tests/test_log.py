"""The log file itself: appending, reading, healing, and what happens when the disk is full."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.errors import DiskFull, HomeUnusable, LogBusy
from commonplace.files import atomic, lock
from commonplace.files.lock import hold
from commonplace.files.plain import open_for_read
from commonplace.log import check, read
from commonplace.log import fold as fold_module
from commonplace.log.append import Appender
from commonplace.log.rotate import rotate
from commonplace.where.home import Home
from histories import append as append_rows
from histories import lesson as lesson_row

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TIME = '"timestamp":"2026-01-01T00:00:00Z"'


def line(ident: str) -> bytes:
    return f'{{"id":"{ident}","kind":"lesson",{TIME},"event_type":"error","lesson":"about {ident}"}}\n'.encode()


def ids(path: Path) -> list[str]:
    return [record.id for record in read.read(path)[0]]


def appender(path: Path, fsync: str = "never") -> Appender:
    return Appender(path, fsync=fsync)


def test_what_is_appended_is_read_back_in_order(tmp_path: Path) -> None:
    path = tmp_path / "log" / "app.jsonl"
    log = appender(path)

    log.append(line("a"))
    log.append_many([line("b"), line("c")])

    assert ids(path) == ["a", "b", "c"]


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_a_log_is_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "log" / "app.jsonl"

    appender(path).append(line("a"))

    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_torn_last_line_is_reported_and_the_rest_survives(tmp_path: Path) -> None:
    path = tmp_path / "app.jsonl"
    path.write_bytes(line("a") + b'{"id": "b", "kind": "les')

    records, damages = read.read(path)

    assert [record.id for record in records] == ["a"]
    assert [(damage.line, "torn" in damage.reason) for damage in damages] == [(2, True)]


def test_the_next_append_ends_a_torn_line_without_gluing_two_records(tmp_path: Path) -> None:
    path = tmp_path / "app.jsonl"
    path.write_bytes(line("a") + b'{"id": "b", "kind": "les')

    appender(path).append(line("c"))

    records, damages = read.read(path)
    assert [record.id for record in records] == ["a", "c"]
    assert [damage.line for damage in damages] == [2]


def test_a_whole_record_without_its_newline_is_a_record_and_stays_one(tmp_path: Path) -> None:
    path = tmp_path / "app.jsonl"
    path.write_bytes(line("a").rstrip(b"\n"))

    appender(path).append(line("b"))

    assert ids(path) == ["a", "b"]


@given(
    st.lists(
        st.sampled_from(
            [
                line("a"),
                b"\xff\xfe\n",
                b"\n",
                b"{}\n",
                b"[1]\n",
                b"\x00\x00\n",
                b"null\n",
                line("b"),
            ]
        )
    )
)
def test_reading_never_raises_whatever_lies_in_the_file(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes]
) -> None:
    path = tmp_path_factory.mktemp("any") / "app.jsonl"
    path.write_bytes(b"".join(parts))

    records, damages = read.read(path)

    blank = sum(1 for part in parts if part == b"\n")
    assert len(records) + len(damages) + blank == len(parts)


@given(st.binary(max_size=300))
def test_reading_never_raises_on_any_bytes(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.mktemp("any") / "app.jsonl"
    path.write_bytes(content)

    read.read(path)


def test_only_a_newline_ends_a_line(tmp_path: Path) -> None:
    path = tmp_path / "app.jsonl"
    text = "one\u2028two\u0085three\x0bfour\rfive"
    odd = f'{{"id":"a","kind":"lesson",{TIME},"event_type":"error","lesson":"{text}"}}\n'.replace(
        "\x0b", "\\u000b"
    )
    path.write_bytes(odd.replace("\r", "\\r").encode())

    (record,), damages = read.read(path)

    assert (record.fields["lesson"], damages) == (text, [])


def test_lines_are_found_by_their_offset(tmp_path: Path) -> None:
    path = tmp_path / "app.jsonl"
    path.write_bytes(line("a") + line("b") + line("c"))
    second = list(read.lines(path))[1]

    assert [found.raw for found in read.lines(path, second.offset)] == [
        line("b").rstrip(),
        line("c").rstrip(),
    ]


@pytest.fixture
def short_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers that take a thousand bytes a line."""
    monkeypatch.setattr("commonplace.log.read.LINE_READ_BYTES_MAX", 1000)
    monkeypatch.setattr("commonplace.records.json_text.LINE_READ_BYTES_MAX", 1000)
    monkeypatch.setattr(read, "READ_BUFFER_BYTES", 256)


@pytest.mark.usefixtures("short_lines")
@pytest.mark.parametrize("size", [1001, 1002, 5000])
def test_a_line_too_long_to_hold_is_passed_over_and_no_line_behind_it(
    tmp_path: Path, size: int
) -> None:
    path = tmp_path / "app.jsonl"
    path.write_bytes(line("a") + b"x" * size + b"\n" + line("b") + line("c"))

    records, damages = read.read(path)

    assert [record.id for record in records] == ["a", "b", "c"]
    assert [(damage.line, "longer than" in damage.reason) for damage in damages] == [(2, True)]
    offsets = [found.offset for found in read.lines(path)]
    assert [next(read.lines(path, offset)).raw for offset in offsets] == [
        found.raw for found in read.lines(path)
    ]


@given(st.lists(st.binary(max_size=30), max_size=8))
def test_the_lines_of_a_file_are_what_lies_between_its_newlines(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes]
) -> None:
    path = tmp_path_factory.mktemp("any") / "app.jsonl"
    content = b"\n".join(parts).removeprefix(b"\xef\xbb\xbf")
    path.write_bytes(content)

    found = list(read.lines(path))

    assert b"".join(line.raw + b"\n" * (not line.torn) for line in found) == content
    assert [content[line.offset :].startswith(line.raw) for line in found] == [True] * len(found)


def test_a_line_that_is_still_being_written_is_one_torn_line(tmp_path: Path) -> None:
    class Growing(io.BytesIO):
        parts = iter([line("a"), b'{"id":"b","ki', b'nd":"lesson"}\n'])

        def readline(self, _size: int | None = -1) -> bytes:
            return next(self.parts, b"")

    found = [(line.raw, line.torn) for line in read.lines_of(Growing())]

    assert found == [(line("a").rstrip(), False), (b'{"id":"b","ki', True)]


def test_a_byte_order_mark_before_the_first_line_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "app.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + line("a") + line("b"))

    assert ids(path) == ["a", "b"]


def test_threads_share_an_appender(tmp_path: Path) -> None:
    path = tmp_path / "app.jsonl"
    log = appender(path)

    def write(who: int) -> None:
        for number in range(50):
            log.append(line(f"{who}-{number}"))

    threads = [threading.Thread(target=write, args=(who,)) for who in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(set(ids(path))) == 400


def test_a_file_replaced_meanwhile_gets_the_line_not_its_ghost(tmp_path: Path) -> None:
    path = tmp_path / "app.jsonl"
    log = appender(path)
    log.append(line("a"))
    other = tmp_path / "other"
    other.write_bytes(line("b"))
    other.replace(path)  # What a `git merge` does.

    log.append(line("c"))

    assert ids(path) == ["b", "c"]


def test_a_rewriter_waits_for_nobody_to_append_and_appenders_follow_to_the_new_file(
    tmp_path: Path,
) -> None:
    path = tmp_path / "app.jsonl"
    log = appender(path)
    log.append(line("a"))

    with hold(path):
        waiting = threading.Thread(target=log.append, args=(line("c"),))
        waiting.start()
        atomic.replace(path, [line("a"), line("b")])
    waiting.join()

    assert ids(path) == ["a", "b", "c"]


def test_where_the_lock_is_a_file_beside_it_the_log_is_closed_whenever_it_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Windows asks for, on any system."""
    monkeypatch.setattr(lock, "BESIDE", True)
    opened: set[int] = set()
    real_open, real_close, real_replace = os.open, os.close, os.replace
    path = tmp_path / "log" / "app.jsonl"

    def watched_open(name: str, *arguments: int, **folder: int) -> int:
        descriptor = real_open(name, *arguments, **folder)
        opened.update([descriptor] if name == path.name else [])
        return descriptor

    def watched_close(descriptor: int) -> None:
        opened.discard(descriptor)
        real_close(descriptor)

    def watched_replace(old: Path, new: Path) -> None:
        assert not opened
        real_replace(old, new)

    for name, function in (
        ("open", watched_open),
        ("close", watched_close),
        ("replace", watched_replace),
    ):
        monkeypatch.setattr(os, name, function)
    log = appender(path)
    log.append(line("a"))

    with hold(path):
        waiting = threading.Thread(target=log.append, args=(line("c"),))
        waiting.start()
        atomic.replace(path, [line("a"), line("b")])
    waiting.join()

    assert ids(path) == ["a", "b", "c"]


def test_a_lock_that_is_never_given_up_is_an_error_not_a_hang(tmp_path: Path) -> None:
    path = tmp_path / "app.jsonl"

    with hold(path), pytest.raises(LogBusy, match="another process"):
        Appender(path, fsync="never", wait_s_max=0.05).append(line("a"))


@pytest.mark.parametrize("policy", ["never", "batch", "always"])
def test_every_sync_policy_writes_the_same(
    tmp_path: Path, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr("commonplace.log.append.sync", synced.append)
    path = tmp_path / "app.jsonl"
    log = appender(path, policy)

    for ident in "abc":
        log.append(line(ident))
    log.close()

    assert ids(path) == ["a", "b", "c"]
    assert len(synced) == {"never": 0, "batch": 1, "always": 3}[policy]


@pytest.mark.skipif(os.name != "posix", reason="pipes and links are POSIX's")
@pytest.mark.parametrize(
    "make", [lambda path: os.mkfifo(path, 0o600), os.mkdir, lambda path: path.symlink_to(path)]
)
def test_what_is_no_plain_file_is_told_not_waited_for(
    tmp_path: Path, make: Callable[[Path], object]
) -> None:
    path = tmp_path / "app.jsonl"
    make(path)

    with pytest.raises(HomeUnusable):
        read.read(path)
    with pytest.raises(HomeUnusable):
        appender(path).append(line("a"))


@pytest.mark.parametrize("policy", ["batch", "always"])
def test_a_disk_that_cannot_sync_is_told_and_an_unacknowledged_line_taken_back(
    tmp_path: Path, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("commonplace.log.append.sync", broken)
    path = tmp_path / "app.jsonl"
    log = appender(path, policy)

    def write() -> None:
        log.append(line("a"))
        log.flush()

    with pytest.raises(HomeUnusable, match="Input/output"):
        write()

    assert ids(path) == {"batch": ["a"], "always": []}[policy]


@pytest.mark.skipif(os.name != "posix", reason="flock is POSIX's")
def test_a_file_system_without_locks_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr("commonplace.files.lock.fcntl.flock", refuse)

    with pytest.raises(HomeUnusable, match="No locks available"):
        appender(tmp_path / "app.jsonl").append(line("a"))


FULL = """
import resource, sys
from pathlib import Path
from commonplace.errors import DiskFull
from commonplace.files.lock import hold
from commonplace.log.append import Appender
path = Path(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, 2_000))
log = Appender(path, fsync="never")
for number in range(100):
    row = '{"id":"%d","kind":"lesson","timestamp":"2026-01-01T00:00:00Z","event_type":"error","lesson":"%s"}\\n'
    try:
        log.append((row % (number, "x" * 70)).encode())
    except DiskFull:
        sys.exit(0)
    print(number, flush=True)
sys.exit("never full")
"""


@pytest.mark.skipif(os.name != "posix", reason="file size limits are POSIX's")
def test_a_disk_that_fills_up_loses_nothing_acknowledged_and_leaves_no_torn_line(
    tmp_path: Path,
) -> None:
    path = tmp_path / "app.jsonl"

    done = subprocess.run(
        [sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    records, damages = read.read(path)
    assert [record.id for record in records] == done.stdout.split()
    assert damages == []
    assert len(records) > 5


def test_a_bulk_that_does_not_fit_is_taken_back_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "app.jsonl"
    log = appender(path)
    log.append(line("a"))
    real = os.write

    def half(descriptor: int, data: bytes) -> int:
        if len(data) < 200:
            raise OSError(28, "No space left on device")
        return real(descriptor, data[: len(data) // 2])

    monkeypatch.setattr("commonplace.log.append.os.write", half)
    with pytest.raises(DiskFull, match="nothing was added"):
        log.append_many([line(f"b{number}") for number in range(20)])

    assert path.read_bytes() == line("a")


def test_a_home_that_is_a_file_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("not a folder")

    with pytest.raises(HomeUnusable):
        appender(tmp_path / "log" / "app.jsonl").append(line("a"))


def test_a_rewrite_that_fails_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "app.jsonl"
    path.write_bytes(line("a"))

    def full(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("commonplace.files.atomic.sync", full)
    with hold(path), pytest.raises(DiskFull):
        atomic.replace(path, [line("b")])

    assert path.read_bytes() == line("a")
    assert [found.name for found in tmp_path.iterdir()] == ["app.jsonl"]


def test_what_is_rotated_while_a_log_is_read_is_not_missed(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log is opened first: what leaves it meanwhile is in the archive, which is read after it."""
    home = Home(own_home)
    append_rows(home, "app", *(lesson_row(f"l{number}") for number in range(6)))
    really_open = open_for_read
    opened: list[Path] = []

    def open_and_rotate(path: Path) -> Any:
        stream = really_open(path)
        opened.append(path)
        if len(opened) == 1:
            rotate(home, "app", lines_max=2, move=3)
        return stream

    monkeypatch.setattr(fold_module, "open_for_read", open_and_rotate)

    folded, _damages = fold_module.fold(home)

    assert sorted(folded.ids()) == [f"l{number}" for number in range(6)]


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        (b"", []),
        (b"torn", [(1, b"torn")]),
        (b"x" * 100 + b"\n", [(1, b"x" * 100)]),
        (b'{"id":1}\n{"id":2}\n', []),
        (b'{"id":1}\n{"needle":2}\n', [(1, b'{"id":1}'), (2, b'{"needle":2}')]),
        (b'{"id":1}\n{"id":2}\n{"id":3}\n{"needle":4}\n', [(4, b'{"needle":4}')]),
        (b'{"id":1}\n{"id":2}\n{"torn', [(3, b'{"torn')]),
        (b'{"id":1}\n{"no id":2}\n', [(1, b'{"id":1}'), (2, b'{"no id":2}')]),
        (b'{"a":1}\ndamaged\n', [(1, b'{"a":1}'), (2, b"damaged")]),
        (b'\xef\xbb\xbf{"needle":1}\n', [(1, b'{"needle":1}')]),
    ],
)  # fmt: skip
def test_lines_are_looked_for_block_by_block(
    raw: bytes, found: list[tuple[int, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block is 32 bytes here. What holds no needle and looks whole is passed over."""
    monkeypatch.setattr(read, "SCAN_BYTES", 32)

    lines = list(read.lines_with(io.BytesIO(raw), [b"needle"]))

    assert [(line.number, line.raw) for line in lines] == found


def test_a_record_with_more_tags_than_we_would_write_stays_in_its_log(own_home: Path) -> None:
    home = Home(own_home)
    home.log_folder.mkdir(parents=True)
    row = {"id": "a", "kind": "lesson", "timestamp": "2026-01-01T00:00:00Z", "event_type": "error"}
    line = json.dumps({**row, "lesson": "x", "tags": [f"t{n}" for n in range(65)]}) + "\n"
    home.log("app").write_text(line)

    check.fix(home)

    assert [found for found in check.check(home) if found.what == "damage"] == []
    assert home.log("app").read_text() == line
    assert not home.damaged_folder.exists()
