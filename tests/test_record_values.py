"""What records are made of: ids, names, times, rates, and JSON within its limits."""

from __future__ import annotations

import json
import string
import unicodedata
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.errors import RecordInvalid
from commonplace.records import (
    DEPTH_MAX,
    ID_CHARS_MAX,
    KINDS,
    LINE_READ_BYTES_MAX,
    REPO_BYTES_MAX,
    Rate,
    Record,
    check_depth,
    check_id,
    check_repo_name,
    decode,
    encode,
    json_text,
    make,
    micros,
    parse_rate,
    slug,
    to_utc,
)
from commonplace.records.names import _VALID_NAMES_MAX, _valid_names

NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)


def made(**fields: Any) -> Record:
    return make(fields, now=NOW, repo="app", agent_id="tester")


# Ids

# The format promises these: the same content has the same id in every version and program.
IDS: list[tuple[dict[str, Any], str]] = [
    (
        {"kind": "lesson", "event_type": "error", "lesson": "Check ownership"},
        "les-check-ownership-",
    ),
    (
        {"kind": "episode", "task_id": "t-1", "context": {"goal": "Add an endpoint"}},
        "ep-add-an-endpoint-",
    ),
    ({"kind": "episode", "task_id": "t-1"}, "ep-"),
    ({"kind": "pattern", "pattern": "handlers need types"}, "pat-handlers-need-types-"),
    ({"kind": "anti_pattern", "what_fails": "force push", "why": "loses work"}, "anti-force-push-"),
    ({"kind": "fact", "label": "SFINAE", "payload": {"b": 1, "a": [2]}}, "fact-sfinae-"),
    ({"kind": "concept", "label": "SFINAE"}, "concept-sfinae-"),
    ({"kind": "snippet", "label": "x"}, "snippet-x-"),
    ({"kind": "tool", "label": "x"}, "tool-x-"),
    ({"kind": "persona", "label": "x"}, "persona-x-"),
    ({"kind": "task", "label": "x"}, "task-x-"),
    ({"kind": "handoff", "from_agent": "a", "to_agent": "qa-001"}, "handoff-qa-001-"),
    ({"kind": "ledger"}, "ledger-tester-"),
    ({"kind": "context", "task_id": "task-042"}, "ctx-task-042-"),
    ({"kind": "feedback", "of": "les-1", "outcome": "worked"}, "fb-worked-"),
    ({"kind": "link", "of": "a", "to": "b", "rel": "uses"}, "link-uses-"),
    ({"kind": "forget", "of": "les-1"}, "forget-"),
]
DIGESTS = {
    "les-check-ownership-": "46830d73dde409",
    "ep-add-an-endpoint-": "3fd7c9abbd58fe",
    "ep-": "12c65664da2e27",
    "pat-handlers-need-types-": "594f7fd9b6dfd9",
    "anti-force-push-": "9cd6131bc4da21",
    "fact-sfinae-": "9f37f13ced07fe",
    "concept-sfinae-": "7178dd47cca1a9",
    "snippet-x-": "d80c6b4e783978",
    "tool-x-": "4df8253e2f5567",
    "persona-x-": "ebbba4361753f4",
    "task-x-": "a5c9f0665bef83",
    "handoff-qa-001-": "f05ef7165d56ca",
    "ledger-tester-": "d0783e7e228a0c",
    "ctx-task-042-": "b1977535243b6c",
    "fb-worked-": "a272c5eeea30c6",
    "link-uses-": "b24f75abd7814c",
    "forget-": "187eb328eb98d1",
}
# The fields an id depends on, besides kind and repository; and some it does not depend on.
IDENTITY: dict[str, tuple[list[str], list[str]]] = {
    "lesson": (["context", "command", "lesson"], ["event_type", "success_rate", "timestamp"]),
    "episode": (["task_id", "timestamp", "context"], ["outcome", "git_commit"]),
    "pattern": (["pattern"], ["category", "confidence", "timestamp"]),
    "anti_pattern": (["what_fails", "why", "prevention"], ["source", "timestamp"]),
    "fact": (["type", "label", "payload"], ["children", "stats", "timestamp"]),
    "handoff": (["from_agent", "to_agent", "timestamp", "context"], ["tags"]),
    "ledger": (["agent_id"], ["current_task", "state", "timestamp"]),
    "context": (["task_id"], ["frames", "timestamp"]),
    "feedback": (["of", "outcome", "agent_id", "timestamp"], ["tags"]),
    "link": (["of", "rel", "to"], ["w", "timestamp"]),
    "forget": (["of"], ["reason", "timestamp"]),
}
OTHER: dict[str, Any] = {
    "event_type": "learned",
    "success_rate": "1/2",
    "timestamp": "2020-01-01T00:00:00Z",
    "context": "other",
    "outcome": "failed",
    "confidence": 0.5,
    "children": {"a": "b"},
    "stats": {"a": 1},
    "state": {"a": 1},
    "frames": [{}],
    "w": 0.5,
    "rel": "is_a",
    "tags": ["x"],
    "payload": {"a": 1},
}


