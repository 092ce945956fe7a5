"""Compose the answer to a recall: a numbered list of memories within a limit in tokens."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from commonplace.compose import tokens
from commonplace.compose.excerpt import Passage, rank_passages
from commonplace.foreign import FRAME, code, indent, one_line, origin, render
from commonplace.index.document import about_and_body, document
from commonplace.index.terms import term_set
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
# The share of the remaining tokens that each hit may use, the best hit first.
SHARE = 0.95
ENTRY_TOKENS_MIN = 12
SCORE_MIN = -1.0
PASSAGE_TOKENS_MIN = 24
FRAMED_TOKENS_MIN = 60
# How many errors and how much of its goal an episode tells, from long to short.
EPISODE_SIZES = ((2, 200), (1, 200), (1, 40))
_INDENT = "   "


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
        is_last = index == len(hits) - 1
        share = left if is_last else max(ENTRY_TOKENS_MIN, int(left * SHARE))
        excerpt = partial(_excerpt, hit, wanted, idf) if choose else partial(_beginning, hit)
        if isinstance(hit.record, Episode):
            excerpt = partial(_episode, hit.record, wanted, idf)
        entry = _entry(len(entries) + 1, hit, excerpt, min(share, left))
        if not entry and entries:
            break  # A title alone is useful only as the first entry.
        entry = entry or _title_entry(hit, left)
        if not entry:
            break
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


def _title_entry(hit: Hit, tokens_max: int) -> str:
    """Return the first entry with its title only, when no more fits."""
    head = f"1. [{one_line(hit.timestamp[:10])}] "
    # A warning is worth more than the end of a title.
    marks = _marks(hit.marks)
    room = tokens_max - tokens.count(head) - tokens.count(marks) - 1
    title = tokens.cut(_title(hit, render(hit.document.shown)), room) if room > 0 else ""
    return head + title + marks if title else ""


def header(count: int, tokens_max: int) -> str:
    """Return the lines above the memories; they also say what memories are, if there is room."""
    frame = f" {FRAME}" if tokens_max >= FRAMED_TOKENS_MIN else ""
    return f"**Relevant Memories ({count}):**{frame}\n\n"


def _entry(number: int, hit: Hit, excerpt: Callable[[int], str], tokens_max: int) -> str:
    """Return a numbered entry: date, title, text, success rate, and the id if it fits."""
    head = f"{number}. [{one_line(hit.timestamp[:10])}] "
    tail = _tail(hit)
    room = tokens_max - tokens.count(head) - tokens.count(tail)
    if room < 4:
        return ""
    whole = summary_line(hit.record)
    short = (
        not isinstance(hit.record, Episode)  # It tells the errors that the question is about.
        and hit.record.kind != "skill"  # Its steps are lines.
        and tokens.count(whole) <= room
        and len(whole) <= SHORT_CHARS_MAX
        and not _has_code(hit.document.shown)
    )
    text = whole if short else excerpt(room)
    if not text:
        return ""
    entry = f"{head}{text}{tail}"
    with_id = f"{entry} [{one_line(hit.id)}]"
    return with_id if tokens.count(with_id) <= tokens_max else entry


def entry_text(
    hit: Hit, wanted: Mapping[str, float], idf: Callable[[str], float], tokens_max: int
) -> str:
    """Return a memory as an entry of a list, without its number; "" if nothing of it fits."""
    excerpt = partial(_excerpt, hit, wanted, idf)
    if isinstance(hit.record, Episode):
        excerpt = partial(_episode, hit.record, wanted, idf)
    return _entry(1, hit, excerpt, tokens_max).partition(". ")[2]


def _has_code(text: str) -> bool:
    """Whether *text* holds code, in fences or indented, so that its line ends must be kept."""
    return "```" in text or "\n    " in text or "\n\t" in text


def _tail(hit: Hit) -> str:
    rate = f" ({hit.rate} success)" if hit.rate is not None and hit.rate.tried else ""
    return rate + _marks((origin(hit.record.meta, short=True), *hit.marks))


def _marks(marks: Iterable[str]) -> str:
    shown = "; ".join(one_line(mark) for mark in marks if mark)
    return f" ({shown})" if shown else ""


def latest_line(hit: Hit, tokens_max: int) -> str:
    """Return a memory in one line of a list, with its marks."""
    return tokens.cut(summary_line(hit.record, short=True), tokens_max) + _marks(hit.marks)


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


def _excerpt(
    hit: Hit, wanted: Mapping[str, float], idf: Callable[[str], float], tokens_max: int
) -> str:
    """Return the title and the passages that answer the question, those with instructions first."""
    text = render(hit.document.shown)
    title = _title(hit, text)
    if hit.record.kind == "skill":
        # The description comes first, whatever the question: it says what the skill is for.
        title = tokens.cut(_skill_line(hit.document), max(ENTRY_TOKENS_MIN, tokens_max // 2))
        text = about_and_body(text)[1]
    ranked = rank_passages(text, wanted, idf, title)
    chosen: list[Passage] = []
    left = tokens_max - tokens.count(title) - 2
    for passage in ranked:
        if passage.score < SCORE_MIN and chosen:
            break  # The rest is background that shares no words with the question.
        cost = tokens.count(_indent(passage)) + 1
        if cost <= left:
            chosen.append(passage)
            left -= cost
        elif not chosen:
            # A few words of a passage are worth less than the title alone.
            short = tokens.cut(_indent(passage), left - 1) if left >= PASSAGE_TOKENS_MIN else ""
            return f"{title}\n{short}" if short else ""
        if left < ENTRY_TOKENS_MIN:
            break
    chosen.sort(key=lambda passage: (passage.is_background, passage.position))
    lines = [_indent(passage) for passage in chosen]
    if not title or (chosen and one_line(chosen[0].text).startswith(title.removesuffix(" …"))):
        return "\n".join(lines).lstrip()  # The text already begins with the title.
    return "\n".join([title, *lines])


def _beginning(hit: Hit, tokens_max: int) -> str:
    return tokens.cut(indent(hit.document.shown, _INDENT).lstrip(" "), tokens_max)


def _indent(passage: Passage) -> str:
    return indent(passage.text, _INDENT)


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
