"""A text without its secrets."""

from __future__ import annotations

import re

from commonplace.redaction import table
from commonplace.redaction.assignments import find_named
from commonplace.redaction.names import FOREIGN_WORDS, NAME_WORDS
from commonplace.redaction.places import PLACES, REGIONS, Place, Region
from commonplace.redaction.spans import Span, cut_spans, marker, merge_spans
from commonplace.redaction.suspicion import has_access_token, has_run, may_hold_secret
from commonplace.redaction.table import compile_pattern
from commonplace.redaction.values import (
    is_cookie,
    is_drawn,
    is_phrase,
    is_stand_in,
    is_url_password,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from commonplace.redaction.places import Check

# Only a text made to defeat redaction still has secrets after this many rounds; it is then dropped
# as a whole.
ROUNDS_MAX = 6

_CHECKS: dict[Check, Callable[[str], bool]] = {
    "given": lambda value: not is_stand_in(value),
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
        spans = merge_spans(find_spans(text)) if may_hold_secret(text) else []
        if not spans:
            return text, kinds
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
    spans += _find_arguments(text)
    for rule in table.LINES:
        spans += [s for s in _find(text, rule) if not is_stand_in(text[s.start : s.end])]
    for rule in table.COOKIES:
        spans += _find_cookies(text, rule)
    for place in PLACES:
        spans += _find_in_place(text, place)
    for region in REGIONS:
        spans += _find_in_region(text, region)
    return spans


def _find(text: str, rule: table.Rule) -> list[Span]:
    if not any(key in text for key in rule.keys):
        return []
    matches = compile_pattern(rule.pattern).finditer(text)
    return [Span(*match.span(match.lastindex or 0), rule.kind) for match in matches]


def _find_access_tokens(text: str) -> list[Span]:
    spans = []
    for rule in (*table.ACCESS_TOKENS, *table.PREFIXED):
        if any(key in text for key in rule.keys):
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
        spans += [span for span in _find(text, rule) if is_secret(text[span.start : span.end])]
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
    if not any(key in text for key in place.keys):
        return []
    is_secret = _CHECKS[place.check]
    return [
        Span(*match.span(match.lastindex or 0), place.kind)
        for match in compile_pattern(place.pattern).finditer(text)
        if is_secret(match[match.lastindex or 0])
    ]


def _find_in_region(text: str, region: Region) -> list[Span]:
    if not any(key in text for key in region.keys):
        return []
    spans = []
    for stretch in compile_pattern(region.pattern).finditer(text):
        for match in compile_pattern(region.value).finditer(stretch[1]):
            start, end = match.span(match.lastindex or 0)
            if not is_stand_in(stretch[1][start:end]):
                at = stretch.start(1)
                spans.append(Span(at + start, at + end, region.kind))
    return spans


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


def _find_arguments(text: str) -> list[Span]:
    spans = []
    for rule in table.COMMANDS:
        if rule.key in text:
            spans += _find_arguments_of(text, rule)
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
        group = found.lastgroup or 0
        if not is_stand_in(found[group]):
            spans.append(Span(*found.span(group), rule.kind))
    return spans