def example(kind: str) -> dict[str, Any]:
    return next(fields for fields, _ in IDS if fields["kind"] == kind)


@pytest.mark.parametrize(("fields", "start"), IDS)
def test_an_id_is_made_from_the_content_and_readable(fields: dict[str, Any], start: str) -> None:
    ident = made(**fields).id

    assert ident == start + DIGESTS[start]


@pytest.mark.parametrize("kind", IDENTITY)
def test_an_id_depends_on_these_fields_and_no_others(kind: str) -> None:
    fields = example(kind)
    ident = made(**fields).id
    identity, others = IDENTITY[kind]
    is_object = {"episode", "handoff"} if "context" in identity else set()

    for name in identity:
        value = (
            {"goal": "other"} if name == "context" and kind in is_object else OTHER.get(name, "z")
        )
        assert made(**{**fields, name: value}).id != ident, name
    for name in others:
        assert made(**{**fields, name: OTHER.get(name, "z")}).id == ident, name
    assert made(**fields, repo="web").id != ident
    assert list(KINDS[kind].identity) == identity


def test_the_order_of_a_payloads_keys_makes_no_other_id() -> None:
    one = made(kind="fact", label="x", payload={"a": 1, "b": {"c": 2, "d": 3}})
    two = made(kind="fact", label="x", payload={"b": {"d": 3, "c": 2}, "a": 1})

    assert one.id == two.id


def test_fields_do_not_run_into_each_other() -> None:
    one = made(event_type="error", context="a", command="b c", lesson="x")
    two = made(event_type="error", context="a b", command="c", lesson="x")

    assert one.id != two.id


@given(
    st.text(min_size=1).filter(lambda text: text.strip() and "\x1f" not in text),
    st.sampled_from(["NFC", "NFD"]),
    st.sampled_from([str, str.upper, str.casefold]),
    st.sampled_from([" ", "\n", "  \t", "\u2003"]),
)
def test_case_spacing_and_composition_make_no_other_id(
    text: str, form: Any, case: Any, space: str
) -> None:
    def ident(lesson: str) -> str:
        return made(event_type="error", lesson=lesson, context=lesson).id[-14:]

    folded = " ".join(unicodedata.normalize("NFC", text).split())
    written = space + space.join(unicodedata.normalize(form, folded).split()) + space

    assert ident(written) == ident(folded)
    if folded.isascii():
        assert ident(case(written)) == ident(folded)


@pytest.mark.parametrize("lesson", ["Größe", "ÉCOLE", "İstanbul", "ﬁx"])
def test_case_is_folded_in_any_script(lesson: str) -> None:
    def digest(text: str) -> str:
        return made(event_type="error", lesson=text).id[-14:]

    assert digest(lesson.casefold()) == digest(lesson)
    assert digest(unicodedata.normalize("NFD", lesson)) == digest(lesson)


def test_what_cannot_be_written_as_json_has_no_id() -> None:
    with pytest.raises(RecordInvalid) as refused:
        made(kind="fact", label="x", payload={1, 2})

    assert refused.value.field == "record"


