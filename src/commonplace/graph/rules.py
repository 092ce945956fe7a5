"""Which memories are rules about style, versions and tests. Pure: the client uses it, too."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from commonplace.foreign import flat
from commonplace.graph.scoring import words_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from commonplace.records.nodes import GraphNode

# Nodes of these types may be rules; of records, also lessons and anti-patterns.
TYPES = ("fact", "pattern")
_TAGS = (
    "api constraint constraints convention conventions format formatting language lint policy rule"
    " rules signature signatures style test testing tests version versions"
)
TAGS = frozenset(_TAGS.split())
_ABOUT = re.compile(
    r"\b(?:style|format(?:s|ted|ting|ter)?|lint\w*|convention\w*|naming|indent\w*|line length"
    r"|versions?|standard|language level|type hints?|docstrings?|(?:unit |regression )?tests?\b"
    r"|testing|coverage|exceptions?|error (?:handling|polic\w+)|c\+\+ ?\d\d|python ?\d|node ?\d+"
    r"|java ?\d+|es20\d\d|public api|signatures?)",
    re.IGNORECASE,
)
_RULE = re.compile(
    r"\b(?:must|never|always|prefer\w*|avoid|require[sd]?|do not|don't|only|use|uses|should|keep"
    r"|instead|at least|at most|supports?|pinned?)\b",
    re.IGNORECASE,
)


def is_rule_node(node: GraphNode) -> bool:
    """Whether a node states such a rule."""
    return node.type in TYPES and states_rule(words_of(node), f"{node.label} {flat(node.payload)}")


def states_rule(words: Collection[str], text: str) -> bool:
    """Whether a memory states such a rule, by its tags and the parts of its path, or its text."""
    if not TAGS.isdisjoint(words):
        return True
    return _ABOUT.search(text) is not None and _RULE.search(text) is not None
