"""Seeds and what is linked to them, from the server and from the working set.

Probe: the nodes that are like the question, and those of the task's saved contexts. Bloom: along
the links of these nodes to their neighbours, which are looked up on the server if they are not in
the working set yet. None of the seven tools reads a node by its id. So a neighbour is searched by
its id, and only a node with exactly that id is taken.

Check: what the working set has and the server did not return for this context is searched by its id
as well. A node that the server no longer has, because somebody forgot or erased it, leaves the
working set; one that could not be asked for is not shown. The other nodes of the set are checked in
turn, a few with each context.

When the server does not answer, nothing more is asked of it for this context: the working set gives
the seeds, and the contexts of the task are those that were last read or saved.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.client import answers, seven
from commonplace.errors import NoAnswer, ToolRefused
from commonplace.foreign import one_line
from commonplace.graph.bloom import Bloomed, bloom
from commonplace.graph.frame_lines import time_of
from commonplace.graph.scoring import task_affinity
from commonplace.graph.task_episodes import EPISODES_MAX, is_of_task
from commonplace.records.nodes import names_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from commonplace.client.adapter import KomServerAdapter
    from commonplace.client.answers import Found, Saved
    from commonplace.client.likeness import Likeness
    from commonplace.client.options import Options
    from commonplace.client.task import Task
    from commonplace.client.task_frames import TaskFrames
    from commonplace.client.working_set import WorkingSet
    from commonplace.records.nodes import GraphNode

# So many ids are searched in one call.
IDS_PER_LOOKUP = 8
# A node that the server does not have is looked up again after this many ticks.
MISSING_TICKS = 20
MISSING_MAX = 10_000
TAGS_MAX = 4
# A child is as near as a link can be.
CHILD_WEIGHT = 1.0
# So many nodes of the working set are checked in one call, with at most so many calls.
IDS_PER_CHECK = 16
CHECKS_MAX = 8


class Gathered(NamedTuple):
    """What was found for a context. The nodes themselves are in the working set."""

    bloomed: Bloomed
    # The saved contexts of the task, the newest first.
    contexts: list[Saved]
    # The rules in force, if the server says which they are.
    rules: Sequence[GraphNode] = ()
    # The last episodes of the task that are known here, the newest first.
    episodes: Sequence[str] = ()


class Gatherer:
    """Gathers the nodes of one context after another."""

    def __init__(
        self, server: KomServerAdapter, options: Options, task_frames: TaskFrames, repo: str = ""
    ) -> None:
        self._server = server
        self._task_frames = task_frames
        self._repo = repo
        self._options = options
        # In which tick an id was looked up in vain.
        self._missing: dict[str, int] = {}
        self._lookups = 0
        self._checks = 0
        # The rules in force that the server said last: they apply whether or not it answers.
        self._rules: list[GraphNode] = []
        # Why the server is not asked any more.
        self.down = ""
        self.notes: list[str] = []

    def begin(self, down: str = "") -> None:
        """Begin the next context. *down* says why the server is known not to answer."""
        self.down, self.notes, self._lookups, self._checks = down, [], 0, 0

    async def gather(
        self, query: str, task: Task, hot: WorkingSet, now: str, likeness: Likeness, persona: str
    ) -> Gathered:
        """Return the seeds and what is linked to them; all nodes are put into *hot*."""
        matches, newest = await self._search(query, task, hot, now)
        contexts, recalled = await self._recall(task, hot, now)
        of_task = [one for one in recalled if hot.hot[one].node.type == "episode"]
        episodes = _newest_episodes(task.id, list(dict.fromkeys([*newest, *of_task])), hot)
        shown = [
            ident
            for saved in contexts
            for ident in (*saved.nodes, *answers.ids_in(_knowledge(saved)))
        ]
        episodic = list(dict.fromkeys([*recalled, *episodes, *shown]))[: self._options.seeds_max]
        await self._fetch_named("persona", persona, hot, now)
        await self._fetch_named("task", task.id, hot, now)
        await self._fetch(episodic, hot, now)
        semantic = await self._related(matches, hot, likeness)
        if len(semantic) < self._options.sparse_below:
            semantic += await self._defaults(task, hot, now, semantic)
        seeds = [ident for ident in dict.fromkeys([*semantic, *episodic]) if ident in hot]
        special = [*names_of("persona", persona), *names_of("task", task.id)]
        bloomed = await self._bloom(seeds, special, hot, now)
        return Gathered(bloomed, contexts, self._rules, episodes)

    async def _ask(self, question: Callable[[], Awaitable[Any]]) -> Any:  # noqa: ANN401 (JSON)
        """Return the answer to *question*; `None` if there is none."""
        if self.down:
            return None
        try:
            return await question()
        except NoAnswer as error:
            self.down = one_line(str(error))
        except ToolRefused as error:
            self.notes = [*dict.fromkeys([*self.notes, one_line(str(error))])]
        return None

    # --- Probe ------------------------------------------------------------------------------------

    async def _search(
        self, query: str, task: Task, hot: WorkingSet, now: str
    ) -> tuple[list[Found], list[str]]:
        """Return the nodes that match the question best, and the task's episodes, newest first."""
        k = self._options.seeds_max
        arguments: dict[str, Any] = {"query": query, "k": k}
        known = await self._ask(lambda: self._server.arguments_of(seven.SEARCH))
        if known and "hops" in known:
            # The server follows links itself: this saves most of the look-ups below.
            arguments["hops"] = self._options.hops_checked()
        if known and "constraints" in known:
            arguments["constraints"] = {"tags": [*task.tags], "repo": self._repo}
        if known and "task" in known:
            arguments["task"] = task.id
        answer = await self._ask(lambda: self._server.call(seven.SEARCH, arguments))
        if answer is not None:
            self._rules = answers.rules(answer)
        matches, episodes = answers.nodes(answer), answers.episodes(answer)
        for found in (*matches, *episodes):
            hot.add(found, now)
        matches = [found for found in matches if not found.hop][:k]
        return matches, [found.node.id for found in episodes]

    async def _recall(self, task: Task, hot: WorkingSet, now: str) -> tuple[list[Saved], list[str]]:
        """Return the saved contexts of the task and its session, and the ids of their episodes."""
        k = self._options.seeds_max
        answer = await self._ask(lambda: self._server.recall_context(task.id, k, repo=self._repo))
        more = None
        if task.session:
            session = task.session
            more = await self._ask(
                lambda: self._server.recall_context(session, k, "session", self._repo)
            )
        episodes = []
        for found in [*answers.nodes(answer), *answers.nodes(more)]:
            if not answers.is_context(found.raw):
                hot.add(found, now)
                episodes.append(found.node.id)
        if answer is None:
            return self._task_frames.of(task.id), episodes
        contexts = [*answers.contexts(answer), *answers.contexts(more)][:k]
        self._task_frames.replace(task.id, contexts)
        return contexts, episodes

    async def _related(
        self, matches: Sequence[Found], hot: WorkingSet, likeness: Likeness
    ) -> list[str]:
        """Return the ids of the *matches* that are like the question, then of the working set.

        A search returns its best nodes even if none is related to the question. What lit up before
        and is about the question stays, whether or not the server finds it.
        """
        near = await likeness.of(hot.hot)
        least = self._options.similarity_min
        ranked = sorted((-value, -hot.value(ident), ident) for ident, value in near.items())
        known = [ident for value, _hot, ident in ranked if -value >= least]
        # Two texts without a common word may still be alike: then the server knows better.
        found = [
            one.node.id
            for one in matches
            if near[one.node.id] >= least
            or (not likeness.is_by_vectors and (one.likeness is None or one.likeness >= least))
        ]
        return list(dict.fromkeys([*found, *known[: self._options.seeds_max]]))

    async def _defaults(
        self, task: Task, hot: WorkingSet, now: str, semantic: Sequence[str]
    ) -> list[str]:
        """Return more nodes of the task's domain: those seen before, else what the tags find."""
        if not task.tags:
            return []
        known = _with_tags(hot, task.tags)
        if len(known) < self._options.sparse_below:
            for tag in task.tags[:TAGS_MAX]:
                await self._look_up(tag, self._options.seeds_max, hot, now)
            known = _with_tags(hot, task.tags)
        added = [ident for ident in known if ident not in semantic][: self._options.seeds_max]
        if added:
            tags = ", ".join(one_line(tag) for tag in task.tags)
            self.notes.append(
                f"few nodes matched the question: nodes with the tags {tags} were added"
            )
        return added

    # --- Bloom ------------------------------------------------------------------------------------

    async def _bloom(
        self, seeds: Sequence[str], special: Sequence[str], hot: WorkingSet, now: str
    ) -> Bloomed:
        """Return what is linked to the *seeds* and is on the server; *special* is checked, too."""
        options = self._options
        for hop in range(1, options.hops_checked() + 1):
            reached = bloom(seeds, lambda ids: neighbours(ids, hot), hop, options.per_node_max)
            await self._fetch(reached.hops, hot, now)
        bloomed = self._bloom_here(seeds, hot)
        is_sure = await self._check([*special, *bloomed.hops], hot, now)

        def may_show(ident: str) -> bool:
            return ident in hot and (hot.was_returned(ident) or not is_sure)

        if not all(map(may_show, bloomed.hops)):
            # What only the others led to is not reached any more.
            bloomed = self._bloom_here([*filter(may_show, seeds)], hot)
        hops = {ident: hop for ident, hop in bloomed.hops.items() if may_show(ident)}
        return Bloomed(hops, bloomed.edges)

    def _bloom_here(self, seeds: Sequence[str], hot: WorkingSet) -> Bloomed:
        return bloom(
            seeds,
            lambda ids: neighbours(ids, hot, known_only=True),
            self._options.hops_checked(),
            self._options.per_node_max,
        )

    async def _fetch(self, ids: Iterable[str], hot: WorkingSet, now: str) -> None:
        """Put the nodes with these *ids* into the working set, as far as the server has them."""
        wanted = [ident for ident in ids if self._is_unknown(ident, hot)]
        for start in range(0, len(wanted), IDS_PER_LOOKUP):
            some = wanted[start : start + IDS_PER_LOOKUP]
            if len(some) > 1:
                await self._look_up(" ".join(some), self._options.seeds_max, hot, now)
            for ident in some:
                if ident in hot:
                    continue
                is_asked = await self._look_up(ident, IDS_PER_LOOKUP, hot, now)
                if is_asked and ident not in hot:
                    self._note_missing(ident, hot)

    async def _fetch_named(self, type_: str, name: str, hot: WorkingSet, now: str) -> None:
        """Put the persona or the task with that name into the working set, if the server has it."""
        for ident in names_of(type_, name):
            if hot.named(type_, name) is None:
                await self._fetch([ident], hot, now)

    def _is_unknown(self, ident: str, hot: WorkingSet) -> bool:
        asked = self._missing.get(ident)
        return ident not in hot and (asked is None or hot.tick - asked >= MISSING_TICKS)

    async def _look_up(self, text: str, k: int, hot: WorkingSet, now: str) -> bool:
        """Search *text*, put all nodes that are found into *hot*; return whether it was asked."""
        if self._lookups >= self._options.lookups_max:
            return False
        self._lookups += 1
        return await self._find(text, k, hot, now)

    async def _find(self, text: str, k: int, hot: WorkingSet, now: str) -> bool:
        answer = await self._ask(lambda: self._server.search_memory(text, k))
        for found in answers.nodes(answer):
            hot.add(found, now)
        return answer is not None

    async def _check(self, needed: Iterable[str], hot: WorkingSet, now: str) -> bool:
        """Drop what the server no longer has from *hot*: of *needed*, and of a few other nodes.

        Return whether the server answered: then only what it returned for this context is there.
        """
        unsure = [one for one in dict.fromkeys(needed) if one in hot and not hot.was_returned(one)]
        room = IDS_PER_CHECK - len(unsure) % IDS_PER_CHECK
        ids = [*unsure, *(one for one in hot.longest_unseen() if one not in unsure)]
        ids = ids[: len(unsure) + room]
        groups = [
            " ".join(ids[start : start + IDS_PER_CHECK])
            for start in range(0, len(ids), IDS_PER_CHECK)
        ]
        is_sure = False
        for text in dict.fromkeys([*groups, *ids]):
            if text in hot and hot.was_returned(text):
                continue
            if self._checks >= CHECKS_MAX:
                break
            self._checks += 1
            # A text that is too long for the server is refused, and the ids in it are asked alone.
            is_answered = await self._find(text, self._options.seeds_max, hot, now)
            is_sure = is_sure or is_answered
            if is_answered and text in hot and not hot.was_returned(text):
                hot.drop(text)
                self._note_missing(text, hot)
        return is_sure and not self.down

    def _note_missing(self, ident: str, hot: WorkingSet) -> None:
        if len(self._missing) >= MISSING_MAX:
            self._missing.clear()
        self._missing[ident] = hot.tick