@pytest.mark.parametrize(
    ("text", "chars_max", "expected"),
    [
        ("Check ownership", 28, "check-ownership"),
        ("a  b\n--c!", 28, "a-b-c"),
        ("abc def", 7, "abc-def"),
        ("abc def", 6, "abc"),
        ("abc def", 3, "abc"),
        ("abcdef", 4, "abcd"),
        ("日本語 error 7", 28, "error-7"),
        ("日本語", 28, ""),
        ("", 28, ""),
        ("x " * 100, 5, "x-x-x"),
        ("naïve", 28, "na-ve"),
        ("    abc", 2, ""),
        # Only the first 2 * chars_max characters are read.
        ("........ab", 5, "ab"),
        (".........ab", 5, "a"),
    ],
)
def test_a_slug_is_the_first_words_that_fit(text: str, chars_max: int, expected: str) -> None:
    assert slug(text, chars_max) == expected


@given(st.text(), st.integers(1, 40))
def test_a_slug_is_short_ascii_words_and_can_be_an_id(text: str, chars_max: int) -> None:
    found = slug(text, chars_max)

    assert len(found) <= chars_max
    assert set(found) <= set(string.ascii_lowercase + string.digits + "-")
    assert not found.startswith("-")
    assert not found.endswith("-")
    check_id(found)


def test_an_id_has_at_most_28_characters_of_words() -> None:
    def words(lesson: str) -> str:
        return made(event_type="error", lesson=lesson).id[len("les-") : -len("-12345678901234")]

    assert words("a" * 20 + " " + "b" * 7) == "a" * 20 + "-" + "b" * 7
    assert words("a" * 20 + " " + "b" * 8) == "a" * 20
    assert words("a" * 29) == "a" * 28


def test_an_id_may_hold_any_printable_ascii_but_four() -> None:
    for char in map(chr, range(0x21, 0x7F)):
        if char in '"\\':
            with pytest.raises(ValueError, match="backslashes"):
                check_id(f"a{char}")
        else:
            check_id(f"a{char}")
    for char in " \t\n\x00\x1f\x7f\x80é語\ud800":
        with pytest.raises(ValueError, match="ASCII"):
            check_id(f"a{char}b")


def test_an_id_has_at_most_200_characters_and_no_hyphen_first() -> None:
    check_id("x" * ID_CHARS_MAX)
    check_id("x-")
    with pytest.raises(ValueError, match="201 characters, over 200"):
        check_id("x" * (ID_CHARS_MAX + 1))
    with pytest.raises(ValueError, match="option"):
        check_id("-x")
    with pytest.raises(ValueError, match="text, not a number"):
        check_id(7)


# Names

DEVICES = ["con", "prn", "aux", "nul", "conin$", "conout$"]
DEVICES += [port + n for port in ("com", "lpt") for n in "123456789¹²³"]


@pytest.mark.parametrize("device", DEVICES)
def test_no_name_is_a_device_of_windows(device: str) -> None:
    for name in (device, device.upper(), f"{device}.txt", f"{device.title()}.a.b"):
        with pytest.raises(ValueError, match="Windows"):
            check_repo_name(name)
    for name in (f"{device}x", f"x{device}", f"x.{device}", f"{device}-1"):
        assert check_repo_name(name) == name


@pytest.mark.parametrize(
    "char", [*'/\\:*?"<>|', "\n", "\t", "\x00", "\x1f", "\x7f", "\x85", "\u2028"]
)
def test_no_name_has_a_character_that_a_file_may_not_have(char: str) -> None:
    for name in (f"a{char}b", f"{char}b", f"a{char}"):
        with pytest.raises(ValueError, match=r"may not contain|is empty"):
            check_repo_name(name)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "is empty"),
        (" ", "is empty"),
        (" a", "start or end with a space"),
        ("a ", "start or end with a space"),
        (".", "dot"),
        ("..", "dot"),
        (".a", "dot"),
        ("-a", "hyphen"),
        ("a.", "dot"),
        ("a" * 121, "121 bytes, over 120"),
        ("é" * 61, "122 bytes, over 120"),
        ("\ud800" * 41, "123 bytes, over 120"),
        (7, "text, not a number"),
        (None, "text, not null"),
        (b"a", "text, not bytes"),
    ],
)
def test_a_name_that_could_not_be_a_file_everywhere_is_refused(name: object, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        check_repo_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "a",
        "a.b",
        "a-b",
        "a b",
        "a_b+c@d",
        "a" * REPO_BYTES_MAX,
        "é" * 60,
        "日本",
        "a-",
        "com",
        "com0",
    ],
)
def test_any_other_name_is_returned_as_it_is(name: str) -> None:
    assert check_repo_name(name) == name
    assert check_repo_name(name) == name


