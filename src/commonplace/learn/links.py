"""The links of a record, as both of its ends see them; and what to do about a contradiction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace import inbox
from commonplace.errors import RecordInvalid, RecordNotFound, UsageError
from commonplace.learn import graph
from commonplace.records import LinkRecord
from commonplace.rules import HAS_CHILD, Standing, one_side
from commonplace.vocabulary import INVERSES, SYMMETRIC

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from commonplace.recall.graph import Statement
    from commonplace.recaller import Recaller
    from commonplace.records import Record

DEPTH_MAX = 5
# A record that thousands link to is not followed further than this.
LINKS_MAX = 2000
BOTH = "both"
_INVERSE = {name: other for other, name in INVERSES.items()} | INVERSES
_INVERSE |= {name: name for name in SYMMETRIC} | {HAS_CHILD: "child_of"}


class SeenLink(NamedTuple):
    """A link as one end sees it: *of* is that end, *rel* is said of it."""

    of: str
    rel: str
    to: str
    w: float
    # `out` if the link is kept in this direction, `in` if in the other, `both` if symmetric.
    direction: str
    depth: int
    kind: str  # Of the other end; "" if there is no such record.
    title: str
    is_superseded: bool
    stated_by: list[dict[str, str]]

    def as_dict(self) -> dict[str, Any]:
        """Return the link as JSON shows it."""
        return self._asdict()


def links(memory: Recaller, ident: str, depth: int = 1) -> list[SeenLink]:
    """Return the links of a record, and up to *depth* steps away; each link once."""
    if not 1 <= depth <= DEPTH_MAX:
        raise UsageError(f"the depth is {depth}, not between 1 and {DEPTH_MAX}")
    frontier, seen = [memory.get(ident).id], set[tuple[str, str, str]]()
    reached, found = set(frontier), list[SeenLink]()
    for step in range(1, depth + 1):
        beyond: list[str] = []
        for link in _links_of(memory, frontier, step):
            triple = one_side(link.of, link.rel, link.to)
            if triple in seen or len(found) >= LINKS_MAX:
                continue
            seen.add(triple)
            found.append(link)
            if link.to not in reached:
                reached.add(link.to)
                beyond.append(link.to)
        frontier = beyond
    return found


def _links_of(memory: Recaller, ids: list[str], depth: int) -> Iterator[SeenLink]:
    stated = _by_triple(graph.statements(memory, ids))
    ends = graph.shown(memory, {end for of, _rel, to in stated for end in (of, to)})
    order = {ident: number for number, ident in enumerate(ids)}
    rows = []
    for (of, rel, to), statements in stated.items():
        near, name, far, direction = of, rel, to, "both" if rel in SYMMETRIC else "out"
        if of not in order or (to in order and order[to] < order[of]):
            near, name, far = to, _INVERSE.get(rel, rel), of
            direction = "both" if rel in SYMMETRIC else "in"
        end = ends.get(far)
        rows.append(
            SeenLink(
                near,
                name,
                far,
                max(one.edge.w for one in statements),
                direction,
                depth,
                end.record.kind if end else "",
                title_of(end.record) if end else "",
                end is not None and end.standing is Standing.SUPERSEDED,
                [_stated_by(one.record) for one in statements],
            )
        )
    yield from sorted(rows, key=lambda link: (order[link.of], link.rel, -link.w, link.to))


def _by_triple(statements: list[Statement]) -> dict[tuple[str, str, str], list[Statement]]:
    """Return what states each link, by the one form of the link."""
    found: dict[tuple[str, str, str], list[Statement]] = {}
    for one in statements:
        triple = one_side(one.edge.of, one.edge.rel, one.edge.to)
        if triple[0] != triple[2]:
            found.setdefault(triple, []).append(one)
    return found


def _stated_by(record: Record) -> dict[str, str]:
    return {"id": record.id, "agent": record.agent_id, "at": record.timestamp}


def title_of(record: Record) -> str:
    """Return the words of a record in one line."""
    value = record.fields.get(record.title_field) if record.title_field else ""
    if isinstance(value, dict):
        value = value.get("goal")
    return " ".join(str(value or "").split())


# --- Removing -------------------------------------------------------------------------------------


def unlink(memory: Recaller, ident: str, rel: str, to: str) -> list[str]:
    """Remove a link, whoever states it; return the ids of the records that stated it."""
    memory.check_relation(rel)
    first, second = (memory.get(end).id for end in (ident, to))
    removed = _remove(memory, first, rel, second)
    if not removed:
        raise RecordNotFound(
            first,
            f"there is no link `{first}` {rel} `{second}`",
            f"`commonplace links {first}` shows its links",
        )
    return removed


def _remove(memory: Recaller, first: str, rel: str, second: str) -> list[str]:
    triple = one_side(first, rel, second)
    stated = _by_triple(graph.statements(memory, [first])).get(triple, [])
    for one in stated:
        if not isinstance(one.record, LinkRecord) and not _without(one.record, triple)[1]:
            raise RecordInvalid(
                "rel",
                f"{rel} is stated by a field of `{one.record.id}`, not by a link",
                f"`commonplace edit {one.record.id}` changes its fields",
            )
    for one in stated:
        if isinstance(one.record, LinkRecord):
            memory.forget(one.record.id, reason="unlinked")
        else:
            memory.edit(one.record.id, lambda record: {"links": _without(record, triple)[0]})
    return [one.record.id for one in stated]


def _without(
    record: Record, triple: tuple[str, str, str]
) -> tuple[list[Mapping[str, Any]] | None, bool]:
    """Return the `links` of a record without that link, and whether it was among them."""
    kept = [
        link
        for link, edge in zip(record.links, record.edges, strict=True)
        if one_side(record.id, edge.rel, edge.to) != triple
    ]
    return kept or None, len(kept) < len(record.links)


# --- Contradictions -------------------------------------------------------------------------------


def resolve(memory: Recaller, ident: str, other: str, keep: str) -> dict[str, Any]:
    """End a contradiction: the record to *keep* supersedes the other one, or both stay.

    Doing it again changes nothing, and a later decision replaces an earlier one.
    """
    ends = [memory.get(end) for end in (ident, other)]
    first, second = (end.id for end in ends)
    if first == second:
        raise UsageError(f"both are `{first}`", "name the two records that contradict each other")
    kept = _kept(first, second, keep)
    removed = _remove(memory, first, "contradicts", second)
    for winner, loser in ((first, second), (second, first)):
        supersedes = _by_triple(graph.statements(memory, [winner])).get(
            (winner, "supersedes", loser)
        )
        if winner == kept and not supersedes:
            memory.link(winner, "supersedes", loser, meta={"source": "resolve"})
        elif winner != kept and supersedes:
            removed += _remove(memory, winner, "supersedes", loser)
    inbox.settle(memory, *ends)
    return {"of": first, "to": second, "kept": kept or BOTH, "removed": removed}


def _kept(first: str, second: str, keep: str) -> str:
    """Return the id to keep; "" for both."""
    if keep == BOTH:
        return ""
    matches = [ident for ident in (first, second) if keep and ident.startswith(keep)]
    exact = [ident for ident in matches if ident == keep]
    if len(exact or matches) != 1:
        raise UsageError(
            f"is `{keep}`, which names {'both' if matches else 'neither'} of the two",
            f"give `{first}`, `{second}` or `{BOTH}`",
            "--keep",
        )
    return (exact or matches)[0]
