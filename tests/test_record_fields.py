"""Every kind and every field: what it accepts, what it refuses, what it is when it is absent."""

from __future__ import annotations

import json
import pkgutil
import re
from datetime import UTC, datetime
from typing import Any

import pytest

from commonplace import records
from commonplace.errors import RecordInvalid
from commonplace.records import (
    EVENT_TYPES,
    KINDS,
    OUTCOMES,
    RELATIONS,
    TAGS_MAX,
    Record,
    from_line,
    make,
    to_line,
)
from commonplace.records.kinds import TIME_UNKNOWN
from commonplace.vocabulary import KIND_NAMES

NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
BIGGEST = 1.7976931348623157e308

# What a field holds. Each sort of value: examples, and what is refused with a word of the reason.
ACCEPTED: dict[str, list[Any]] = {
    "id": ["x", "a-b_c.D~1!", "x" * 200],
    "kind": [],
    "repo": ["app", "語" * 40],
    "text": ["x", "", " ", "a\nb", "日本"],
    "filled": ["x", " x "],
    "texts": [[], ["a", ""]],
    "tags": [[], ["a"], ["t"] * TAGS_MAX],
    "list": [[], [1, "a", {}]],
    "object": [{}, {"a": [1]}],
    "number": [0, -1, 1.5, BIGGEST, -BIGGEST, 10**308],
    "share": [0, 1, 0.5, 1.0],
    "count": [0, 1, 10**20],
    "rate": ["0/0", "9/10", "10/10", "0/999999999"],
    "time": ["2026-01-31T10:00:00Z"],
    "links": [
        [],
        [{"to": "a"}],
        [{"to": "a", "rel": "uses", "w": 0}, {"to": "b", "relation": "is_a", "w": 1}],
        [{"to": "a", "w": None, "x": 1}],
    ],
    "anything": [0, "", [], {}, False, {"a": None}],
    "event_type": list(EVENT_TYPES),
    "outcome": list(OUTCOMES),
    "relation": list(RELATIONS),
}
NOT_TEXT: list[tuple[Any, str]] = [
    (7, "text, not a number"),
    (1.5, "text, not a number"),
    (True, "text, not true or false"),
    (["a"], "text, not a list"),
    ({"a": 1}, "text, not an object"),
]
EMPTY: list[tuple[Any, str]] = [("", "is empty"), (" \t\n", "is empty")]
NOT_A_NUMBER: list[tuple[Any, str]] = [
    ("1", "number, not text"),
    (True, "number, not true or false"),
    ([], "number, not a list"),
    (10**309, "too large"),
    (-(10**309), "too large"),
]
REFUSED: dict[str, list[tuple[Any, str]]] = {
    "id": [*NOT_TEXT, ("x" * 201, "201 characters, over 200"), ("a b", "ASCII"), ("-a", "start")],
    "kind": [("banana", "not one of lesson, episode"), (["lesson"], "not one of")],
    "repo": [*NOT_TEXT, ("a/b", "slashes"), ("語" * 41, "123 bytes, over 120")],
    "text": NOT_TEXT,
    "filled": [*NOT_TEXT, *EMPTY],
    "texts": [("a", "list"), ([1], "text"), (["a", None], "text"), ({"a": 1}, "list")],
    "tags": [("a", "list"), ([1], "text")],
    "list": [("a", "list, not text"), ({}, "list, not an object"), (1, "list, not a number")],
    "object": [([], "object, not a list"), ("a", "object, not text"), (1, "object, not a number")],
    "number": NOT_A_NUMBER,
    "share": NOT_A_NUMBER,
    "count": [(-1, "0 or more"), (1.0, "whole"), (True, "whole"), ("1", "whole")],
    "rate": [("11/10", "more often"), ("1", "X/Y"), ("", "X/Y"), (1, "X/Y"), ("a/b", "X/Y")],
    "time": [("soon", "not a time"), (7, "not a number"), (["x"], "not a list")],
    "links": [
        ({}, "list, not an object"),
        ([{"rel": "uses"}], "list of objects like"),
        (["a"], "list of objects like"),
        ([{"to": 7}], "list of objects like"),
        ([{"to": "a", "rel": 7}], "`rel` is not text"),
        ([{"to": "a", "relation": 7}], "`rel` is not text"),
        ([{"to": "a", "w": "1"}], "number, not text"),
        ([{"to": "a", "w": 10**400}], "too large"),
    ],
    "anything": [],
    "event_type": [("banana", "not one of error, success"), ("", "not one of"), (7, "not one of")],
    "outcome": [("meh", "not one of worked, failed"), (["worked"], "not one of")],
    "relation": [("likes", "not one of derived_from, supersedes"), ("", "not one of")],
}
# Refused only from a writer: another program's line is read, and its weights are bounded.
REFUSED_IN_WRITING: dict[str, list[tuple[Any, str]]] = {
    "tags": [(["t"] * (TAGS_MAX + 1), "65 entries, over 64")],
    "share": [(-0.01, "between 0 and 1"), (1.01, "between 0 and 1")],
    "links": [
        ([{"to": "a", "w": 1.01}], "`w` is not between"),
        ([{"to": "a"}, {"to": "b", "w": -0.01}], "`w` is not between"),
    ],
}
# A reader accepts these from other programs and newer versions.
ACCEPTED_IN_READING: dict[str, list[Any]] = {
    "tags": [["t"] * (TAGS_MAX + 1)],
    "share": [7, -1],
    "links": [[{"to": "a", "w": 7}], [{"to": "a", "w": -1, "rel": "likes"}]],
    "event_type": ["banana", ""],
    "outcome": ["meh"],
    "relation": ["likes"],
    "weight": [7, -1],
    "id": ["a b", "x" * 300, "-a"],
    "repo": ["a/b"],
}
ACCEPTED["weight"], REFUSED["weight"] = ACCEPTED["share"], NOT_A_NUMBER
REFUSED_IN_WRITING["weight"] = REFUSED_IN_WRITING["share"]

