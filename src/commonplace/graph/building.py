"""Build a context: the frames of a prompt, from what lights up for a question.

Probe the memory, let the links bloom, trim to the caps of types and to a budget; then the nodes
that were lit are noted in the working set, and the context is saved as a version of the task's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from commonplace.compose.frames import KNOWLEDGE_TYPES, Material, check_budget, compose
from commonplace.compose.hdod import Shown
from commonplace.errors import UsageError
from commonplace.foreign import one_line
from commonplace.graph import files_in_hand, frame_lines, resonance
from commonplace.graph.arguments import check_number, check_text
from commonplace.graph.bloom import HOPS_MAX, HOPS_MIN
from commonplace.graph.constraints import RULES_FIRST, file_lines
from commonplace.graph.contexts import save_context
from commonplace.graph.lighting import KINDS, RANKED_MAX, Lighting
from commonplace.graph.scoring import drift, is_covered, mean
from commonplace.graph.tasks import Task
from commonplace.records import to_utc
from commonplace.vocabulary import QUERY_CHARS_MAX

if TYPE_CHECKING:
    from collections.abc import Collection

    from commonplace.compose.frames import Frames
    from commonplace.graph.contexts import SavedContext
    from commonplace.graph.lighting import Gathered, LitNode
    from commonplace.graph.resonance import State
    from commonplace.recaller import Recaller


@dataclass(frozen=True, slots=True)
class BuiltContext:
    """The frames of a context, and how they came about."""

    frames: Frames
    # The nodes that were chosen, the best first; those in the frames are in `shown`.
    selected: list[LitNode]
    shown: list[str]
    # How many nodes lit up.
    lit: int
    tick: int
    saved: SavedContext | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def tokens(self) -> dict[str, int]:
        """The tokens of each frame."""
        return self.frames.tokens_by_frame()

    @property
    def scores(self) -> dict[str, float]:
        """The score of each chosen node."""
        return {one.id: one.score for one in self.selected}

    def as_dict(self) -> dict[str, Any]:
        """Return the frames by their keys."""
        return self.frames.as_dict()

    def explained(self) -> dict[str, Any]:
        """Return the frames as both texts, and how they came about."""
        return {
            "json": self.frames.as_json(),
            "markdown": self.frames.as_markdown(),
            "tokens": self.tokens,
            "selected": [one.as_dict() for one in self.selected],
            "shown": self.shown,
            "lit": self.lit,
            "tick": self.tick,
            "notes": self.notes,
        }


def build_context(
    memory: Recaller,
    query: str,
    task: Task = Task(),  # noqa: B008 (immutable)
    budget_tokens: int = 2000,
    hops: int = 2,
    *,
    save: bool = True,
) -> BuiltContext:
    """Return the frames for *query* and *task*, which have at most *budget_tokens*.

    With the id of a task the context is saved as its next version. Unless *save* is true, nothing
    is saved, lit or counted: the same call gives the same frames again.
    """
    text = check_text("the question", query).strip()
    if not text:
        raise UsageError("the question is empty", "say in a few words what the task is")
    check_number("the number of hops", hops, HOPS_MIN, HOPS_MAX)
    check_budget(budget_tokens)
    state = resonance.read(memory)
    asked = memory.query(
        text[:QUERY_CHARS_MAX],
        automatic=True,  # From trusted homes only.
        files=task.files,
        all_repos=True,
        cutoff=False,
        limit=RANKED_MAX,
        kinds=KINDS,
    )
    work = Lighting(memory, asked, task, state, hops)
    found, remarks = memory.engine().consult(asked, work.gather, lambda _found: [])
    in_hand, unread = files_in_hand.read(memory.repository.root, [*task.files, *_task_files(found)])
    material = _material(found, text, task, file_lines(in_hand))
    frames = compose(material, budget_tokens, memory.settings["context.knowledge_share"])
    shown = _shown_in(found, frames)
    after, version = state, None
    if save:
        after = _light(memory, found, shown, state)
        _note(memory, found, frames, shown, state, task)
        if task.id:
            version = save_context(
                memory,
                task.id,
                frames.as_blocks(),
                session=task.session,
                nodes=shown,
                is_built=True,
            )
    notes = [*remarks, *work.notes, *unread, *filter(None, [after.problem])]
    return BuiltContext(frames, found.selected, shown, len(found.lit), after.tick, version, notes)


def _light(memory: Recaller, found: Gathered, shown: list[str], before: State) -> State:
    """Begin the next tick, and count the use of what is shown."""
    moment = memory.now()
    memory.engine().usage.add(_places(found, shown), to_utc(moment), None)
    if not memory.homes[memory.trusted_home()].path.is_dir():
        return before
    lit = {one.id: one.score for one in found.lit}
    return resonance.of_memory(memory).light(lit, shown, moment)


def _note(
    memory: Recaller, found: Gathered, frames: Frames, shown: list[str], before: State, task: Task
) -> None:
    """Note what the context cost and how good it is, for `commonplace stats`."""
    lit = {one.id: one.score for one in found.lit}
    similar = {one.id: one.signals.similarity for one in found.selected}
    working = resonance.Limits.of(memory).after(before.values_without(lit), lit.values())
    memory.note_injection(
        "context",
        frames.tokens(),
        shown,
        task.id,
        task.session,
        frames=frames.tokens_by_frame(),
        covered=is_covered((found.nodes[ident] for ident in frames.ids), found.tags),
        drift=drift([similar[ident] for ident in frames.ids]),
        nodes=len(working),
        resonance=mean(working),
    )


def _material(found: Gathered, query: str, task: Task, files: list[str]) -> Material:
    """Return the lines and nodes that the frames are made of."""
    tools = [found.nodes[one.id] for one in found.selected if one.type == "tool"]
    rules = [rule.line for rule in found.rules]
    return Material(
        problem=frame_lines.problem(query, task.id, found.tags, found.task, here=found.here),
        identity=frame_lines.identity(found.persona, tools, found.identity, here=found.here),
        knowledge=_knowledge(found),
        episodic=frame_lines.episodic(found.saved, found.episodes, found.here),
        constraints=[*rules[:RULES_FIRST], *files, *rules[RULES_FIRST:]],
        scratchpad=frame_lines.scratchpad(found.saved),
        query=query,
    )


def _knowledge(found: Gathered) -> list[Shown]:
    in_constraints = {rule.id for rule in found.rules}
    return [
        Shown(node, one.score, "" if node.repo in found.here else node.repo)
        for one in found.selected
        if one.type in KNOWLEDGE_TYPES and one.id not in in_constraints
        for node in [found.nodes[one.id]]
    ]


def _task_files(found: Gathered) -> list[str]:
    """Return the files that the node of the task names."""
    payload = found.task.payload if found.task is not None else None
    named = payload.get("files") if isinstance(payload, dict) else None
    return [one for one in named if isinstance(one, str)] if isinstance(named, list) else []


def _shown_in(found: Gathered, frames: Frames) -> list[str]:
    """Return the ids of the memories whose words are in *frames*."""
    texts = "\n".join(frames.texts.values())
    others = [rule.id for rule in found.rules if rule.line in texts]
    others += [
        one.id
        for one in found.episodes
        if any(line in texts for line in frame_lines.steps(one, found.here))
    ]
    special = [
        one.id
        for one, kind in ((found.persona, "identity"), (found.task, "problem"))
        if one is not None and one_line(one.id) in frames.texts.get(kind, "")
    ]
    tools = [
        one.id
        for one in found.selected
        if one.type == "tool" and frame_lines.tool(found.nodes[one.id], found.here) in texts
    ]
    return list(dict.fromkeys([*frames.ids, *special, *tools, *others]))


def _places(found: Gathered, ids: Collection[str]) -> list[tuple[int, str]]:
    """Return the home of each of *ids* that was lit, for counting its use."""
    chosen = frozenset(ids)
    return [(one.address[0], one.id) for one in found.lit if one.id in chosen]
