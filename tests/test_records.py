"""Records: what survives, what is refused, how an id is made."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.errors import RecordInvalid
from commonplace.records import (
    DEPTH_MAX,
    KINDS,
    AntiPattern,
    Lesson,
    Link,
    Pattern,
    Rate,
    Record,
    check_depth,
    check_repo_name,
    encode,
    from_line,
    make,
    parse_rate,
    to_line,
    to_utc,
)

NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)

# Everything JSON can say, without the surrogates and control characters that the door refuses.
TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=40)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
EXAMPLES: dict[str, dict[str, Any]] = {
    "lesson": {
        "event_type": "error",
        "lesson": "check ownership",
        "success_rate": "9/10",
        "tags": ["npm"],
    },
    "episode": {
        "task_id": "task-042",
        "context": {"goal": "Add an endpoint"},
        "outcome": "success",
    },
    "pattern": {
        "pattern": "handlers need return types",
        "confidence": 0.95,
        "source_episodes": ["ep-1"],
    },
    "anti_pattern": {"what_fails": "force push", "why": "it loses work", "source": "ep-1"},
    "handoff": {"from_agent": "eng-001", "to_agent": "qa-001", "context": {"what_was_done": "all"}},
    "ledger": {"tasks_completed": 12, "current_task": "task-042", "state": {}},
    "context": {"task_id": "task-042", "frames": [{"kind": "knowledge", "data": {}}]},
    "feedback": {"of": "les-1", "outcome": "worked"},
    "link": {"of": "les-1", "to": "les-2", "rel": "supersedes", "w": 0.5},
    "forget": {"of": "les-1", "reason": "asked to"},
}
NODE = {
    "type": "concept",
    "label": "SFINAE",
    "payload": {"definition": "…"},
    "children": {"intro": "skill.x"},
}


def made(**given_fields: Any) -> Record:
    return make(given_fields, now=NOW, repo="app", agent_id="tester")


def lessons() -> st.SearchStrategy[dict[str, Any]]:
    known = {
        "kind": st.just("lesson"),
        "event_type": st.sampled_from(["error", "success", "pattern", "learned"]),
        "lesson": TEXT.filter(str.strip),
        "context": TEXT,
        "tags": st.lists(TEXT, max_size=3),
        "meta": st.dictionaries(TEXT, JSON, max_size=2),
    }
    names = st.from_regex(r"x_[a-z]{1,6}", fullmatch=True)
    return st.builds(
        lambda fields, more: {**more, **fields},
        st.fixed_dictionaries(known),
        st.dictionaries(names, JSON),
    )


@given(lessons())
def test_any_record_survives_line_to_record_to_line(fields: dict[str, Any]) -> None:
    record = make(fields, now=NOW, repo="app", agent_id="tester")

    again = from_line(to_line(record).rstrip(b"\n"))

    assert again == record
    assert to_line(again) == to_line(record)


@given(st.dictionaries(TEXT, JSON, max_size=4))
def test_fields_nobody_knows_are_kept_as_they_are(extra: dict[str, Any]) -> None:
    extra = {f"x_{name}": value for name, value in extra.items()}

    record = from_line(to_line(made(event_type="error", lesson="a", **extra)))

    assert {name: record.fields[name] for name in extra} == extra


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_the_design_is_a_typed_value(kind: str) -> None:
    record = made(kind=kind, **EXAMPLES.get(kind, NODE))

    assert type(record) is KINDS[kind]
    assert from_line(to_line(record)) == record
    assert record.timestamp == "2026-01-31T09:30:00Z"


def test_the_same_content_is_the_same_id_whatever_its_spacing_case_or_time() -> None:
    first = made(event_type="error", lesson="Check  ownership\nfirst")
    second = made(
        event_type="success",
        lesson="check ownership first",
        timestamp="2020-01-01T00:00:00Z",
        tags=["x"],
    )

    assert first.id == second.id
    assert first.id.startswith("les-check-ownership-first-")


def test_another_repository_kind_or_context_is_another_id() -> None:
    base = {"event_type": "error", "lesson": "check ownership"}
    ids = {
        made(**base).id,
        made(**base, repo="web").id,
        made(**base, context="npm").id,
        made(**base, command="ls").id,
    }

    assert len(ids) == 4


def test_a_given_id_is_kept_so_a_key_of_seed_003_is_one() -> None:
    key = "learned-taskgroup-requires-sendable-closures"

    assert (
        made(event_type="learned", lesson="TaskGroup requires @Sendable closures", id=key).id == key
    )


def test_an_id_is_readable_in_any_script() -> None:
    assert made(event_type="error", lesson="日本語のエラー").id.startswith("les-")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"event_type": "error", "lesson": ""}, "lesson"),
        ({"event_type": "error", "lesson": "  \n "}, "lesson"),
        ({"event_type": "error"}, "lesson"),
        ({"lesson": "x"}, "event_type"),
        ({"event_type": "banana", "lesson": "x"}, "event_type"),
        ({"event_type": ["error"], "lesson": "x"}, "event_type"),
        ({"event_type": "error", "lesson": 7}, "lesson"),
        ({"event_type": "error", "lesson": "x", "success_rate": "11/10"}, "success_rate"),
        ({"event_type": "error", "lesson": "x", "success_rate": "most"}, "success_rate"),
        ({"event_type": "error", "lesson": "x", "success_rate": "-1/2"}, "success_rate"),
        ({"event_type": "error", "lesson": "x", "success_rate": "१/२"}, "success_rate"),
        ({"event_type": "error", "lesson": "x", "tags": "npm"}, "tags"),
        ({"event_type": "error", "lesson": "x", "tags": ["t"] * 65}, "tags"),
        ({"event_type": "error", "lesson": "x", "timestamp": "yesterday-ish"}, "timestamp"),
        ({"event_type": "error", "lesson": "x", "timestamp": 1706360000}, "timestamp"),
        ({"event_type": "error", "lesson": "x", "repo": "../evil"}, "repo"),
        ({"event_type": "error", "lesson": "x", "repo": ["a"]}, "repo"),
        ({"event_type": "error", "lesson": "x", "id": "has space"}, "id"),
        ({"event_type": "error", "lesson": "x", "id": "x" * 201}, "id"),
        ({"event_type": "error", "lesson": "x", "id": "--json"}, "id"),
        ({"event_type": "error", "lesson": "x", "links": [{"rel": "uses"}]}, "links"),
        ({"event_type": "error", "lesson": "x", "links": [{"to": "a", "w": 10**400}]}, "links"),
        ({"event_type": "error", "lesson": "x", "links": [{"to": "a", "w": 1.5}]}, "links"),
        ({"event_type": "error", "lesson": "x", "links": [{"to": "a", "w": -1}]}, "links"),
        ({"event_type": "error", "lesson": "x", "repo": "語" * 41}, "repo"),
        ({"kind": "link", "of": "a", "to": "b", "rel": "uses", "w": 2}, "w"),
        ({"kind": "fact", "label": "x", "payload": {1, 2}}, "record"),
        ({"kind": "banana"}, "kind"),
        ({"kind": ["lesson"]}, "kind"),
        ({"kind": "pattern", "pattern": "x", "confidence": 1.5}, "confidence"),
        ({"kind": "pattern", "pattern": "x", "confidence": True}, "confidence"),
        ({"kind": "pattern", "pattern": "x", "usage_count": -1}, "usage_count"),
        ({"kind": "feedback", "of": "a", "outcome": "meh"}, "outcome"),
        ({"kind": "episode", "task_id": 3}, "task_id"),
    ],
)
def test_what_a_record_may_not_hold_is_refused_by_the_name_of_its_field(
    fields: dict[str, Any], field: str
) -> None:
    with pytest.raises(RecordInvalid) as refused:
        made(**fields)

    assert refused.value.field == field


@pytest.mark.parametrize(
    "repo",
    [
        "..",
        "../x",
        "a/b",
        "a\\b",
        "",
        " ",
        ".hidden",
        "nul",
        "COM1.txt",
        "com¹",
        "LPT³.md",
        "CONIN$",
        "a:b",
        "x.",
        "-x",
        "a\nb",
    ],
)
def test_a_name_that_could_leave_the_folder_is_refused(repo: str) -> None:
    with pytest.raises(ValueError):
        check_repo_name(repo)


@given(st.integers(0, 10**9 - 1), st.integers(0, 10**9 - 1))
def test_a_rate_is_taken_exactly_when_it_worked_no_more_often_than_it_was_tried(
    worked: int, tried: int
) -> None:
    if worked <= tried:
        assert parse_rate(f"{worked}/{tried}") == Rate(worked, tried)
    else:
        with pytest.raises(ValueError):
            parse_rate(f"{worked}/{tried}")


@given(
    st.datetimes(min_value=datetime(1000, 1, 1), max_value=datetime(9000, 1, 1)),  # noqa: DTZ001
    st.integers(-14 * 60, 14 * 60),
)
def test_every_time_is_written_in_utc(moment: datetime, minutes: int) -> None:
    zoned = moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))

    written = to_utc(zoned.isoformat())

    assert written.endswith("Z")
    assert datetime.fromisoformat(written) == zoned
    assert to_utc(written) == written


@pytest.mark.parametrize(
    "written", ["2026-W05-6T10:00:00Z", "20260131T100000Z", "2026-01-31T100000.0Z"]
)
def test_a_time_in_another_iso_form_is_written_in_ours(written: str) -> None:
    assert to_utc(written) == "2026-01-31T10:00:00Z"


def test_every_time_of_a_record_is_written_in_utc() -> None:
    pattern = made(kind="pattern", pattern="x", last_used="2026-01-31T10:00:00+02:00")
    ledger = made(kind="ledger", last_checkpoint="2026-01-31T10:00:00+02:00")

    assert pattern.fields["last_used"] == ledger.fields["last_checkpoint"] == "2026-01-31T08:00:00Z"


@given(JSON)
def test_nesting_is_measured_alike_in_any_value(value: Any) -> None:
    def depth(value: Any) -> int:
        inner = (
            value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        )
        return max((depth(item) for item in inner), default=0) + isinstance(value, dict | list)

    wrapped: dict[str, Any] = {"x": value}
    while depth(wrapped) < DEPTH_MAX:
        wrapped = {"x": wrapped}

    check_depth(wrapped, encode(wrapped))
    with pytest.raises(ValueError, match="deep"):
        check_depth({"x": wrapped}, encode({"x": wrapped}))


def test_an_escaped_character_outside_the_basic_plane_is_no_damage() -> None:
    line = b'{"id": "a", "kind": "x", "timestamp": "2026-01-01T00:00:00Z", "said": "\\ud83d\\ude00 C:\\\\udir"}'

    assert from_line(line).fields["said"] == "\N{GRINNING FACE} C:\\udir"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"id": "les-torn", "kind": "les', "JSON"),
        (b"\xff\xfe", "UTF-8"),
        (b"[1, 2]", "object"),
        (b'{"kind": "lesson", "timestamp": "2026-01-01T00:00:00Z"}', "id"),
        (b'{"id": "a", "kind": "x"}', "timestamp"),
        (b'{"id": 3, "kind": "x", "timestamp": "2026-01-01T00:00:00Z"}', "id"),
        (b'{"id": NaN}', "NaN"),
        (b"[" * 100_000, "deep"),
        (b'{"id": "a", "x": ' + b"[" * 64 + b"]" * 64 + b"}", "deep"),
        (b'{"id": "a", "x": 1e400}', "too large"),
        (b'{"id": "a", "x": [-1E999]}', "too large"),
        (b'{"id": "a", "x": "\\ud800"}', "surrogate"),
        (b'{"id": "a", "\\uDFFF": 1}', "surrogate"),
    ],
)
def test_a_line_that_holds_no_record_says_why(line: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        from_line(line)


def test_a_kind_from_a_newer_version_is_read_as_a_plain_record() -> None:
    line = b'{"id": "a", "kind": "hologram", "timestamp": "2026-01-01T00:00:00Z", "shape": [1, 2]}'

    record = from_line(line)

    assert type(record) is Record
    assert record.fields["shape"] == [1, 2]


def test_an_event_type_from_a_newer_version_is_no_damage() -> None:
    line = b'{"id": "a", "kind": "lesson", "timestamp": "2026-01-01T00:00:00Z", "event_type": "omen", "lesson": "x"}'

    assert from_line(line).fields["event_type"] == "omen"


def test_typed_fields_have_their_defaults() -> None:
    lesson = made(event_type="error", lesson="x")

    assert isinstance(lesson, Lesson)
    assert (lesson.context, lesson.success_rate, list(lesson.tags), dict(lesson.meta)) == (
        "",
        "",
        [],
        {},
    )


def test_links_read_alike_with_the_names_of_both_seeds() -> None:
    record = made(
        event_type="error",
        lesson="x",
        links=[{"to": "a", "relation": "contradicts"}, {"to": "b", "rel": "uses", "w": 0.7}],
    )

    assert record.edges == (Link("a", "contradicts", 1.0), Link("b", "uses", 0.7))


def test_weights_another_program_wrote_are_read_within_their_bounds() -> None:
    line = b'{"id":"a","kind":"x","timestamp":"2026-01-01T00:00:00Z","links":[{"to":"b","w":7},{"to":"c","w":0}]}'

    assert [edge.w for edge in from_line(line).edges] == [1.0, 0.0]


def test_a_record_knows_what_it_derives_from() -> None:
    pattern = made(
        kind="pattern",
        pattern="x",
        source_episodes=["ep-1"],
        links=[{"to": "ep-2", "rel": "derived_from"}],
    )
    anti = made(kind="anti_pattern", what_fails="x", source="ep-3")

    assert isinstance(pattern, Pattern)
    assert isinstance(anti, AntiPattern)
    assert (pattern.sources, anti.sources) == (("ep-2", "ep-1"), ("ep-3",))
