"""Which nodes light up for a question: probe, bloom, score, and the best of each type.

Seeds are the nodes most like the question, and those of the task's saved contexts and episodes.
From them up to three hops along the links; every node that lights up gets a resonance score.
Nothing of a home that the user does not trust takes part.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.errors import UsageError
from commonplace.graph import resonance
from commonplace.graph.bloom import PER_NODE_MAX, bloom
from commonplace.graph.constraints import rules
from commonplace.graph.contexts import of_task, recall_context
from commonplace.graph.resonance import Use
from commonplace.graph.scoring import (
    Signals,
    Weights,
    affinity,
    lowered,
    persona_weights,
    recency,
    score,
    usage,
    words_in,
)
from commonplace.graph.selection import Scored, caps_from_settings, is_tool_listed, select
from commonplace.graph.task_episodes import choose, newest
from commonplace.index.document import about_and_body, document
from commonplace.records import micros, to_utc
from commonplace.records.nodes import (
    KINDS_OF_TYPE,
    NODE_KIND,
    NODE_TYPES,
    GraphNode,
    names_of,
    node_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from commonplace.graph.constraints import Rule
    from commonplace.graph.contexts import SavedContext
    from commonplace.graph.resonance import State
    from commonplace.graph.tasks import Task
    from commonplace.index.ports import Card
    from commonplace.recall.consultation import Consultation
    from commonplace.recall.graph import Neighbourhood, Visible
    from commonplace.recall.hits import Address
    from commonplace.recall.query import Query
    from commonplace.recall.search import Search
    from commonplace.recaller import Recaller
    from commonplace.records import Record

SEEDS_MAX = 32
# So many of the most alike are looked at, so that one type does not take all places.
RANKED_MAX = 2 * SEEDS_MAX
# What the task was about before is half as strong as what is most like the question.
EPISODIC_STRENGTH = 0.5
# A node of another repository must be this much more like the question.
ELSEWHERE = 2.0
# So many of the contexts that were built for the task before; those that agents saved are more.
BUILT_MAX = 2
PERSONA_VARIABLE = "COMMONPLACE_PERSONA"
NO_USE = Use()
_MICROS_PER_DAY = 86_400_000_000
_TYPE_OF_KIND = {kind: name for name, kinds in KINDS_OF_TYPE.items() for kind in kinds}
# Every kind of record that is a node.
KINDS = (*_TYPE_OF_KIND, NODE_KIND)


class LitNode(NamedTuple):
    """A node that lit up: where it is, how it was reached, and why it has its score."""

    id: str
    type: str
    score: float
    signals: Signals
    # How many links it is away from a seed; `None` if the working set alone has it.
    hop: int | None
    address: Address

    def as_dict(self) -> dict[str, Any]:
        """Return it as `--explain` shows it."""
        return {
            "id": self.id,
            "type": self.type,
            "score": self.score,
            "hop": self.hop,
            **{name: round(value, 4) for name, value in self.signals._asdict().items()},
        }


@dataclass(frozen=True, slots=True)
class Gathered:
    """What a context is made of."""

    lit: list[LitNode]
    selected: list[LitNode]
    nodes: Mapping[str, GraphNode]
    persona: GraphNode | None
    task: GraphNode | None
    # Of the task, or else of the session, the newest first.
    saved: list[SavedContext]
    # The newest first: of the task, else those that lit up and name no other task.
    episodes: list[Record]
    rules: list[Rule]
    # The logs of this repository: what is in another log names it.
    here: frozenset[str]
    identity: str
    # Of the task: as the caller named them, and those of its node.
    tags: tuple[str, ...]


class Lighting:
    """One build: everything it reads comes from one state of the files."""

    def __init__(
        self,
        memory: Recaller,
        query: Query,
        task: Task,
        state: State,
        hops: int,
    ) -> None:
        self._memory = memory
        self._query = query
        self._task = task
        self._state = state
        self._hops = hops
        self._here = frozenset(memory.scope().here())
        self.notes: list[str] = []

    def gather(self, consultation: Consultation) -> Gathered:
        """Return what lights up, and what is chosen of it."""
        # The hops and the scores need the same cards.
        visible = consultation.visible(self._query)
        persona = self._find_persona(consultation, visible)
        task = self._named(consultation, visible, "task", self._task.id)
        tags = self._tags(task)
        episodes = newest(consultation, self._query, self._task.id)
        saved = self._saved_before(consultation)
        search = consultation.search(self._query)
        tools = _tools_of(visible, persona)
        semantic = self._semantic(search)
        episodic = self._episodic(task, episodes, saved)
        strengths = dict.fromkeys(episodic, EPISODIC_STRENGTH) | semantic
        around = consultation.neighbourhood(PER_NODE_MAX + 1, visible)
        found = bloom(
            [*semantic, *episodic, *tools],
            around.expand,
            self._hops,
            PER_NODE_MAX,
            self._memory.settings["context.nodes_max"],
            strengths=strengths,
            refuse=around.refuse,
        )
        hot_max = self._memory.settings["context.hot_nodes_max"]
        hot = (row[0] for row in self._state.rows[:hot_max])
        ids = list(dict.fromkeys([*found.hops, *hot]))
        lit = self._score(visible, search, ids, found.hops, found.edges, persona, tags)
        caps = caps_from_settings(self._memory.settings)
        owners = [one for one in (persona, task) if one is not None]
        shown = self._without_other_tools(lit, visible, around, owners, tags)
        best = select((Scored(one.id, one.type, one.score) for one in shown), caps)
        by_id = {one.id: one for one in lit}
        selected = [by_id[one.id] for one in best]
        records = consultation.records([one.address for one in selected])
        nodes = {one.id: _node(records[one.address], links=False) for one in selected}
        episodes = episodes or self._lit_episodes(consultation, lit, caps["episode"])
        own = self._here if self._memory.repository.known else None
        return Gathered(
            lit,
            selected,
            nodes,
            persona,
            task,
            saved,
            episodes,
            rules(
                consultation,
                self._query.with_(repos=own),
                tags,
                likeness=search.matching.likenesses,
            ),
            self._here,
            "" if persona is not None else self._memory.read_at_start("IDENTITY.md"),
            tags,
        )

    # --- Probe ------------------------------------------------------------------------------------

    def _semantic(self, search: Search) -> dict[str, float]:
        """Return the nodes most like the question, and how like it, as a share of the best one.

        Those of other repositories must be more so.
        """
        ranked = search.ranked()
        likeness = search.matching.likenesses([one.address for one in ranked])
        least = self._memory.settings["context.similarity_min"]
        found: dict[str, float] = {}
        types: dict[str, str] = {}
        for one in ranked:
            repo = one.card.repo
            is_here = repo in self._here or not repo or not self._memory.repository.known
            if likeness[one.address] >= (least if is_here else ELSEWHERE * least):
                found[one.card.id] = likeness[one.address]
                types[one.card.id] = card_type(one.card)
        best = max(found.values(), default=0.0)
        seeds = _of_each_type(types, caps_from_settings(self._memory.settings), SEEDS_MAX)
        return {ident: found[ident] / best if best else 1.0 for ident in seeds}

    def _saved_before(self, consultation: Consultation) -> list[SavedContext]:
        """Return the saved contexts of the task, or else of the session, the newest first."""
        task = self._task
        if task.id:
            return of_task(self._memory, consultation.readers, task.id, SEEDS_MAX // 2, BUILT_MAX)
        if task.session:
            return recall_context(self._memory, "session", task.session, SEEDS_MAX)
        return []

    def _episodic(
        self, task: GraphNode | None, episodes: Sequence[Record], saved: Sequence[SavedContext]
    ) -> list[str]:
        """Return the nodes of the task's saved contexts, the newest first, and its episodes."""
        found = [task.id] if task is not None else []
        for one in saved:
            found += one.nodes or _ids_in(one.frame("knowledge"))
        found = list(dict.fromkeys(found))
        ids = [one.id for one in episodes]
        room = max(SEEDS_MAX // 2, SEEDS_MAX - len(ids))
        return [*found[:room], *ids][:SEEDS_MAX]

    def _tags(self, task: GraphNode | None) -> tuple[str, ...]:
        """Return the tags of the task: as the caller named them, then those of its node."""
        noted = lowered(task.tags) if task is not None else ()
        return tuple(dict.fromkeys([*self._task.tags, *sorted(noted)]))

    def _lit_episodes(
        self, consultation: Consultation, lit: Sequence[LitNode], count: int
    ) -> list[Record]:
        """Return the best episodes that lit up and are of no other task, the newest first."""
        looked_at = SEEDS_MAX if self._task.id else count
        places = [one.address for one in lit if one.type == "episode"][:looked_at]
        records = consultation.records(places)
        nodes = [node_of(records[place]) for place in places]
        chosen = {one.id for one in choose(nodes, self._task.id, count)}
        found = [place for place in places if records[place].id in chosen]
        # Of one second, the line that was written last is the newest.
        found.sort(key=lambda place: (records[place].timestamp, place), reverse=True)
        return [records[place] for place in found]

    def _find_persona(self, consultation: Consultation, visible: Visible) -> GraphNode | None:
        """Return the active persona: of the caller, the environment or the settings."""
        name = (
            self._task.persona
            or os.environ.get(PERSONA_VARIABLE, "")
            or self._memory.settings["context.persona"]
        )
        found = self._named(consultation, visible, "persona", name)
        if name and found is None:
            said = f"there is no persona `{name}`"
            if self._task.persona:
                raise UsageError(said, "`commonplace list --kind persona` shows all")
            self.notes.append(f"{said}, so this context has none")
        return found

    def _named(
        self, consultation: Consultation, visible: Visible, type_name: str, name: str
    ) -> GraphNode | None:
        """Return the node of that type with that name."""
        ids = names_of(type_name, name)
        cards = visible.find(ids)
        for ident in ids:
            if ident in cards and card_type(cards[ident][1]) == type_name:
                address = cards[ident][0]
                return _node(consultation.records([address])[address])
        return None

    # --- Scores -----------------------------------------------------------------------------------

    def _without_other_tools(
        self,
        lit: Sequence[LitNode],
        visible: Visible,
        around: Neighbourhood,
        owners: Sequence[GraphNode],
        tags: Sequence[str],
    ) -> list[LitNode]:
        """Return *lit* without the tools that have nothing to do with the task."""
        linked = {link.to for one in owners for link in one.links}
        for ends in around.expand([one.id for one in owners]).values():
            linked.update(ident for ident, _weight in ends)
        least = self._memory.settings["context.similarity_min"]
        return [
            one
            for one in lit
            if one.type != "tool"
            or is_tool_listed(
                is_linked=one.id in linked,
                own_tags=visible.cards[one.id][1].tags,
                tags=tags,
                similarity=one.signals.similarity,
                similarity_min=least,
            )
        ]

    def _score(
        self,
        visible: Visible,
        search: Search,
        ids: Sequence[str],
        hops: Mapping[str, int],
        edges: Mapping[str, float],
        persona: GraphNode | None,
        tags: Sequence[str],
    ) -> list[LitNode]:
        """Return the nodes that lit up with their scores, the best first."""
        cards = visible.find(ids)
        likeness = search.matching.likenesses([address for address, _card in cards.values()])
        settings = self._memory.settings
        weights = Weights.from_settings(settings)
        least = settings["context.similarity_min"]
        half_life = float(settings["context.half_life_days"])
        now = micros(to_utc(self._memory.now()))
        uses = self._memory.engine().usage.counter()
        linked = persona_weights(persona)
        wanted = lowered(tags)
        of_persona = lowered(persona.tags if persona is not None else ())
        working_set = resonance.of_memory(self._memory)
        seeded = working_set.seeded(list(cards)) if self._state.has_seeded else {}
        shown_at = self._state.shown_at
        recencies: dict[int, float] = {}
        found: list[LitNode] = []
        for ident, (address, card) in cards.items():
            name = card_type(card)
            similarity = likeness[address]
            # What the working set alone has must be about the question as well.
            if name not in NODE_TYPES or (ident not in hops and similarity < least):
                continue
            use = seeded.get(ident, NO_USE)
            last = max(shown_at.get(ident, ""), use.last)
            days = (now - max(card.micros, micros(last) if last else 0)) // _MICROS_PER_DAY
            if days not in recencies:
                recencies[days] = recency(days, half_life)
            words = words_in(ident, card.tags)
            signals = Signals(
                similarity,
                edges.get(ident, 0.0),
                recencies[days],
                usage(uses(ident) + use.uses),
                affinity(words, wanted),
                max(linked.get(ident, 0.0), affinity(words, of_persona)) if linked else 0.0,
            )
            found.append(
                LitNode(ident, name, score(signals, weights), signals, hops.get(ident), address)
            )
        found.sort(key=lambda one: (-one.score, one.id))
        return found


def _of_each_type(types: Mapping[str, str], caps: Mapping[str, int], count: int) -> list[str]:
    """Return *count* of the ids in *types*, in their order; first as many of a type as are shown.

    So many nodes of one type that are all like the question leave room for the best of another.
    """
    seen = Counter[str]()
    first: list[str] = []
    rest: list[str] = []
    for ident, name in types.items():
        seen[name] += 1
        (first if seen[name] <= caps.get(name, 0) else rest).append(ident)
    chosen = set([*first, *rest][:count])
    return [ident for ident in types if ident in chosen]


def _tools_of(visible: Visible, persona: GraphNode | None) -> list[str]:
    """Return the tools that the persona links to: an agent has them, whatever it is asked."""
    cards = visible.find([link.to for link in persona.links] if persona is not None else [])
    return sorted(one for one, (_place, card) in cards.items() if card_type(card) == "tool")


def card_type(card: Card) -> str:
    """Return which of the nine types the record of *card* has; "" if it is no node."""
    if card.kind == NODE_KIND:
        return card.event_type if card.event_type in NODE_TYPES else "concept"
    return _TYPE_OF_KIND.get(card.kind, "")


def _node(record: Record, *, links: bool = True) -> GraphNode:
    """Return a record as a node; a skill that is a file with its description and its steps."""
    node = node_of(record, links=links)
    if record.kind != "skill":
        return node
    found = document(record)
    about, body = about_and_body(found.shown)
    return node._replace(
        label=found.title or record.id, payload={"description": about, "details": body}
    )


def _ids_in(tree: object) -> list[str]:
    """Return the keys of a dictionary of nodes that an agent saved, at any depth."""
    if not isinstance(tree, dict):
        return []
    found: list[str] = []
    for ident, entry in tree.items():
        found.append(str(ident))
        if isinstance(entry, dict):
            found += _ids_in(entry.get("children"))
    return found
