"""`Memory`, the library's interface: every surface (commands, server, hooks) goes through it."""

# Every command and hook imports this module and its imports. So modules that only some calls need
# are imported where they are used.
# ruff: noqa: PLC0415

from __future__ import annotations

from commonplace.recaller import Recaller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path
    from typing import Any, Unpack

    from commonplace.graph.building import BuiltContext
    from commonplace.graph.contexts import SavedContext
    from commonplace.graph.dangling import DanglingLink
    from commonplace.graph.drawing import Drawing
    from commonplace.graph.search import ScoredNode
    from commonplace.graph.tasks import Task, TaskOptions
    from commonplace.graph.tree import Tree
    from commonplace.graph.upsert import UpsertResult
    from commonplace.inbox import Candidate, Proposal
    from commonplace.learn.batches import Batch
    from commonplace.learn.brief import Brief
    from commonplace.learn.consolidation import Report
    from commonplace.learn.continuity import Updated
    from commonplace.learn.drafts import Draft, Note, Started
    from commonplace.learn.ledgers import Resume
    from commonplace.learn.links import SeenLink
    from commonplace.log.check import Finding
    from commonplace.records import Record
    from commonplace.records.nodes import GraphNode
    from commonplace.skills.export import Exported
    from commonplace.skills.store import Skill
    from commonplace.snapshots.restoring import Restored
    from commonplace.snapshots.states import Difference
    from commonplace.snapshots.store import Made, Snapshot


