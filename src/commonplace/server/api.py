"""The JSON API: every tool is `POST /api/v1/<tool>`, with the tool's own schemas; some reads have an address too.

One registry serves both the protocol and the API, so that neither can do what the other cannot.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from pydantic import ValidationError
from pydantic_core import from_json
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import commonplace
from commonplace.errors import (
    CommonplaceError,
    DiskFull,
    HomeUnusable,
    IdAmbiguous,
    LogBusy,
    NoteChanged,
    NoteNotFound,
    RecordNotFound,
    ScopeMissing,
)
from commonplace.server.ask import ADDRESS, answer_for_command, settings_times
from commonplace.sessions import answer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from mcp.server.mcpserver import MCPServer
    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from commonplace.server.tools import Opened
    from commonplace.where.home import Home

BASE = "/api/v1"
HOOK_WAITS_S = 0.25  # As long as `hooks/__init__.py` does.
STATUS: dict[type[CommonplaceError], int] = {
    ScopeMissing: 403,
    RecordNotFound: 404,
    NoteNotFound: 404,
    IdAmbiguous: 409,
    NoteChanged: 409,
    HomeUnusable: 503,
    LogBusy: 503,
    DiskFull: 507,
}

REFUSED = {"$ref": "#/components/responses/error"}


def routes(
    server: MCPServer[Any], memory: Opened, homes: Sequence[Home], stop: Callable[[], None]
) -> list[Route]:
    """The routes of the API over *server*'s tools on *homes*; *stop* ends the process."""
    settings_read_at = settings_times(homes)

    async def call(request: Request) -> Response:
        result = await server.call_tool(request.path_params["tool"], await _body(request))
        return JSONResponse(result.model_dump(mode="json", by_alias=False)["structured_content"])

    async def record(request: Request) -> Response:
        return JSONResponse(
            await to_thread.run_sync(lambda: memory().describe(request.path_params["id"]))
        )

    async def stats(_request: Request) -> Response:
        return JSONResponse(await to_thread.run_sync(lambda: memory().stats()))

    async def context(_request: Request) -> Response:
        return JSONResponse({"text": await to_thread.run_sync(lambda: memory().read_at_start())})

    async def hook(request: Request) -> Response:
        here = memory(
            "admin"
        )  # For our own hooks, which know the key: the event says which folder is looked at.
        raw, query = await request.body(), request.query_params
        begin = time.monotonic()
        reply = await to_thread.run_sync(
            lambda: answer(
                here,
                query.get("agent", ""),
                raw,
                cwd=query.get("cwd", ""),
                environment=query.get("environment", "").split(","),
                is_awaited=lambda: time.monotonic() - begin < HOOK_WAITS_S,
            )
        )
        if not reply:
            return Response(status_code=204)
        return Response(reply, media_type="application/json")

    async def ask(request: Request) -> Response:
        here = memory("own")  # It names the agent that asks: only our own command may.
        given = await _body(request)
        found = await to_thread.run_sync(lambda: answer_for_command(here, given, settings_read_at))
        return JSONResponse(found) if found is not None else Response(status_code=409)

    async def described(_request: Request) -> Response:
        return JSONResponse(await openapi(server))

    async def stopped(_request: Request) -> Response:
        memory("admin")
        stop()
        return JSONResponse({"stopping": True})

    return [
        Route(f"{BASE}/openapi.json", _told(described), methods=["GET"]),
        Route(f"{BASE}/records/{{id:path}}", _told(record), methods=["GET"]),
        Route(f"{BASE}/stats", _told(stats), methods=["GET"]),
        Route(f"{BASE}/context", _told(context), methods=["GET"]),
        Route(f"{BASE}/stop", _told(stopped), methods=["POST"]),
        Route(f"{BASE}/hook", _told(hook), methods=["POST"]),
        Route(ADDRESS, _told(ask), methods=["POST"]),
        Route(f"{BASE}/{{tool}}", _told(call), methods=["POST"]),
    ]


