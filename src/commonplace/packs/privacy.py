"""What must not go into a pack because of a private record: what came of it, names or repeats it.

An id names its record in words of its text, so a record that only names the id stays here as well.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from commonplace.exchange.own_ids import map_ids
from commonplace.rules.statements import DECIDING, STATEMENT_KINDS, edges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from commonplace.records import Record

PRIVATE = "private"
# What one agent notes down for itself or another: it concerns nobody else.
_OF_AN_AGENT = ("note", "ledger", "handoff")
# The fields in which a record says what must not be repeated. Others, such as the commands of a
# session, are the same in many records.
_SAYING = (
    *("lesson", "label", "payload", "pattern", "correct_approach", "incorrect_approach"),
    *("what_fails", "why", "prevention"),
)
# Fewer words than these may be anybody's; of more, the beginning is enough: others cut texts short.
_WORDS_MIN = 4
_WORDS_MAX = 12
_WORD = re.compile(r"\w+")
# An id of one word may be any word of a text.
_IS_NO_WORD = re.compile(r"[^\W_](?:\W|_)+[^\W_]")


def is_tagged(record: Record) -> bool:
    return PRIVATE in {tag.casefold() for tag in record.tags}


def is_private(record: Record, agent: str) -> bool:
    """Whether nobody but its owner may have the record."""
    return is_tagged(record) or (record.kind in _OF_AN_AGENT and record.agent_id != agent)


class Hidden:
    """The records that stay here: the private ones, and those that would tell of them."""

    def __init__(self, read: Callable[[], Iterable[Record]], agent: str) -> None:
        """*read* returns all records, also superseded ones, each time it is called."""
        self.ids: set[str] = set()
        # Ids and texts to look for, by their longest word: a record has few of these words.
        self._wanted: defaultdict[str, list[re.Pattern[str]]] = defaultdict(list)
        came_of: defaultdict[str, list[str]] = defaultdict(list)
        private: set[str] = set()
        for record in read():
            if is_private(record, agent):
                private.add(record.id)
            for edge in edges(record):
                if edge.rel in DECIDING:
                    came_of[edge.to].append(edge.of)
        self._add(private, came_of)
        if not private:
            return
        # A merged record says what those said that it supersedes, and a pattern what its episodes
        # said: these may be repeated as little as the private record itself.
        telling = set(self.ids)
        for record in read():
            if record.id in telling and record.kind not in _OF_AN_AGENT:
                for text in _said(record):
                    self._look_for(text)
        found = private
        while found:  # What names a record that stays, stays.
            found = {
                record.id
                for record in read()
                if record.kind not in STATEMENT_KINDS
                and record.id not in self.ids
                and self.is_told_by(record)
            }
            self._add(found, came_of)

    def is_told_by(self, record: Record) -> bool:
        """Whether *record* names or repeats one of these; its links and children do not count."""
        if not self.ids:
            return False
        fields = {
            name: value
            for name, value in record.fields.items()
            if name not in ("links", "children", "id")
        }
        if not self.ids.isdisjoint(_named(fields)):
            return True
        texts = [_plain(text) for text in _texts(fields)]
        return any(
            wanted.search(text)
            for text in texts
            for word in self._wanted.keys() & set(_WORD.findall(text))
            for wanted in self._wanted[word]
        )

    def _add(self, ids: Iterable[str], came_of: dict[str, list[str]]) -> None:
        waiting = list(ids)
        while waiting:
            ident = waiting.pop()
            if ident not in self.ids:
                self.ids.add(ident)
                waiting += came_of.get(ident, ())
                if _IS_NO_WORD.search(ident):
                    self._look_for(ident)

    def _look_for(self, text: str) -> None:
        plain = _plain(text)
        if words := _WORD.findall(plain):
            longest = max(words, key=lambda word: (len(word), word))
            self._wanted[longest].append(re.compile(rf"(?<!\w){re.escape(plain)}(?!\w)"))


def _said(record: Record) -> Iterator[str]:
    context = record.fields.get("context")
    goal = context.get("goal") if isinstance(context, dict) else None
    for text in _texts([goal, *(record.fields.get(name) for name in _SAYING)]):
        words = text.split()
        if len(words) >= _WORDS_MIN:
            yield " ".join(words[:_WORDS_MAX])


def _named(fields: dict[str, object]) -> set[str]:
    """Return the ids that a record names in the fields for ids."""
    found: set[str] = set()

    def note(value: object) -> object:
        if isinstance(value, str):
            found.add(value)
        return value

    map_ids(fields, note)
    meta = fields.get("meta")
    nodes = meta.get("nodes") if isinstance(meta, dict) else None
    return found | {one for one in nodes or () if isinstance(one, str)}


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
