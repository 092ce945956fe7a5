"""Find the records that say the same: which one stays, and which ones it can take in.

Only records of one kind and repository are compared, and only where something changed since the
last time. The result does not depend on the order in which they were written: a record joins the
first one in rank that it is like, and those are not like one another.
"""

from __future__ import annotations

import json
from collections import defaultdict
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.errors import EmbedderUnavailable
from commonplace.files import atomic
from commonplace.files.plain import make_folder, read_small
from commonplace.foreign import OUTSIDE
from commonplace.index.document import document
from commonplace.index.ports import Filter
from commonplace.index.terms import term_hash, term_set
from commonplace.index.vector_passages import passages_to_embed
from commonplace.learn.comparison import have_same_meaning
from commonplace.learn.versions import was_edited_by_user
from commonplace.recall.priors import UNTRIED, wilson
from commonplace.recall.visibility import shown_cards
from commonplace.rules import is_doubted
from commonplace.where.home import is_pack_log

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from commonplace.embed.embedder import Embedder
    from commonplace.index.ports import Card, Reader
    from commonplace.recaller import Recaller
    from commonplace.records import Record
    from commonplace.where.home import Home

ALIKE = 0.9
ENCODED_AT_ONCE = 128
COMPARED_AT_ONCE = 512
MARK_BYTES_MAX = 4 << 20
# Part of the mark: what was compared by other rules is compared again.
RULES = 2
# What a record of each kind states; these fields are compared one by one.
STATED = {
    "pattern": ("pattern", "conditions", "correct_approach", "incorrect_approach"),
    "anti_pattern": ("what_fails", "why", "prevention"),
    "lesson": ("lesson", "context", "command"),
}
# Shorter statements must have the same words; of longer ones, one may have one word more.
LONGER_BY_ONE_MIN = 10
# Of many records with the same words, each is compared with this number of the best ones.
COMPARED_MAX = 50


class Member(NamedTuple):
    """A record that may merge with others of its kind and repository."""

    card: Card
    record: Record

    @property
    def rank(self) -> tuple[Any, ...]:
        """What orders the members of a group: the first one stays."""
        record, rate = self.record, self.card.rate
        is_outside = str(record.meta.get("origin", "")).startswith(OUTSIDE)
        tried = rate if rate is not None and rate.tried else None
        if record.kind == "pattern":
            worth = -float(record.fields.get("confidence") or 0)
        elif record.kind == "lesson":
            worth = -(wilson(tried) if tried else UNTRIED)
        else:
            worth = 0.0
        evidence = len(set(record.sources)) if record.kind != "lesson" else tried and tried.tried
        return (is_outside, worth, -(evidence or 0), self.card.micros, record.id)


class Merge(NamedTuple):
    """A record that stays, and those that it takes in."""

    kept: Member
    others: tuple[Member, ...]


