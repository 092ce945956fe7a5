"""The MCP tool that records an episode: what happened in a task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from mcp_types import CallToolResult
from pydantic import Field

from commonplace.server import models
from commonplace.server.tools import ADDS, errors_as_tool_results, tool, tool_result

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

    from commonplace.server.tools import OpenMemory


def add(server: MCPServer[Any], open_memory: OpenMemory) -> None:
    """Add `record_episode`."""

    @tool(server, ADDS, "Record a task")
    def record_episode(  # noqa: PLR0913, PLR0917 (the schema of the tool)
        task_id: Annotated[str, Field(description="The task; the same one when you try it again.")],
        context: Annotated[
            dict[str, Any],
            Field(description="goal (text), phase, constraints (list), files_involved (list)."),
        ],
        outcome: Annotated[str, Field(description="success, failure, partial or unknown.")],
        errors_encountered: Annotated[
            list[dict[str, Any]] | None,
            Field(description="Each with type, message and, if it was solved, resolution."),
        ] = None,
        action_log: Annotated[
            list[dict[str, Any]] | None,
            Field(description="Each with t (seconds), action, target, result (pass, fail), error."),
        ] = None,
        artifacts_produced: list[str] | None = None,
        duration_seconds: float | None = None,
        git_commit: str | None = None,
        timestamp: Annotated[str | None, Field(description="The start, as RFC 3339.")] = None,
        agent: str | None = None,
        id: Annotated[  # noqa: A002 (its name in the protocol)
            str | None, Field(description="To replace an episode that you recorded before.")
        ] = None,
    ) -> Annotated[CallToolResult, models.StoredModel]:
        """Record what happened in a task: its goal, what failed, what fixed it, how it ended.

        Use it once at the end of a task, if no hook records your sessions. An error with its
        resolution helps most: it is found when the error occurs again.
        """
        given = {
            "id": id,
            "task_id": task_id,
            "timestamp": timestamp,
            "duration_seconds": duration_seconds,
            "agent": agent,
            "context": context,
            "action_log": action_log,
            "outcome": outcome,
            "errors_encountered": errors_encountered,
            "artifacts_produced": artifacts_produced,
            "git_commit": git_commit,
        }
        with errors_as_tool_results():
            record = open_memory("write").record_episode(
                {name: value for name, value in given.items() if value is not None}
            )
        redacted = [f"{one.kind} in {one.field}" for one in record.redactions]
        note = f" (redacted: {', '.join(redacted)})" if redacted else ""
        return tool_result(
            f"Recorded as {record.id}{note}",
            models.StoredModel(id=record.id, repo=record.repo, redacted=redacted),
        )