def neighbours(
    ids: Iterable[str], hot: WorkingSet, *, known_only: bool = False
) -> dict[str, list[tuple[str, float]]]:
    """Return what each of *ids* is linked to, in both directions, with the weights.

    Backward only from nodes of the working set: a server is not asked who links to a node.
    """
    wanted = set(ids)
    found: dict[str, list[tuple[str, float]]] = {ident: [] for ident in wanted}
    for ident, one in hot.hot.items():
        links = [(link.to, link.w) for link in one.node.links]
        links += [(child, CHILD_WEIGHT) for child in one.node.children.values()]
        for to, weight in links:
            if ident in wanted and (to in hot or not known_only):
                found[ident].append((to, weight))
            if to in wanted:
                found[to].append((ident, weight))
    return found


def _newest_episodes(task_id: str, newest: Sequence[str], hot: WorkingSet) -> list[str]:
    """Return the last episodes of a task in the working set; the server says which are *newest*."""
    own = [
        ident
        for ident, one in sorted(hot.hot.items(), key=itemgetter(0), reverse=True)
        if one.node.type == "episode" and is_of_task(one.node, task_id) and ident not in newest
    ]
    # Of one second, what the server did not return may be newer than what it knows; what it
    # returned for the question alone is older.
    ordered = [
        *(ident for ident in own if not hot.was_returned(ident)),
        *newest,
        *(ident for ident in own if hot.was_returned(ident)),
    ]
    ordered.sort(key=lambda ident: time_of(hot.hot[ident].node), reverse=True)
    return ordered[:EPISODES_MAX]


def _with_tags(hot: WorkingSet, tags: Sequence[str]) -> list[str]:
    """Return the nodes that have some of *tags*, those with most of them first."""
    shares = {ident: task_affinity(one.node, tags) for ident, one in hot.hot.items()}
    ranked = sorted((-share, -hot.value(ident), ident) for ident, share in shares.items() if share)
    return [ident for *_rank, ident in ranked]


def _knowledge(saved: Saved) -> Mapping[str, Any] | str:
    found = saved.frames.get("knowledge", saved.frames.get("knowledgeHDoD", {}))
    return found if isinstance(found, dict | str) else {}