class Finder:
    """Finds the merges among the records of one kind."""

    def __init__(
        self, memory: Recaller, kind: str, marks: Marks, is_over: Callable[[], bool]
    ) -> None:
        self._memory = memory
        self._kind = kind
        self._marks = marks
        self._is_over = is_over
        # Why vectors could not be compared.
        self.reason = ""

    def find(self, readers: Sequence[Reader]) -> Iterator[tuple[str, list[Merge]]]:
        """Yield the merges of each log in which something changed since they were looked for."""
        filter_ = Filter(kinds=frozenset([self._kind]))
        by_place: dict[tuple[str, str], list[Card]] = defaultdict(list)
        for card in shown_cards(readers, 0, readers[0].select(filter_), filter_):
            if not is_pack_log(card.log):  # Nobody but its author changes a pack.
                by_place[card.log, card.repo].append(card)
        for (log, repo), cards in sorted(by_place.items()):
            if self._is_over():
                return
            seen = _fingerprint(cards, self._model())
            place = f"{self._kind} {log} {repo}"
            if self._marks.get(place) == seen:
                continue
            merges = self._merges(readers[0], cards) if len(cards) > 1 else []
            if merges is None:
                return  # Its time is over.
            if merges:
                yield log, merges
            elif not self.reason:
                self._marks.set(place, seen)

    def _model(self) -> str:
        """Return what compares the records, without loading it."""
        settings = self._memory.settings
        return f"{settings['embedder.kind']} {settings['embedder.model']}"

    def _embedder(self) -> Embedder | None:
        """Return what makes vectors; lessons are compared by their words."""
        if self._kind == "lesson":
            return None
        embedding = self._memory.engine().embedding
        found = embedding.embedder()
        if found is None and not embedding.is_off:
            self.reason = embedding.reason or "the model is still loading"
        return found

    def _merges(self, reader: Reader, cards: Sequence[Card]) -> list[Merge] | None:
        """Return the merges among *cards*; `None` if the time was over before all were compared."""
        if self._kind == "lesson":
            cards = _with_same_words(reader, cards)
        records = reader.records([card.key for card in cards])
        members = sorted(
            (
                Member(card, records[card.key])
                for card in cards
                if _may_merge(card, records[card.key])
            ),
            key=lambda member: member.rank,
        )
        near = self._near(reader, members)
        if near is None:
            return None
        contradicted = _contradicted(reader, members, near)
        leaders: dict[int, list[int]] = {}
        for place in range(len(members)):
            for leader in sorted(near.get(place, ())):
                if leader in leaders and (leader, place) not in contradicted:
                    leaders[leader].append(place)
                    break
            else:
                leaders[place] = []
        found = [
            Merge(members[leader], tuple(members[place] for place in places))
            for leader, places in leaders.items()
            if places
        ]
        return _without_undone(reader, found)

    def _near(self, reader: Reader, members: Sequence[Member]) -> dict[int, set[int]] | None:
        """Return for each member the earlier ones that say the same; `None` as above."""
        embedder = self._embedder() if len(members) > 1 else None
        pairs: Iterable[tuple[int, int]] | None = None
        if embedder is not None:
            try:
                pairs = _alike_pairs(reader, self._memory, members, embedder, self._is_over)
            except EmbedderUnavailable as error:
                self.reason = str(error)
                embedder = None
            else:
                if pairs is None:
                    return None
        if embedder is None or pairs is None:
            sets = [_term_hashes(member.record) for member in members]
            pairs = pairs_with_same_words(sets)
        near: dict[int, set[int]] = defaultdict(set)
        for one, other in pairs:
            first, second = sorted((one, other))
            if first != second and _say_the_same(members[first].record, members[second].record):
                near[second].add(first)
        return near


def _may_merge(card: Card, record: Record) -> bool:
    """Whether no user has judged or changed it, and a new version would keep all its values."""
    return not (is_doubted(card.feedback) or was_edited_by_user(record) or record.unusable)


def _say_the_same(one: Record, other: Record) -> bool:
    return one.fields.get("event_type") == other.fields.get("event_type") and all(
        map(have_same_meaning, _statements(one), _statements(other))
    )


def _statements(record: Record) -> tuple[str, ...]:
    """Return the texts of what *record* states, "" for what it does not."""
    return tuple(_text(record.fields.get(name)) for name in STATED[record.kind])


def _text(value: object) -> str:
    if isinstance(value, list):
        return "\n".join(sorted(str(item) for item in value))
    return value if isinstance(value, str) else ""


def _term_hashes(record: Record) -> frozenset[int]:
    return frozenset(map(term_hash, term_set("\n".join(_statements(record)))))


def pairs_with_same_words(
    sets: Sequence[frozenset[int]], longer_by_one_min: int = LONGER_BY_ONE_MIN
) -> Iterator[tuple[int, int]]:
    """Yield the places of equal sets, and of long ones that are equal but for one word more.

    Not all are compared with all.
    """
    by_sum: dict[int, list[int]] = defaultdict(list)
    for place, words in enumerate(sets):
        if words:
            by_sum[sum(words)].append(place)
    for place, words in enumerate(sets):
        total = sum(words)
        for other in by_sum.get(total, ())[:COMPARED_MAX]:
            if other != place and sets[other] == words:
                yield place, other
        for word in words if len(words) >= longer_by_one_min else ():
            for other in by_sum.get(total - word, ())[:COMPARED_MAX]:
                if sets[other] == words - {word}:
                    yield place, other


