"""The MCP tools for what agents leave for each other, and for themselves: handoffs and ledgers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult
from pydantic import BaseModel, Field

from commonplace.foreign import block, flat, one_line, render_value
from commonplace.server.tools import COUNTS, errors_as_tool_results, tool, tool_result

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

    from commonplace.server.tools import OpenMemory

Texts = list[str] | None


class HandoffsModel(BaseModel):
    """The handoffs that the call was about."""

    handoffs: list[dict[str, Any]]


class LedgerModel(BaseModel):
    """The agent's ledger, what is uncommitted now, and what waits for the agent."""

    ledger: dict[str, Any] | None = None
    uncommitted_now: list[str] | None = None
    patterns: list[dict[str, str]]
    handoffs: list[dict[str, Any]]


def add(server: MCPServer[Any], open_memory: OpenMemory) -> None:
    """Add the tools for handoffs and ledgers."""

    @tool(server, COUNTS, "Hand work over")
    def handoff(  # noqa: PLR0913, PLR0917 (the schema of the tool)
        action: Literal["list", "create", "accept"] = "list",
        id: Annotated[str | None, Field(description="accept: which one.")] = None,  # noqa: A002
        to: Annotated[
            str | None, Field(description="create, list: an agent's name (list: yours), or any.")
        ] = None,
        done: Annotated[str | None, Field(description="create: what was done.")] = None,
        artifacts: Annotated[Texts, Field(description="Files that came out of it.")] = None,
        git_state: str | None = None,
        needs_testing: Texts = None,
        known_issues: Texts = None,
        patterns: Annotated[Texts, Field(description="Ids of memories that help.")] = None,
    ) -> Annotated[CallToolResult, HandoffsModel]:
        """List the open handoffs to you, leave work for another agent, or take a handoff over.

        Use `list` when you begin, `accept` when you take one over (it is closed then), `create`
        when another agent should go on with your work.
        """
        with errors_as_tool_results():
            if action == "list":
                memory = open_memory()
                found = memory.handoffs(to or memory.agent_id)
            elif action == "accept":
                if not id:
                    raise ToolError("`id` is needed: `list` shows the open handoffs")
                found = [dict(open_memory("write").accept_handoff(id).fields)]
            else:
                if not to or not done:
                    raise ToolError("`to` and `done` are needed to create a handoff")
                record = open_memory("write").create_handoff(
                    to,
                    done,
                    artifacts=artifacts or (),
                    git_state=git_state,
                    needs_testing=needs_testing or (),
                    known_issues=known_issues or (),
                    patterns=patterns or (),
                )
                found = [dict(record.fields)]
        model = HandoffsModel(handoffs=render_value(found, block))
        lines = [_line(one) for one in found]
        nobody = f"No open handoffs to {one_line(to) if to else 'you'}."
        return tool_result("\n".join(lines) or nobody, model)

    @tool(server, COUNTS, "Keep what you are doing")
    def checkpoint(
        goal: Annotated[str | None, Field(description="What you want to reach.")] = None,
        task: Annotated[str | None, Field(description="The id of the task.")] = None,
        done: Annotated[bool, Field(description="The task is completed.")] = False,  # noqa: FBT002
        tech_stack: Texts = None,
        patterns: Annotated[Texts, Field(description="Ids of what you learned.")] = None,
        resume: Annotated[  # noqa: FBT002 (named in the protocol)
            bool, Field(description="Write nothing; tell what you were doing.")
        ] = False,
    ) -> Annotated[CallToolResult, LedgerModel]:
        """Write down what you are doing, so that your next session can go on; or resume it.

        Use it before you stop or switch tasks. What git says is added; what is not given stays.
        """
        with errors_as_tool_results():
            if not resume:
                open_memory("write").checkpoint(
                    task=task,
                    goal=goal,
                    done=done,
                    tech_stack=tech_stack or (),
                    patterns=patterns or (),
                )
            found = open_memory().resume()
        fields = render_value(found.as_dict(), block)
        model = LedgerModel(**{name: fields[name] for name in LedgerModel.model_fields})
        return tool_result(found.text, model)


def _line(fields: dict[str, Any]) -> str:
    done = (fields.get("context") or {}).get("what_was_done", "")
    status = fields.get("status") or "open"
    by = f" by {fields['accepted_by']}" if fields.get("accepted_by") else ""
    who = f"{fields['from_agent']} → {fields['to_agent']}"
    return one_line(f"[{fields['id']}] {status}{by}, {who}: {flat(done)}")
