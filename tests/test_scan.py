"""Secrets in a home that was not written through redaction: found and removed in every file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from commonplace.files import atomic
from commonplace.files.lock import hold, try_hold
from commonplace.memory import Memory
from commonplace.where.home import Home
from fake_secrets import pem, some

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

TOKEN = "ghp_" + some(36)
HEAD = '"kind":"lesson","timestamp":"2026-01-01T00:00:00Z","event_type":"error"'
MARKER = "[redacted:github-token]"


def whole(secret: str) -> bytes:
    return f'{{"id":"a",{HEAD},"lesson":"use {secret}"}}'.encode()


# Lines that hold no record, each with a secret.
DAMAGED = {
    "torn": f'{{"id":"les-torn",{HEAD},"lesson":"use {TOKEN}'.encode(),
    "no JSON": f"use {TOKEN} at once".encode(),
    "not UTF-8": b"\xff\xfe use " + TOKEN.encode() + b" \xc3",
    "a list": f'["use {TOKEN}"]'.encode(),
    "NaN": f'{{"x":NaN,"lesson":"use {TOKEN}"}}'.encode(),
    "too deep": b'{"x":' + b"[" * 80 + f'"use {TOKEN}"'.encode() + b"]" * 80 + b"}",
}


def log_with(home: Path, *lines: bytes, end: bytes = b"\n", name: str = "app.jsonl") -> Path:
    path = home / "log" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\n".join(lines) + end)
    return path


@pytest.mark.parametrize("damage", DAMAGED)
@pytest.mark.parametrize("name", ["app.jsonl", "archive/app.jsonl", "damaged/app.jsonl"])
def test_a_damaged_line_is_redacted_and_the_rest_of_it_stays(
    memory: Memory, own_home: Path, damage: str, name: str
) -> None:
    good = whole("nothing")
    path = log_with(own_home, good, DAMAGED[damage], good, name=name)

    found = memory.scan(fix=True)

    assert [(secret.path, secret.line, secret.kind, secret.field) for secret in found] == [
        (path, 2, "github-token", "line")
    ]
    cleaned = DAMAGED[damage].replace(TOKEN.encode(), MARKER.encode())
    assert path.read_bytes().split(b"\n") == [good, cleaned, good, b""]
    assert memory.scan() == []


def test_finding_changes_nothing(memory: Memory, own_home: Path) -> None:
    path = log_with(own_home, DAMAGED["torn"], whole(TOKEN))
    before = path.read_bytes()

    found = memory.scan()

    assert [(secret.line, secret.field) for secret in found] == [(1, "line"), (2, "lesson")]
    assert path.read_bytes() == before


@pytest.mark.parametrize("last", [DAMAGED["torn"], whole(TOKEN)])
def test_a_last_line_without_its_newline_gets_none(
    memory: Memory, own_home: Path, last: bytes
) -> None:
    path = log_with(own_home, whole("nothing"), last, end=b"")

    memory.scan(fix=True)

    assert path.read_bytes().endswith(last.replace(TOKEN.encode(), MARKER.encode()))


def test_lines_without_secrets_keep_every_byte(memory: Memory, own_home: Path) -> None:
    odd = [b'{ "id" : "x",  "y": "\\u00e9" }', b"", b"  ", b"\xff damaged", b"[1, 2]\r"]
    path = log_with(own_home, *odd, whole(TOKEN), *odd)

    assert len(memory.scan(fix=True)) == 1
    assert path.read_bytes() == b"\n".join([*odd, whole(MARKER), *odd]) + b"\n"


def test_every_secret_of_a_record_is_named_by_its_field(memory: Memory, own_home: Path) -> None:
    fields = {"id": "a", "password": "hunter2", "meta": {"env": [f"use {TOKEN}"]}, TOKEN: 1}
    path = log_with(own_home, json.dumps(fields).encode())

    found = memory.scan(fix=True)

    assert [(secret.kind, secret.field) for secret in found] == [
        ("password", "password"),
        ("github-token", "meta.env[0]"),
        ("github-token", MARKER),
    ]
    assert json.loads(path.read_text()) == {
        "id": "a",
        "password": "[redacted:password]",
        "meta": {"env": [f"use {MARKER}"]},
        MARKER: 1,
    }


def test_a_text_is_redacted_and_its_lines_are_named(memory: Memory, own_home: Path) -> None:
    note = own_home / "agents" / "me" / "CONTEXT.md"
    note.parent.mkdir(parents=True)
    note.write_text(f"one {TOKEN}\ntwo\n{pem('PRIVATE KEY')}\nfour {TOKEN}")

    found = memory.scan(fix=True)

    assert sorted((secret.line, secret.kind, secret.field) for secret in found) == [
        (1, "github-token", "text"),
        (3, "private-key", "text"),
        (9, "github-token", "text"),
    ]
    assert note.read_text() == f"one {MARKER}\ntwo\n[redacted:private-key]\nfour {MARKER}"


def test_a_file_that_is_no_text_and_what_is_derived_are_left_alone(
    memory: Memory, own_home: Path
) -> None:
    binary = b"\xff\xfe" + TOKEN.encode()
    for name in ("agents/me/x.bin", ".index/x.txt", ".git/x.txt"):
        path = own_home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(binary if name.endswith("bin") else TOKEN.encode())

    assert memory.scan(fix=True) == []
    assert (own_home / "agents/me/x.bin").read_bytes() == binary


WRITER = """
import sys
from pathlib import Path
from commonplace.files.lock import hold
from commonplace.notes import Notes
from commonplace.where.home import Home