def _with_same_words(reader: Reader, cards: Sequence[Card]) -> list[Card]:
    """Return the lessons that may have the words of another one, without reading their texts.

    The index has the words of a lesson together with those of its tags. So the words that any of
    them has as a tag are left out of all.
    """
    cards = sorted(cards, key=lambda card: card.id)
    tags = frozenset(
        term_hash(term)
        for tag in {tag for card in cards for tag in card.tags}
        for term in term_set(tag)
    )
    terms = reader.term_sets([card.key for card in cards])
    sets = [terms.get(card.key, frozenset()) - tags for card in cards]
    places = {place for pair in pairs_with_same_words(sets, 1) for place in pair}
    return [cards[place] for place in sorted(places)]


def _alike_pairs(
    reader: Reader,
    memory: Recaller,
    members: Sequence[Member],
    embedder: Embedder,
    is_over: Callable[[], bool],
) -> list[tuple[int, int]] | None:
    """Return the pairs with vectors that are at least `ALIKE`; `None` if the time was over."""
    import numpy as np  # noqa: PLC0415 (most runs have nothing to compare)

    for index in memory.engine().indexes[:1]:
        index.use_model(embedder.name)
    vectors = dict(reader.first_vectors([member.card.key for member in members]))
    missing = [member for member in members if member.card.key not in vectors]
    for start in range(0, len(missing), ENCODED_AT_ONCE):
        if is_over():
            return None
        some = missing[start : start + ENCODED_AT_ONCE]
        encoded = embedder.encode([_embedded_text(member.record) for member in some])
        vectors |= {member.card.key: row for member, row in zip(some, encoded, strict=True)}
    if not members:
        return []
    rows = np.array([vectors[member.card.key] for member in members], dtype=np.float32)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    pairs: list[tuple[int, int]] = []
    for start in range(0, len(members), COMPARED_AT_ONCE):
        if is_over():
            return None
        cosines = rows[start : start + COMPARED_AT_ONCE] @ rows.T
        for place, other in np.argwhere(cosines >= ALIKE):
            if other < place + start:
                pairs.append((int(place) + start, int(other)))
    return pairs


def _without_undone(reader: Reader, merges: Sequence[Merge]) -> list[Merge]:
    """Return *merges* without what was taken in before: somebody has undone that since."""
    versions = reader.versions([one.kept.record.id for one in merges])
    left = []
    for one in merges:
        before = {
            edge.to
            for _log, version in versions.get(one.kept.record.id, ())
            for edge in version.edges
            if edge.rel == "supersedes"
        }
        others = tuple(other for other in one.others if other.record.id not in before)
        if others:
            left.append(Merge(one.kept, others))
    return left


def _embedded_text(record: Record) -> str:
    """Return the text that the index embeds first of a record."""
    found = document(record)
    first = next(iter(passages_to_embed(found)), None)
    return found.title if first is None else first.text


def _contradicted(
    reader: Reader, members: Sequence[Member], near: Mapping[int, Collection[int]]
) -> set[tuple[int, int]]:
    """Return the pairs that a record says contradict each other."""
    places = {members[place].record.id: place for place in near}
    places |= {members[place].record.id: place for some in near.values() for place in some}
    found = set()
    for edge in reader.edges(places, "contradicts") if places else ():
        if edge.of in places and edge.to in places:
            first, second = sorted((places[edge.of], places[edge.to]))
            found.add((first, second))
    return found


# --- What was looked at ---------------------------------------------------------------------------


def _fingerprint(cards: Sequence[Card], model: str) -> str:
    """Return a digest of which lines are current, by which we know that nothing changed."""
    content = json.dumps([RULES, model, sorted((card.id, card.key) for card in cards)])
    return blake2b(content.encode(), digest_size=12).hexdigest()


class Marks:
    """What was compared to the end, by kind and log, in `.state/`. Losing it costs only time."""

    def __init__(self, home: Home) -> None:
        self._path = home.merging_mark
        self._marks: dict[str, str] = {}
        self._is_changed = False
        try:
            read = json.loads(read_small(self._path, MARK_BYTES_MAX))
        except (OSError, ValueError):
            read = {}
        if isinstance(read, dict):
            self._marks = {name: str(value) for name, value in read.items()}

    def get(self, place: str) -> str | None:
        return self._marks.get(place)

    def set(self, place: str, seen: str) -> None:
        self._marks[place] = seen
        self._is_changed = True

    def save(self) -> None:
        if self._is_changed:
            make_folder(self._path.parent)
            atomic.replace(self._path, [json.dumps(self._marks).encode()])
