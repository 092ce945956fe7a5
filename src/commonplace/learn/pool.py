"""The pool: the observations that a consolidation looks at.

Only records that are new since the last run are read, and for each the older ones that an index
finds for its problem. The mark is a line's key in the index; an index that was built again has
other keys, and is read from the start.
"""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.errors import CommonplaceError
from commonplace.files import atomic
from commonplace.files.plain import read_small
from commonplace.index.ports import Filter
from commonplace.index.terms import query_terms
from commonplace.learn.observations import KINDS, Observation, observe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commonplace.index.ports import Reader
    from commonplace.recaller import Recaller
    from commonplace.where.home import Home

MARK_BYTES_MAX = 4096
# How many new records are looked at together; more come in the next round.
RECORDS_MAX = 20_000
# How many older records are looked at for one new problem, and for how many problems.
PARTNERS_MAX = 20
PROBLEMS_MAX = 2000


class Mark(NamedTuple):
    """How far an index was read: which index, the last key, and how old a record may be."""

    build: str
    key: int
    since_micros: int


class Pool(NamedTuple):
    """Observations, the ids of the records that are new and recent, and the marks to write."""

    observations: list[Observation]
    new: frozenset[str]
    marks: dict[int, Mark]
    records: int
    # Whether there was more than could be read at once.
    has_more: bool


def read(memory: Recaller, since_micros: int | None, first_micros: int) -> Pool:
    """Return what is new since the last run and not older than *since_micros*, with partners.

    Without that, age does not matter; but of a home that was never read, nothing is older than
    *first_micros*.
    """
    found: dict[str, list[Observation]] = {}
    new: set[str] = set()
    marks: dict[int, Mark] = {}
    records = 0
    with memory.engine().reading() as readers:
        for number, home in enumerate(memory.homes):
            if not memory.trusts(home):
                continue
            reader = readers[number]
            mark = _mark(home, reader.build(), since_micros, first_micros)
            oldest = mark.since_micros if since_micros is None else since_micros
            last = mark.key
            for key, log, record in islice(
                reader.records_after(mark.key, KINDS), RECORDS_MAX - records
            ):
                last = key
                records += 1
                if record.meta.get("batch"):
                    continue  # Maintenance wrote this version; what it says is not new.
                seen = list(observe(record, number, log))
                if seen and (seen[0].micros >= oldest or (since_micros is None and mark.key)):
                    found[record.id] = seen
                    new.add(record.id)
            # Of the new ones, older records than this were not looked at.
            marks[number] = Mark(mark.build, last, max(mark.since_micros, oldest))
            if mark.key:
                marked = [one for ident in new for one in found[ident] if one.home == number]
                for one in _partners(reader, marked, number, mark.key):
                    if one.source not in new:
                        found.setdefault(one.source, [])
                        found[one.source].append(one)
    observations = [one for some in found.values() for one in dict.fromkeys(some)]
    return Pool(observations, frozenset(new), marks, records, records >= RECORDS_MAX)


def save_marks(memory: Recaller, marks: dict[int, Mark]) -> None:
    """Write how far the homes were read."""
    for number, mark in marks.items():
        home = memory.homes[number]
        if home.state_folder.is_dir():
            atomic.replace(home.learning_mark, [json.dumps(mark._asdict()).encode()])


def _mark(home: Home, build: str, since_micros: int | None, first_micros: int) -> Mark:
    """Return where to go on; from the start if records of that age were not looked at before."""
    start = Mark(build, 0, first_micros if since_micros is None else since_micros)
    try:
        fields: Any = json.loads(read_small(home.learning_mark, MARK_BYTES_MAX))
        mark = Mark(str(fields["build"]), int(fields["key"]), int(fields["since_micros"]))
    except (OSError, ValueError, TypeError, KeyError, CommonplaceError):
        return start
    if mark.build != build or (since_micros is not None and since_micros < mark.since_micros):
        return start
    return mark


def _partners(
    reader: Reader, new: Sequence[Observation], number: int, key_max: int
) -> list[Observation]:
    """Return the observations of older records about the problems of *new* ones."""
    by_signature = {one.signature: one for one in new}
    keys: set[int] = set()
    filter_ = Filter(kinds=frozenset(KINDS), archived=True)
    for one in list(by_signature.values())[:PROBLEMS_MAX]:
        terms = query_terms(one.problem)
        matched = reader.match(terms, reader.statistics(terms), filter_, PARTNERS_MAX)
        keys |= {key for key, _score in matched if key <= key_max}
    found: list[Observation] = []
    cards = reader.cards(keys)
    shown = [key for key, card in cards.items() if filter_.shows(card.standing)]
    for key, record in reader.records(shown).items():
        found += observe(record, number, cards[key].log)
    return found
