"""A text without its secrets."""

from __future__ import annotations

import re
from typing import TypeVar

from commonplace.redaction import table
from commonplace.redaction.assignments import ANSWERS_MAX, find_named
from commonplace.redaction.drawn_runs import LENGTH_MIN as DRAWN_RUN_MIN
from commonplace.redaction.drawn_runs import find_drawn_runs
from commonplace.redaction.names import FOREIGN_WORDS, NAME_WORDS
from commonplace.redaction.places import PLACES, REGIONS, Place, Region
from commonplace.redaction.spans import Span, cut_spans, marker, merge_spans
from commonplace.redaction.suspicion import (
    find_keys,
    find_token_keys,
    has_access_token,
    has_run,
    may_hold_secret,
)
from commonplace.redaction.table import compile_pattern
from commonplace.redaction.values import (
    is_cookie,
    is_drawn,
    is_phrase,
    is_stand_in,
    is_url_password,
)

_Row = TypeVar("_Row", table.Rule, Place, Region)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from commonplace.redaction.places import Check

# Only a text made to defeat redaction still has secrets after this many rounds; it is then dropped
# as a whole.
ROUNDS_MAX = 6

QUICK_TEST_MAX = 20_000
# A text with more secrets than this is a dump of them, or made to take long: it goes as a whole.
SPANS_MAX = 5_000


def _is_given(value: str) -> bool:
    return not is_stand_in(value)


_CHECKS: dict[Check, Callable[[str], bool]] = {
    "given": _is_given,
    "drawn": is_drawn,
    "random": is_cookie,
    "any": lambda _value: True,
    "phrase": is_phrase,
}

_PRIVATE_TAG = r"<(/?)private(?:\s[^<>]{0,200})?>"


def redact_text(text: str) -> tuple[str, list[str]]:
    """Return *text* without its secrets, and the kinds of those found, in order."""
    kinds: list[str] = []
    for _ in range(ROUNDS_MAX):
        # In a long text, the quick test takes as long as the search.
        is_searched = len(text) > QUICK_TEST_MAX or may_hold_secret(text)
        spans = merge_spans(find_spans(text)) if is_searched else []
        if not spans:
            return text, kinds
        if len(spans) > SPANS_MAX:
            break
        kinds += [span.kind for span in spans]
        text = cut_spans(text, spans)
    return marker("secret"), [*kinds, "secret"]


def find_spans(text: str) -> list[Span]:
    """Return every secret of *text*; those found by particular rules come first."""
    lowered = text.lower()
    spans = _find_private(text) if "<private" in lowered else []
    if has_run(text):
        spans += _find_access_tokens(text)
    for rule in table.BLOCKS:
        spans += _find(text, rule)
    if "@" in text:
        spans += _find_url_secrets(text)
    if any(word in lowered for word in (*NAME_WORDS, *FOREIGN_WORDS)):
        spans += find_named(text)
    spans += _find_in_places(text)
    if has_run(text, DRAWN_RUN_MIN):
        spans += find_drawn_runs(text)
    return spans


def _find_in_places(text: str) -> list[Span]:
    keys = find_keys(text)
    spans = []
    for command in table.COMMANDS:
        if command.key in keys:
            spans += _find_arguments_of(text, command)
    for rule in _rows(table.LINES, keys):
        spans += _keep_secrets(text, _find(text, rule), _is_given)
    for rule in _rows(table.COOKIES, keys):
        spans += _find_cookies(text, rule)
    for place in _rows(PLACES, keys):
        spans += _find_in_place(text, place)
    for region in _rows(REGIONS, keys):
        spans += _find_in_region(text, region)
    return spans


def _rows(rows: tuple[_Row, ...], keys: set[str]) -> list[_Row]:
    return [row for row in rows if not keys.isdisjoint(row.keys)]


