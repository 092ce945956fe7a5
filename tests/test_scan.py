"""Secrets in a home that was not written through redaction: found and removed in every file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commonplace.memory import Memory
from fake_secrets import pem, some

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
        (1, "private-key", "text"),
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
