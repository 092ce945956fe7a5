"""Doctor, scan and erase: what they find, what they mend, what they prove."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from commonplace.errors import FindingsLeft
from commonplace.memory import Memory
from conftest import git

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "ghp_" + "Zx81" * 9


def logged(memory: Memory, lesson: str, **more: Any) -> str:
    return memory.log(repo="app", event_type="error", lesson=lesson, **more).id


def everything_in(home: Path) -> str:
    return "\n".join(
        path.read_bytes().decode("utf-8", "replace") for path in home.rglob("*") if path.is_file()
    )


# --- doctor -------------------------------------------------------------------------------------------------------


def test_damages_are_told_by_file_and_line_and_moved_never_deleted(
    memory: Memory, own_home: Path
) -> None:
    first = logged(memory, "first")
    log = own_home / "log" / "app.jsonl"
    with log.open("ab") as stream:
        stream.write(b'\xff\xfe not json\n{"id": "les-torn", "kind": "les')
    second = logged(memory, "second")

    findings = memory.check()
    assert [(finding.what, finding.line) for finding in findings] == [("damage", 2), ("damage", 3)]

    memory.mend()

    assert memory.check() == []
    assert [record.id for record in memory.records()] == [first, second]
    damaged = (own_home / "log" / "damaged" / "app.jsonl").read_bytes()
    assert damaged == b'\xff\xfe not json\n{"id": "les-torn", "kind": "les\n'


@pytest.fixture
def short_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers that take a thousand bytes a line."""
    monkeypatch.setattr("commonplace.log.read.LINE_READ_BYTES_MAX", 1000)
    monkeypatch.setattr("commonplace.records.json_text.LINE_READ_BYTES_MAX", 1000)


@pytest.mark.usefixtures("short_lines")
def test_a_line_too_long_to_read_is_kept_whole_by_whoever_rewrites_its_file(
    memory: Memory, own_home: Path
) -> None:
    long = b'{"id":"long","kind":"lesson","lesson":"' + b"x" * 5000 + b'"}\n'
    gone = logged(memory, "the xylophonist must vanish")
    log = own_home / "log" / "app.jsonl"
    with log.open("ab") as stream:
        stream.write(long)
        stream.write(
            f'{{"id":"old","kind":"hologram","timestamp":"2026-01-01T00:00:00Z","x":"{SECRET}"}}\n'.encode()
        )
    kept = logged(memory, "second")

    memory.scan(fix=True)
    memory.erase(gone)
    assert long in log.read_bytes()
    memory.mend()

    assert {record.id for record in memory.records()} == {"old", kept}
    assert (own_home / "log" / "damaged" / "app.jsonl").read_bytes() == long


def test_mending_a_whole_home_changes_no_byte(memory: Memory, own_home: Path) -> None:
    logged(memory, "first")
    before = (own_home / "log" / "app.jsonl").read_bytes()

    assert memory.mend() == []

    assert (own_home / "log" / "app.jsonl").read_bytes() == before


def test_a_kind_nobody_knows_is_told_and_left(memory: Memory, own_home: Path) -> None:
    logged(memory, "first")
    with (own_home / "log" / "app.jsonl").open("a") as stream:
        stream.write('{"id":"h","kind":"hologram","timestamp":"2026-01-01T00:00:00Z"}\n')

    assert [(finding.what, finding.fix) for finding in memory.check()] == [("unknown kind", "")]
    memory.mend()
    assert memory.get("h").kind == "hologram"


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_files_others_can_read_are_told_and_closed(memory: Memory, own_home: Path) -> None:
    logged(memory, "first")
    (own_home / "log" / "app.jsonl").chmod(0o644)

    assert [finding.what for finding in memory.check()] == ["permissions"]
    memory.mend()
    assert (own_home / "log" / "app.jsonl").stat().st_mode & 0o777 == 0o600


def test_what_a_killed_rewrite_left_is_removed(memory: Memory, own_home: Path) -> None:
    logged(memory, "first")
    left = own_home / "log" / ".app.jsonl.999999999.rewriting"
    left.write_text("half")
    left.chmod(0o600)

    assert [finding.what for finding in memory.check()] == ["stale lock"]
    memory.mend()
    assert not left.exists()


