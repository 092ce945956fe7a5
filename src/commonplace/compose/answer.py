"""Compose the answer to a recall: a numbered list of memories within a limit in tokens."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from commonplace.compose import tokens
from commonplace.compose.excerpt import excerpt
from commonplace.compose.prose import ends_prose, has_lines, has_parts
from commonplace.compose.titles import title_of
from commonplace.compose.unit_cutting import MORE
from commonplace.compose.unit_layout import MARGIN
from commonplace.compose.unit_scores import Wanted
from commonplace.foreign import FRAME, code, indent, one_line, origin, render
from commonplace.index.document import about_and_body, document
from commonplace.index.terms import term_set
from commonplace.index.units import SENTENCE, units_of
from commonplace.records import Episode, Lesson
from commonplace.records.episodes import summarise
from commonplace.records.sentences import sentence_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from commonplace.index.document import Document
    from commonplace.index.units import Unit
    from commonplace.recall.hits import Hit
    from commonplace.records import Record

SHORT_CHARS_MAX = 420
TITLE_CHARS_MAX = 160
TITLE_TOKENS_MIN = 4
ENTRY_TOKENS_MIN = 12
# The second memory is always shown if it fits in this many tokens, whatever the first needs.
ALWAYS_TOKENS_MAX = 40
# One short memory, of at most this many tokens, gets its place before a long one takes all of it,
# if it needs no more than this share.
SHORT_TOKENS_MAX, SHORT_SHARE_MAX = 80, 0.4
# Beside a long memory, a further one needs this share of the relevance of the best; a long one
# needs more, and room.
SHORT_RELEVANCE_SHARE, LONG_RELEVANCE_SHARE = 0.2, 0.5
LONG_TOKENS_MIN = 100
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
    wanted: Wanted,
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
    lines = [_short(hit) for hit in hits]
    left = tokens_max - tokens.count(header(len(hits), tokens_max)) - 1
    for index, hit in enumerate(hits):
        if entries and not _is_worth_adding(hits, lines, index, left):
            continue
        room = left - _kept_for_next(hits, lines, index, left)
        text_of = _text_of(hit, wanted, choose=choose)
        entry = _entry(len(entries) + 1, hit, lines[index], text_of, room)
        # A part of a memory, or a title alone, is useful only as the first entry.
        if not entry and not entries:
            cut_text_of = _cut_text_of(hit, wanted)
            entry = _entry(1, hit, lines[index], cut_text_of, room) or _title_entry(hit, left)
        if entry:
            entries.append(entry)
            shown.append(hit._replace(text=entry.partition(". ")[2]))
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


def _is_worth_adding(hits: Sequence[Hit], lines: Sequence[str], index: int, left: int) -> bool:
    """Whether a further memory helps: it is short or there is room, and it is relevant enough."""
    hit, line = hits[index], lines[index]
    if index == 1 and _is_always_shown(hit, line):
        return True
    if line and lines[0]:
        return True  # In a list of short ones, each is quickly read.
    if not line and left < LONG_TOKENS_MIN:
        return False
    # The first is not always the most relevant one: it may be the newest version of a rule.
    values = [one.why.relevance for one in hits if one.why and one.why.relevance is not None]
    own = hit.why.relevance if hit.why else None
    share = SHORT_RELEVANCE_SHARE if line else LONG_RELEVANCE_SHARE
    return own is None or own >= share * max(values)


def _is_always_shown(hit: Hit, line: str) -> bool:
    text = line or hit.document.shown
    return not isinstance(hit.record, Episode) and tokens.count(text) <= ALWAYS_TOKENS_MAX


def _kept_for_next(hits: Sequence[Hit], lines: Sequence[str], index: int, left: int) -> int:
    """Return how many tokens the next memory needs, if it is short and this one must leave them."""
    if index + 1 >= len(hits):
        return 0
    hit, following = hits[index], hits[index + 1]
    line = lines[index + 1]
    must = index == 0 and _is_always_shown(following, line)
    if not (line or must) or not _is_worth_adding(hits, lines, index + 1, left):
        return 0
    text = line or indent(following.document.shown, MARGIN)
    cost = tokens.count(f"2. [{following.timestamp[:10]}] {text}{_tail(following)}") + 1
    if must and cost <= left // 2:
        return cost
    # All of this memory is worth more than a part of it and another one.
    if tokens.count(hit.document.shown) + tokens.count(_tail(hit)) <= left:
        return 0
    return cost if cost <= min(SHORT_TOKENS_MAX, left * SHORT_SHARE_MAX) else 0


def _text_of(hit: Hit, wanted: Wanted, *, choose: bool = True) -> Callable[[int], str]:
    """Return what makes the text of a memory that fits in so many tokens, of whole units."""
    if isinstance(hit.record, Episode):
        return partial(_episode, hit.record, wanted)
    return partial(_excerpt, hit, _of(hit, wanted)) if choose else partial(_beginning, hit)


def _of(hit: Hit, wanted: Wanted) -> Wanted:
    return wanted._replace(statement=hit.statement, likeness=hit.likeness)


def _cut_text_of(hit: Hit, wanted: Wanted) -> Callable[[int], str]:
    """Return what makes the text of a memory when not even one unit of it fits whole."""
    if isinstance(hit.record, Episode):
        return lambda _room: ""
    return partial(_excerpt, hit, _of(hit, wanted), may_cut=True)


def _title_entry(hit: Hit, tokens_max: int) -> str:
    """Return the first entry with its title only, when no more fits."""
    head = f"1. [{one_line(hit.timestamp[:10])}] "
    title = _title(hit, _units(hit))
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


def _entry(number: int, hit: Hit, line: str, text_of: Callable[[int], str], tokens_max: int) -> str:
    """Return a numbered entry: date, title, text, success rate, marks and id; "" if it is too long.

    *line* is a short memory in one line. *text_of* makes the text of a long memory that fits in a
    number of tokens.
    """
    head = f"{number}. [{one_line(hit.timestamp[:10])}] "
    tail = _tail(hit)
    if line and tokens.count(whole := head + _with_tail(line, tail)) <= tokens_max:
        return whole
    # After a text of several lines, the tail may need a line of its own.
    room = tokens_max - tokens.count(f"{head}\n{MARGIN}{tail}")
    text = text_of(room) if room > 0 else ""
    if not text:
        return ""
    entry = head + _with_tail(text, tail)
    return entry if tokens.count(entry) <= tokens_max else ""


def _with_tail(text: str, tail: str) -> str:
    """Return *text* with *tail* behind it, in a line of its own after code or a command."""
    *above, last = text.split("\n")
    if above and (last.endswith("```") or not ends_prose(last)):
        return f"{text}\n{MARGIN}{tail.lstrip()}"
    return text + tail


def entry_text(hit: Hit, wanted: Wanted, tokens_max: int) -> str:
    """Return a memory as an entry of a list, without its number; "" if nothing of it fits."""
    line = _short(hit)
    entry = _entry(1, hit, line, _text_of(hit, wanted), tokens_max)
    entry = entry or _entry(1, hit, line, _cut_text_of(hit, wanted), tokens_max)
    return entry.partition(". ")[2]


def _short(hit: Hit) -> str:
    """Return a memory that is short, in one line or as a title with lines; "" if it is long.

    So too if its line ends matter.
    """
    if isinstance(hit.record, Episode) or hit.record.kind == "skill":
        return ""  # An episode tells the errors that the question is about, a skill its steps.
    shown = hit.document.shown
    if len(shown) > 2 * SHORT_CHARS_MAX or has_lines(shown):
        return ""
    line = summary_line(hit.record)
    if len(line) > SHORT_CHARS_MAX:
        return ""
    if has_parts(shown) and not sentence_of(hit.record):
        return _excerpt(hit, Wanted({}, lambda _term: 0.0), SHORT_CHARS_MAX) or line
    return line


def _tail(hit: Hit) -> str:
    """Return what stands behind a memory: its success rate, its marks and its id."""
    rate = f" ({hit.rate} success)" if hit.rate is not None and hit.rate.tried else ""
    named = f"from the repository {hit.repo}" if hit.names_repo else ""
    marks = _marks((named, origin(hit.record.meta, short=True), *hit.marks))
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
    text = _one_line(record.lesson)
    if record.command and record.command not in record.lesson:
        separator = " " if text.endswith((".", ":", "!")) else ": "
        text += separator + code(record.command)
    context = one_line(record.context)
    return f"{context}: {text}" if context and context not in text else text


_CODE_SPAN = re.compile(r"(`+[^`\n]+`+)")


def _one_line(text: str) -> str:
    """Return *text* in one line; code between backticks keeps its spaces, which matter in it."""
    if "`" not in text or "  " not in text:
        return one_line(text)
    parts = _CODE_SPAN.split(render(text))
    return render("".join(p if p[:1] == "`" else re.sub(r"\s+", " ", p) for p in parts).strip())


def _episode(record: Episode, wanted: Wanted, tokens_max: int) -> str:
    """Return the episode in a sentence or two, with the errors that share words with the question.

    Where that is too long, one error is told, then less of the goal: the fix is worth most.
    """

    def rank(sentence: str) -> float:
        held = term_set(sentence)
        return sum(
            weight * wanted.idf(term) for term, weight in wanted.terms.items() if term in held
        )

    whole = ""
    for errors_max, goal_chars_max in EPISODE_SIZES:
        whole = one_line(summarise(record, rank, errors_max, goal_chars_max))
        if tokens.count(whole) <= tokens_max:
            return whole
    return tokens.cut(whole, tokens_max)


def _excerpt(hit: Hit, wanted: Wanted, tokens_max: int, *, may_cut: bool = False) -> str:
    """Return the memory whole, or the units of it that answer the question."""
    text, units = hit.document.shown, _units(hit)
    if hit.record.kind == "skill":
        # The description comes first, whatever the question: it says what the skill is for.
        title = tokens.cut(_skill_line(hit.document), max(ENTRY_TOKENS_MIN, tokens_max // 2))
        text = about_and_body(text)[1]
        units = units_of(text)
    else:
        title = _title(hit, units)
    return excerpt(text, units, wanted, title, tokens_max, may_cut=may_cut)


def _units(hit: Hit) -> Sequence[Unit]:
    return units_of(hit.document.shown) if hit.units is None else hit.units


def _beginning(hit: Hit, tokens_max: int) -> str:
    return tokens.cut(indent(hit.document.shown, MARGIN).lstrip(" "), tokens_max)


_CLAUSE = re.compile(r",? (?:—|--|\() ?|, (?=and |but |so |or |which |because )|; ")
_BARE_LABEL = re.compile(r"\W*\w[\w /-]{0,24}:\W*")


def _title(hit: Hit, units: Sequence[Unit]) -> str:
    """Return a title for a long memory: its context, its own title, or its first line."""
    record = hit.record
    context = record.context if isinstance(record, Lesson) else ""
    title = one_line(context or title_of(hit.document.shown, units))
    if _BARE_LABEL.fullmatch(title):
        return ""  # `Problem:`, which says nothing by itself.
    if len(title) <= TITLE_CHARS_MAX:
        return title
    # Not at a colon: what stands before it may be a label, or the middle of a message.
    sentence = SENTENCE.split(title[: TITLE_CHARS_MAX + 2], maxsplit=1)[0]
    if len(sentence) <= TITLE_CHARS_MAX:
        return sentence
    clauses = [one.start() for one in _CLAUSE.finditer(title, 0, TITLE_CHARS_MAX)]
    if clauses and clauses[-1] >= TITLE_CHARS_MAX // 3:
        return f"{title[: clauses[-1]]} {MORE}"
    return tokens.cut(title, TITLE_CHARS_MAX // 4)