async def openapi(server: MCPServer[Any]) -> dict[str, Any]:
    """The API, described: made from the tools, so it cannot say anything else than they do."""
    paths: dict[str, Any] = {}
    shared: dict[str, Any] = {}
    for tool in await server.list_tools():
        given, answer = (
            _with_shared(schema or {}, shared) for schema in (tool.input_schema, tool.output_schema)
        )
        paths[f"{BASE}/{tool.name}"] = {
            "post": {
                "operationId": tool.name,
                "summary": tool.title,
                "description": tool.description,
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": given}},
                },
                "responses": {
                    "200": _answer("The result.", answer),
                    "default": REFUSED,
                },
            }
        }
    for path, about in (
        ("records/{id}", "One record whole."),
        ("stats", "Counts."),
        ("context", "Your CONTEXT.md."),
    ):
        named = (
            [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}]
            if "{" in path
            else []
        )
        paths[f"{BASE}/{path}"] = {
            "get": {
                "operationId": f"get_{path.partition('/')[0]}",
                "summary": about,
                "parameters": named,
                "responses": {"200": _answer(about, {"type": "object"}), "default": REFUSED},
            }
        }
    paths[f"{BASE}/stop"] = {
        "post": {
            "operationId": "stop",
            "summary": "End the server; needs the scope admin.",
            "responses": {"200": _answer("It ends.", {"type": "object"}), "default": REFUSED},
        }
    }
    error = {
        "type": "object",
        "required": ["error"],
        "properties": {"error": {"type": "string"}, "hint": {"type": "string"}},
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Commonplace",
            "version": commonplace.__version__,
            "description": "Memory for coding agents. Every operation is a tool of the MCP server at /mcp as well.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "security": [{}, {"bearer": []}],
        "components": {
            "schemas": shared,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "responses": {"error": _answer("What is wrong, and what to do.", error)},
        },
    }


def _with_shared(schema: dict[str, Any], shared: dict[str, Any]) -> dict[str, Any]:
    """*schema*, its definitions moved to *shared*: a reference in it counts from the top of the whole description."""
    whole = json.loads(json.dumps(schema).replace('"#/$defs/', '"#/components/schemas/'))
    shared |= whole.pop("$defs", {})
    return dict(whole)


def _answer(about: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": about, "content": {"application/json": {"schema": schema}}}


async def _body(request: Request) -> dict[str, Any]:
    # A page elsewhere may send text without asking; to send JSON its browser would have to ask us first.
    if (
        request.headers.get("content-type", "").partition(";")[0].strip().lower()
        != "application/json"
    ):
        raise Unread(415, "the content-type must be application/json")
    try:
        # As the SDK reads: half a character (a lone surrogate) is no text, and could not be told back in an answer.
        given = from_json(await request.body() or b"{}", allow_inf_nan=False)
    except ValueError as error:
        raise Unread(400, f"the body is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise Unread(400, "the body must be a JSON object with the arguments")
    return given


class Unread(Exception):
    """A body that is not what the API takes."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


async def nowhere(scope: Scope, receive: Receive, send: Send) -> None:
    """The answer where there is no route."""
    answer = JSONResponse(
        {"error": "there is nothing at this address", "hint": f"see {BASE}/openapi.json"}, 404
    )
    await answer(scope, receive, send)


def _told(
    handle: Callable[[Request], Awaitable[Response]],
) -> Callable[[Request], Awaitable[Response]]:
    """*handle*, with what a caller can put right as an answer that says so."""

    async def told(request: Request) -> Response:
        try:
            return await handle(request)
        except (Unread, CommonplaceError, ToolError) as error:
            return failed(error)

    return told


def failed(error: Exception) -> Response:
    """What went wrong, as an answer: the mistake behind a tool's error decides, where there is one."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, Unread | CommonplaceError | ValidationError):
        cause = cause.__cause__
    hint = getattr(cause, "hint", "")
    if isinstance(cause, Unread):
        status, told = cause.status, str(cause)
    elif isinstance(cause, CommonplaceError):
        status, told = (
            next((code for kind, code in STATUS.items() if isinstance(cause, kind)), 400),
            str(cause),
        )
    elif isinstance(cause, ValidationError):
        wrong = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in cause.errors()]
        status, told = 422, "; ".join(wrong)
    elif str(error).startswith("Unknown tool"):
        status, told, hint = 404, "there is no such operation", f"see {BASE}/openapi.json"
    else:
        status, told = (500 if isinstance(error, UnexpectedToolError) else 400), str(error)
    return JSONResponse({"error": told, **({"hint": hint} if hint else {})}, status)
