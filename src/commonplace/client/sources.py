"""Which sources of memories were useful: those whose nodes did not help are weighed less.

A source is what a node says in `meta.source`, `meta.origin` or `meta.repo`. Nodes without one are
the agent's own, and are not weighed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from commonplace.records.nodes import GraphNode

# As if a source had helped this often before anything was known of it: one failure says little.
PRIOR = 4.0
# No source is weighed less, so that one that is useful again can show it.
WEIGHT_MIN = 0.2
# Above it, old judgements are halved: what a source was good for lately counts more.
JUDGED_MAX = 64.0


class Sources:
    """How often nodes of each source helped, and how often they did not."""

    def __init__(self) -> None:
        self._judged: dict[str, tuple[float, float]] = {}

    def judge(self, nodes: Iterable[GraphNode], *, worked: bool) -> None:
        """Note whether *nodes* helped. A source is judged once, however many nodes it has."""
        for source in sorted({source for node in nodes if (source := source_of(node))}):
            good, bad = self._judged.get(source, (0.0, 0.0))
            if good + bad >= JUDGED_MAX:
                good, bad = good / 2, bad / 2
            self._judged[source] = (good + worked, bad + (not worked))

    def weight(self, node: GraphNode) -> float:
        """Return from 0.2 to 1 how much the source of *node* is trusted to help."""
        good, bad = self._judged.get(source_of(node), (0.0, 0.0))
        return max(WEIGHT_MIN, (good + PRIOR) / (good + bad + PRIOR))

    def as_dict(self) -> dict[str, Any]:
        return {source: list(judged) for source, judged in sorted(self._judged.items())}

    def load(self, kept: Mapping[str, Any]) -> None:
        self._judged = {
            str(source): (float(good), float(bad)) for source, (good, bad) in kept.items()
        }


def source_of(node: GraphNode) -> str:
    """Return where a node comes from; "" if it does not say."""
    for name in ("source", "origin", "repo"):
        given = node.meta.get(name)
        if isinstance(given, str) and given:
            return given
    # The repository itself is no source: one bad node would weigh down all the agent's own work.
    return ""
