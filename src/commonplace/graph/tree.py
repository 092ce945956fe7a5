"""The nodes as a dictionary of dictionaries, by the parts of their ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.errors import RecordNotFound
from commonplace.recall.listing import all_cards
from commonplace.records import KINDS, Node
from commonplace.records.nodes import node_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from commonplace.recaller import Recaller
    from commonplace.records.nodes import GraphNode

NODE_KINDS = frozenset(kind for kind, cls in KINDS.items() if cls is Node)


class Tree(NamedTuple):
    """One part of a path: the node with that id, if there is one, and what is below it."""

    path: str
    node: GraphNode | None
    branches: dict[str, Tree]

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition(".")[2]

    def walk(self, depth: int = 0) -> Iterator[tuple[int, Tree]]:
        """Yield everything below with its depth, then what is below that, in order."""
        for branch in self.branches.values():
            yield depth, branch
            yield from branch.walk(depth + 1)

    def as_dict(self) -> dict[str, Any]:
        """Return the tree as JSON shows it: nested by path, the node itself under `node`."""
        below = {name: branch.as_dict() for name, branch in self.branches.items()}
        return {
            "path": self.path,
            "node": None if self.node is None else self.node.as_dict(),
            "branches": below,
        }


def tree(memory: Recaller, path: str = "") -> Tree:
    """Return the nodes of trusted homes at *path* and below. Raises `RecordNotFound` if none is."""
    top = path.strip().rstrip(".")
    nodes = _nodes_below(memory, top)
    if top and not nodes:
        raise RecordNotFound(
            top, f"no node is at `{top}` or below", "`commonplace node tree` shows all paths"
        )
    return build(nodes, top)


def build(nodes: Iterable[GraphNode], top: str = "") -> Tree:
    """Return *nodes*, whose ids are *top* or below it, as a tree in the order of their ids."""
    by_id = {node.id: node for node in sorted(nodes, key=lambda node: node.id.split("."))}
    root = Tree(top, by_id.get(top) if top else None, {})
    skipped = len(top.split(".")) if top else 0
    for ident, node in by_id.items():
        branch = root
        parts = ident.split(".")
        for end in range(skipped + 1, len(parts) + 1):
            path = ".".join(parts[:end])
            here = node if path == ident else by_id.get(path)
            branch = branch.branches.setdefault(parts[end - 1], Tree(path, here, {}))
    return root


def _nodes_below(memory: Recaller, top: str) -> list[GraphNode]:
    wanted = memory.query(all_repos=True, kinds=NODE_KINDS, automatic=True)
    start = f"{top}." if top else ""
    found: list[GraphNode] = []
    with memory.engine().reading() as readers:
        keys: dict[int, list[int]] = {}
        for home, card in all_cards(readers, wanted):
            if card.id == top or card.id.startswith(start):
                keys.setdefault(home, []).append(card.key)
        for home, some in keys.items():
            found += map(node_of, readers[home].records(some).values())
    return found
