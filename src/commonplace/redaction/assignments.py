"""Secrets that are found by their names: `name = value` in any notation."""

from __future__ import annotations

import re

from commonplace.redaction import table
from commonplace.redaction.names import (
    FOREIGN_WORDS,
    KEY_OWNERS,
    TOLD_GAP,
    name_kind,
    split_words,
    word_set,
)
from commonplace.redaction.spans import Span
from commonplace.redaction.table import compile_pattern
from commonplace.redaction.values import is_secret_value, is_token_like

TYPE_CHECKING = False
if TYPE_CHECKING:
    from commonplace.redaction.table import Form

    # By value, name and form: whether the value is a secret.
    Answers = dict[tuple[str, str, Form], bool]

QUOTED_MAX = 2000
# Whether a bare value is a secret shows within this many characters. Reading each value to its end
# would take the square of a text's length.
JUDGED_MAX = 200
# How many answers about values are remembered while a text is searched.
ANSWERS_MAX = 1000

_LOWER_CASE = {ord(letter.upper()): letter for letter in "".join(FOREIGN_WORDS)} | {
    upper: chr(upper + 32) for upper in range(ord("A"), ord("Z") + 1)
}
_OWNERS = "|".join(KEY_OWNERS)
_NAME_WORD = r"(?:pass|pw|psk|secret|token|key|auth|cred|_pat)"
_VALUE = (
    rf"(?:\"(?P<double>(?:[^\"\\\n]|\\.){{1,{QUOTED_MAX}}})\""
    rf"|'(?P<single>(?:[^'\\\n]|\\.){{1,{QUOTED_MAX}}})'"
    rf"|\\+[\"'](?P<escaped>[^\"'\\\n]{{1,{QUOTED_MAX}}})\\+[\"']"
    rf"|`(?P<ticked>[^`\\\n]{{1,{QUOTED_MAX}}})`"
    r"|(?:bearer|basic|token|digest|ssws|apikey|negotiate|splunk|bot|hawk|geniekey"
    r"|accesskey|snowflake|klaviyo-api-key|zoho-oauthtoken|hmac|key) (?P<header>[^\s\"'`\\,;]+)"
    r"|\\*[\"'`]?(?P<bare>[^\s\"'`\\,;]))"
)
# For a text in lower case: a regex that ignores case takes twice as long.
_ASSIGNMENT = (
    rf"(?<![\w-])(?=[\w-])(?P<name>secret access key|(?:{_OWNERS}) key"
    rf"|(?=[\w-]{{0,60}}?{_NAME_WORD})[\w-]{{1,80}}+)"
    r"(?P<gap>(?::\*\*|\*\*:?) "
    r"|(?: [\[(][\w*. @-]{0,40}[\])])?\\*[\"'`]?[\])]? {0,4}[:=]{1,2}>? {0,4}"
    rf"|{TOLD_GAP}|(?: (?:is|was|to|of|=))?:? {{1,12}})" + _VALUE
)
# The same in other languages, where up to three words may follow the name: `senha do banco: x`.
_FOREIGN = (
    rf"(?P<name>{'|'.join(FOREIGN_WORDS)})"
    r"(?P<gap>(?: [^\s\"'`\\:=\uff1a]{1,20}){0,3}\\*[\"'`]? {0,4}[:=\uff1a]{1,2}>? {0,4}"
    r"|(?: (?:ist|lautet|es|est|\u00e9|to|jest|is|är) |[\u662f\u4e3a\u70ba\u306f] ?))" + _VALUE
)
_QUOTED = ("double", "single", "escaped", "ticked")
# OpenSSL is told where its password is; the row of its command finds the one after `pass:`.
_SOURCES = ("pass:", "env:", "file:", "fd:", "stdin")
# Code sets a member of these: `self.password=password`.
_OBJECTS = word_set(
    "self this cls req request res response user account form state props ctx context app config "
    "settings args opts options params data body values event window process module exports client "
    "session"
)


def find_named(text: str) -> list[Span]:
    """Return the secrets of *text* that a name announces."""
    spans = _find_framed(text)
    lowered = _lower(text)
    spans += _find_assigned(text, lowered, _ASSIGNMENT)
    if any(word in lowered for word in FOREIGN_WORDS):
        spans += _find_assigned(text, lowered, _FOREIGN)
    return spans


def _find_assigned(text: str, lowered: str, pattern: str) -> list[Span]:
    spans = []
    search = compile_pattern(pattern).search
    # A text often repeats its names and values.
    kinds: dict[str, str] = {}
    answers: Answers = {}
    at = 0
    while match := search(lowered, at):
        begin, end = match.span("name")
        name = text[begin:end]
        kind = kinds.get(name)
        if kind is None:
            kind = kinds[name] = name_kind(name) or ("pass" if _is_pass(name) else "")
        span = _assigned_span(text, match, name, kind, answers) if kind else None
        # What looks like a value may itself be `name=value`, so the search goes on inside it.
        at = span.end if span else end
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
            for match in compile_pattern(frame.pattern).finditer(text):
                name, value = match["name"], match["value"]
                kind = name_kind(name) or ("password" if _is_pass(name) else "")
                if kind and is_secret_value(value, kind, name, named_form(name, frame.form)):
                    spans.append(Span(*match.span("value"), kind))
    return spans


