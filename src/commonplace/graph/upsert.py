"""Write nodes: new ones, and new versions of those that are there.

All are checked, and their current versions read, before the first line is written. A node that is
there is written to its own log, a new one to that of the repository that is named, or else of this
one, in the nearest trusted home.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from commonplace.editing import OF_BATCH
from commonplace.errors import RecordInvalid, UsageError
from commonplace.graph import resonance
from commonplace.graph.given import CONTENT, GivenNode, check_node, kind_of
from commonplace.graph.merging import merge_content, with_weights
from commonplace.recall import graph
from commonplace.records import Node, to_utc
from commonplace.records.json_text import encode_sorted
from commonplace.records.nodes import node_of
from commonplace.redaction.text import redact_text
from commonplace.where.repository import log_for_changes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from commonplace.log.prepare import PreparedLine
    from commonplace.recaller import Recaller
    from commonplace.records import Record

    Place = tuple[int, str]

T = TypeVar("T")
V = TypeVar("V")
NODES_MAX = 10_000
_TRIES_MAX = 20
_HINT = "docs/howto/keep-a-graph.md shows what a node may hold"
# What a line may have of an older version, and the next one does not take over.
_NOT_KEPT = ("agent_id", "stats", "resonance", "embeddings")
# What we note in `meta` ourselves; it is no content.
_OUR_META = ("edited", *OF_BATCH)


class UpsertResult(NamedTuple):
    """What became of the nodes: their ids, by what was done, each in the order given."""

    ids: list[str]
    created: list[str]
    merged: list[str]
    replaced: list[str]
    # Nothing was written: the log had this content already.
    unchanged: list[str]
    # Given with a vector of another model. It was dropped, and our own is made.
    recomputed_embeddings: list[str]
    # Their use or resonance became state of this machine.
    seeded: list[str]
    # What was removed as a secret: `id`, `kind` and `field`, never a value.
    redacted: list[dict[str, str]]
    # What could not be done, such as writing the state.
    notes: list[str] = []  # noqa: RUF012 (a default that is never changed)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON shows it."""
        return self._asdict()


class _Existing(NamedTuple):
    """The line that has the id of a node now."""

    record: Record
    place: Place
    key: int
    # Forgotten, or derived from something forgotten: its content must not come back.
    is_gone: bool


def upsert(
    memory: Recaller, nodes: Sequence[Mapping[str, Any]], *, merge: bool = False, repo: str = ""
) -> UpsertResult:
    """Write *nodes*, and return what was done with each. Raises `RecordInvalid`.

    With *merge*, what a node has and *nodes* do not give stays; otherwise the node is replaced.
    *repo* is the repository of new nodes that name none.
    """
    if not isinstance(nodes, list | tuple):
        raise UsageError("`nodes` is no list", "give a list of objects, also for one node")
    if len(nodes) > NODES_MAX:
        raise UsageError(
            f"there are {len(nodes):,} nodes, over {NODES_MAX:,}", "give fewer at once"
        )
    given = [_checked(number, node) for number, node in enumerate(nodes, 1)]
    ids = list(dict.fromkeys(node.id for node in given))
    place = memory.trusted_home(), memory.log_to_write(repo) if repo else memory.repository.name
    for _try in range(_TRIES_MAX):
        existing = _existing(memory, ids)
        lines = _Lines(memory, existing, place, merge=merge)
        for number, node in enumerate(given, 1):
            _at(number, node.id, lines.add, node)
        if lines.write(partial(_is_current, memory, ids, existing)):
            return lines.result(ids, given)
    raise UsageError("other processes keep changing these nodes", "try again")


def _checked(number: int, node: object) -> GivenNode:
    ident = node.get("id") if isinstance(node, dict) else None
    return _at(number, ident, check_node, node)


def _at(number: int, ident: object, do: Callable[[V], T], value: V) -> T:
    """Call *do*; an error says which of the nodes is meant."""
    try:
        return do(value)
    except RecordInvalid as error:
        name = f" ({redact_text(ident)[0]})" if isinstance(ident, str) and ident else ""
        raise RecordInvalid(
            f"nodes, entry {number}{name}: {error.field}", error.reason, error.hint or _HINT
        ) from None


def _existing(memory: Recaller, ids: Collection[str]) -> dict[str, _Existing]:
    """Return the current lines of *ids* in the homes that the user trusts, the nearest first."""
    untrusted = frozenset(n for n, home in enumerate(memory.homes) if not memory.trusts(home))
    found: dict[str, _Existing] = {}
    with memory.engine().reading() as readers:
        shown = graph.shown(readers, ids, untrusted)
        for number, reader in enumerate(readers):
            if number in untrusted:
                continue
            keys = reader.keys([ident for ident in ids if ident not in found])
            records, cards = reader.records(keys.values()), reader.cards(keys.values())
            for ident, key in keys.items():
                place = number, log_for_changes(cards[key].log)
                found[ident] = _Existing(records[key], place, key, ident not in shown)
    return found


def _is_current(memory: Recaller, ids: Collection[str], known: Mapping[str, _Existing]) -> bool:
    """Whether the nodes are as they were when the lines were made."""
    now = _existing(memory, ids)
    places = {ident: (one.place, one.key, one.is_gone) for ident, one in now.items()}
    return places == {ident: (one.place, one.key, one.is_gone) for ident, one in known.items()}