COMMON = {
    "id": "id",
    "kind": "kind",
    "timestamp": "time",
    "agent_id": "text",
    "repo": "repo",
    "tags": "tags",
    "meta": "object",
    "links": "links",
}
NODE = {
    "type": "text",
    "label": "filled",
    "payload": "anything",
    "children": "object",
    "stats": "object",
}
FIELDS: dict[str, dict[str, str]] = {
    "lesson": {
        "event_type": "event_type",
        "context": "text",
        "command": "text",
        "lesson": "filled",
        "success_rate": "rate",
    },
    "episode": {
        "task_id": "filled",
        "duration_seconds": "number",
        "context": "object",
        "action_log": "list",
        "outcome": "text",
        "errors_encountered": "list",
        "artifacts_produced": "texts",
        "git_commit": "text",
    },
    "pattern": {
        "pattern": "filled",
        "category": "text",
        "conditions": "texts",
        "correct_approach": "text",
        "incorrect_approach": "text",
        "confidence": "share",
        "source_episodes": "texts",
        "usage_count": "count",
        "last_used": "time",
    },
    "anti_pattern": {"what_fails": "filled", "why": "text", "prevention": "text", "source": "text"},
    "fact": NODE,
    "concept": NODE,
    "snippet": NODE,
    "tool": NODE,
    "persona": NODE,
    "task": NODE,
    "node": NODE,
    "handoff": {
        "from_agent": "filled",
        "to_agent": "filled",
        "context": "object",
        "status": "text",
        "accepted_by": "text",
        "accepted_at": "time",
    },
    "ledger": {
        "last_checkpoint": "time",
        "tasks_completed": "count",
        "current_task": "text",
        "state": "object",
        "context": "object",
    },
    "context": {"task_id": "filled", "frames": "list"},
    "feedback": {"of": "filled", "outcome": "outcome"},
    "link": {"of": "filled", "to": "filled", "rel": "relation", "w": "weight"},
    "forget": {"of": "filled", "reason": "text"},
}
REQUIRED_SORTS = frozenset(["filled", "event_type", "outcome", "relation"])
DEFAULTS: dict[str, Any] = {
    "text": "",
    "filled": "",
    "texts": (),
    "tags": (),
    "list": (),
    "object": {},
    "number": 0,
    "share": 0.0,
    "count": 0,
    "rate": "",
    "time": "",
    "links": (),
    "anything": None,
    "event_type": "",
    "outcome": "",
    "relation": "",
    "weight": 1.0,
    "repo": "",
}
CASES = [
    (kind, field, sort) for kind, own in FIELDS.items() for field, sort in {**COMMON, **own}.items()
]