@pytest.mark.skipif(os.name != "posix", reason="process ids are told apart on POSIX only")
def test_what_a_living_process_is_writing_is_left_alone(memory: Memory, own_home: Path) -> None:
    logged(memory, "first")
    halves = [
        own_home / "log" / f".app.jsonl.{pid}.rewriting" for pid in (os.getpid(), "9" * 20, "x")
    ]
    for half in halves:
        half.write_text(f"half {SECRET}")
        half.chmod(0o600)

    memory.mend()

    assert [half.exists() for half in halves] == [True, False, False]
    assert memory.scan(fix=True) == []
    assert SECRET in halves[0].read_text()


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_closing_a_file_to_others_takes_nothing_from_its_owner(tmp_path: Path) -> None:
    root = tmp_path / "app"
    modes = {"skills/run.sh": 0o775, "log/app.jsonl": 0o664, ".git/hooks/x": 0o777}
    for name, mode in modes.items():
        path = root / ".commonplace" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
        path.chmod(mode)
    git("init", "-q", cwd=root)

    with Memory.open(cwd=root) as memory:
        memory.mend()

    left = {name: (root / ".commonplace" / name).stat().st_mode & 0o777 for name in modes}
    assert left == {"skills/run.sh": 0o755, "log/app.jsonl": 0o644, ".git/hooks/x": 0o777}


# --- scan ---------------------------------------------------------------------------------------------------------


def test_secrets_of_an_older_home_are_found_and_taken_out(memory: Memory, own_home: Path) -> None:
    ident = logged(memory, "first")
    row = f'{{"id":"old","kind":"lesson","timestamp":"2026-01-01T00:00:00Z","event_type":"error","lesson":"use {SECRET}"}}\n'
    for name in ("app.jsonl", "archive/app.jsonl"):
        path = own_home / "log" / name
        path.parent.mkdir(exist_ok=True)
        with path.open("a") as stream:
            stream.write(row)
    note = own_home / "agents" / "me" / "CONTEXT.md"
    note.parent.mkdir(parents=True)
    note.write_text(f"# Notes\n\nlogin with {SECRET}\n")

    found = memory.scan()
    assert [
        (str(secret.path.relative_to(own_home)), secret.line, secret.field) for secret in found
    ] == [
        ("agents/me/CONTEXT.md", 3, "text"),
        ("log/app.jsonl", 2, "lesson"),
        ("log/archive/app.jsonl", 1, "lesson"),
    ]
    assert SECRET not in str(found)

    memory.scan(fix=True)

    assert SECRET not in everything_in(own_home)
    assert memory.scan() == []
    assert memory.get(ident).id == ident
    assert memory.get("old").fields["lesson"].startswith("use [redacted:")
    assert note.read_text().startswith("# Notes\n\nlogin with [redacted:")


def test_a_key_block_in_a_note_is_found(memory: Memory, own_home: Path) -> None:
    body = "\n".join("Ab1/" * 16 for _ in range(3))
    own_home.mkdir()
    begin, end = ("-----" + word + " RSA PRIVATE KEY-----" for word in ("BEGIN", "END"))
    (own_home / "note.md").write_text(f"key:\n{begin}\n{body}\n{end}\n")

    assert memory.scan()
    memory.scan(fix=True)
    assert body.split("\n")[1] not in everything_in(own_home)


# --- erase --------------------------------------------------------------------------------------------------------