class _Lines:
    """The lines to write, one for each node that changes."""

    def __init__(
        self, memory: Recaller, existing: Mapping[str, _Existing], place: Place, *, merge: bool
    ) -> None:
        self._memory = memory
        self._existing = existing
        # Of new nodes that name no repository.
        self._home, self._repo = place
        self._merge = merge
        self._lines: dict[str, tuple[Place, PreparedLine]] = {}
        self._redacted: dict[str, list[dict[str, str]]] = {}

    def add(self, node: GivenNode) -> None:
        """Prepare the line of *node*. A node that is given twice is merged or replaced twice."""
        one = self._existing.get(node.id)
        if one is not None and not isinstance(one.record, Node):
            raise RecordInvalid(
                "id",
                f"is that of a record of the kind {one.record.kind}, which is no node",
                "choose another id, or change that record with `commonplace edit`",
            )
        before = self._before(node.id)
        content = node.content
        if self._merge and before is not None:
            content = merge_content(content_of(before), content)
        content = with_weights(content)
        if "type" not in content:
            raise RecordInvalid("type", "is missing", "say what it is, such as `concept`")
        fields = self._fields(node, {"label": node.id.rpartition(".")[2], **content}, one)
        place = one.place if one is not None else (self._home, fields["repo"])
        entry = self._memory.prepare({**fields, "repo": place[1]})
        if entry.record.id != node.id:
            raise RecordInvalid("id", "looks like a secret", "choose another id")
        self._redacted[node.id] = [
            {"id": node.id, "kind": one.kind, "field": one.field} for one in entry.record.redactions
        ]
        self._lines.pop(node.id, None)
        if one is None or one.is_gone or not _is_same(entry.record, one.record):
            self._lines[node.id] = place, entry

    def _before(self, ident: str) -> Record | None:
        """Return the version that the next one replaces, or is merged into."""
        if ident in self._lines:
            return self._lines[ident][1].record
        one = self._existing.get(ident)
        return None if one is None or one.is_gone else one.record

    def _fields(
        self, node: GivenNode, content: dict[str, Any], one: _Existing | None
    ) -> dict[str, Any]:
        memory = self._memory
        repo = node.repo and memory.log_to_write(node.repo)
        fields = {"id": node.id, "kind": kind_of(content["type"]), **content}
        if one is None:
            times = {} if node.timestamp is None else {"timestamp": node.timestamp}
            return {**fields, **times, "repo": repo or self._repo}
        if repo and repo not in (one.place[1], one.record.repo):
            raise RecordInvalid(
                "repo", f"is `{node.repo}`, and the node is in `{one.place[1]}`", "leave it out"
            )
        if one.is_gone:
            return fields
        # As after any edit: the time of the record stays, and `meta` has that of the change.
        meta = {**content.get("meta", {}), "edited": to_utc(memory.now())}
        others = one.record.fields.items() if self._merge else ()
        kept = {name: value for name, value in others if name not in (*CONTENT, *_NOT_KEPT)}
        return {**kept, **fields, "timestamp": one.record.timestamp, "meta": meta}

    def write(self, is_current: Callable[[], bool]) -> bool:
        """Append all lines, if nothing has changed meanwhile; return whether they were."""
        by_place: dict[Place, list[PreparedLine]] = {}
        for place, entry in self._lines.values():
            by_place.setdefault(place, []).append(entry)
        return self._memory.append_together(by_place, is_current)

    def result(self, ids: list[str], given: Iterable[GivenNode]) -> UpsertResult:
        """Return what was done, after seeding the state of this machine."""
        written = [ident for ident in ids if ident in self._lines]
        changed = [ident for ident in written if self._was_there(ident)]
        seeds = {node.id: dict(node.state) for node in given if node.state}
        problem = resonance.seed(self._memory, seeds)
        return UpsertResult(
            ids=ids,
            created=[ident for ident in written if not self._was_there(ident)],
            merged=changed if self._merge else [],
            replaced=[] if self._merge else changed,
            unchanged=[ident for ident in ids if ident not in self._lines],
            recomputed_embeddings=_of_other_models(self._memory, given),
            seeded=[] if problem else list(seeds),
            notes=[problem] if problem else [],
            redacted=[one for ident in written for one in self._redacted[ident]],
        )

    def _was_there(self, ident: str) -> bool:
        one = self._existing.get(ident)
        return one is not None and not one.is_gone


def _of_other_models(memory: Recaller, given: Iterable[GivenNode]) -> list[str]:
    """Return the nodes whose vector is not of the embedder in use."""
    models = {node.id: node.model for node in given if node.model}
    # Asking for its name may load the model, and most clients give no vectors.
    ours = memory.engine().embedder_state().name if models else ""
    return [ident for ident, model in models.items() if model != ours]


def content_of(record: Record) -> dict[str, Any]:
    """Return what a node says, in the form in which it is compared and merged."""
    node = node_of(record)
    meta = {name: value for name, value in node.meta.items() if name not in _OUR_META}
    found = {
        "type": node.type,
        "label": node.label,
        "payload": node.payload,
        "links": [link._asdict() for link in node.links],
        "children": dict(node.children),
        "tags": list(node.tags),
        "meta": meta,
    }
    return {name: found[name] for name in CONTENT if found[name] not in (None, [], {})}


def _is_same(one: Record, other: Record) -> bool:
    return one.kind == other.kind and encode_sorted(content_of(one)) == encode_sorted(
        content_of(other)
    )
