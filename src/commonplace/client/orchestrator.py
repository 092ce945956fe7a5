"""The memory of an agent, on the agent's side: activation, selection and composition of contexts.

It works with any MCP server that has the seven tools. The server keeps and finds nodes; which of
them light up for a question, cool down and are shown is decided here.
"""

from __future__ import annotations

import hashlib
import logging
import os
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import anyio

from commonplace.client import answers, checks, observing, saving, seven
from commonplace.client.frames import Frames
from commonplace.client.gathering import Gatherer
from commonplace.client.likeness import Likeness
from commonplace.client.material import Parts, Scored, material
from commonplace.client.options import Options
from commonplace.client.pending import Pending
from commonplace.client.state import State
from commonplace.client.task import Task
from commonplace.client.working_set import age_days
from commonplace.compose.frames import check_budget, compose
from commonplace.compose.hdod import as_json
from commonplace.foreign import one_line
from commonplace.graph import scoring, selection
from commonplace.graph.frame_lines import time_of
from commonplace.graph.task_episodes import choose

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from commonplace.client.adapter import KomServerAdapter
    from commonplace.client.gathering import Gathered
    from commonplace.client.likeness import Embed
    from commonplace.client.working_set import Hot
    from commonplace.records.nodes import GraphNode

    AnyTask = Task | str | Mapping[str, Any]

log = logging.getLogger(__name__)
# As on the server: names the persona where the program names none.
PERSONA_VARIABLE = "COMMONPLACE_PERSONA"


def _now() -> datetime:
    return datetime.now(UTC)