class Memory(Recaller):
    """The memory that applies in a folder: its own home, if there is one, and the user's.

    `Writer`, `RecordChanger` and `Recaller` write, change and recall; here is what it learns.
    """

    def before_task(
        self,
        goal: str,
        task_id: str | None = None,
        action: str | None = None,
        files: Iterable[str] | None = None,
        tokens: int = 1500,
    ) -> Brief:
        """Return what is known before a task: patterns, mistakes to avoid, skills and more.

        *action* is the type of the next action (`write_file`) or a command (`npm install`): the
        anti-patterns about it come first. *files* are those that will be worked on. The text has
        at most *tokens*; nothing of a home that is not trusted is in it.
        """
        from commonplace.learn.brief import before_task

        made = before_task(self, goal, task_id, action, files, tokens)
        if found := made.hits():
            self.note_injection("brief", made.tokens, [hit.id for hit in found], task_id or "")
        return made

    def update_continuity(self, goal: str = "", path: Path | None = None) -> Updated:
        """Write what is known about *goal* into our section of `CONTINUITY.md`, or of *path*.

        Without a goal it is the one noted there. The rest of the file stays as it is.
        """
        from commonplace.learn import continuity

        return continuity.update(self, goal, path)

    def show_continuity(self, path: Path | None = None) -> Updated:
        """Return our section of `CONTINUITY.md`, or of *path*, as it is."""
        from commonplace.learn import continuity

        return continuity.show(self, path)

    def continuity_goal(self, path: Path | None = None) -> str:
        """Return the goal that our section was written for; "" if there is none."""
        from commonplace.learn import continuity

        return continuity.noted_goal(self, path)

    # --- Episodes ---------------------------------------------------------------------------------

    def record_episode(
        self,
        episode: Mapping[str, Any] | None = None,
        /,
        **fields: Any,  # noqa: ANN401 (any JSON)
    ) -> Record:
        """Write the trace of one task, as an object or as keywords; `task_id` is required.

        All fields are kept; `agent` becomes `agent_id`. Nodes that it names by id or label are
        linked. Raises `RecordInvalid`.
        """
        from commonplace.graph.observations import with_links
        from commonplace.learn.episodes import check_episode, record_episode

        checked = check_episode({**(episode or {}), **fields})
        return record_episode(self, with_links(self, checked))

    def start_episode(
        self,
        goal: str,
        *,
        phase: str = "",
        task_id: str = "",
        constraints: Sequence[str] = (),
        files: Sequence[str] = (),
        ident: str = "",
    ) -> Started:
        """Begin an episode, which `note_episode` adds to and `end_episode` writes.

        An agent has one open in each repository, and any number that are named by *ident*.
        """
        from commonplace.learn import drafts

        return drafts.start(
            self,
            goal,
            phase=phase,
            task_id=task_id,
            constraints=constraints,
            files=files,
            ident=ident,
        )

    def note_episode(self, note: Note, ident: str = "") -> Draft:
        """Add an action, an error, a file or a text to the open episode."""
        from commonplace.learn import drafts

        return drafts.note(self, note, ident)

    def end_episode(self, outcome: str, *, git_commit: str = "", ident: str = "") -> Record:
        """End the open episode, write it, and link it with what it involved."""
        from commonplace.graph import observations
        from commonplace.learn import drafts

        episode = drafts.end(self, outcome, git_commit=git_commit, ident=ident)
        observations.link(self, [episode])
        return episode

    def open_episodes(self) -> list[Draft]:
        """Return the episodes that were started and not ended, the latest first."""
        from commonplace.learn import drafts

        return drafts.open_drafts(self)

    def learnings(
        self, day: str | None = None, *, repo: str | None = None, all_repos: bool = False
    ) -> list[dict[str, Any]]:
        """Return the errors of episodes with what solved them, by day, the newest first.

        Of this repository, of *repo*, or of all; from homes that the user trusts.
        """
        from commonplace.learn.learnings import learnings

        return learnings(self, day, repo=repo, all_repos=all_repos)

    def metrics(
        self, days: int = 7, *, repo: str | None = None, all_repos: bool = False
    ) -> dict[str, Any]:
        """Return time, attempts, retries, outcomes and feedback of the last *days*."""
        from commonplace.learn.metrics import metrics

        return metrics(self, days, repo=repo, all_repos=all_repos)

    # --- Consolidation ----------------------------------------------------------------------------

    def worth(self, days: int = 7) -> dict[str, Any]:
        """Return how many tokens agents were given in the last *days*, and what came of it."""
        from commonplace.graph.worth import worth

        return worth(self, days)

    def consolidate(
        self,
        since: str | None = None,
        *,
        dry_run: bool = False,
        is_over: Callable[[], bool] = lambda: False,
    ) -> Report:
        """Make patterns of what new episodes and lessons have in common.

        *since* is a date or an age; without it, age does not matter, but at the first time nothing
        is older than a day. Nothing is written with *dry_run*, or when *is_over* is true before it
        has begun. The batch can be undone.
        """
        from commonplace.learn.consolidation import consolidate

        return consolidate(self, since, dry_run=dry_run, is_over=is_over)

    def propose_pattern(self, sources: Sequence[str], **fields: Any) -> Record:  # noqa: ANN401
        """Write a pattern in an agent's own words, if it passes the gate of consolidation.

        *fields* are those of a pattern. It elaborates what consolidation made of the same sources.
        """
        from commonplace.learn.worded import propose

        return propose(self, fields, sources)

    def batches(self) -> list[Batch]:
        """Return every batch of automatic changes, the newest first."""
        from commonplace.learn.batches import list_batches

        return list_batches(self)

    def undo(self, batch: str) -> Batch:
        """Undo a batch of automatic changes, given by its name or the start of it."""
        from commonplace.learn.batches import undo

        return undo(self, batch)

    # --- Links ------------------------------------------------------------------------------------

    def links(self, ident: str, depth: int = 1) -> list[SeenLink]:
        """Return the links of a record as it sees them, and those up to *depth* steps away."""
        from commonplace.learn.links import links

        return links(self, ident, depth)

    def unlink(self, ident: str, rel: str, to: str) -> list[str]:
        """Remove a link, named from either end; return the ids of what stated it."""
        from commonplace.learn.links import unlink

        return unlink(self, ident, rel, to)

    def resolve(self, ident: str, other: str, keep: str) -> dict[str, Any]:
        """End a contradiction of two records: *keep* is the id of one of them, or `both`."""
        from commonplace.learn.links import resolve

        return resolve(self, ident, other, keep)

    # --- Contexts ---------------------------------------------------------------------------------

    def build_context(
        self,
        query: str,
        task: Task | Mapping[str, Any] | str | None = None,
        budget_tokens: int = 2000,
        hops: int = 2,
        *,
        save: bool = True,
        **more: Unpack[TaskOptions],
    ) -> BuiltContext:
        """Return the frames of a context for *query*, in at most *budget_tokens*.

        *task* is its id, or an object with `id`, `tags`, `persona`, `files` and `session`, which
        may be given as keywords as well. With an id the context is saved. Unless *save* is true,
        nothing is saved, lit or counted: the same call gives the same frames again.
        """
        from commonplace.graph.building import build_context
        from commonplace.graph.tasks import Task

        return build_context(self, query, Task.given(task, **more), budget_tokens, hops, save=save)

    def save_context(
        self,
        task_id: str,
        frames: Sequence[Mapping[str, Any]] | Mapping[str, Any],
        *,
        session: str = "",
        repo: str = "",
    ) -> SavedContext:
        """Add a version of the context of a task; the same frames twice are one version.

        *frames* are blocks with `kind`, `format` and `data`, or an object with the keys of frames.
        """
        from commonplace.graph.client_builds import note_build
        from commonplace.graph.contexts import save_context

        saved = save_context(self, task_id, frames, session=session, repo=repo)
        note_build(self, saved)
        return saved

    def recall_context(
        self, scope: str = "task", ident: str = "", k: int = 32, repo: str = ""
    ) -> list[SavedContext]:
        """Return the last *k* saved contexts of a task, session, repo or agent, newest first."""
        from commonplace.graph.contexts import recall_context

        return recall_context(self, scope, ident, k, repo)

    # --- Nodes ------------------------------------------------------------------------------------

    def upsert_nodes(
        self, nodes: Sequence[Mapping[str, Any]], *, merge: bool = False, repo: str = ""
    ) -> UpsertResult:
        """Write nodes: `id`, `type`, `label`, `payload`, `links`, `children`, `tags`, `meta`.

        With *merge*, what a node has and *nodes* do not give stays; otherwise it is replaced.
        *repo* is the repository of new nodes that name none; this one by default. All are checked
        before the first is written. Raises `RecordInvalid`.
        """
        from commonplace.graph.upsert import upsert

        return upsert(self, nodes, merge=merge, repo=repo)

    def node(self, ident: str) -> GraphNode:
        """Return the record whose id starts with *ident* as a node of the graph."""
        from commonplace.graph.fetch import node

        return node(self, ident)

    def node_tree(self, path: str = "") -> Tree:
        """Return the nodes at *path* and below as a tree by the parts of their ids."""
        from commonplace.graph.tree import tree

        return tree(self, path)

    def search_nodes(
        self,
        query: str,
        k: int = 32,
        types: Sequence[str] = (),
        hops: int = 0,
        tags: Sequence[str] = (),
        *,
        per_type: bool = False,
    ) -> list[ScoredNode]:
        """Return the *k* nodes that match best, and those up to *hops* links away from them.

        *types* and *tags* narrow it; with *per_type*, it is *k* of each type.
        """
        from commonplace.graph.search import search

        return search(self, query, k, types, hops, tags, per_type=per_type)

    def rules_in_force(
        self, query: str, tags: Sequence[str] = (), repo: str = ""
    ) -> list[GraphNode]:
        """Return the rules about style, versions and tests that apply to all work in *repo*.

        Those with *tags* first, then those most like *query*; without *repo*, of this repository.
        """
        from commonplace.graph.constraints import rule_nodes

        return rule_nodes(self, query, tags, repo)

    def episodes_of_task(self, task_id: str) -> list[GraphNode]:
        """Return the last episodes of a task as nodes, the newest first."""
        from commonplace.graph.task_episodes import newest_nodes

        return newest_nodes(self, task_id)

    def draw_graph(self, ident: str = "", depth: int = 1) -> Drawing:
        """Return the nodes and links up to *depth* links around a node; without one, all."""
        from commonplace.graph.drawing import draw

        return draw(self, ident, depth)

    def dangling_links(self) -> list[DanglingLink]:
        """Return the links and children in the nearest home that lead to no record."""
        from commonplace.graph.dangling import dangling

        return dangling(self)

    # --- The inbox --------------------------------------------------------------------------------

    def propose(self, proposal: Proposal) -> Candidate:
        """Put *proposal* into the inbox of the nearest home that the user trusts.

        There it waits for somebody to decide.
        """
        from commonplace import inbox

        return inbox.propose(self.homes[self.trusted_home()], proposal)

    def candidates(self, kind: str = "") -> list[Candidate]:
        """Return what waits in the inboxes of trusted homes, the most promising first."""
        from commonplace import inbox

        return inbox.waiting(self, kind)

    def accept(self, *ids: str) -> list[dict[str, Any]]:
        """Do what these candidates propose, and return the fields of what was written.

        A record is written to the home whose inbox held its candidate. Nothing is accepted if one
        of the ids is unknown.
        """
        from commonplace import inbox

        return list(inbox.accept(self, ids))

    def drop(self, *ids: str) -> list[Candidate]:
        """Remove these candidates from the inbox; the same is not proposed again."""
        from commonplace import inbox

        return inbox.drop(self, ids)

    def check(self) -> list[Finding]:
        """Return the findings of `doctor` about the nearest home."""
        from commonplace import inbox
        from commonplace.learn import drafts
        from commonplace.snapshots import store

        return [
            *super().check(),
            *inbox.damaged(self.home),
            *drafts.damaged(self.home),
            *store.findings(self.home),
        ]

    # --- Skills -----------------------------------------------------------------------------------

    def skills(self, words: str = "", *, untrusted: bool = False) -> list[Skill]:
        """Return the skills of all homes by name; with *words*, those about them, best first.

        Those of homes that the user does not trust are left out unless *untrusted* is set.
        """
        from commonplace import skills

        found = skills.of_homes(self, untrusted=untrusted)
        if not words:
            return found
        return [skill for skill, _score in skills.find(found, words, len(found))]

    def skill(self, name: str) -> Skill:
        """Return the skill called *name*; `trusted` says whether its home is."""
        from commonplace import skills

        return skills.read(self, name)

    def create_skill(self, name: str, text: str, *, overwrite: bool = False) -> Path:
        """Write a skill into the nearest trusted home, and return its file."""
        from commonplace import skills

        return skills.create(self.homes[self.trusted_home()], name, text, overwrite=overwrite)

    def export_skills(
        self, folder: Path, names: Sequence[str] = (), *, force: bool = False
    ) -> list[Exported]:
        """Write skills, all or those of *names*, into *folder* as valid ones."""
        from commonplace.skills.export import choose, export
        from commonplace.where.homes import check_outside

        check_outside(folder.expanduser(), self.homes)
        return export(choose(self, names), folder, force=force)

    # --- Snapshots --------------------------------------------------------------------------------

    def create_snapshot(self, name: str = "") -> Made:
        """Keep what the logs of the nearest trusted home hold now; the same twice is one."""
        from commonplace.records import to_utc
        from commonplace.snapshots import store

        home, is_durable = self.homes[self.trusted_home()], self.settings["fsync"] != "never"
        return store.create(home, to_utc(self.now()), name, durable=is_durable)

    def snapshots(self) -> list[Snapshot]:
        """Return the snapshots of the nearest trusted home, the newest first."""
        from commonplace.snapshots import store

        return store.listed(self.homes[self.trusted_home()])

    def unreadable_snapshots(self) -> list[Path]:
        """Return the files of snapshots in the nearest trusted home that cannot be read."""
        from commonplace.snapshots import store

        return [one.path for one in store.findings(self.homes[self.trusted_home()])]

    def describe_snapshot(self, ident: str) -> tuple[Snapshot, dict[str, int]]:
        """Return a snapshot, and how many records of each kind were current in it."""
        from commonplace.snapshots import states

        return states.describe(self.homes[self.trusted_home()], ident)

    def snapshot_difference(self, one: str, other: str = "") -> Difference:
        """Return what differs from the snapshot *one* in *other*, or now."""
        from commonplace.snapshots import states

        return states.difference(self.homes[self.trusted_home()], one, other)

    def restore_snapshot(self, ident: str, *, dry_run: bool = False) -> Restored:
        """Append what the snapshot held and is no longer current. Nothing is deleted.

        The state before is kept as a snapshot of its own, if anything is written.
        """
        from commonplace.snapshots import restoring, store

        number = self.trusted_home()
        snapshot = store.find(self.homes[number], ident)
        name = f"before restoring {snapshot.id}"
        return restoring.restore(
            self,
            number,
            snapshot.id,
            lambda: self.create_snapshot(name).snapshot.id,
            dry_run=dry_run,
        )

    # --- Handoffs and ledgers ---------------------------------------------------------------------

    def create_handoff(
        self,
        to_agent: str,
        done: str,
        *,
        from_agent: str | None = None,
        artifacts: Sequence[str] = (),
        git_state: str | None = None,
        needs_testing: Sequence[str] = (),
        known_issues: Sequence[str] = (),
        patterns: Sequence[str] = (),
    ) -> Record:
        """Leave what was done for *to_agent*, or for `any`; *patterns* are ids of records.

        Without *git_state*, git says which commit it is and how many files differ from it.
        """
        from commonplace.learn import handoffs

        return handoffs.create(
            self,
            from_agent=from_agent or self.agent_id,
            to_agent=to_agent,
            done=done,
            artifacts=artifacts,
            git_state=git_state,
            needs_testing=needs_testing,
            known_issues=known_issues,
            patterns=patterns,
        )

    def handoffs(
        self, to: str = "", *, closed: bool = False, all_repos: bool = False
    ) -> list[dict[str, Any]]:
        """Return the open handoffs of this repository, newest first, each with its `status`.

        *to* keeps those for that agent or for anybody; *closed* adds the others.
        """
        from commonplace.learn import handoffs

        return handoffs.listed(self, to, closed=closed, all_repos=all_repos)

    def accept_handoff(self, ident: str, agent: str | None = None) -> Record:
        """Close the handoff: the agent takes it over. Raises `HandoffClosed` if it is not open."""
        from commonplace.learn import handoffs

        return handoffs.accept(self, ident, agent or self.agent_id)

    def checkpoint(
        self,
        agent: str | None = None,
        *,
        task: str | None = None,
        goal: str | None = None,
        done: bool = False,
        tech_stack: Sequence[str] = (),
        patterns: Sequence[str] = (),
    ) -> Record:
        """Write down in the agent's ledger what it is doing, and what is uncommitted.

        What is not given stays as it was; *done* completes the task.
        """
        from commonplace.learn import ledgers

        return ledgers.checkpoint(
            self,
            agent or self.agent_id,
            task=task,
            goal=goal,
            done=done,
            tech_stack=tech_stack,
            patterns=patterns,
        )

    def ledger(self, agent: str | None = None) -> dict[str, Any]:
        """Return the agent's ledger in this repository. Raises `RecordNotFound`."""
        from commonplace.learn import ledgers

        return ledgers.as_dict(ledgers.show(self, agent or self.agent_id))

    def ledgers(self, agent: str | None = None, *, all_repos: bool = False) -> list[dict[str, Any]]:
        """Return the ledgers of all agents, or of one, the newest first."""
        from commonplace.learn import ledgers

        return [ledgers.as_dict(one) for one in ledgers.listed(self, agent, all_repos=all_repos)]

    def resume(self, agent: str | None = None) -> Resume:
        """Return what the agent was doing, what is uncommitted now, and what waits for it."""
        from commonplace.learn import ledgers

        return ledgers.resume(self, agent or self.agent_id)
