"""Compose the answer to a recall: a numbered list of memories within a limit in tokens."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from commonplace.compose import tokens
from commonplace.compose.excerpt import MARGIN, Wanted, excerpt
from commonplace.foreign import FRAME, code, indent, one_line, origin, render
from commonplace.index.document import about_and_body, document
from commonplace.index.terms import term_set
from commonplace.index.units import units_of
from commonplace.records import Episode, Lesson
from commonplace.records.episodes import summarise
from commonplace.records.sentences import sentence_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from commonplace.index.document import Document
    from commonplace.recall.hits import Hit
    from commonplace.records import Record

SHORT_CHARS_MAX = 420
TITLE_CHARS_MAX = 160
TITLE_TOKENS_MIN = 4
ENTRY_TOKENS_MIN = 12
# So many short memories further down, of at most so many tokens, get their place before a long
# one takes all; together at most this share.
SHORT_KEPT_MAX, SHORT_TOKENS_MAX, SHORT_SHARE_MAX = 1, 80, 0.4
# A long memory after the first needs this much room, and this share of the relevance of the best.
LONG_TOKENS_MIN, LONG_RELEVANCE_SHARE = 80, 0.75
FRAMED_TOKENS_MIN = 60
# How many errors and how much of its goal an episode tells, from long to short.
EPISODE_SIZES = ((2, 200), (1, 200), (1, 40))


class AnswerText(NamedTuple):
    """The text of the answer, its number of tokens, and the hits with their text in it."""

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
    """Return *hits* as a numbered list of at most *tokens_max* tokens; drop hits that do not fit.

    Without *choose*, a long memory is cut after its beginning instead of showing the passages that
    answer, to measure what choosing passages is worth.
    """
    entries: list[str] = []
    shown: list[Hit] = []
    left = tokens_max - tokens.count(header(len(hits), tokens_max)) - 1
    for index, hit in enumerate(hits):
        if entries and not _is_worth_adding(hit, hits[0], left):
            continue
        room = left - _kept_for_short(hits[index + 1 :], left)
        entry = _entry(len(entries) + 1, hit, _text_of(hit, wanted, idf, choose=choose), room)
        # A part of a memory, or a title alone, is useful only as the first entry.
        if not entry and not entries:
            entry = _entry(1, hit, _cut_text_of(hit, wanted, idf), room) or _title_entry(hit, left)
        if entry:
            entries.append(entry)
            shown.append(replace(hit, text=entry.partition(". ")[2]))
            left -= tokens.count(entry) + 1
    if not entries:
        need = f"{len(hits)} relevant memories need" if len(hits) > 1 else "1 relevant memory needs"
        message = f"{need} more than {tokens_max} tokens." if hits else nothing
        text = message if tokens.count(message) <= tokens_max else ""
        return AnswerText(text, tokens.count(text), [])
    text = header(len(entries), tokens_max) + "\n".join(entries)
    # The line ends between the entries need tokens, too: drop entries until the text fits.
    while tokens.count(text) > tokens_max and entries:
        entries.pop()
        shown.pop()
        text = header(len(entries), tokens_max) + "\n".join(entries) if entries else ""
    return AnswerText(text, tokens.count(text), shown)


def _is_worth_adding(hit: Hit, best: Hit, left: int) -> bool:
    """Whether a further memory helps: a short one does, a long one if it is nearly as relevant."""
    if _short_line(hit):
        return True
    if left < LONG_TOKENS_MIN:
        return False
    own, most = (one.why.relevance if one.why else None for one in (hit, best))
    return own is None or most is None or own >= LONG_RELEVANCE_SHARE * most


def _kept_for_short(hits: Sequence[Hit], left: int) -> int:
    """Return how many tokens short memories further down need, so that a long one leaves them."""
    needed = 0
    for hit in hits[:SHORT_KEPT_MAX]:
        line = _short_line(hit)
        cost = tokens.count(f"2. [{hit.timestamp[:10]}] {line}{_tail(hit)}") + 1 if line else 0
        if cost <= SHORT_TOKENS_MAX and needed + cost <= left * SHORT_SHARE_MAX:
            needed += cost
    return needed


def _text_of(
    hit: Hit, wanted: Mapping[str, float], idf: Callable[[str], float], *, choose: bool = True
) -> Callable[[int], str]:
    """Return what makes the text of a memory that fits in so many tokens, of whole units."""
    if isinstance(hit.record, Episode):
        return partial(_episode, hit.record, wanted, idf)
    return partial(_excerpt, hit, Wanted(wanted, idf)) if choose else partial(_beginning, hit)


def _cut_text_of(
    hit: Hit, wanted: Mapping[str, float], idf: Callable[[str], float]
) -> Callable[[int], str]:
    """Return what makes the text of a memory when not even one unit of it fits whole."""
    if isinstance(hit.record, Episode):
        return lambda _room: ""
    return partial(_excerpt, hit, Wanted(wanted, idf), may_cut=True)


def _title_entry(hit: Hit, tokens_max: int) -> str:
    """Return the first entry with its title only, when no more fits."""
    head = f"1. [{one_line(hit.timestamp[:10])}] "
    title = _title(hit, render(hit.document.shown))
    # The id and a warning are worth more than the end of a title.
    for tail in (_tail(hit), _marks(hit.marks)):
        room = tokens_max - tokens.count(head) - tokens.count(tail) - 1
        short = tokens.cut(title, room) if room >= TITLE_TOKENS_MIN else ""
        if short:
            return head + short + tail
    return ""


def header(count: int, tokens_max: int) -> str:
    """Return the lines above the memories; they also say what memories are, if there is room."""
    frame = f" {FRAME}" if tokens_max >= FRAMED_TOKENS_MIN else ""
    return f"**Relevant Memories ({count}):**{frame}\n\n"


def _entry(number: int, hit: Hit, text_of: Callable[[int], str], tokens_max: int) -> str:
    """Return a numbered entry: date, title, text, success rate, marks and id; "" if it is too long.

    *text_of* makes the text of a long memory that fits in so many tokens.
    """
    head = f"{number}. [{one_line(hit.timestamp[:10])}] "
    tail = _tail(hit)
    room = tokens_max - tokens.count(head) - tokens.count(tail)
    line = _short_line(hit)
    text = line if line and tokens.count(line) <= room else text_of(room) if room > 0 else ""
    if not text:
        return ""
    # After a block of code, a word would not belong to its line.
    separator = "\n" + MARGIN if text.endswith("`") and "\n" in text else ""
    entry = f"{head}{text}{separator}{tail.lstrip() if separator else tail}"
    return entry if tokens.count(entry) <= tokens_max else ""


def entry_text(
    hit: Hit, wanted: Mapping[str, float], idf: Callable[[str], float], tokens_max: int
) -> str:
    """Return a memory as an entry of a list, without its number; "" if nothing of it fits."""
    entry = _entry(1, hit, _text_of(hit, wanted, idf), tokens_max)
    entry = entry or _entry(1, hit, _cut_text_of(hit, wanted, idf), tokens_max)
    return entry.partition(". ")[2]


def _short_line(hit: Hit) -> str:
    """Return a memory that is short in one line; "" if it is long, or its line ends matter."""
    if isinstance(hit.record, Episode) or hit.record.kind == "skill":
        return ""  # An episode tells the errors that the question is about, a skill its steps.
    line = summary_line(hit.record)
    return line if len(line) <= SHORT_CHARS_MAX and not _has_code(hit.document.shown) else ""


def _has_code(text: str) -> bool:
    """Whether *text* holds code, in fences or indented, so that its line ends must be kept."""
    return "```" in text or "\n    " in text or "\n\t" in text


def _tail(hit: Hit) -> str:
    """Return what stands behind a memory: its success rate, its marks and its id."""
    rate = f" ({hit.rate} success)" if hit.rate is not None and hit.rate.tried else ""
    marks = _marks((origin(hit.record.meta, short=True), *hit.marks))
    return f"{rate}{marks} [{one_line(hit.id)}]"


def _marks(marks: Iterable[str]) -> str:
    shown = "; ".join(one_line(mark) for mark in marks if mark)
    return f" ({shown})" if shown else ""


def latest_line(hit: Hit, tokens_max: int, *, names_origin: bool = False) -> str:
    """Return a memory in one line of a list, with its marks; if asked, also where it came from."""
    source = origin(hit.record.meta, short=True) if names_origin else ""
    line = tokens.cut(summary_line(hit.record, short=True), tokens_max)
    return line + _marks((source, *hit.marks))


def summary_line(record: Record, *, short: bool = False) -> str:
    """Return the text of a memory in one line; *short* cuts a reason, so that a fix fits."""
    if isinstance(record, Lesson):
        return _lesson_line(record)
    if isinstance(record, Episode):
        return one_line(summarise(record))
    if sentence := sentence_of(record, short=short):
        return one_line(sentence)
    found = document(record)
    if record.kind == "skill":
        return _skill_line(found)
    rest = found.shown.removeprefix(found.title)
    if rest[:1].isalnum():
        rest = found.shown  # The text begins with a longer word that starts like the title.
    rest = rest.lstrip(": \t\n")
    return one_line(f"{found.title}: {rest}" if found.title and rest else found.shown)


def _skill_line(found: Document) -> str:
    """Return what a skill is called, and what it is for."""
    about, _body = about_and_body(found.shown)
    return one_line(": ".join(part for part in (found.title, about) if part))


def _lesson_line(record: Lesson) -> str:
    text = one_line(record.lesson)
    if record.command and record.command not in record.lesson:
        separator = " " if text.endswith((".", ":", "!")) else ": "
        text += separator + code(record.command)
    context = one_line(record.context)
    return f"{context}: {text}" if context and context not in text else text


def _episode(
    record: Episode, wanted: Mapping[str, float], idf: Callable[[str], float], tokens_max: int
) -> str:
    """Return the episode in a sentence or two, with the errors that share words with the question.

    Where that is too long, one error is told, then less of the goal: the fix is worth most.
    """

    def rank(sentence: str) -> float:
        held = term_set(sentence)
        return sum(weight * idf(term) for term, weight in wanted.items() if term in held)

    whole = ""
    for errors_max, goal_chars_max in EPISODE_SIZES:
        whole = one_line(summarise(record, rank, errors_max, goal_chars_max))
        if tokens.count(whole) <= tokens_max:
            return whole
    return tokens.cut(whole, tokens_max)


def _excerpt(hit: Hit, wanted: Wanted, tokens_max: int, *, may_cut: bool = False) -> str:
    """Return the memory whole, or the units of it that answer the question."""
    text, units = hit.document.shown, hit.units
    title = _title(hit, render(text))
    if hit.record.kind == "skill":
        # The description comes first, whatever the question: it says what the skill is for.
        title = tokens.cut(_skill_line(hit.document), max(ENTRY_TOKENS_MIN, tokens_max // 2))
        text, units = about_and_body(text)[1], None
    if units is None:
        units = units_of(text)
    return excerpt(text, units, wanted, title, tokens_max, may_cut=may_cut)


def _beginning(hit: Hit, tokens_max: int) -> str:
    return tokens.cut(indent(hit.document.shown, MARGIN).lstrip(" "), tokens_max)


_TITLE_LINE = re.compile(r"^\s*(?:title:\s*|#\s+)(.+?)\s*$", re.MULTILINE)
_FIRST_LINE = re.compile(r"^(?!\s*(?:#|---|```))\s*(\S.*)$", re.MULTILINE)


def _title(hit: Hit, text: str) -> str:
    """Return a title for a long memory: its context, its own title, or its first line."""
    record = hit.record
    title = record.context if isinstance(record, Lesson) and record.context else ""
    if not title:
        first = _TITLE_LINE.search(text[:2000])
        first = first or _FIRST_LINE.search(text)
        title = first.group(1).strip("\"'") if first else text.strip().split("\n", 1)[0]
    title = one_line(title)
    if len(title) <= TITLE_CHARS_MAX:
        return title
    sentence = re.split(r"(?<=[.!?:;])\s", title[: TITLE_CHARS_MAX + 1], maxsplit=1)[0]
    return sentence if len(sentence) <= TITLE_CHARS_MAX else tokens.cut(title, TITLE_CHARS_MAX // 4)