def test_names_that_passed_are_remembered_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[str] = set()
    monkeypatch.setattr("commonplace.records.names._valid_names", seen)

    for n in range(_VALID_NAMES_MAX + 5):
        check_repo_name(f"repo-{n}")
        with pytest.raises(ValueError, match="dot"):
            check_repo_name(f".{n}")

    assert len(seen) == _VALID_NAMES_MAX
    assert seen is not _valid_names


# Times

SAME = [
    "2026-01-31T10:00:00Z",
    "2026-01-31T10:00:00+00:00",
    "2026-01-31T10:00:00-00:00",
    "2026-01-31T12:00:00+02:00",
    "2026-01-31T04:30:00-05:30",
    "2026-02-01T00:00:00+14:00",
    "2026-01-31T10:00:00",
    "2026-01-31 10:00:00",
    "2026-01-31 10:00:00Z",
    "2026-01-31T10:00Z",
    "2026-01-31T10Z",
    "20260131T100000Z",
    "2026-W05-6T10:00:00Z",
    "2026W056T100000Z",
    "2026-01-31T100000.0Z",
    "2026-01-31T10:00:00.000Z",
    "2026-01-31T10:00:00,000000Z",
    "2026-01-31T10:00:00.0000001Z",
]
NO_TIMES = [
    *("", "soon", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-01-31T24:00:01Z"),
    *("2026-01-31T10:60:00Z", "2026-01-31T10:00:60Z", "10:00:00Z", "1706360000", "2026-W54-1"),
    *("2026-01-31T10:00:00+25:00", "２０２６-01-31T10:00:00Z", "2026-01-31T10:00:00ZZ"),
]
BEYOND = ["0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"]
MOMENTS = st.datetimes(
    min_value=datetime(1, 1, 3),  # noqa: DTZ001
    max_value=datetime(9999, 12, 29),  # noqa: DTZ001
    timezones=st.builds(
        lambda minutes: timezone(timedelta(minutes=minutes)), st.integers(-1439, 1439)
    )
    | st.just(UTC),
)


@pytest.mark.parametrize("text", SAME)
def test_every_form_of_a_time_is_written_in_one_form(text: str) -> None:
    assert to_utc(text) == "2026-01-31T10:00:00Z"
    assert micros(text) == micros("2026-01-31T10:00:00Z") == 1_769_853_600_000_000


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("2026-01-31", "2026-01-31T00:00:00Z"),
        ("2026-01-31T10:00:00.5Z", "2026-01-31T10:00:00.500000Z"),
        ("2026-01-31T10:00:00.123456789Z", "2026-01-31T10:00:00.123456Z"),
        ("2026-01-31T10:00:00.500000+00:00", "2026-01-31T10:00:00.500000Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
        ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"),
        ("9999-12-31T23:59:59+01:00", "9999-12-31T22:59:59Z"),
    ],
)
def test_fractions_and_the_first_and_last_year_are_kept(text: str, written: str) -> None:
    assert to_utc(text) == written
    assert micros(text) == micros(written)


@pytest.mark.parametrize("text", NO_TIMES)
def test_what_is_no_time_is_refused(text: str) -> None:
    for function in (to_utc, micros):
        with pytest.raises(ValueError, match=r"not a time such as 2026-01-31T09:30:00Z"):
            function(text)


