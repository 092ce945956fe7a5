"""Secrets that are found by their names: `name = value` in any notation."""

from __future__ import annotations

import re

from commonplace.redaction import table
from commonplace.redaction.names import KEY_OWNERS, name_kind, split_words, word_set
from commonplace.redaction.spans import Span
from commonplace.redaction.table import compiled
from commonplace.redaction.values import is_secret_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from commonplace.redaction.table import Form

QUOTED_MAX = 2000
# Whether a bare value is a secret shows within this many characters. Reading each value to its end
# would take the square of a text's length.
JUDGED_MAX = 200

_OWNERS = "|".join(KEY_OWNERS)
_NAME_WORD = rf"(?:pass|pwd|secret|token|(?:{_OWNERS})[_-]{{0,3}}key|auth|cred|_pat)"
_ASSIGNMENT = (
    rf"(?<![\w-])(?P<name>secret access key|(?:{_OWNERS}) key"
    rf"|(?=[\w-]{{0,60}}?{_NAME_WORD})[\w-]{{1,80}})"
    r"(?P<gap>(?: \[[\w*. -]{0,40}\])?\\*[\"'`]?[\])]? {0,4}[:=]{1,2}>? {0,4}"
    r"|(?: (?:is|was|to|of|=))? )"
    rf"(?:\"(?P<double>(?:[^\"\\\n]|\\.){{1,{QUOTED_MAX}}})\""
    rf"|'(?P<single>(?:[^'\\\n]|\\.){{1,{QUOTED_MAX}}})'"
    rf"|\\+[\"'](?P<escaped>[^\"'\\\n]{{1,{QUOTED_MAX}}})\\+[\"']"
    rf"|`(?P<ticked>[^`\\\n]{{1,{QUOTED_MAX}}})`"
    r"|(?:bearer|basic|token|digest) (?P<header>[^\s\"'`\\,;]+)"
    r"|\\*[\"'`]?(?P<bare>[^\s\"'`\\,;]))"
)
# Code sets a member of these: `self.password=password`.
_OBJECTS = word_set(
    "self this cls req request res response user account form state props ctx context app config "
    "settings args opts options params data body values event window process module exports client "
    "session"
)


def find_named(text: str) -> list[Span]:
    """Return the secrets of *text* that a name announces."""
    spans = _find_framed(text)
    assignment = compiled(_ASSIGNMENT, re.ASCII | re.IGNORECASE)
    at = 0
    while match := assignment.search(text, at):
        span = _assigned_span(text, match)
        # What looks like a value may itself be `name=value`, so the search goes on inside it.
        at = span.end if span else match.end("name")
        if span:
            spans.append(span)
    return spans


def named_form(name: str, form: Form) -> Form:
    """Return *form*, or the surest one if *name* is in capitals, as an environment variable."""
    return "sure" if name.isupper() else form


def _find_framed(text: str) -> list[Span]:
    spans = []
    for frame in table.FRAMES:
        if frame.key in text:
            for match in compiled(frame.pattern).finditer(text):
                name, value = match["name"], match["value"]
                kind = name_kind(name)
                if kind and is_secret_value(value, kind, name, named_form(name, frame.form)):
                    spans.append(Span(*match.span("value"), kind))
    return spans


def _assigned_span(text: str, match: re.Match[str]) -> Span | None:
    group = match.lastgroup or ""
    name, kind = match["name"], name_kind(match["name"])
    if not kind or text.endswith("://", 0, match.start()):
        return None
    start, end = match.span(group)
    in_query = match.start() > 0 and text[match.start() - 1] in "?&"
    if group == "bare":
        end = _bare_end(text, start, start + JUDGED_MAX, in_query=in_query)
    form = _form(group, match["gap"], name)
    if form == "tight" and _is_outside_code(text, match.start(), end, name):
        form = "literal"
    if not is_secret_value(text[start:end], kind, name, form):
        return None
    if end == start + JUDGED_MAX:
        end = _bare_end(text, start, len(text), in_query=in_query)
    return Span(start, end, kind)


def _form(group: str, gap: str, name: str) -> Form:
    if name.startswith("--"):
        return "sure" if group == "bare" else "quoted"
    if not any(mark in gap for mark in ":="):
        return "prose"
    if group == "header":
        return "header"
    if group != "bare":
        return "quoted"
    if "=" not in gap or " " in gap:
        return "loose"
    return "sure" if name.isupper() else "tight"


def _bare_end(text: str, start: int, limit: int, *, in_query: bool) -> int:
    stop = compiled(r"[\s\"'`\\,;&]" if in_query else r"[\s\"'`\\,;]").search(text, start, limit)
    if not stop and limit < len(text):
        return limit
    end = stop.start() if stop else len(text)
    while end > start and text[end - 1] in ".:?)}":
        end -= 1
    return end


def _is_outside_code(text: str, start: int, end: int, name: str) -> bool:
    """Whether `name=value` is in a shell or a file of properties, where a plain word is a value."""
    if not compiled(r"[.!?]?(?:[\s;&\"'`\\]|\Z)").match(text, end):
        return False
    before = text[max(0, start - 80) : start]
    owner = compiled(r"[\w.-]*\Z").search(before)
    assert owner, "an empty owner is found at the end of any text"
    lead = before[: owner.start()]
    if owner[0] and not owner[0].endswith("."):
        return False
    if owner[0].split(".")[0] in _OBJECTS or lead.endswith(
        ("(", ",", ", ", "[", "{", "$", ">", ")", "@", "]")
    ):
        return False
    if owner[0] or len(split_words(name)) > 1:
        return True
    # A plain `password=` must have the line, or its part of a connection string, to itself.
    return bool(compiled(r"(?:^|[\n;]|\\n)\s*(?:export |set )?\Z").search(lead[-20:])) and bool(
        compiled(r"\s*(?:[\n;]|\Z)").match(text, end)
    )
