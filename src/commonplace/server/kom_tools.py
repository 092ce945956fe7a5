"""The toolset `kom`: the memory as a graph of nodes, the contexts of tasks, snapshots and packs.

Its seven tools have dotted names as well, which other clients know them by. Both can be called.

Nodes and contexts are data for a program, which may change them and write them back: they are
returned exactly as they are stored. The text of the same result is for a model, and is rendered.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult
from pydantic import BaseModel, ConfigDict, Field

from commonplace.foreign import one_line
from commonplace.graph.node_text import text_of_contexts, text_of_nodes
from commonplace.packs.importing import QUARANTINED
from commonplace.packs.transfer import export_encrypted as export_pack
from commonplace.packs.transfer import import_encrypted as import_pack
from commonplace.server import telemetry
from commonplace.server.tools import ADDS, CHANGES, READS, errors_as_tool_results, tool, tool_result
from commonplace.where.head import git_head

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

    from commonplace.memory import Memory
    from commonplace.server.tools import OpenMemory

K_MAX = 1000
HOPS_MAX = 3
NODES_MAX = 10_000

Frames: TypeAlias = list[dict[str, Any]] | dict[str, Any]


class Filters(BaseModel):
    """What narrows a search."""

    model_config = ConfigDict(extra="forbid")

    types: list[str] | None = None
    tags: list[str] | None = None
    per_type: bool = False


class RulesWanted(BaseModel):
    """Which rules in force are wanted: those with the task's tags first."""

    model_config = ConfigDict(extra="forbid")

    tags: list[str] = []
    repo: str = ""


class NodesModel(BaseModel):
    """Nodes that were found, best first: each with its `score`, `hop` and `likeness`.

    `constraints` are the rules in force, and `episodes` the task's, the newest first, if they were
    asked for.
    """

    nodes: list[dict[str, Any]]
    constraints: list[dict[str, Any]] = []
    episodes: list[dict[str, Any]] = []


class UpsertedModel(BaseModel):
    """The ids of the nodes that were given, by what was done with them."""

    ids: list[str]
    created: list[str]
    merged: list[str]
    replaced: list[str]
    unchanged: list[str]
    recomputed_embeddings: list[str]
    seeded: list[str]
    redacted: list[dict[str, str]]
    notes: list[str] = []


class ContextsModel(BaseModel):
    """Saved contexts, the newest first: each with its `frames`."""

    contexts: list[dict[str, Any]]


class SavedModel(BaseModel):
    """The version of a task's context that was saved."""

    id: str
    task_id: str
    version: int
    timestamp: str
    is_new: bool


class ProjectModel(BaseModel):
    """The project, what the memory holds, and the snapshot of it, if one was asked for."""

    project: dict[str, str]
    records: int
    kinds: dict[str, int]
    snapshot: dict[str, Any] | None = None


class PackModel(BaseModel):
    """A pack that was written."""

    path: str
    pack: dict[str, Any]
    bytes: int
    encrypted_for: str
    left_out: dict[str, int]
    redacted: int
    paths_replaced: int


class ImportedModel(BaseModel):
    """What became of the records of a pack."""

    path: str
    pack: dict[str, Any]
    added: int
    unchanged: int
    kept: int
    forgotten: int
    skipped: int
    redacted: int
    place: str
    changed: int
    removed: int
    flagged: int
    signer: str


def add(server: MCPServer[Any], open_memory: OpenMemory) -> None:
    """Add the seven tools."""
    _add_nodes(server, open_memory)
    _add_contexts(server, open_memory)
    _add_backups(server, open_memory)