def base(kind: str) -> dict[str, Any]:
    """Return the fields that *kind* needs."""
    own = {
        field: ACCEPTED[sort][0] for field, sort in FIELDS[kind].items() if sort in REQUIRED_SORTS
    }
    return {"kind": kind, **own}


def write(fields: dict[str, Any]) -> Record:
    return make(fields, now=NOW, repo="app", agent_id="tester")


def read(fields: dict[str, Any]) -> Record:
    common = {"id": "x", "timestamp": "2026-01-31T09:30:00Z"}
    return from_line(json.dumps({**common, **fields}).encode())


def test_the_kinds_and_their_fields_are_these() -> None:
    assert tuple(KINDS) == KIND_NAMES
    assert {kind: list(cls.known) for kind, cls in KINDS.items()} == {
        kind: [*COMMON, *own] for kind, own in FIELDS.items()
    }
    assert list(Record.known) == list(COMMON)


@pytest.mark.parametrize(("kind", "field", "sort"), CASES)
def test_a_field_accepts_what_it_may_hold(kind: str, field: str, sort: str) -> None:
    for value in ACCEPTED[sort]:
        record = write({**base(kind), field: value})

        assert record.fields[field] == value
        assert getattr(record, field) == value
        assert from_line(to_line(record)) == record


@pytest.mark.parametrize(("kind", "field", "sort"), CASES)
def test_a_field_refuses_everything_else_by_its_name(kind: str, field: str, sort: str) -> None:
    for value, reason in REFUSED[sort] + REFUSED_IN_WRITING.get(sort, []):
        if (field, value) in (("id", ""), ("repo", "")):
            continue
        with pytest.raises(RecordInvalid, match=reason) as refused:
            write({**base(kind), field: value})

        assert refused.value.field == field
        assert str(refused.value).startswith(f"`{field}` ")


@pytest.mark.parametrize(("kind", "field", "sort"), CASES)
def test_a_reader_leaves_out_what_it_cannot_use_and_needs_a_few_fields(
    kind: str, field: str, sort: str
) -> None:
    accepted = ACCEPTED_IN_READING.get(sort, [])
    lenient = {"event_type": "text", "outcome": "text", "relation": "text", "id": "filled"}
    refused = REFUSED[{**lenient, "repo": "text", "kind": "text"}.get(sort, sort)]

    for value in accepted:
        assert read({**base(kind), field: value}).fields[field] == value
    is_needed = sort in REQUIRED_SORTS - {"event_type"} or field in {"id", "kind"}
    for value, reason in refused:
        if is_needed:
            with pytest.raises(ValueError, match=reason) as error:
                read({**base(kind), field: value})
            said = str(error.value)
        else:
            record = read({**base(kind), field: value})
            without = read({name: one for name, one in base(kind).items() if name != field}).fields
            stand_in = {field: TIME_UNKNOWN} if field == "timestamp" else {}
            assert record.fields == {**without, **stand_in}
            (said,) = record.unusable
            assert re.search(reason, said)
        assert said.startswith(f"`{field}` ")


@pytest.mark.parametrize(("kind", "field", "sort"), CASES)
def test_a_field_that_is_needed_is_missed_by_its_name(kind: str, field: str, sort: str) -> None:
    fields = {name: value for name, value in base(kind).items() if name != field}
    needed_to_read = sort in REQUIRED_SORTS - {"event_type"} or field in {"id", "kind", "timestamp"}
    if kind == "lesson" and field in {"id", "kind"}:
        needed_to_read = False  # A line that was written by hand may have a lesson and no more.

    if sort in REQUIRED_SORTS:
        for absent in (fields, {**fields, field: None}):
            with pytest.raises(RecordInvalid, match="is missing") as refused:
                write(absent)
            assert refused.value.field == field
    elif field != "kind":
        write({**fields, field: None})
    if needed_to_read:
        with pytest.raises(ValueError, match=f"`{field}` is missing"):
            read({**base(kind), field: None})
    else:
        read({**base(kind), field: None})


@pytest.mark.parametrize(("kind", "field", "sort"), [case for case in CASES if case[2] in DEFAULTS])
def test_an_absent_field_has_its_default(kind: str, field: str, sort: str) -> None:
    record = KINDS[kind]({})

    assert getattr(record, field) == DEFAULTS[sort]
    assert getattr(KINDS[kind]({field: None}), field) == DEFAULTS[sort]