@pytest.mark.parametrize("text", BEYOND)
def test_a_time_that_utc_cannot_express_is_refused(text: str) -> None:
    for function in (to_utc, micros):
        with pytest.raises(ValueError, match="outside the years 1 to 9999"):
            function(text)


@pytest.mark.parametrize(("value", "name"), [(7, "a number"), (None, "null"), ([], "a list")])
def test_only_text_and_datetimes_are_times(value: object, name: str) -> None:
    with pytest.raises(ValueError, match=f"must be a time such as .*, not {name}"):
        to_utc(value)


def test_a_datetime_is_a_time_and_in_utc_without_a_zone() -> None:
    assert to_utc(datetime(2026, 1, 31, 10)) == "2026-01-31T10:00:00Z"  # noqa: DTZ001
    assert to_utc(datetime(2026, 1, 31, 10, 0, 0, 5, UTC)) == "2026-01-31T10:00:00.000005Z"
    with pytest.raises(ValueError, match="outside the years"):
        to_utc(datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))))


@given(MOMENTS)
def test_writing_a_time_keeps_the_moment(moment: datetime) -> None:
    written = to_utc(moment.isoformat())

    assert written.endswith("Z")
    assert datetime.fromisoformat(written) == moment
    assert to_utc(written) == written == to_utc(moment)


@given(MOMENTS, MOMENTS)
def test_microseconds_order_times_as_they_are(one: datetime, two: datetime) -> None:
    ones, twos = micros(one.isoformat()), micros(to_utc(two))

    assert (ones < twos, ones == twos) == (one < two, one == two)
    assert timedelta(microseconds=ones - twos) == one - two


def test_microseconds_order_what_text_does_not() -> None:
    whole, half = "2026-01-31T10:00:00Z", "2026-01-31T10:00:00.5Z"

    assert half < whole
    assert micros(half) - micros(whole) == 500_000


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00.000001Z", 1),
        ("1969-12-31T23:59:59Z", -1_000_000),
        ("1970-01-02T00:00:01Z", 86_401_000_000),
        ("0001-01-01T00:00:00Z", -62_135_596_800_000_000),
    ],
)
def test_microseconds_are_counted_from_1970(text: str, number: int) -> None:
    assert micros(text) == number


# Rates


@pytest.mark.parametrize(
    "text", ["0/0", "0/1", "9/10", "007/010", "999999999/999999999", "0/999999999"]
)
def test_a_rate_is_two_numbers_of_at_most_nine_digits(text: str) -> None:
    worked, tried = map(int, text.split("/"))

    assert parse_rate(text) == Rate(worked, tried)
    assert str(parse_rate(text)) == f"{worked}/{tried}"


@pytest.mark.parametrize(
    "value",
    [
        *(
            "",
            "/",
            "1/",
            "/1",
            "1",
            "1/2/3",
            "-1/2",
            "1/-2",
            "+1/2",
            " 1/2",
            "1/2 ",
            "1 /2",
            "1.0/2",
        ),
        *("a/b", "१/२", "²/3", "1_0/20", "0x1/2", "1000000000/1000000000", "1/1000000000"),
        *(0.5, 7, None, True, ["1", "2"], b"1/2"),
    ],
)
def test_anything_else_is_no_rate(value: object) -> None:
    with pytest.raises(ValueError, match="not of the form X/Y"):
        parse_rate(value)


@pytest.mark.parametrize("text", ["1/0", "11/10", "999999999/999999998"])
def test_nothing_works_more_often_than_it_was_tried(text: str) -> None:
    with pytest.raises(ValueError, match="more often than it was tried"):
        parse_rate(text)


# JSON


def nested(levels: int, inner: str = "1") -> str:
    """Return a JSON object of so many levels, of objects and lists in turn."""
    opening = "".join('{"x":' if level % 2 == 0 else "[" for level in range(levels))
    closing = "".join("}" if level % 2 == 0 else "]" for level in reversed(range(levels)))
    return opening + inner + closing


