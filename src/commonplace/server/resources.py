"""The MCP resources (a record, the agent's CONTEXT.md, counts) and two prompts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError

from commonplace.foreign import block, render, render_value
from commonplace.server.tools import errors_as_tool_results

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

    from commonplace.server.tools import OpenMemory


def register(server: MCPServer[Any], open_memory: OpenMemory, *, has_brief: bool) -> None:
    """Add the resources and prompts to *server*; *has_brief*: whether it offers `before_task`."""

    @server.resource("memory://records/{id}", mime_type="application/json", title="A memory")
    def record(id: str) -> str:  # noqa: A002 (its name in the URI)
        """One memory whole, as JSON."""
        with errors_as_tool_results(ResourceNotFoundError):
            return json.dumps(render_value(open_memory().describe(id), block), ensure_ascii=False)

    @server.resource("memory://context", mime_type="text/markdown", title="Your CONTEXT.md")
    def context() -> str:
        """Your own CONTEXT.md; empty if you have none."""
        with errors_as_tool_results(ResourceError):
            return render(open_memory().read_at_start())

    @server.resource("memory://stats", mime_type="application/json", title="Counts")
    def stats() -> str:
        """How many memories there are, by repository, kind and type."""
        with errors_as_tool_results(ResourceError):
            return json.dumps(render_value(open_memory().stats()), ensure_ascii=False)

    @server.prompt("recall-before-task", title="Recall before a task")
    def recall_before_task(task: str) -> str:
        """Start a task with what is already known about it."""
        if has_brief:
            return (
                f"Task: {task}\n\nBefore anything else call the tool `before_task` with this task "
                "as the goal and read what other agents learned. Say in one line what of it "
                "applies. Then do the task."
            )
        with errors_as_tool_results(ResourceError):
            known = open_memory().before_task(task).text
        return (
            f"Task: {task}\n\nWhat is known about it, from earlier sessions:\n\n{known}\n\nSay in "
            "one line what of it applies. Then do the task."
        )

    @server.prompt("write-lesson", title="Write down a lesson")
    def write_lesson(what_happened: str) -> str:
        """Turn what just happened into a lesson others can use."""
        return (
            f"What happened: {what_happened}\n\nIf this took more than one attempt or shows a "
            "convention, call the tool `remember` once: `lesson` says what to do, in one or two "
            "sentences that help somebody who was not there; `context` the symptom; `command` the "
            "command that worked; `type` what kind of lesson it is."
        )