def _add_nodes(server: MCPServer[Any], open_memory: OpenMemory) -> None:
    @tool(server, READS, "Search nodes", "kom.memory.v1.search_memory")
    def search_memory(
        query: str,
        k: Annotated[
            int,
            Field(ge=1, le=K_MAX, description="Maximum number of nodes, and of those at each hop."),
        ] = 32,
        filters: Annotated[
            Filters | None,
            Field(description="Only these types or tags; `per_type`: the best k of each type."),
        ] = None,
        hops: Annotated[
            int, Field(ge=0, le=HOPS_MAX, description="Also nodes up to so many links away.")
        ] = 0,
        constraints: Annotated[
            RulesWanted | None,
            Field(description="Also the rules in force about style, versions, tests; {} for all."),
        ] = None,
        task: Annotated[str, Field(description="Also the last episodes of this task.")] = "",
    ) -> Annotated[CallToolResult, NodesModel]:
        """Search the memory as a graph of nodes, each with its payload, links, children and score.

        Types: concept, skill, fact, snippet, pattern, episode, tool, persona, task.
        """
        chosen = filters or Filters()
        with errors_as_tool_results(), telemetry.memory_span(telemetry.SEARCH) as span:
            found = open_memory().search_nodes(
                query,
                k,
                chosen.types or (),
                hops,
                chosen.tags or (),
                per_type=chosen.per_type,
            )
            rules = (
                open_memory().rules_in_force(query, constraints.tags, constraints.repo)
                if constraints is not None
                else []
            )
            episodes = open_memory().episodes_of_task(task) if task else []
            telemetry.count(span, len(found))
        model = NodesModel(
            nodes=[one.as_dict() for one in found],
            constraints=[one.as_dict() for one in rules],
            episodes=[one.as_dict() for one in episodes],
        )
        text = text_of_nodes(found, rules, episodes) or "No nodes found."
        return tool_result(text, model, is_exact=True)

    @tool(server, CHANGES, "Write nodes", "kom.memory.v1.upsert_memory")
    def upsert_memory(
        nodes: Annotated[
            list[dict[str, Any]],
            Field(
                max_length=NODES_MAX,
                description="Each with `id` (a path such as skill.cpp.raii), `type`, `label`, and "
                "`payload`, `links` [{to, rel, w}], `children` {name: id}, `tags`, `meta`.",
            ),
        ],
        merge: Annotated[  # noqa: FBT002 (named in the protocol)
            bool, Field(description="Keep what a node has and is not given; else replace it.")
        ] = False,
        repo: Annotated[
            str | None, Field(description="Of new nodes that name none; this one by default.")
        ] = None,
    ) -> Annotated[CallToolResult, UpsertedModel]:
        """Write new or changed concepts, skills, snippets and other nodes.

        All are checked before the first is written; secrets are redacted. The same twice is once.
        """
        with errors_as_tool_results(), telemetry.memory_span(telemetry.UPSERT) as span:
            done = open_memory("write").upsert_nodes(nodes, merge=merge, repo=repo or "")
            telemetry.count(span, len(done.ids))
        parts = ("created", "merged", "replaced", "unchanged")
        counts = ", ".join(f"{len(getattr(done, part))} {part}" for part in parts)
        redacted = f"; redacted: {len(done.redacted)}" if done.redacted else ""
        return tool_result(
            f"{len(done.ids)} nodes: {counts}{redacted}",
            UpsertedModel(**done.as_dict()),
            is_exact=True,
        )


def _add_contexts(server: MCPServer[Any], open_memory: OpenMemory) -> None:
    @tool(server, READS, "Recall saved contexts", "kom.memory.v1.recall_context")
    def recall_context(
        scope: Literal["task", "session", "repo", "agent"] = "task",
        id: Annotated[  # noqa: A002 (its name in the protocol)
            str, Field(description="Of the task or session; repo and agent: default this one.")
        ] = "",
        k: Annotated[int, Field(ge=1, le=K_MAX, description="Maximum number.")] = 32,
        repo: Annotated[str | None, Field(description="Only of this repository.")] = None,
    ) -> Annotated[CallToolResult, ContextsModel]:
        """Return the last contexts that were saved for a task, session, repository or agent."""
        with errors_as_tool_results():
            found = open_memory().recall_context(scope, id, k, repo or "")
        model = ContextsModel(contexts=[{**one.as_dict(), "nodes": one.nodes} for one in found])
        return tool_result(text_of_contexts(found) or "No saved contexts.", model, is_exact=True)

    @tool(server, ADDS, "Save a context", "kom.memory.v1.save_context")
    def save_context(
        task_id: str,
        frames: Annotated[
            Frames,
            Field(description="Blocks {kind, format, data}, e.g. kind episodic, format markdown."),
        ],
        session: Annotated[str, Field(description="The id of your session.")] = "",
        repo: Annotated[str | None, Field(description="The task's; this one by default.")] = None,
    ) -> Annotated[CallToolResult, SavedModel]:
        """Save what you know and did for a task, as frames: a new version of its context."""
        with errors_as_tool_results():
            saved = open_memory("write").save_context(
                task_id, frames, session=session, repo=repo or ""
            )
        what = "Saved" if saved.is_new else "Unchanged"
        model = SavedModel(**{name: getattr(saved, name) for name in SavedModel.model_fields})
        text = f"{what}: {one_line(saved.task_id)}, version {saved.version} ({saved.id})"
        return tool_result(text, model, is_exact=True)


