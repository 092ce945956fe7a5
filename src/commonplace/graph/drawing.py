"""Draw the graph, or what is around one node: as a tree to read, as DOT, or as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.errors import UsageError
from commonplace.foreign import UNTRUSTED, one_line, origin
from commonplace.graph import fetch
from commonplace.graph.tree import NODE_KINDS
from commonplace.learn.links import DEPTH_MAX, LINKS_MAX
from commonplace.recall import graph
from commonplace.recall.listing import all_cards
from commonplace.rules import one_side
from commonplace.vocabulary import SYMMETRIC

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from commonplace.recaller import Recaller

# A drawing of more than this cannot be read; a part of it is named by an id.
NODES_MAX = 1000
LABEL_CHARS_MAX = 60


class DrawnNode(NamedTuple):
    """A node in a drawing; one that does not exist has neither type nor label."""

    id: str
    type: str = ""
    label: str = ""
    trusted: bool = True
    # Who else wrote it: a pack, an import.
    origin: str = ""

    @property
    def text(self) -> str:
        """The node in one line."""
        label = one_line(self.label)
        if len(label) > LABEL_CHARS_MAX:
            label = f"{label[: LABEL_CHARS_MAX - 1]}…"
        about = f"{label} ({self.type})" if self.type else "(no such node here)"
        marks = [self.origin, "" if self.trusted else UNTRUSTED]
        return f"{one_line(self.id)}  {about}" + "".join(f"  ({one})" for one in marks if one)


class DrawnLink(NamedTuple):
    """A link in the direction in which it is kept."""

    of: str
    rel: str
    to: str
    w: float

    @property
    def text(self) -> str:
        """The relation, and the weight unless it is whole."""
        return one_line(self.rel) if self.w == 1 else f"{one_line(self.rel)} {self.w:g}"


class Drawing(NamedTuple):
    """The nodes by id and the links, and whether some were left out."""

    nodes: dict[str, DrawnNode]
    links: list[DrawnLink]
    start: str = ""
    is_cut: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the drawing as JSON shows it."""
        return {
            "nodes": [node._asdict() for node in self.nodes.values()],
            "links": [link._asdict() for link in self.links],
            "start": self.start,
            "is_cut": self.is_cut,
        }


def draw(memory: Recaller, ident: str = "", depth: int = 1) -> Drawing:
    """Return the graph around a node up to *depth* links away, or with no *ident* all of it.

    Nodes of homes that the user does not trust are drawn only around one that is named.
    """
    if not 1 <= depth <= DEPTH_MAX:
        raise UsageError(f"the depth is {depth}, not between 1 and {DEPTH_MAX}")
    start = fetch.node(memory, ident).id if ident else ""
    ids, is_cut = ([start], False) if start else _all_ids(memory)
    links: dict[tuple[str, str, str], float] = {}
    reached, frontier = dict.fromkeys(ids), ids
    for _step in range(depth if start else 1):
        beyond: dict[str, None] = {}
        for link in _links_of(memory, frontier):
            if len(links) >= LINKS_MAX or len(reached) + len(beyond) > NODES_MAX:
                is_cut = True
                break
            links[link[:3]] = max(link.w, links.get(link[:3], 0.0))
            beyond |= {end: None for end in (link.of, link.to) if end not in reached}
        reached |= beyond
        frontier = list(beyond)
    found = fetch.nodes(memory, list(reached), superseded=True, untrusted=bool(start))
    trusted = fetch.nodes(memory, list(found), superseded=True) if start else found
    nodes = {
        one: DrawnNode(
            one,
            found[one].type,
            found[one].label,
            one in trusted,
            origin(found[one].meta, short=True),
        )
        if one in found
        else DrawnNode(one)
        for one in reached
    }
    return Drawing(nodes, [DrawnLink(*ends, w) for ends, w in links.items()], start, is_cut)