def test_erasing_leaves_no_trace_of_any_version_nor_of_what_derives_from_it(
    memory: Memory, own_home: Path
) -> None:
    shared = {"context": "npm install failed", "command": "sudo chown -R $USER . && npm ci"}
    keep = logged(memory, "an ordinary thing to keep", **shared)
    gone = logged(memory, "the xylophonist must vanish", **shared)
    memory.log(id=gone, repo="app", event_type="error", lesson="a second xylophonist version")
    memory.feedback(gone, "worked")
    pattern = memory.log(
        kind="pattern", pattern="xylophonists vanish", source_episodes=[gone, keep], repo="app"
    ).id
    linked = logged(
        memory,
        "points at it",
        links=[{"to": gone, "rel": "related_to"}, {"to": keep, "rel": "uses"}],
    )
    (own_home / ".index").mkdir()
    (own_home / ".index" / "copy").write_text("xylophonist")
    with (own_home / "log" / "app.jsonl").open("ab") as stream:
        stream.write(b'{"id": "' + gone.encode() + b'", "lesson": "the xylopho')

    receipt = memory.erase(gone[:-3])

    assert "xylophon" not in everything_in(own_home)
    assert (receipt.records_erased, receipt.derived_erased, receipt.left_in) == (2, 1, [])
    assert memory.get(keep).id == keep
    assert [edge.to for edge in memory.get(linked).edges] == [keep]
    assert pattern not in everything_in(own_home)


def test_a_copy_in_a_note_is_left_and_named_on_the_receipt(memory: Memory, own_home: Path) -> None:
    gone = logged(memory, "the xylophonist must vanish")
    note = own_home / "agents" / "me" / "notes.md"
    note.parent.mkdir(parents=True)
    note.write_text("I heard: the xylophonist must vanish\n")

    assert memory.erase(gone).left_in == [str(note.relative_to(own_home))]


@pytest.mark.parametrize("ident", ["lesson", "npm", "app", "error", "default"])
def test_erasing_takes_nothing_from_a_record_that_only_says_the_same_word(
    memory: Memory, own_home: Path, ident: str
) -> None:
    logged(
        memory,
        "an ordinary thing to keep",
        tags=["npm"],
        agent_id="npm",
        meta={"x": ident, ident: ["y", ident]},
    )
    before = (own_home / "log" / "app.jsonl").read_bytes()
    logged(memory, "the xylophonist must vanish", id=ident)

    receipt = memory.erase(ident)

    assert (own_home / "log" / "app.jsonl").read_bytes() == before
    assert (receipt.lines_removed, receipt.left_in) == (1, [])


def test_erasing_takes_out_what_points_at_the_record_and_leaves_the_rest(memory: Memory) -> None:
    gone, keep = (
        logged(memory, "the xylophonist must vanish"),
        logged(memory, "an ordinary thing to keep"),
    )
    pointing = memory.log(
        kind="fact",
        label="x",
        children={"a": gone, "b": keep},
        links=[{"to": gone, "rel": "uses"}],
        of=["a"],
        repo="app",
    ).id

    memory.erase(gone)

    left = memory.get(pointing).fields
    assert (left["children"], left["links"], left["of"]) == ({"b": keep}, [], ["a"])


def test_erasing_keeps_damaged_lines_of_other_records(memory: Memory, own_home: Path) -> None:
    gone = logged(
        memory,
        "the xylophonist must vanish",
        tags=["docker-compose"],
        timestamp="2026-01-01T00:00:00Z",
    )
    log = own_home / "log" / "app.jsonl"
    other = b'{"id":"b","repo":"app","tags":["docker-compose"],"timestamp":"2026-01-01T00:00:00Z","lesson":"tor'
    copy = b'{"repo":"app","lesson":"the xylophonist must vanish"'
    with log.open("ab") as stream:
        stream.write(other + b"\n" + copy + b"\n")

    memory.erase(gone)

    assert log.read_bytes() == other + b"\n"


def test_erasing_reaches_every_home_that_holds_the_record(tmp_path: Path) -> None:
    root, user = tmp_path / "app", tmp_path / "me"
    (root / ".commonplace").mkdir(parents=True)
    git("init", "-q", cwd=root)
    for home in (root / ".commonplace", user):
        with Memory.open(home) as memory:
            gone = logged(memory, "the xylophonist must vanish")
    with Memory.open(user) as memory:
        memory.log(
            kind="pattern", pattern="xylophonists vanish", source_episodes=[gone], repo="app"
        )

    with Memory.open(
        cwd=root, environment={"COMMONPLACE_HOME": str(user), "HOME": str(tmp_path)}
    ) as memory:
        receipt = memory.erase(gone)

    assert "xylophonist" not in everything_in(tmp_path)
    assert (receipt.records_erased, receipt.lines_removed, receipt.left_in) == (2, 3, [])