def _add_backups(server: MCPServer[Any], open_memory: OpenMemory) -> None:
    @tool(server, ADDS, "Snapshot the project", "kom.meta.v1.project_snapshot")
    def project_snapshot(
        include_memory: Annotated[  # noqa: FBT002 (named in the protocol)
            bool, Field(description="Keep what the memory holds now as a snapshot.")
        ] = True,
        name: Annotated[str, Field(description="A name to find the snapshot by.")] = "",
        repo: Annotated[str | None, Field(description="The project; this one by default.")] = None,
    ) -> Annotated[CallToolResult, ProjectModel]:
        """Return the state of the project, and keep an immutable snapshot of its memory.

        The user can compare and restore snapshots: `commonplace snapshot`.
        """
        with errors_as_tool_results():
            memory = open_memory("write" if include_memory else "read")
            model = _project(memory, repo)
            made = memory.create_snapshot(name) if include_memory else None
        if made is not None:
            model.snapshot = {**made.snapshot._asdict(), "is_new": made.is_new}
        kept = f"snapshot {made.snapshot.id}" if made else "no snapshot"
        commit = model.project["commit"][:12] or "no commit"
        return tool_result(
            f"{model.project['repo']} at {commit}, {model.records} records, {kept}", model
        )

    @tool(server, CHANGES, "Export an encrypted pack", "kom.local.v1.backup.export_encrypted")
    def export_encrypted(
        out: Annotated[str, Field(description="A file such as packs/cpp-core.kpack.")],
        selection: Annotated[
            str,
            Field(
                description="domain:, type:, kind:, tag:, repo:, since: joined by spaces; * all."
            ),
        ] = "*",
    ) -> Annotated[CallToolResult, PackModel]:
        """Write chosen memories to an encrypted file, a pack, in a folder that the user allowed.

        The key is the user's, in their settings or environment.
        """
        with errors_as_tool_results():
            done = export_pack(open_memory("admin"), selection, out)
        count = done.manifest["counts"]["records"]
        changes = {
            **{f"left out ({reason})": number for reason, number in done.left_out.items()},
            "secrets removed": done.redacted,
            "paths replaced": done.paths_replaced,
        }
        return tool_result(
            f"Wrote {count} records to {done.path}, encrypted for {done.encrypted_for}"
            + "".join(f"; {what}: {number}" for what, number in changes.items() if number),
            PackModel(
                path=done.path,
                pack=done.manifest,
                bytes=done.bytes,
                encrypted_for=done.encrypted_for,
                left_out=done.left_out,
                redacted=done.redacted,
                paths_replaced=done.paths_replaced,
            ),
        )

    @tool(server, ADDS, "Import an encrypted pack", "kom.local.v1.backup.import_encrypted")
    def import_encrypted(
        path: Annotated[str, Field(description="A file such as packs/cpp-core.kpack.")] = "",
        pack: Annotated[str, Field(description="Another name of `path`.")] = "",
    ) -> Annotated[CallToolResult, ImportedModel]:
        """Import a pack: all of its memories, or none. Your own win; twice is once.

        By a signer whom the user does not trust, it goes to quarantine, and nothing is recalled.
        """
        if bool(path) == bool(pack):
            raise ToolError("`path` is needed, or `pack`, which is another name of it")
        with errors_as_tool_results():
            done = import_pack(open_memory("admin"), path or pack)
        fields = {**done._asdict(), "pack": done.manifest}
        model = ImportedModel(**{name: fields[name] for name in ImportedModel.model_fields})
        counts = f"{done.added} added, {done.unchanged} unchanged, {done.kept} of your own kept"
        name = one_line(done.manifest["name"])
        if done.place == QUARANTINED:
            text = f"In quarantine until the user trusts its signer: {name}, {counts}"
        else:
            text = f"Imported {name}: {counts}"
        if done.flagged:
            text += f"; {done.flagged} with text that reads like instructions to a model"
        if done.signer:
            text += f"; signed by {done.signer}"
        return tool_result(text, model)


def _project(memory: Memory, repo: str | None) -> ProjectModel:
    here = memory.repository
    # Of another repository we know what was remembered, not where it is.
    logs = memory.scope().named(repo) if repo else []
    is_here = not repo or here.name in logs
    commit, branch = git_head(str(here.root)) if is_here and here.root is not None else ("", "")
    stats = memory.stats(logs or None)
    project = {"repo": here.name if is_here else logs[0], "commit": commit, "branch": branch}
    kinds = Counter[str]({name: count for name, count in stats["kinds"].items() if count})
    return ProjectModel(project=project, records=kinds.total(), kinds=dict(sorted(kinds.items())))