def _all_ids(memory: Recaller) -> tuple[list[str], bool]:
    wanted = memory.query(all_repos=True, kinds=NODE_KINDS, automatic=True)
    with memory.engine().reading() as readers:
        ids = sorted({card.id for _home, card in all_cards(readers, wanted)})
    return ids[:NODES_MAX], len(ids) > NODES_MAX


def _links_of(memory: Recaller, ids: Iterable[str]) -> list[DrawnLink]:
    untrusted = fetch.visible(memory).untrusted
    with memory.engine().reading() as readers:
        edges = [one.edge for one in graph.statements(readers, set(ids), untrusted)]
    drawn = {DrawnLink(*one_side(edge.of, edge.rel, edge.to), edge.w) for edge in edges}
    return sorted(
        (link for link in drawn if link.of != link.to),
        key=lambda link: (-link.w, link.of, link.rel, link.to),
    )


# --- As DOT ---------------------------------------------------------------------------------------


def to_dot(drawing: Drawing) -> str:
    """Return the drawing in Graphviz' language."""
    lines = ["digraph commonplace {", "  rankdir=LR;", "  node [shape=box];"]
    for node in drawing.nodes.values():
        label, kind = _escape(node.label or node.id), _escape(node.type)
        # `\n` is Graphviz' own line break.
        shown = f'"{label}\\n{kind}"' if kind else f'"{label}", style=dashed'
        lines.append(f'  "{_escape(node.id)}" [label={shown}];')
    for link in drawing.links:
        plain = ", dir=none" if link.rel in SYMMETRIC else ""
        label = _escape(link.text)
        lines.append(f'  "{_escape(link.of)}" -> "{_escape(link.to)}" [label="{label}"{plain}];')
    return "\n".join([*lines, "}"])


def _escape(text: str) -> str:
    """Return *text* for between two quotes."""
    return one_line(text).replace("\\", "\\\\").replace('"', '\\"')


# --- As a tree ------------------------------------------------------------------------------------


def to_lines(drawing: Drawing) -> Iterator[str]:
    """Yield the drawing as a tree from its start, or for each node its links."""
    ends = _links_by_end(drawing)
    if drawing.start:
        yield drawing.nodes[drawing.start].text
        yield from _branches(drawing, ends, drawing.start, {drawing.start}, "")
        return
    own: dict[str, list[DrawnLink]] = {}
    for link in drawing.links:
        own.setdefault(link.of, []).append(link)
    for ident, node in drawing.nodes.items():
        links = own.get(ident, [])
        if links or ident not in ends:
            yield node.text
        for place, link in enumerate(links, 1):
            mark = "└─" if place == len(links) else "├─"
            yield f"{mark} {_arrow(link, '->')} {drawing.nodes[link.to].text}"


def _links_by_end(drawing: Drawing) -> dict[str, list[tuple[str, str]]]:
    """Return the links of each node as it sees them: an arrow with the relation, the other end."""
    found: dict[str, list[tuple[str, str]]] = {}
    for link in drawing.links:
        found.setdefault(link.of, []).append((_arrow(link, "->"), link.to))
        found.setdefault(link.to, []).append((_arrow(link, "<-"), link.of))
    return found


def _arrow(link: DrawnLink, direction: str) -> str:
    return f"{'--' if link.rel in SYMMETRIC else direction} {link.text}"


def _branches(
    drawing: Drawing,
    ends: Mapping[str, list[tuple[str, str]]],
    ident: str,
    shown: set[str],
    margin: str,
) -> Iterator[str]:
    """Yield what is linked with a node and was not shown yet, and what is linked with that."""
    fresh = [(rel, to) for rel, to in ends.get(ident, []) if to not in shown]
    shown |= {to for _rel, to in fresh}
    expanded: set[str] = set()
    for place, (rel, to) in enumerate(fresh, 1):
        is_last = place == len(fresh)
        yield f"{margin}{'└─' if is_last else '├─'} {rel} {drawing.nodes[to].text}"
        if to not in expanded:
            expanded.add(to)
            below = f"{margin}{'   ' if is_last else '│  '}"
            yield from _branches(drawing, ends, to, shown, below)
