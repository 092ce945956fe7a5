"""Two versions of a home's logs become one: what was written later wins, and what was erased stays away."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from commonplace.erasure.erased import digest
from commonplace.records import encode, from_line, micros
from commonplace.rules import Fold, Stamp
from commonplace.transfer.merge import merge_lines, merge_logs

LOG = "log/app.jsonl"
IDS = ["x", "y", "z"]


def at(minute: int) -> str:
    return f"2026-01-01T00:{minute:02}:00Z"


def line(ident: str, minute: int, **more: Any) -> bytes:
    fields = {"id": ident, "kind": "lesson", "timestamp": at(minute), "repo": "app"}
    return encode({**fields, "event_type": "learned", "lesson": "text", **more}).encode()


def edit(ident: str, minute: int, text: str) -> bytes:
    return line(ident, 0, lesson=text, meta={"edited": at(minute)})


def forget(ident: str, minute: int) -> bytes:
    fields = {"id": f"f-{ident}-{minute}", "kind": "forget", "timestamp": at(minute), "repo": "app"}
    return encode({**fields, "of": ident}).encode()


def link(ident: str, source: str, minute: int) -> bytes:
    return line(ident, minute, links=[{"to": source, "rel": "derived_from"}])


def recalled(lines: list[bytes]) -> dict[str, str]:
    folded: Fold[str] = Fold()
    for position, raw in enumerate(lines):
        record = from_line(raw)
        stamp = Stamp(micros(record.timestamp), "app", position)
        folded.add(stamp, record, str(record.fields.get("lesson", "")))
    return {ident: folded.current(ident).value for ident in folded.visible_ids()}


BASE = [line(ident, 0) for ident in IDS]
changes = st.tuples(st.sampled_from(IDS), st.booleans())
# What two machines do, minute by minute: each change happens on one of them.
histories = st.lists(st.tuples(st.booleans(), changes), max_size=12)


def write(minute: int, change: tuple[str, bool]) -> bytes:
    ident, is_forget = change
    return forget(ident, minute) if is_forget else edit(ident, minute, f"as of {minute}")


@given(histories)
def test_the_merge_recalls_what_one_machine_would_after_the_same_changes(
    history: list[tuple[bool, tuple[str, bool]]],
) -> None:
    timed = [(here, write(minute, change)) for minute, (here, change) in enumerate(history, 1)]
    ours = BASE + [raw for here, raw in timed if here]
    theirs = BASE + [raw for here, raw in timed if not here]
    merged = merge_lines(BASE, ours, theirs)
    assert recalled(merged) == recalled(BASE + [raw for _here, raw in timed])
    assert sorted(merged) == sorted({*ours, *theirs})
    assert merged == merge_lines(BASE, theirs, ours)
    # Whoever receives the result has nothing to add, even if it has nothing else in common.
    for one in (ours, theirs):
        assert merge_lines(one, one, merged) == merge_lines([], one, merged) == merged


lines = st.lists(st.sampled_from([b"a", b"b", b"c", b"d"]), max_size=8)


@given(lines, lines, lines)
def test_a_line_is_lost_only_if_a_side_removed_it(
    base: list[bytes], ours: list[bytes], theirs: list[bytes]
) -> None:
    merged = merge_lines(base, ours, theirs)
    for raw in {*base, *ours, *theirs}:
        before, here, there = (side.count(raw) for side in (base, ours, theirs))
        kept = [
            number
            for number in range(1, max(here, there) + 1)
            if number > before or number <= min(here, there)
        ]
        assert merged.count(raw) == len(kept)
    assert merged == merge_lines(base, theirs, ours)
    assert merge_lines(base, ours, ours) == ours


@given(st.permutations(range(4)))
def test_an_erased_record_stays_away_with_what_rests_on_it(order: list[int]) -> None:
    from_there = [edit("x", 30, "again"), link("d", "x", 31), link("e", "d", 32), forget("x", 33)]
    theirs = [*BASE, *(from_there[place] for place in order), line("other", 40)]
    ours = BASE[1:]
    merged = merge_logs({LOG: BASE}, {LOG: ours}, {LOG: theirs}, {digest("x"): micros(at(20))})
    assert merged == {LOG: [*ours, line("other", 40)]}


def test_a_record_that_is_logged_again_after_it_was_erased_stays() -> None:
    again = line("x", 25)
    erased = {digest("x"): micros(at(20))}
    there = merge_logs({LOG: BASE}, {LOG: BASE[1:]}, {LOG: [*BASE, again]}, erased)
    assert there == {LOG: [*BASE[1:], again]}
    here = merge_logs({LOG: BASE}, {LOG: [*BASE[1:], line("x", 20)]}, {LOG: BASE}, erased)
    assert here == {LOG: [*BASE[1:], line("x", 20)]}


def test_without_a_common_ancestor_an_erased_record_does_not_come_back() -> None:
    merged = merge_logs({}, {LOG: BASE[1:]}, {LOG: BASE}, {digest("x"): micros(at(20))})
    assert merged == {LOG: BASE[1:]}


def alias(old: str, new: str) -> bytes:
    return encode({"alias": old, "repo": new}).encode()


@given(st.booleans())
def test_a_log_that_both_renamed_is_one_log(swap: bool) -> None:
    sides = []
    for new in ("shop", "store"):
        moved = [raw.replace(b'"app"', f'"{new}"'.encode()) for raw in [*BASE, edit("x", 5, new)]]
        sides.append({f"log/{new}.jsonl": moved, "repos.jsonl": [alias("app", new)]})
    ours, theirs = sides[::-1] if swap else sides
    merged = merge_logs({LOG: BASE}, ours, theirs, {})
    logs = [path for path in merged if path.startswith("log/")]
    assert len(logs) == 1
    assert len(merged[logs[0]]) == len(BASE) + 2


def test_lines_that_are_no_records_are_kept() -> None:
    merged = merge_lines([], [b"{torn"], [b"\xff", *BASE])
    assert sorted(merged) == sorted([b"{torn", b"\xff", *BASE])
