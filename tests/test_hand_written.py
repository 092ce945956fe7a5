"""Lines that a person or a script wrote without `id` and `kind`: every reader takes them for lessons."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from commonplace.log.rotate import rotate
from commonplace.records import fill_identity, from_line
from conftest import SLOW_LAW

if TYPE_CHECKING:
    from pathlib import Path

    from commonplace.memory import Memory

SEED: dict[str, Any] = {
    "timestamp": "2025-10-28T10:00:00Z", "agent_id": "claude", "repo": "app", "event_type": "error",
    "context": "docker build fails", "command": "docker builder prune",
    "lesson": "prune the builder cache when the layer hash is stale", "success_rate": "3/3", "tags": ["docker"],
}  # fmt: skip
texts = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=40)


def write_by_hand(home: Path, *lines: dict[str, Any], log: str = "app") -> None:
    (home / "log").mkdir(parents=True, exist_ok=True)
    with (home / "log" / f"{log}.jsonl").open("a", encoding="utf-8") as stream:
        stream.writelines(json.dumps(line) + "\n" for line in lines)


@SLOW_LAW
@given(
    context=texts, command=texts, lesson=texts.filter(str.strip), tags=st.lists(texts, max_size=3)
)
def test_the_id_is_the_one_that_logging_gives(
    memory: Memory, context: str, command: str, lesson: str, tags: list[str]
) -> None:
    fields = {**SEED, "context": context, "command": command, "lesson": lesson, "tags": tags}
    record = memory.log(**fields)
    if record.redactions:
        return  # What was removed is not in the id.

    by_hand = from_line(json.dumps(fields).encode())

    assert by_hand.id == record.id
    assert by_hand.kind == "lesson"
    assert fill_identity(fill_identity(dict(fields))) == fill_identity(dict(fields))


@given(
    st.dictionaries(
        st.sampled_from([*SEED, "id", "kind", "of", "meta"]),
        st.none() | st.booleans() | st.integers() | texts | st.lists(texts, max_size=2),
    )
)
def test_whatever_a_line_holds_it_is_a_record_or_damage(fields: dict[str, Any]) -> None:
    raw = json.dumps(fields).encode()
    try:
        record = from_line(raw)
    except ValueError:
        return

    assert record.id
    assert record.kind
    assert from_line(raw).id == record.id


def test_every_reader_finds_it(memory: Memory, own_home: Path) -> None:
    memory.log(repo="app", event_type="error", lesson="run the emulator before the checkout tests")
    write_by_hand(own_home, SEED)
    ident = fill_identity(SEED)["id"]

    (hit,) = memory.recall("docker build stale layer", repo="app").hits
    assert (hit.id, str(hit.rate)) == (ident, "3/3")
    assert memory.get(ident[:12]).fields["lesson"] == SEED["lesson"]
    assert [one.id for one in memory.history(ident)] == [ident]
    assert ident in [json.loads(line)["id"] for line in memory.export_lines()]
    assert memory.check() == memory.mend() == []
    memory.feedback(ident, "worked")
    assert memory.describe(ident)["success_rate"] == "4/4"
    assert memory.stats("app")["records"] == 2


def test_the_same_lesson_twice_is_one_and_the_latest_applies(
    memory: Memory, own_home: Path
) -> None:
    later = {**SEED, "timestamp": "2025-10-29T10:00:00Z", "success_rate": "5/6"}
    write_by_hand(own_home, SEED, later)

    (hit,) = memory.recall("docker build stale layer", repo="app").hits
    assert str(hit.rate) == "5/6"
    assert len(memory.history(hit.id)) == 2
    # An edit gives the id, and becomes the record's next version.
    memory.log(**{**SEED, "id": hit.id, "lesson": "prune the cache of the builder"})
    assert [record.fields["lesson"] for record in memory.records("app")] == [
        "prune the cache of the builder"
    ]


def test_it_can_be_forgotten_rotated_and_erased(memory: Memory, own_home: Path) -> None:
    write_by_hand(own_home, SEED, {**SEED, "lesson": "another lesson"})
    ident = fill_identity(SEED)["id"]

    rotate(memory.home, "app", lines_max=1, move=1)
    assert SEED["lesson"] in (own_home / "log" / "archive" / "app.jsonl").read_text()
    assert memory.get(ident).id == ident
    memory.forget(ident)
    assert memory.recall("docker build stale layer", repo="app", archived=True).hits[0].id != ident

    receipt = memory.erase(ident)

    assert (receipt.records_erased, receipt.left_in) == (1, [])
    left = [path.read_text() for path in (own_home / "log").rglob("*.jsonl")]
    assert not any(SEED["lesson"] in text for text in left)
    assert any("another lesson" in text for text in left)


def test_what_forgot_it_still_does_after_its_secret_was_removed(
    memory: Memory, own_home: Path
) -> None:
    secret = "AKIA" + "Q3EGP7OMXV2RS5TU"
    line = {**SEED, "context": f"the key was {secret}"}
    write_by_hand(own_home, line)
    ident = fill_identity(line)["id"]
    memory.forget(ident)

    memory.scan(fix=True)

    assert secret not in (own_home / "log" / "app.jsonl").read_text()
    assert list(memory.records("app")) == []
    assert memory.history(ident)[0].id == ident


def test_a_line_that_is_no_lesson_is_still_damage(memory: Memory, own_home: Path) -> None:
    write_by_hand(own_home, {"timestamp": "2025-10-28T10:00:00Z", "note": "x"}, SEED)

    damages = [finding.line for finding in memory.check() if finding.what == "damage"]

    assert damages == [1]


def test_a_hit_carries_the_lesson_as_it_is_stored(memory: Memory) -> None:
    command = 'grep "a  b"   file.txt'
    memory.log(repo="app", event_type="error", lesson="look for  two spaces", command=command)
    memory.log(repo="app", kind="fact", label="the file with two spaces is file.txt")

    lesson, fact = sorted(
        memory.recall("file.txt with two spaces", repo="app").as_dict()["hits"],
        key=lambda hit: str(hit["kind"]),
        reverse=True,
    )

    assert (lesson["lesson"], lesson["command"]) == ("look for  two spaces", command)
    assert (lesson["context"], lesson["success_rate"]) == (None, None)
    assert (fact["lesson"], fact["command"]) == (None, None)