def _lower(text: str) -> str:
    """Return *text* with its ASCII letters in lower case, and every character in its place."""
    return text.lower() if text.isascii() else text.translate(_LOWER_CASE)


def _assigned_span(
    text: str, match: re.Match[str], name: str, kind: str, answers: Answers
) -> Span | None:
    begin = match.start()
    if text.endswith("://", 0, begin):
        return None
    group = match.lastgroup or ""
    start, end = match.span(group)
    # Most of these are not worth reading their values.
    if (kind == "pass" and group == "bare" and not match["gap"].strip()) or (
        kind == "key" and not compile_pattern(r"[A-Za-z0-9+/=_.~-]{16}").match(text, start)
    ):
        return None
    in_query = begin > 0 and text[begin - 1] in "?&"
    if group == "bare":
        end = _bare_end(text, start, start + JUDGED_MAX, in_query=in_query)
    value = text[start:end]
    if name.startswith("-") and value.startswith(_SOURCES):
        return None
    form = _form(group, match["gap"], name, kind)
    if kind == "pass":
        # Tests pass, too: a password is in quotes, drawn, or no plain word on a line of YAML.
        kind, form = "password", "literal" if form == "quoted" else "tight"
        if form == "tight" and not (
            (match["gap"].strip() and _is_secret(value, kind, name, "prose", answers))
            or (is_token_like(value) and _is_yaml_line(text, begin, end, name))
        ):
            return None
    if not _is_secret(value, kind, name, form, answers) and not (
        # Only passwords may be plain words.
        kind == "password"
        and ((form == "tight" and match["gap"].strip()) or (form == "loose" and value.islower()))
        and _is_secret(value, kind, name, "literal", answers)
        and (_is_outside_code if form == "tight" else _is_yaml_line)(text, begin, end, name)
    ):
        return None
    if end == start + JUDGED_MAX:
        end = _bare_end(text, start, len(text), in_query=in_query)
    return Span(start, end, kind)


def _is_pass(name: str) -> bool:
    return name.lower().endswith("pass") and split_words(name)[-1] == "pass"


def _is_secret(value: str, kind: str, name: str, form: Form, answers: Answers) -> bool:
    answer = answers.get((value, name, form))
    if answer is None:
        answer = is_secret_value(value, kind, name, form)
        if len(answers) < ANSWERS_MAX:
            answers[value, name, form] = answer
    return answer


def _form(group: str, gap: str, name: str, kind: str) -> Form:
    is_quoted = group in _QUOTED
    if name.startswith("-"):
        return ("quoted" if group != "bare" else "sure") if name.startswith("--") else "tight"
    between = gap.strip()
    if not between or (between[0].isalpha() and not name.lower().endswith(FOREIGN_WORDS)):
        # SQL: CREATE USER bob PASSWORD 'x'
        return "tight" if is_quoted and kind in ("password", "key") else "prose"
    if group == "header" or is_quoted:
        return "header" if group == "header" else "quoted"
    if "=" not in gap or " " in gap:
        return "loose"
    return "sure" if name.isupper() else "tight"


def _bare_end(text: str, start: int, limit: int, *, in_query: bool) -> int:
    stop = compile_pattern(r"[\s\"'`\\,;&]" if in_query else r"[\s\"'`\\,;]").search(
        text, start, limit
    )
    if not stop and limit < len(text):
        return limit
    end = stop.start() if stop else len(text)
    while end > start and text[end - 1] in ".:?)}":
        end -= 1
    return end


def _is_yaml_line(text: str, start: int, end: int, name: str) -> bool:
    """Whether `name: value` has a line of YAML to itself, next to another line of YAML."""
    line = text.rfind("\n", 0, start) + 1
    lead = text[max(line, start - 80) : start]
    if lead.strip() not in {"", "-"} or not text.startswith(":", start + len(name)):
        return False
    if end < len(text) and text[end] != "\n":
        return False
    pair = compile_pattern(r"[ -]{0,80}[\w.-]{1,80}:(?: [^\n]{0,200})?(?:\n|\Z)")
    before = text.rfind("\n", 0, max(0, line - 1)) + 1
    return bool((line and pair.match(text, before)) or pair.match(text, end + 1))


def _is_outside_code(text: str, start: int, end: int, name: str) -> bool:
    """Whether `name=value` is in a shell or a file of properties, where a plain word is a value."""
    if not compile_pattern(r"[.!?]?(?:[\s;&\"'`\\]|\Z)").match(text, end):
        return False
    before = text[max(0, start - 80) : start]
    owner = compile_pattern(r"[\w.-]*\Z").search(before)
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
    return bool(
        compile_pattern(r"(?:^|[\n;]|\\n)\s*(?:export |set )?\Z").search(lead[-20:])
    ) and bool(compile_pattern(r"\s*(?:[\n;]|\Z)").match(text, end))
