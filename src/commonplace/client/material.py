"""What the orchestrator has found, as the material of frames: the lines are those of the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from commonplace.compose.frames import KNOWLEDGE_TYPES, Material
from commonplace.compose.hdod import Shown
from commonplace.foreign import one_line
from commonplace.graph import frame_lines
from commonplace.graph.rules import is_rule_node

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commonplace.client.answers import Saved
    from commonplace.client.task import Task
    from commonplace.records.nodes import GraphNode


class Scored(NamedTuple):
    """A node that was selected, and its score."""

    node: GraphNode
    score: float


class Parts(NamedTuple):
    """What a context is made of."""

    query: str
    task: Task
    # The best first.
    selected: Sequence[Scored]
    # The newest first.
    contexts: Sequence[Saved] = ()
    persona: GraphNode | None = None
    task_node: GraphNode | None = None
    tools: Sequence[str] = ()
    # The rules in force, whatever the question is; the selected nodes may be some of them.
    rules: Sequence[GraphNode] = ()
    # The newest first.
    episodes: Sequence[GraphNode] = ()

    def tags(self) -> list[str]:
        """Return the tags of the task, and those that its node has."""
        more = self.task_node.tags if self.task_node is not None else ()
        return list(dict.fromkeys([*self.task.tags, *more]))

    def all_rules(self) -> list[GraphNode]:
        """Return the rules in force, then the others that lit up."""
        lit = [one.node for one in self.selected if is_rule_node(one.node)]
        return list({node.id: node for node in (*self.rules, *lit)}.values())

    def knowledge(self) -> list[Shown]:
        """Return what the knowledge frame may show: what is in no other frame."""
        rules = {node.id for node in self.all_rules()}
        return [
            Shown(one.node, one.score)
            for one in self.selected
            if one.node.type in KNOWLEDGE_TYPES and one.node.id not in rules
        ]

    def of_type(self, type_: str) -> list[GraphNode]:
        """Return the selected nodes of a type, the best first."""
        return [one.node for one in self.selected if one.node.type == type_]

    def shown(self, knowledge: Sequence[str]) -> list[str]:
        """Return the ids of the nodes that frames may repeat: all but the *knowledge* left out."""
        left = {one.node.id for one in self.knowledge()}
        others = [one.node for one in self.selected if one.node.id not in left]
        special = [node for node in (self.persona, self.task_node) if node is not None]
        found = (node.id for node in (*special, *self.all_rules(), *others, *self.episodes))
        return list(dict.fromkeys([*knowledge, *found]))


def material(parts: Parts) -> Material:
    """Return the lines and nodes of all frames."""
    task = parts.task
    return Material(
        problem=frame_lines.problem(parts.query, task.id, task.tags, parts.task_node, task.text),
        # Which server it is, and so how to ask it for more, is not known.
        identity=frame_lines.identity(
            parts.persona, parts.of_type("tool"), names=parts.tools, ending=""
        ),
        knowledge=parts.knowledge(),
        episodic=frame_lines.episodic(parts.contexts, parts.episodes),
        constraints=[
            *(f"- {one_line(text)}" for text in task.constraints),
            *map(frame_lines.rule, parts.all_rules()),
        ],
        scratchpad=frame_lines.scratchpad(parts.contexts, task.scratchpad),
        query=parts.query,
    )