def test_an_object_may_have_64_levels() -> None:
    assert DEPTH_MAX == 64
    decode(nested(DEPTH_MAX).encode())
    with pytest.raises(ValueError, match="nested more than 64 levels deep"):
        decode(nested(DEPTH_MAX + 1).encode())


def test_a_writer_may_write_64_levels_of_lists_tuples_and_objects() -> None:
    for wrap in (lambda value: {"x": value}, lambda value: [value], lambda value: (value,)):
        value: Any = 1
        for _ in range(DEPTH_MAX - 1):
            value = wrap(value)
        check_depth({"x": value}, encode({"x": value}))
        with pytest.raises(ValueError, match="64 levels"):
            check_depth({"x": wrap(value)}, encode({"x": wrap(value)}))


def test_many_brackets_are_not_many_levels() -> None:
    decode(json.dumps({"x": [[] for _ in range(1000)], "y": "[{" * 1000}).encode())


def test_a_line_may_have_64_mebibytes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert LINE_READ_BYTES_MAX == json_text.LINE_READ_BYTES_MAX == 64 * 1024 * 1024
    monkeypatch.setattr(json_text, "LINE_READ_BYTES_MAX", 1000)
    line = json.dumps({"x": "é" * 495}, ensure_ascii=False).encode()

    assert decode(line.ljust(1000))
    with pytest.raises(ValueError, match="longer than 1,000 bytes"):
        decode(line.ljust(1001))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"", "is not JSON"),
        (b"{", "is not JSON"),
        (b'{"a": 1} x', "is not JSON"),
        (b"\xff", "is not valid UTF-8"),
        (b'{"a": "\xc3"}', "is not valid UTF-8"),
        (b'{"a": NaN}', "NaN is not a JSON number"),
        (b'{"a": Infinity}', "Infinity is not a JSON number"),
        (b'{"a": -Infinity}', "-Infinity is not a JSON number"),
        (b'{"a": 1e309}', "1e309 is too large a number"),
        (b'{"a": -1e309}', "-1e309 is too large a number"),
        (b'{"a": 1' + b"0" * 400 + b".0}", "10000000000000000000 is too large a number"),
        (b"[1]", "is not a JSON object but a list"),
        (b'"a"', "is not a JSON object but text"),
        (b"7", "is not a JSON object but a number"),
        (b"1.5", "is not a JSON object but a number"),
        (b"true", "is not a JSON object but true or false"),
        (b"null", "is not a JSON object but null"),
        (b'{"a": "\\ud800"}', "lone surrogate"),
        (b'{"a": "\\uDFFF x"}', "lone surrogate"),
        (b'{"\\udc00": 1}', "lone surrogate"),
        (b'{"a": "\\ude00\\ud83d"}', "lone surrogate"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_a_line_that_is_no_object_says_why(line: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        decode(line)


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        (
            b'{"a": 1.7976931348623157e308, "b": -1.7976931348623157e308}',
            {"a": 1.7976931348623157e308, "b": -1.7976931348623157e308},
        ),
        (b'{"a": "\\ud83d\\ude00"}', {"a": "\N{GRINNING FACE}"}),
        (b' {"a": "C:\\\\udir"}\r', {"a": "C:\\udir"}),
        (b"{}", {}),
    ],
)
def test_any_other_object_is_read(line: bytes, fields: dict[str, Any]) -> None:
    assert decode(line) == fields


@pytest.mark.parametrize("value", [{1, 2}, b"x", object(), datetime(2026, 1, 1, tzinfo=UTC)])
def test_what_json_cannot_express_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="cannot be written as JSON"):
        encode({"x": value})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_no_line_has_a_number_that_is_none(value: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode({"x": value})


def test_a_value_that_contains_itself_is_refused() -> None:
    value: dict[str, Any] = {}
    value["x"] = value

    with pytest.raises(ValueError, match="Circular"):
        encode(value)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValueError, match="cannot be written as JSON"):
        encode({"x": deep})


def test_a_line_is_compact_and_in_utf_8() -> None:
    assert encode({"b": [1, 2], "a": "é"}) == '{"b":[1,2],"a":"é"}'
