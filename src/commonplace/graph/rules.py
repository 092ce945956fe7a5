"""Which memories are rules about style, versions and tests. Pure: the client uses it, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.foreign import flat
from commonplace.graph.scoring import words_of
from commonplace.index.rule_wording import states_rule

if TYPE_CHECKING:
    from commonplace.records.nodes import GraphNode

# Nodes of these types may be rules; of records, also lessons and anti-patterns.
TYPES = ("fact", "pattern")


def is_rule_node(node: GraphNode) -> bool:
    """Whether a node states such a rule."""
    return node.type in TYPES and states_rule(words_of(node), f"{node.label}\n{flat(node.payload)}")
