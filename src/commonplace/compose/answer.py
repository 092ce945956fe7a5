"""The answer an agent reads: seed 000's list, within a bound in tokens that holds whatever was found."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from commonplace.compose import tokens
from commonplace.compose.excerpt import Passage, passages
from commonplace.index.document import document
from commonplace.records import AntiPattern, Lesson, Pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from commonplace.recall.hits import Hit
    from commonplace.records import Record

SHORT_CHARS_MAX = 420
TITLE_CHARS_MAX = 160
# What each hit may take of what is left when its turn comes: the best first, yet never all.
SHARE = 0.95
ENTRY_TOKENS_MIN = 12
SCORE_MIN = -1.0
PASSAGE_TOKENS_MIN = 24
_INDENT = "   "


class AnswerText(NamedTuple):
    """What the agent reads, what it costs, and the hits as they stand in it."""

    text: str
    tokens: int
    hits: list[Hit]


def compose(
    hits: Sequence[Hit],
    wanted: Mapping[str, float],
    idf: Callable[[str], float],
    tokens_max: int,
    nothing: str = "No relevant memories.",
    *,
    choose: bool = True,
) -> AnswerText:
    """*hits* as a numbered list of at most *tokens_max* tokens; fewer, if not all fit.

    Without *choose*, long memories are read from their start, which is only good for measuring what choosing gives.
    """
    entries: list[str] = []
    shown: list[Hit] = []
    left = tokens_max - tokens.count(_header(len(hits))) - 1
    for place, hit in enumerate(hits):
        last = place == len(hits) - 1
        share = left if last else max(ENTRY_TOKENS_MIN, int(left * SHARE))
        excerpt = partial(_excerpt, hit, wanted, idf) if choose else partial(_beginning, hit)
        entry = _entry(len(entries) + 1, hit, excerpt, min(share, left))
        if not entry and entries:
            break  # A bare title would be padding.
        entry = entry or _title_alone(hit, left)
        if not entry:
            break
        entries.append(entry)
        shown.append(replace(hit, text=entry.partition(". ")[2]))
        left -= tokens.count(entry) + 1
    if not entries:
        said = (
            f"{len(hits)} relevant memories need more than {tokens_max} tokens."
            if hits
            else nothing
        )
        text = said if tokens.count(said) <= tokens_max else ""
        return AnswerText(text, tokens.count(text), [])
    text = _header(len(entries)) + "\n".join(entries)
    while (
        tokens.count(text) > tokens_max and entries
    ):  # The joints count too; give up the last rather than the bound.
        entries.pop()
        shown.pop()
        text = _header(len(entries)) + "\n".join(entries) if entries else ""
    return AnswerText(text, tokens.count(text), shown)


def _title_alone(hit: Hit, tokens_max: int) -> str:
    """When nothing more fits: what the best memory is called, which `show` leads on from."""
    head = f"1. [{hit.timestamp[:10]}] "
    title = tokens.cut(_title(hit, hit.document.text), tokens_max - tokens.count(head) - 1)
    return head + title if title else ""


def _header(count: int) -> str:
    return f"**Relevant Memories ({count}):**\n\n"


def _entry(number: int, hit: Hit, excerpt: Callable[[int], str], tokens_max: int) -> str:
    """One numbered entry: date, title, what to do, how well it did, and the id when there is room."""
    head = f"{number}. [{hit.timestamp[:10]}] "
    tail = _tail(hit)
    room = tokens_max - tokens.count(head) - tokens.count(tail)
    if room < 4:
        return ""
    whole = line(hit.record)
    short = (
        tokens.count(whole) <= room
        and len(whole) <= SHORT_CHARS_MAX
        and not _has_code(hit.document.text)
    )
    said = whole if short else excerpt(room)
    if not said:
        return ""
    entry = f"{head}{said}{tail}"
    with_id = f"{entry} [{hit.id}]"
    return with_id if tokens.count(with_id) <= tokens_max else entry


def _has_code(text: str) -> bool:
    """Whether its line ends mean something: code in fences, indented, or a command of several lines."""
    return "```" in text or "\n    " in text or "\n\t" in text


def _tail(hit: Hit) -> str:
    rate = f" ({hit.rate} success)" if hit.rate is not None and hit.rate.tried else ""
    marks = f" ({'; '.join(hit.marks)})" if hit.marks else ""
    return rate + marks


def line(record: Record) -> str:
    """A memory in one line, in the form of the seed."""
    if isinstance(record, Lesson):
        said = _flat(record.lesson)
        if record.command and record.command not in record.lesson:
            said += (
                f": `{_flat(record.command)}`"
                if not said.endswith((".", ":", "!"))
                else f" `{_flat(record.command)}`"
            )
        context = _flat(record.context)
        return f"{context}: {said}" if context and context not in said else said
    if isinstance(record, Pattern):
        return _flat(": ".join(part for part in (record.pattern, record.correct_approach) if part))
    if isinstance(record, AntiPattern):
        avoid = f"Avoid: {record.what_fails}" + (f" ({record.why})" if record.why else "")
        return _flat(": ".join(part for part in (avoid, record.prevention) if part))
    found = document(record)
    rest = found.text.removeprefix(found.title)
    if rest[:1].isalnum():
        rest = found.text  # It begins with a longer word than the title: `key` is not `k` and `ey`.
    rest = rest.lstrip(": \t\n")
    return _flat(f"{found.title}: {rest}" if found.title and rest else found.text)


def _flat(text: str) -> str:
    return " ".join(text.split())


def _excerpt(
    hit: Hit, wanted: Mapping[str, float], idf: Callable[[str], float], tokens_max: int
) -> str:
    """The title and the passages that answer: what to do, then how it came about; code as it is written."""
    text = hit.document.text
    title = _title(hit, text)
    ranked = passages(text, wanted, idf, title)
    chosen: list[Passage] = []
    left = tokens_max - tokens.count(title) - 2
    for passage in ranked:
        if passage.score < SCORE_MIN and chosen:
            break  # The rest is how it came about, in other words than the question's.
        cost = tokens.count(_shown(passage)) + 1
        if cost <= left:
            chosen.append(passage)
            left -= cost
        elif not chosen:
            # A few words of a passage say less than the title alone, which `show` leads on from.
            short = tokens.cut(_shown(passage), left - 1) if left >= PASSAGE_TOKENS_MIN else ""
            return f"{title}\n{short}" if short else ""
        if left < ENTRY_TOKENS_MIN:
            break
    chosen.sort(key=lambda passage: (passage.is_story, passage.place))
    lines = [_shown(passage) for passage in chosen]
    if not title or (chosen and _flat(chosen[0].text).startswith(title.removesuffix(" …"))):
        return "\n".join(lines).lstrip()  # The text begins with its title as it is.
    return "\n".join([title, *lines])


def _beginning(hit: Hit, tokens_max: int) -> str:
    return tokens.cut(hit.document.text, tokens_max)


def _shown(passage: Passage) -> str:
    return "\n".join(
        _INDENT + line if line.strip() else line for line in passage.text.strip("\n").split("\n")
    )


_TITLE_LINE = re.compile(r"^\s*(?:title:\s*|#\s+)(.+?)\s*$", re.MULTILINE)
_FIRST_LINE = re.compile(r"^(?!\s*(?:#|---|```))\s*(\S.*)$", re.MULTILINE)


def _title(hit: Hit, text: str) -> str:
    """A line that names a long memory: its context, its own title, or how it begins."""
    record = hit.record
    named = record.context if isinstance(record, Lesson) and record.context else ""
    if not named:
        first = _TITLE_LINE.search(text[:2000])
        first = first or _FIRST_LINE.search(text)
        named = first.group(1).strip("\"'") if first else text.strip().split("\n", 1)[0]
    named = _flat(named)
    if len(named) <= TITLE_CHARS_MAX:
        return named
    sentence = re.split(r"(?<=[.!?:;])\s", named[: TITLE_CHARS_MAX + 1], maxsplit=1)[0]
    return sentence if len(sentence) <= TITLE_CHARS_MAX else tokens.cut(named, TITLE_CHARS_MAX // 4)
