"""Links that new records suggest: what they contradict, what they replace, what they are like.

Everything goes to the inbox; nothing is linked here.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from commonplace import inbox
from commonplace.foreign import origin
from commonplace.inbox import Proposal
from commonplace.learn import graph, marks
from commonplace.learn.disagreement import disagreement, replaces_openly
from commonplace.learn.links import title_of
from commonplace.recall.dedupe import REPLACED, RULE_TERMS_MAX, TWINS
from commonplace.records import micros
from commonplace.rules import Standing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from commonplace.recall.neighbours import Neighbour
    from commonplace.recaller import Recaller
    from commonplace.records import Record

KINDS = ("lesson", "pattern", "anti_pattern", "fact")
# How many new records are looked at together, and how many links these may suggest.
RECORDS_MAX = 500
LINKS_MAX = 20
NEIGHBOURS = 8
# Two records that are as alike as this are about the same (docs/decisions/0024).
RELATED_COSINE = 0.8
RELATED_OVERLAP = 0.5
# A text of a few words is like many others by chance.
RELATED_WORDS_MIN = 6
SERIES = 3
# Besides their meaning, a rule and the one that replaces it openly have words in common.
REPLACED_OVERLAP = 0.3
RANKS = {"contradiction": 4.0, "supersession": 3.0, "link": 0.0}
TEXT_CHARS_MAX = 600


class Pair(NamedTuple):
    """Two records of one repository, and how alike they are."""

    newer: Record
    older: Record
    cosine: float
    overlap: float

    @property
    def ids(self) -> tuple[str, str]:
        return self.newer.id, self.older.id


def suggest(
    memory: Recaller, records: Sequence[Record], is_over: Callable[[], bool] = lambda: False
) -> list[Proposal]:
    """Return what *records* of the nearest home suggest: contradictions first, then links.

    What is linked already is not suggested. Stops when *is_over* is true.
    """
    if not records:
        return []
    pairs = list(_pairs(memory, records, is_over))
    conflicts = [one for pair in pairs if (one := _conflict(pair))]
    decided = {one.evidence for one in conflicts}
    alike = [pair for pair in pairs if _are_alike(pair) and pair.ids not in decided]
    alike = _of_their_own(memory, alike)
    # Many that are alike are reports of one kind, or a pattern; links among them tell nothing.
    counted = Counter(ident for pair in alike for ident in pair.ids)
    links = [_likeness(pair) for pair in alike if max(counted[one] for one in pair.ids) < SERIES]
    links.sort(key=lambda one: -one.rank)
    now = memory._clock().timestamp()  # noqa: SLF001 (the clock of the memory is its own)
    return [one._replace(at=now) for one in (*conflicts, *links[:LINKS_MAX])]


def run(
    memory: Recaller, *, dry_run: bool, is_over: Callable[[], bool] = lambda: False
) -> dict[str, int]:
    """Propose what the records suggest that are new since the last run; return how much.

    What was proposed before is proposed again without harm, so a run may be killed anywhere.
    """
    home, counted = memory.home, Counter[str]()
    # A home that is not trusted must not decide what the user is asked.
    while memory.trusts(home) and home.path.is_dir() and not is_over():
        records, mark = _new_records(memory)
        proposals = suggest(memory, records, is_over)
        if dry_run:
            counted.update(one.kind for one in proposals)
            break
        added = [inbox.propose(home, one) for one in proposals]
        counted.update(one.kind for one in added if one.seen)
        if is_over():
            break
        if not records:
            break
        marks.write(home.suggestions_mark, mark)
    named = {inbox.KINDS[kind].plural: count for kind, count in sorted(counted.items())}
    return {"proposed": counted.total(), **named}


def _new_records(memory: Recaller) -> tuple[list[Record], marks.Mark]:
    """Return the next records of the nearest home that were not looked at, and the mark to write.

    A log that is rewritten keeps the keys of its lines in the index, so only new lines are read.
    """
    with memory.engine().reading() as readers:
        reader = readers[0]
        mark = marks.read(memory.home.suggestions_mark, reader.build())
        found = list(islice(reader.records_after(mark.key, KINDS), RECORDS_MAX))
    last = found[-1][0] if found else mark.key
    return [record for _key, _log, record in found], mark._replace(key=last)


def _pairs(
    memory: Recaller, records: Sequence[Record], is_over: Callable[[], bool]
) -> Iterator[Pair]:
    """Yield each pair of a new record and one that is like it, if no link joins them yet."""
    current = {
        ident: found.record
        for ident, found in graph.shown(memory, {record.id for record in records}).items()
        if found.standing is Standing.CURRENT and found.home_number == 0
    }
    linked = {
        frozenset((one.edge.of, one.edge.to)) for one in graph.statements(memory, list(current))
    }
    for ident, record in current.items():
        if is_over():
            return
        near = graph.neighbours(memory, [ident], KINDS, NEIGHBOURS).get(ident, [])
        fresh = [one for one in near if frozenset((ident, one.id)) not in linked]
        others = graph.shown(memory, [one.id for one in fresh])
        # Of two that were written within one second, the log says which came first.
        places = graph.order_written(memory, [ident, *others])
        for one in fresh:
            if one.id in others:
                linked.add(frozenset((ident, one.id)))
                yield _in_order(record, others[one.id].record, one, places)


def _in_order(one: Record, other: Record, likeness: Neighbour, places: Mapping[str, int]) -> Pair:
    older, newer = sorted(
        (one, other), key=lambda each: (micros(each.timestamp), places.get(each.id, 0), each.id)
    )
    return Pair(newer, older, likeness.cosine, likeness.overlap)


def _conflict(pair: Pair) -> Proposal | None:
    """Return the proposal for two records that state different values of the same thing."""
    newer, older = pair.newer, pair.older
    if newer.kind != older.kind or (origin(newer.meta) and not origin(older.meta)):
        return None  # What was imported does not judge what the user wrote.
    ours, theirs = text_of(newer), text_of(older)
    found = disagreement(ours, theirs)
    if found is not None and found.kind == "value":
        return _between(pair, "supersession", f"it says `{found.newer}`, before `{found.older}`")
    if found is not None and found.kind == "name":
        reason = f"one says `{found.newer}`, the other `{found.older}`"
        return _between(pair, "contradiction", reason)
    if found is not None:
        return _between(pair, "contradiction", "one says the opposite of the other")
    least = REPLACED_OVERLAP if pair.cosine >= REPLACED.cosine else REPLACED.terms
    is_close = pair.overlap >= least
    is_short = max(len(ours.split()), len(theirs.split())) <= RULE_TERMS_MAX
    if is_close and is_short and replaces_openly(ours, theirs):
        return _between(pair, "supersession", "the newer one speaks of a change")
    return None


def _are_alike(pair: Pair) -> bool:
    """Whether two records are about the same, and are not the same."""
    words = min(len(text_of(record).split()) for record in (pair.newer, pair.older))
    if words < RELATED_WORDS_MIN or pair.overlap >= TWINS:
        return False
    return pair.cosine >= RELATED_COSINE if pair.cosine else pair.overlap >= RELATED_OVERLAP


def _of_their_own(memory: Recaller, pairs: list[Pair]) -> list[Pair]:
    """Return the pairs without those that are alike because one thing was written down twice.

    A pattern, its anti-pattern, the lessons it rests on and its wordings come from the same sources
    or were made by the same batch.
    """
    sources: dict[str, set[str]] = defaultdict(set)
    for pair in pairs:
        for record in pair[:2]:
            sources[record.id] |= {record.id, *record.sources}
    stated_in: dict[str, set[str]] = defaultdict(set)
    for one in graph.statements(memory, list(sources)):
        edge = one.edge
        if edge.rel == "derived_from" and edge.of in sources:
            sources[edge.of].add(edge.to)
        elif one.record.kind == "episode" and edge.to in sources:
            stated_in[edge.to].add(edge.of)

    def are_apart(one: Record, other: Record) -> bool:
        return sources[one.id].isdisjoint(sources[other.id] | stated_in[other.id])

    return [
        pair
        for pair in pairs
        if are_apart(pair.newer, pair.older)
        and are_apart(pair.older, pair.newer)
        and not _are_of_one_batch(pair.newer, pair.older)
    ]


def _are_of_one_batch(one: Record, other: Record) -> bool:
    return bool(one.meta.get("batch")) and one.meta.get("batch") == other.meta.get("batch")


def _likeness(pair: Pair) -> Proposal:
    """Return the proposal to link two records that are about the same."""
    likeness = pair.cosine or pair.overlap
    reason = f"alike to {likeness:.0%}, in {'meaning' if pair.cosine else 'words'}"
    fields = {"rel": "related_to", "w": round(likeness, 2)}
    return _between(pair, "link", reason, fields)._replace(rank=likeness)


def _between(pair: Pair, kind: str, reason: str, fields: dict[str, Any] | None = None) -> Proposal:
    newer, older = pair.newer, pair.older
    return Proposal(
        kind=kind,
        title=f"{title_of(newer)[:100]} / {title_of(older)[:100]}",
        fields={
            "of": newer.id,
            "to": older.id,
            **(fields or {}),
            "of_text": text_of(newer)[:TEXT_CHARS_MAX],
            "to_text": text_of(older)[:TEXT_CHARS_MAX],
        },
        evidence=(newer.id, older.id),
        reason=reason,
        repo=newer.repo,
        rank=RANKS[kind],
    )


def text_of(record: Record) -> str:
    """Return what a record claims, without the circumstances."""
    names = {
        "lesson": ("lesson",),
        "pattern": ("pattern", "correct_approach"),
        "anti_pattern": ("what_fails", "prevention"),
    }.get(record.kind, ("label", "payload"))
    texts = (record.fields.get(name) for name in names)
    return "\n".join(text for text in texts if isinstance(text, str) and text.strip())