def test_a_default_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        KINDS["lesson"]({}).meta["a"] = 1  # type: ignore[index]


def test_a_field_that_is_unknown_may_be_null_and_hold_anything() -> None:
    record = write({**base("lesson"), "x_new": None, "x_list": [1]})

    assert record.fields["x_new"] is None
    assert record.fields["x_list"] == [1]
    assert "context" not in write({**base("lesson"), "context": None}).fields


# What a caller leaves out


def test_time_repository_agent_and_kind_are_filled_in() -> None:
    record = write(
        {"event_type": "error", "lesson": "x", "repo": "", "kind": None, "timestamp": ""}
    )

    assert list(record.fields)[:5] == ["id", "kind", "timestamp", "agent_id", "repo"]
    assert (record.kind, record.timestamp) == ("lesson", "2026-01-31T09:30:00Z")
    assert (record.agent_id, record.repo) == ("tester", "app")
    assert record.id.startswith("les-x-")


def test_what_a_caller_gives_is_kept() -> None:
    given = {"id": "my-id", "agent_id": "me", "repo": "web", "timestamp": "2020-02-02T02:02:02Z"}

    record = write({**base("lesson"), **given})

    assert {name: record.fields[name] for name in given} == given


@pytest.mark.parametrize(
    ("kind", "field"),
    [("pattern", "last_used"), ("ledger", "last_checkpoint"), ("fact", "timestamp")],
)
def test_every_time_of_a_kind_is_written_in_utc(kind: str, field: str) -> None:
    record = write({**base(kind), field: "2026-01-31T10:00:00+02:00"})

    assert record.fields[field] == "2026-01-31T08:00:00Z"
    with pytest.raises(RecordInvalid) as refused:
        write({**base(kind), field: "soon"})
    assert refused.value.field == field


# Edges and sources


@pytest.mark.parametrize("relation", RELATIONS)
def test_every_relation_is_an_edge(relation: str) -> None:
    links = [{"to": "b", "rel": relation, "w": 0.5}, {"to": "c", "relation": relation}]

    record = write({**base("lesson"), "links": links})

    assert record.edges == (("b", relation, 0.5), ("c", relation, 1.0))
    assert record.sources == (("b", "c") if relation == "derived_from" else ())


def test_an_edge_without_a_relation_is_related_and_its_weight_is_bounded() -> None:
    links = [{"to": "b"}, {"to": "c", "rel": "", "w": 7}, {"to": "d", "rel": None, "w": -7}]

    record = KINDS["fact"]({"links": links})

    assert record.edges == (
        ("b", "related_to", 1.0),
        ("c", "related_to", 1.0),
        ("d", "related_to", 0.0),
    )
    assert all(isinstance(edge.w, float) for edge in record.edges)


def test_sources_are_links_then_the_fields_that_name_them() -> None:
    links = [{"to": "ep-2", "rel": "derived_from"}, {"to": "ep-9", "rel": "uses"}]

    assert KINDS["pattern"]({"links": links, "source_episodes": ["ep-1"]}).sources == (
        "ep-2",
        "ep-1",
    )
    assert KINDS["anti_pattern"]({"links": links, "source": "ep-3"}).sources == ("ep-2", "ep-3")
    assert KINDS["anti_pattern"]({"links": links}).sources == ("ep-2",)


# Records as values


def test_records_are_equal_by_their_fields_whatever_their_class() -> None:
    one, same, other = Record({"id": "a"}), KINDS["fact"]({"id": "a"}), Record({"id": "b"})

    assert one == same
    assert one != other
    assert one != {"id": "a"}
    assert hash(one) == hash(same)
    assert {one, same, other} == {one, other}
    assert (repr(same), repr(one)) == ("<Node a>", "<Record a>")
    assert one.redactions == ()


# The public list


def test_the_public_names_are_all_listed() -> None:
    # A module is a name of its package once somebody has imported it.
    modules = {module.name for module in pkgutil.iter_modules(records.__path__)}
    public = {name for name in vars(records) if not name.startswith("_")} - modules

    assert public == set(records.__all__)
    assert {cls.__name__ for cls in KINDS.values()} <= set(records.__all__)