home = Home(Path(sys.argv[1]))
notes = Notes(home, "ana")
for number in range(int(sys.argv[2])):
    notes.insert("plan.md", 0, f"line {number}")
    print(number, flush=True)
    if number % 3 == 0:  # An editor that takes the lock, but does not redact.
        path = home.notes("ana") / "plan.md"
        with hold(home.lock_of(path)):
            path.write_text(path.read_text() + f"use {sys.argv[3]}\\n")
"""
SCANNER = """
import sys
from commonplace.memory import Memory

with Memory.open(sys.argv[1]) as memory:
    memory.scan(fix=True)
    print("running", flush=True)
    while True:
        memory.scan(fix=True)
"""
INSERTS = 300


def test_no_insert_into_a_note_is_lost_beside_a_scan(own_home: Path) -> None:
    note = Home(own_home).notes("ana") / "plan.md"
    note.parent.mkdir(parents=True)
    note.write_text(f"use {TOKEN}\n")
    with subprocess.Popen(
        [sys.executable, "-c", SCANNER, own_home], stdout=subprocess.PIPE
    ) as scanner:
        assert scanner.stdout is not None
        assert scanner.stdout.readline() == b"running\n"
        writer = [sys.executable, "-c", WRITER, str(own_home), str(INSERTS), TOKEN]
        acknowledged = subprocess.check_output(writer, text=True, timeout=120).split()
        scanner.kill()

    assert len(acknowledged) == INSERTS
    assert {f"line {number}" for number in acknowledged} <= set(note.read_text().split("\n"))


REWRITTEN: dict[str, Callable[[Home], tuple[Path, Path]]] = {
    "note": lambda home: (home.notes("ana") / "a" / "plan.md", home.notes_lock("ana")),
    "spool": lambda home: (home.spool_folder / "1-a.json", home.spool_lock),
    "session": lambda home: (home.sessions_folder / "a.json", home.spool_lock),
    "candidate": lambda home: (home.inbox_folder / "cand-a.json", home.spool_lock),
    "log": lambda home: (home.log("app"), home.log("app")),
}


@pytest.mark.skipif(os.name != "posix", reason="there a log has its lock beside it")
@pytest.mark.parametrize("what", REWRITTEN)
def test_a_rewrite_holds_the_lock_of_the_writers(
    memory: Memory, own_home: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    path, lock = REWRITTEN[what](Home(own_home))
    path.parent.mkdir(parents=True)
    path.write_text(f'{{"lesson": "use {TOKEN}"}}\n')
    free: list[bool] = []
    replace = atomic.replace

    def look(target: Path, chunks: Iterable[bytes]) -> None:
        with try_hold(lock) as is_free:
            free.append(is_free)
        replace(target, chunks)

    monkeypatch.setattr(atomic, "replace", look)

    assert len(memory.scan(fix=True)) == 1
    assert free == [False]


def test_a_file_that_its_writer_removes_meanwhile_is_not_made_again(
    memory: Memory, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Home(own_home).spool_folder / "1-a.json"
    path.parent.mkdir(parents=True)
    path.write_text(f"use {TOKEN}")

    def hold_after_removal(lock: Path) -> AbstractContextManager[None]:
        path.unlink()
        return hold(lock)

    monkeypatch.setattr("commonplace.log.scan.hold", hold_after_removal)

    assert memory.scan(fix=True) == []
    assert not path.exists()