def test_what_a_killed_rewrite_left_is_erased_too(memory: Memory, own_home: Path) -> None:
    gone = logged(memory, "the xylophonist must vanish")
    (own_home / "log" / ".app.jsonl.999999999.rewriting").write_bytes(
        (own_home / "log" / "app.jsonl").read_bytes()
    )

    assert memory.erase(gone).left_in == []
    assert "xylophonist" not in everything_in(own_home)


def test_an_erasure_that_removes_nothing_is_an_error(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = logged(memory, "the xylophonist must vanish")
    monkeypatch.setattr("commonplace.erasure.files", lambda home: [])

    with pytest.raises(FindingsLeft, match=gone):
        memory.erase(gone)


@pytest.mark.skipif(os.name != "posix", reason="modes")
def test_a_home_in_use_has_nothing_to_mend(memory: Memory) -> None:
    memory.log(event_type="error", lesson="the staging database resets every night")
    memory.recall("staging database")

    assert memory.check() == []
    assert (memory.home.index_folder / "tables.sqlite").stat().st_mode & 0o777 == 0o600


BAD_VALUES: dict[str, Any] = {
    "success_rate": "11/10",
    "timestamp": "12026-01-01T00:00:00Z",
    "tags": "one, two",
    "links": [{"to": 7}],
    "event_type": None,
    "context": 5,
    "meta": [],
    "agent_id": {},
}


@pytest.mark.parametrize("name", [*BAD_VALUES, "all"])
def test_a_record_with_a_value_that_cannot_be_used_is_shown_recalled_and_stays(
    memory: Memory, own_home: Path, name: str
) -> None:
    bad = BAD_VALUES if name == "all" else {name: BAD_VALUES[name]}
    fields = {
        "id": "theirs",
        "kind": "lesson",
        "timestamp": "2026-01-01T00:00:00Z",
        "event_type": "error",
        "lesson": "the walrus needs a longer timeout",
        **bad,
    }
    log = own_home / "log" / "app.jsonl"
    log.parent.mkdir(parents=True)
    line = json.dumps({key: value for key, value in fields.items() if value is not None}) + "\n"
    log.write_text(line)

    found = memory.check()
    memory.mend()

    wrong = sorted(key for key, value in bad.items() if value is not None)
    reported = [(one.what, one.reason.split("`")[1], one.fix) for one in found if one.line]
    assert sorted(reported) == [("unusable value", key, "") for key in wrong]
    assert log.read_text() == line
    assert [record.id for record in memory.records()] == ["theirs"]
    assert [hit.record.id for hit in memory.recall("walrus timeout", repo="app").hits] == ["theirs"]
    assert memory.describe("theirs")["lesson"] == fields["lesson"]
    assert memory.feedback("theirs", "worked").fields["of"] == "theirs"
    assert memory.stats()
    assert list(memory.export_lines())


@pytest.mark.skipif(os.name != "posix", reason="there is no pty")
@pytest.mark.parametrize(
    ("answer", "flags", "erased"),
    [("y", [], True), ("n", [], False), ("", [], False), ("", ["--yes"], True)],
)
def test_erasing_at_a_terminal_asks_first(
    memory: Memory, answer: str, flags: list[str], erased: bool
) -> None:
    ident = memory.log(event_type="learned", lesson="npm needs care").id
    terminal, inner = os.openpty()
    os.write(terminal, f"{answer}\n".encode())
    done = subprocess.run(
        [sys.executable, "-m", "commonplace", "forget", ident, "--erase", *flags],
        stdin=inner,
        capture_output=True,
        text=True,
        check=True,
    )
    os.close(inner)
    os.close(terminal)
    assert ("for good? It cannot be undone. [y/N]" in done.stderr) == (not flags)
    assert ("Nothing was erased" in done.stderr) != erased
    assert (ident in [record.id for record in memory.records()]) != erased
