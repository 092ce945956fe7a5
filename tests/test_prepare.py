"""What every line passes before it is written: control characters, secrets, UTF-8 and the size limit."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from commonplace.errors import RecordInvalid
from commonplace.log.prepare import PreparedLine, find_hidden_characters, prepare
from commonplace.records import from_line
from fake_secrets import some

NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
LIMIT = 1 << 20
# Everything below the space but tab, line feed and carriage return; NUL is refused; DEL and C1; and
# characters that cannot be seen: zero-width, bidirectional, tags.
CONTROLS = [
    *(chr(code) for code in (*range(1, 9), 0x0B, 0x0C, *range(0x0E, 0x20), *range(0x7F, 0xA0))),
    *"\u00ad\u061c\u200b\u200c\u200d\u200e\u200f\u202a\u202e\u2060\u2066\u2069\ufeff\U000e0041\U000e0101",
]
KEPT = ["\t", "\n", "\r", " ", "~", "\xa0", "é", "\u2028", "\N{GRINNING FACE}"]


def prepared(limit: int = LIMIT, **fields: Any) -> PreparedLine:
    given = {"event_type": "error", "lesson": "x", **fields}
    return prepare(given, now=NOW, repo="app", agent_id="me", line_bytes_max=limit)


@pytest.mark.parametrize("char", CONTROLS)
def test_a_control_character_is_removed_wherever_it_is(char: str) -> None:
    entry = prepared(
        lesson=f"a{char}b", tags=[f"t{char}"], meta={f"k{char}": {"x": [f"{char}y{char}"]}}
    )

    assert entry.record.fields["lesson"] == "ab"
    assert entry.record.fields["tags"] == ["t"]
    assert entry.record.fields["meta"] == {"k": {"x": ["y"]}}
    assert [tuple(found) for found in entry.record.redactions] == [
        ("control-character", field) for field in ("lesson", "tags", "meta")
    ]
    assert char.encode() not in entry.line
    assert from_line(entry.line) == entry.record
    assert entry.record.id == prepared(lesson="ab").record.id


@pytest.mark.parametrize("char", KEPT)
def test_any_other_character_is_kept(char: str) -> None:
    entry = prepared(lesson=f"a{char}b")

    assert entry.record.fields["lesson"] == f"a{char}b"
    assert entry.record.redactions == ()


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[1;31;40mred", "red"),
        ("\x1b[?25lx", "x"),
        ("\x1b[ qx", "x"),
        ("\x1b]0;title", "]0;title"),
        ("\x1b", ""),
        ("a\\x07b \\u0007", "a\\x07b \\u0007"),
        ("C:\\bin \\f", "C:\\bin \\f"),
    ],
)
def test_a_terminal_sequence_goes_as_a_whole(text: str, rest: str) -> None:
    assert prepared(lesson=f"say {text} now").record.fields["lesson"] == f"say {rest} now"


@pytest.mark.parametrize("where", ["lesson", "tags", "meta"])
def test_nul_is_refused_by_the_name_of_its_field(where: str) -> None:
    value: Any = {"lesson": "a\x00", "tags": ["\x00"], "meta": {"k\x00": "\x07"}}[where]

    with pytest.raises(RecordInvalid, match=r"U\+0000") as refused:
        prepared(**{where: value})

    assert refused.value.field == where


def test_fields_with_control_characters_are_named_once() -> None:
    assert find_hidden_characters(
        {"a": "\x07\x07", "b": ["\x7f", "\x07"], "c": "x", "d": {"\x07": "x"}}
    ) == [
        "a",
        "b",
        "d",
    ]


@pytest.mark.parametrize("where", ["lesson", "tags", "meta"])
def test_a_lone_surrogate_is_refused_by_the_name_of_its_field(where: str) -> None:
    value: Any = {"lesson": "a\ud800", "tags": ["\udfff"], "meta": {"k": ["\ud800"]}}[where]

    with pytest.raises(RecordInvalid, match="surrogate") as refused:
        prepared(**{where: value})

    assert refused.value.field == where


# The size limit


@pytest.mark.parametrize("char", ["x", "é", "語", "\N{GRINNING FACE}", '"', "\\", "\n"])
def test_a_line_may_be_as_long_as_the_limit_and_no_longer(char: str) -> None:
    entry = prepared(context=char * 50, lesson="x")
    size = len(entry.line)

    assert entry.line.endswith(b"\n")
    assert prepared(size, context=char * 50).line == entry.line
    with pytest.raises(RecordInvalid, match=f"{size - 1:,} bytes, over the limit of") as refused:
        prepared(size - 1, context=char * 50)
    assert refused.value.field == "context"
    assert "line_bytes_max" in refused.value.hint


def test_the_longest_field_is_named() -> None:
    with pytest.raises(RecordInvalid) as refused:
        prepared(1024, lesson="x" * 500, meta={"a": "y" * 600})

    assert refused.value.field == "meta"


def test_only_what_is_left_after_redaction_has_to_fit() -> None:
    secret = some(3000)

    entry = prepared(1024, lesson=f"use token={secret} and\x07 <private>{'z' * 3000}</private>")

    assert entry.record.fields["lesson"] == "use token=[redacted:token] and"


# Redaction


def test_what_redaction_removed_is_named_after_what_control_characters_were() -> None:
    entry = prepared(lesson="bell\x07", command=f"TOKEN={some(20)}")

    assert [tuple(found) for found in entry.record.redactions] == [
        ("control-character", "lesson"),
        ("token", "command"),
    ]


def test_a_repository_whose_name_is_a_secret_is_refused() -> None:
    secret = "ghp_" + some(36)

    with pytest.raises(RecordInvalid, match="looks like a secret") as refused:
        prepared(repo=secret)

    assert secret not in str(refused.value)


def test_a_given_id_is_searched_for_secrets_and_a_made_one_is_not() -> None:
    secret = "ghp_" + some(36)

    assert prepared(id=secret).record.id == "[redacted:github-token]"
    assert prepared(id="my-id", lesson=f"use {secret}").record.id == "my-id"
    made = prepared(lesson=f"use {secret}").record
    assert made.id == prepared(lesson="use [redacted:github-token]").record.id


def test_a_redacted_record_keeps_its_other_fields() -> None:
    entry = prepared(
        timestamp="2020-01-01T00:00:00Z",
        repo="web",
        agent_id="you",
        x_new=[1],
        lesson="TOKEN=a1b2c3d4",
    )

    fields = entry.record.fields
    assert (fields["timestamp"], fields["repo"]) == ("2020-01-01T00:00:00Z", "web")
    assert (fields["agent_id"], fields["x_new"]) == ("you", [1])
    assert fields["lesson"] == "TOKEN=[redacted:token]"


def test_what_cannot_be_a_line_is_refused() -> None:
    deep: Any = 1
    for _ in range(64):
        deep = [deep]
    for value, reason in ((deep, "64 levels"), ({1}, "JSON"), (float("nan"), "JSON")):
        with pytest.raises(RecordInvalid, match=reason) as refused:
            prepared(x_new=value)
        assert refused.value.field == "record"