def _find(text: str, rule: table.Rule) -> list[Span]:
    if not any(key in text for key in rule.keys):
        return []
    matches = compile_pattern(rule.pattern).finditer(text)
    return [Span(*match.span(match.lastindex or 0), rule.kind) for match in matches]


def _find_access_tokens(text: str) -> list[Span]:
    spans = []
    for rule in _rows((*table.ACCESS_TOKENS, *table.PREFIXED), find_token_keys(text)):
        # `may_hold_secret` ignores runs that cannot be access tokens, so the search must, too.
        matches = compile_pattern(rule.pattern).finditer(text)
        found = (m for m in matches if has_access_token(m[0]))
        spans += [Span(*m.span(m.lastindex or 0), rule.kind) for m in found]
    for rule in table.WEBHOOKS:
        spans += _find(text, rule)
    return spans


def _find_url_secrets(text: str) -> list[Span]:
    spans = []
    for rule in table.URLS:
        is_secret = is_url_password if rule.kind == "url-password" else is_cookie
        spans += _keep_secrets(text, _find(text, rule), is_secret)
    return spans


def _find_cookies(text: str, rule: table.Rule) -> list[Span]:
    spans = []
    for cookies in _find(text, rule):
        header = text[cookies.start : cookies.end]
        for match in compile_pattern(table.COOKIE).finditer(header):
            if is_cookie(match[1]):
                start, end = match.span(1)
                spans.append(Span(cookies.start + start, cookies.start + end, rule.kind))
    return spans


def _find_in_place(text: str, place: Place) -> list[Span]:
    matches = compile_pattern(place.pattern).finditer(text)
    spans = [Span(*match.span(match.lastindex or 0), place.kind) for match in matches]
    return _keep_secrets(text, spans, _CHECKS[place.check])


def _keep_secrets(text: str, spans: list[Span], is_secret: Callable[[str], bool]) -> list[Span]:
    """Return those of *spans* of which *is_secret* says so; a text often repeats its values."""
    answers: dict[str, bool] = {}
    kept = []
    for span in spans:
        value = text[span.start : span.end]
        answer = answers.get(value)
        if answer is None:
            answer = is_secret(value)
            if len(answers) < ANSWERS_MAX:
                answers[value] = answer
        if answer:
            kept.append(span)
    return kept


def _find_in_region(text: str, region: Region) -> list[Span]:
    spans = []
    for stretch in compile_pattern(region.pattern).finditer(text):
        for match in compile_pattern(region.value).finditer(stretch[1]):
            start, end = match.span(match.lastindex or 0)
            at = stretch.start(1)
            spans.append(Span(at + start, at + end, region.kind))
    return _keep_secrets(text, spans, _is_given)


def _find_private(text: str) -> list[Span]:
    spans, depth, start = [], 0, 0
    for tag in compile_pattern(_PRIVATE_TAG, re.IGNORECASE | re.ASCII).finditer(text):
        if not tag[1]:
            start = start if depth else tag.start()
            depth += 1
        elif depth:
            depth -= 1
            if not depth:
                spans.append(Span(start, tag.end(), "private"))
    if depth:
        spans.append(Span(start, len(text), "private"))
    return spans


def _find_arguments_of(text: str, rule: table.Command) -> list[Span]:
    # Commands and options are searched for separately. One regex for both would read the same
    # words again for every command before them.
    command, end = compile_pattern(rule.command), compile_pattern(table.COMMAND_END)
    option = compile_pattern("(?<= )" + rule.option + table.argument(rule.lead))
    spans = []
    current, following = None, command.search(text)
    at = checked = 0
    while found := option.search(text, at):
        start = found.start()
        while following and following.end() <= start:
            current, checked = following, following.end()
            following = command.search(text, checked)
        at = start + 1
        if not current or start - current.end() > rule.gap_max or end.search(text, checked, start):
            continue
        checked, at = start, found.end()
        spans.append(Span(*found.span(found.lastgroup or 0), rule.kind))
    return _keep_secrets(text, spans, _is_given)