class MemoryOrchestrator:
    """Builds the contexts of an agent from a memory server, and saves what the agent learns.

    *embed* returns the vector of a text; without it, the words of texts are compared. *state* is a
    folder of this orchestrator's own, where the working set and unsaved contexts survive its end.
    *persona* is that of the agent, by default the one in `COMMONPLACE_PERSONA`. *repo* names the
    repository that the tasks and new nodes belong to: a server over HTTP does not know it.
    """

    def __init__(
        self,
        server: KomServerAdapter,
        embed: Embed | None = None,
        *,
        state: Path | str | None = None,
        persona: str = "",
        tools: Sequence[str] = (),
        repo: str = "",
        options: Options = Options(),  # noqa: B008 (immutable)
        now: Callable[[], datetime] = _now,
    ) -> None:
        self.server = server
        self._embed = embed
        self._options = options
        self._persona = persona or os.environ.get(PERSONA_VARIABLE, "")
        self._tools = tuple(tools)
        self._clock = now
        self._state = State(Path(state) if state is not None else None, options.limits)
        # How many observations were made: those of one second stay in order.
        self._observed = 0
        self._repo = repo
        self._gatherer = Gatherer(server, options, self._state.task_frames, repo)
        self._lock = anyio.Lock()
        self._stack: AsyncExitStack | None = None
        # The frames that were saved last, and the id of that save, by task.
        self._saved: dict[str, tuple[str, str]] = {}

    async def __aenter__(self) -> Self:
        self._stack = AsyncExitStack()
        if not self.server.is_open:
            await self._stack.enter_async_context(self.server)
        return self

    async def __aexit__(self, *_error: object) -> None:
        stack, self._stack = self._stack, None
        self.close()
        if stack is not None:
            await stack.aclose()

    def close(self) -> None:
        """Let another orchestrator use the state folder. Everything in it is already written."""
        self._state.close()

    # --- What is known here -----------------------------------------------------------------------

    @property
    def working_set(self) -> dict[str, float]:
        """The resonance of each node in the working set, the strongest first."""
        hot = self._state.working_set
        values = {ident: round(hot.value(ident), scoring.DIGITS) for ident in hot.hot}
        return dict(sorted(values.items(), key=lambda one: (-one[1], one[0])))

    @property
    def pending(self) -> list[Pending]:
        """What waits to be saved, the oldest first."""
        return list(self._state.pending)

    @property
    def refused(self) -> list[Pending]:
        """What the server refused to save, and why, the oldest first."""
        return self._state.pending.refused

    # --- Contexts ---------------------------------------------------------------------------------

    async def build_context(self, query: str, task: AnyTask, budget_tokens: int) -> Frames:
        """Return the frames for a question of a task, with at most *budget_tokens*.

        The server's answers and the working set give the nodes. If the server does not answer, the
        working set alone does, the steps and the scratchpad are those that were last read or
        saved, and the context is saved later; `notes` of the frames say so.
        """
        checks.filled(query, "the question", "say what the agent is about to do")
        check_budget(budget_tokens)
        about = Task.of(task)
        async with self._lock:
            hot, now = self._state.working_set, self._time()
            hot.tick += 1
            self._gatherer.begin(await saving.flush(self.server, self._state.pending))
            likeness = Likeness(query, self._embed)
            gathered = await self._gatherer.gather(query, about, hot, now, likeness, self._persona)
            near = await likeness.of(self._reached(gathered))
            scores = self._score(gathered, about, near, now)
            chosen = selection.select(
                (
                    selection.Scored(ident, hot.hot[ident].node.type, score)
                    for ident, score in scores.items()
                    if self._may_select(hot.hot[ident].node, about, near[ident])
                ),
                self._options.caps,
            )
            parts = Parts(
                query,
                about,
                [Scored(hot.hot[one.id].node, one.score) for one in chosen],
                gathered.contexts,
                hot.named("persona", self._persona),
                hot.named("task", about.id),
                self._tools,
                gathered.rules,
                self._episodes(gathered, about, scores),
            )
            made = compose(material(parts), budget_tokens, self._options.knowledge_share)
            hot.light(scores, now)
            hot.use(made.ids, now)
            hot.prune(now)
            built = saving.Built(
                parts.shown(made.ids),
                # Not from the working set: a weak node may be shown and has left it by now.
                scoring.is_covered(
                    (one.node for one in parts.selected if one.node.id in made.ids), parts.tags()
                ),
                scoring.drift([near[one] for one in made.ids]),
            )
            await self._save(about, made.as_blocks(), built)
            self._state.write()
            return Frames.of(made, self._notes(likeness, parts.persona))

    async def save_context(self, task: AnyTask, frames: Sequence[Mapping[str, Any]]) -> bool:
        """Save blocks with `kind`, `format` and `data`; return whether the server has them.

        This is how an agent saves its scratchpad or a summary. If the server does not answer,
        they are saved later.
        """
        about, blocks = Task.of(task), checks.blocks(frames)
        async with self._lock:
            ident = await self._save(about, blocks)
            self._state.write()
            return not self._state.pending.has(ident)

    async def save_pending(self) -> int:
        """Send what waits, also what was refused; return how much the server does not have."""
        async with self._lock:
            pending = self._state.pending
            pending.retry_refused()
            await saving.flush(self.server, pending)
            return len(pending) + len(pending.refused)

    # --- What the agent does and learns -----------------------------------------------------------

    async def observe(
        self,
        action: str,
        outcome: str = "",
        *,
        task: AnyTask | None = None,
        involved: Iterable[str] = (),
        files: Sequence[str] = (),
        details: str = "",
        tags: Sequence[str] = (),
    ) -> str:
        """Write an observation after an action, linked to the nodes *involved*; return its id."""
        checks.filled(action, "the action", "say in a few words what was done")
        linked, paths = checks.texts(involved, "`involved`"), checks.texts(files, "`files`")
        labels = checks.texts(tags, "`tags`")
        about = Task.of(task) if task is not None else None
        self._observed += 1
        node = observing.observation(
            action,
            outcome,
            self._time(),
            task_id=about.id if about else "",
            involved=linked,
            files=paths,
            details=details,
            tags=labels or (about.tags if about else ()),
            number=self._observed,
        )
        return await self._upsert(node)

    async def learn(
        self,
        label: str,
        definition: str,
        *,
        id: str = "",  # noqa: A002 (the word in the contract)
        type: str = "skill",  # noqa: A002
        examples: Sequence[str] = (),
        anti_patterns: Sequence[str] = (),
        related: Iterable[str] = (),
        tags: Sequence[str] = (),
    ) -> str:
        """Write a skill (or a pattern, fact, …) with examples and anti-patterns; return its id."""
        checks.filled(label, "the label", "say in a few words what was learned")
        checks.filled(definition, "the definition", "say what was learned")
        linked, labels = checks.texts(related, "`related`"), checks.texts(tags, "`tags`")
        node = observing.skill(
            label,
            definition,
            ident=id,
            type_=type,
            examples=examples,
            anti_patterns=anti_patterns,
            related=linked,
            tags=labels,
        )
        return await self._upsert(node)

    async def upsert(self, nodes: Sequence[Mapping[str, Any]], *, merge: bool = True) -> bool:
        """Write nodes as they are; return whether the server has them.

        If it does not answer, they are written later. If it refused them, `refused` says why.
        """
        given = checks.nodes(nodes)
        async with self._lock:
            ident = await self._enqueue_nodes(given, merge=merge)
            return not self._state.pending.has(ident)

    async def feedback(self, ids: Iterable[str], *, worked: bool) -> int:
        """Say whether nodes of a context helped: sources that do not help are weighed less.

        The server is told as well, if it has a tool `feedback`. A rating is sent once, now or
        never: sent again, it would count twice. Return how many the server has noted.
        """
        judged = checks.texts(ids, "the ids")
        async with self._lock:
            hot = self._state.working_set
            nodes = [node for ident in judged if (node := hot.node(ident)) is not None]
            self._state.sources.judge(nodes, worked=worked)
            self._state.write()
            return await saving.rate(self.server, judged, "worked" if worked else "failed")

    # --- The rest of the seven tools --------------------------------------------------------------

    async def snapshot(self, *, include_memory: bool = True) -> Any:  # noqa: ANN401 (JSON)
        """Have the server make an immutable snapshot, after everything that waits was saved."""
        async with self._lock:
            await saving.flush(self.server, self._state.pending)
            return await self.server.project_snapshot(
                include_memory=include_memory, repo=self._repo
            )

    async def export_encrypted(self, selection: str, out: str) -> Any:  # noqa: ANN401 (JSON)
        """Have the server write an encrypted pack of the nodes in *selection*."""
        return await self.server.export_encrypted(selection, out)

    async def import_encrypted(self, pack: str) -> Any:  # noqa: ANN401 (JSON)
        """Have the server read an encrypted pack."""
        return await self.server.import_encrypted(pack)

    # --- Steps ------------------------------------------------------------------------------------

    def _time(self) -> str:
        return self._clock().astimezone(UTC).replace(tzinfo=None, microsecond=0).isoformat() + "Z"

    def _reached(self, gathered: Gathered) -> dict[str, Hot]:
        hot = self._state.working_set.hot
        return {ident: hot[ident] for ident in gathered.bloomed.hops}

    def _episodes(
        self, gathered: Gathered, task: Task, scores: Mapping[str, float]
    ) -> list[GraphNode]:
        """Return the last episodes of the task, else the best that are of no other task."""
        reached = {ident: one.node for ident, one in self._reached(gathered).items()}
        if own := [reached[ident] for ident in gathered.episodes if ident in reached]:
            return own
        lit = [node for node in reached.values() if node.type == "episode"]
        lit.sort(key=lambda node: (-scores[node.id], node.id))
        chosen = choose(lit, task.id, self._options.caps.get("episode", 0))
        return sorted(chosen, key=lambda node: (time_of(node), node.id), reverse=True)

    def _may_select(self, node: GraphNode, task: Task, similarity: float) -> bool:
        """Whether a node may be one of the best of its type. Episodes are chosen by their time."""
        if node.type != "tool":
            return node.type != "episode"
        hot = self._state.working_set
        found = (hot.named("persona", self._persona), hot.named("task", task.id))
        owners = [one for one in found if one is not None]
        links = {link.to for link in node.links}
        return selection.is_tool_listed(
            is_linked=any(
                one.id in links or any(link.to == node.id for link in one.links) for one in owners
            ),
            own_tags=node.tags,
            tags=(*task.tags, *(tag for one in owners if one.type == "task" for tag in one.tags)),
            similarity=similarity,
            similarity_min=self._options.similarity_min,
        )

    def _score(
        self, gathered: Gathered, task: Task, near: Mapping[str, float], now: str
    ) -> dict[str, float]:
        """Return the resonance score of each node that was reached."""
        persona = self._state.working_set.named("persona", self._persona)
        linked = scoring.persona_weights(persona)
        scores = {}
        for ident, one in self._reached(gathered).items():
            signals = scoring.Signals(
                similarity=near[ident],
                edge=gathered.bloomed.edges.get(ident, 0.0),
                recency=self._recency(max(one.node.timestamp, one.last_used_at), now),
                usage=scoring.usage(one.uses),
                task=scoring.task_affinity(one.node, task.tags),
                persona=scoring.persona_weight(one.node, linked, persona),
            )
            score = scoring.score(signals, self._options.weights)
            scores[ident] = round(score * self._state.sources.weight(one.node), scoring.DIGITS)
        return scores

    def _recency(self, then: str, now: str) -> float:
        if not then:
            return 0.0
        return scoring.recency(age_days(then, now), self._options.half_life_days)

    async def _upsert(self, node: dict[str, Any]) -> str:
        [checked] = checks.nodes([node])
        async with self._lock:
            save = await self._enqueue_nodes([checked], merge=True)
            found = answers.node(checked)
            assert found is not None
            if save not in {one.id for one in self.refused}:
                # The agent's own work is hot, whether or not the server has it yet.
                hot, now = self._state.working_set, self._time()
                hot.add(found, now)
                hot.light({found.node.id: 1.0}, now)
            self._state.write()
            return found.node.id

    async def _enqueue_nodes(self, nodes: list[dict[str, Any]], *, merge: bool) -> str:
        more = {"repo": self._repo} if self._repo else {}
        return await self._enqueue(seven.UPSERT, {"nodes": nodes, "merge": merge, **more})

    async def _save(
        self, task: Task, blocks: list[dict[str, Any]], built: saving.Built | None = None
    ) -> str:
        """Save *blocks*, now or later, and return the id of the save.

        The same ones that were built again are not saved again; what the agent itself saves is,
        because another agent may have saved something meanwhile.
        """
        content = hashlib.sha256(as_json(blocks).encode("utf-8", "replace")).hexdigest()
        before, ident = self._saved.get(task.id, ("", ""))
        if not blocks or (built is not None and before == content):
            return ident
        now = self._time()
        ident = observing.new_id("save-", now)
        frames = saving.with_save_id(blocks, ident, now, built)
        more = {"session": task.session, "repo": self._repo}
        arguments = {"task_id": task.id, "frames": frames}
        arguments |= {name: text for name, text in more.items() if text}
        await self._enqueue(seven.SAVE, arguments, ident)
        self._saved[task.id] = content, ident
        return ident

    async def _enqueue(self, tool: str, arguments: dict[str, Any], ident: str = "") -> str:
        """Write down what is to be saved, without secrets, and send all that waits.

        Return the id of the save.
        """
        now = self._time()
        clean = answers.without_secrets(arguments)
        one = Pending(ident or observing.new_id("save-", now), tool, clean, now)
        self._state.pending.add(one)
        self._state.note_save(one)
        await saving.flush(self.server, self._state.pending)
        return one.id

    def _notes(self, likeness: Likeness, persona: GraphNode | None) -> tuple[str, ...]:
        """Return what was not as usual, and log it."""
        down = self._gatherer.down
        notes = [f"{down}; the context is made of the working set"] if down else []
        notes += self._gatherer.notes
        if self._persona and persona is None:
            notes.append(f"there is no persona `{one_line(self._persona)}` on the server")
        if likeness.failure:
            notes.append(f"the embedder failed ({likeness.failure}); words were compared")
        if self._state.is_damaged:
            notes.append("the file of the working set was damaged; it starts over")
            self._state.is_damaged = False
        waiting, refused = len(self._state.pending), self.refused
        if waiting:
            saves = "1 save waits" if waiting == 1 else f"{waiting} saves wait"
            notes.append(f"{saves} for the server")
        if refused:
            saves = "1 save was" if len(refused) == 1 else f"{len(refused)} saves were"
            notes.append(f"{saves} refused and set aside; `save_pending` sends them again")
            notes += dict.fromkeys(one.refused for one in refused)
        for note in notes:
            log.warning("%s", note)
        return tuple(notes)
