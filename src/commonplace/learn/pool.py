"""The pool: the observations that a consolidation looks at.

Only records that are new since the last run are read, and for each the older ones that an index
finds for its problem, in every home. A record that was forgotten took the patterns that rested on
it along; what else they rested on is looked at again, for it may still give a pattern without that
record's words.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from commonplace.index.ports import Filter
from commonplace.index.terms import query_terms
from commonplace.learn import marks as marks_of_steps
from commonplace.learn.marks import Mark
from commonplace.learn.observations import KINDS, Observation, observe
from commonplace.where.home import is_pack_log

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from commonplace.index.ports import Reader
    from commonplace.recaller import Recaller
    from commonplace.records import Record
    from commonplace.rules import Edge
    from commonplace.where.home import Home

# How many lines are looked at together: in the first round of a run, and in later ones at most.
# The first one ends in time also where everything is slow, so that every run comes further.
LINES_FIRST = 2000
LINES_MAX = 20_000
# Before every record, for `since_micros`.
EVER = -(1 << 62)
# How many older records are looked at for one new problem, and for how many problems.
PARTNERS_MAX = 20
PROBLEMS_MAX = 2000
_EVERY_ONE = Filter(kinds=frozenset(KINDS), archived=True)


class Pool(NamedTuple):
    """Observations, the ids of the records that are new and recent, and the marks to write."""

    observations: list[Observation]
    new: frozenset[str]
    marks: dict[int, Mark]
    records: int
    # Whether there was more than could be read at once.
    has_more: bool


def read(memory: Recaller, since_micros: int | None, first_micros: int, lines_max: int) -> Pool:
    """Return what is new since the last run and not older than *since_micros*, with partners.

    Without that, age does not matter; but of a home that was never read, nothing is older than
    *first_micros*. At most *lines_max* lines are read.
    """
    found: dict[str, list[Observation]] = {}
    forgotten: set[str] = set()
    marks: dict[int, Mark] = {}
    read_before: dict[int, Reader] = {}
    lines = records = 0
    with memory.engine().reading() as readers:
        trusted = {
            number: (home, readers[number])
            for number, home in enumerate(memory.homes)
            if memory.trusts(home)
        }
        for number, (home, reader) in trusted.items():
            mark = _mark(home, reader.build(), since_micros, first_micros)
            oldest = mark.since_micros if since_micros is None else since_micros
            last = mark.key
            unread = reader.records_after(mark.key, (*KINDS, "forget"))
            for key, log, record in islice(unread, lines_max - lines):
                last = key
                lines += 1
                if record.kind == "forget":
                    forgotten.add(str(record.fields["of"]))
                    continue
                records += 1
                if _was_read_before(reader, record, mark.key):
                    continue  # Maintenance wrote this version; what it says is not new.
                seen = list(observe(record, number, log))
                if seen and (seen[0].micros >= oldest or (since_micros is None and mark.key)):
                    found[record.id] = seen
            # Of the new ones, older records than this were not looked at.
            marks[number] = Mark(mark.build, last, max(mark.since_micros, oldest))
            if mark.key:
                read_before[number] = reader
        left = _left_of_hidden(forgotten, {n: reader for n, (_, reader) in trusted.items()})
        new = [*(one for some in found.values() for one in some), *left]
        older = [
            one for number, reader in read_before.items() for one in _partners(reader, new, number)
        ]
    sources = {one.source for one in new}
    return Pool(
        list(dict.fromkeys((*new, *(one for one in older if one.source not in sources)))),
        frozenset(sources),
        marks,
        records,
        lines >= lines_max,
    )


def save_marks(memory: Recaller, marks: dict[int, Mark]) -> None:
    """Write how far the homes were read."""
    for number, mark in marks.items():
        home = memory.homes[number]
        if home.state_folder.is_dir():
            marks_of_steps.write(home.learning_mark, mark)


def _mark(home: Home, build: str, since_micros: int | None, first_micros: int) -> Mark:
    """Return where to go on; from the start if records of that age were not looked at before."""
    start = Mark(build, 0, first_micros if since_micros is None else since_micros)
    mark = marks_of_steps.read(home.learning_mark, build)
    is_further_back = since_micros is not None and since_micros < mark.since_micros
    return mark if mark.key and not is_further_back else start


def was_read(mark: Mark, key: int, record_micros: int) -> bool:
    """Whether the record at *key* was looked at by the run that left *mark*."""
    return key <= mark.key and record_micros >= mark.since_micros


def _was_read_before(reader: Reader, record: Record, key_max: int) -> bool:
    """Whether maintenance has changed *record* and an earlier version was read.

    Others may have been summarized, archived or merged before anything was learned from them.
    """
    return bool(record.meta.get("batch")) and reader.first_keys([record.id])[record.id] <= key_max


def _left_of_hidden(forgotten: Collection[str], readers: Mapping[int, Reader]) -> list[Observation]:
    """Return what the other sources say of the records that rested on *forgotten* ones."""
    hidden = {edge.of for edge in _sources(forgotten, readers) if edge.to in forgotten}
    left = {edge.to for edge in _sources(hidden, readers) if edge.of in hidden} - {*forgotten}
    return [
        one
        for number, reader in readers.items()
        for one in _observed(reader, reader.keys(left).values(), number)
    ]


def _sources(ids: Collection[str], readers: Mapping[int, Reader]) -> Iterator[Edge]:
    """Yield which record rests on which, if one of both is among *ids*."""
    return (
        edge for reader in readers.values() for edge in reader.edges(ids, "derived_from") if ids
    )


def _observed(reader: Reader, keys: Collection[int], number: int) -> Iterator[Observation]:
    """Yield what the records of *keys* say that are still shown."""
    cards = reader.cards(keys)
    # What a pack says was learned by others: nothing of it happened here.
    shown = [
        key
        for key, card in cards.items()
        if card.kind in KINDS and _EVERY_ONE.shows(card.standing) and not is_pack_log(card.log)
    ]
    for key, record in reader.records(shown).items():
        yield from observe(record, number, cards[key].log)


def _partners(reader: Reader, new: Sequence[Observation], number: int) -> list[Observation]:
    """Return the observations of a home about the problems of *new* ones."""
    by_signature = {one.signature: one for one in new}
    keys: set[int] = set()
    for one in list(by_signature.values())[:PROBLEMS_MAX]:
        terms = query_terms(one.problem)
        matched = reader.match(terms, reader.statistics(terms), _EVERY_ONE, PARTNERS_MAX)
        keys |= {key for key, _score in matched}
    return list(_observed(reader, keys, number))
