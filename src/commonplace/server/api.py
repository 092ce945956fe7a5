"""The JSON API: every tool is `POST /api/v1/<tool>`, with the tool's own schemas.

Some reads also have a GET route. MCP and the API share one registry of tools, so that both offer
the same ones.
"""

from __future__ import annotations

import json
import logging
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
    RepoAmbiguous,
    RepoUnknown,
    ScopeMissing,
)
from commonplace.served import ASK_PATH
from commonplace.server.arguments import ArgumentUnknown
from commonplace.server.ask import answer_for_command, settings_times
from commonplace.sessions import answer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from commonplace.server.build import Server
    from commonplace.server.tools import OpenMemory
    from commonplace.where.home import Home

LOG = logging.getLogger(__name__)
BASE = "/api/v1"
INTERNAL_ERROR = 500
HOOK_WAIT_S = 0.25  # The same as in `hooks/__init__.py`.
STATUS: dict[type[CommonplaceError], int] = {
    ScopeMissing: 403,
    RecordNotFound: 404,
    NoteNotFound: 404,
    RepoUnknown: 404,
    IdAmbiguous: 409,
    RepoAmbiguous: 409,
    NoteChanged: 409,
    HomeUnusable: 503,
    LogBusy: 503,
    DiskFull: 507,
}

ERROR_RESPONSE = {"$ref": "#/components/responses/error"}


def routes(
    server: Server, open_memory: OpenMemory, homes: Sequence[Home], stop: Callable[[], None]
) -> list[Route]:
    """Return the routes of the API over *server*'s tools on *homes*; *stop* ends the process."""
    settings_read_at = settings_times(homes)

    async def call(request: Request) -> Response:
        name, arguments = request.path_params["tool"], await _body(request)
        _check_tool(server, name)
        result = await server.call_tool(name, arguments)
        return JSONResponse(result.model_dump(mode="json", by_alias=False)["structured_content"])

    async def record(request: Request) -> Response:
        return JSONResponse(
            await to_thread.run_sync(lambda: open_memory().describe(request.path_params["id"]))
        )

    async def stats(_request: Request) -> Response:
        return JSONResponse(await to_thread.run_sync(lambda: open_memory().stats()))

    async def context(_request: Request) -> Response:
        return JSONResponse(
            {"text": await to_thread.run_sync(lambda: open_memory().read_at_start())}
        )

    async def hook(request: Request) -> Response:
        # Only our own hooks, which know the key, may name the folder that is read.
        here = open_memory("admin")
        _require_json(request)
        raw, query = await request.body(), request.query_params
        begin = time.monotonic()
        reply = await to_thread.run_sync(
            lambda: answer(
                here,
                query.get("agent", ""),
                raw,
                cwd=query.get("cwd", ""),
                environment=query.get("environment", "").split(","),
                is_awaited=lambda: time.monotonic() - begin < HOOK_WAIT_S,
            )
        )
        if not reply:
            return Response(status_code=204)
        return Response(reply, media_type="application/json")

    async def ask(request: Request) -> Response:
        here = open_memory("own")  # Only our own command may name the agent.
        given = await _body(request)
        found = await to_thread.run_sync(lambda: answer_for_command(here, given, settings_read_at))
        return JSONResponse(found) if found is not None else Response(status_code=409)

    async def describe_api(_request: Request) -> Response:
        return JSONResponse(await openapi(server))

    async def stop_server(request: Request) -> Response:
        open_memory("admin")
        _require_json(request)
        stop()
        return JSONResponse({"stopping": True})

    return [
        Route(f"{BASE}/openapi.json", _errors_as_responses(describe_api), methods=["GET"]),
        Route(f"{BASE}/records/{{id:path}}", _errors_as_responses(record), methods=["GET"]),
        Route(f"{BASE}/stats", _errors_as_responses(stats), methods=["GET"]),
        Route(f"{BASE}/context", _errors_as_responses(context), methods=["GET"]),
        Route(f"{BASE}/stop", _errors_as_responses(stop_server), methods=["POST"]),
        Route(f"{BASE}/hook", _errors_as_responses(hook), methods=["POST"]),
        Route(ASK_PATH, _errors_as_responses(ask), methods=["POST"]),
        Route(f"{BASE}/{{tool}}", _errors_as_responses(call), methods=["POST"]),
    ]


async def openapi(server: Server) -> dict[str, Any]:
    """Return the OpenAPI description, made from the schemas of the tools."""
    paths: dict[str, Any] = {}
    shared: dict[str, Any] = {}
    for tool in await server.list_tools():
        given, answer = (
            _move_definitions(schema or {}, shared)
            for schema in (tool.input_schema, tool.output_schema)
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
                    "default": ERROR_RESPONSE,
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
                "responses": {"200": _answer(about, {"type": "object"}), "default": ERROR_RESPONSE},
            }
        }
    paths[f"{BASE}/stop"] = {
        "post": {
            "operationId": "stop",
            "summary": "End the server; needs the scope admin.",
            "responses": {
                "200": _answer("It ends.", {"type": "object"}),
                "default": ERROR_RESPONSE,
            },
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
            "description": "Memory for coding agents. "
            "Every operation is a tool of the MCP server at /mcp as well.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "security": [{"bearer": []}],
        "components": {
            "schemas": shared,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "responses": {"error": _answer("What is wrong, and what to do.", error)},
        },
    }


def _move_definitions(schema: dict[str, Any], shared: dict[str, Any]) -> dict[str, Any]:
    """Return *schema* with its definitions moved to *shared*, where OpenAPI references look."""
    whole = json.loads(json.dumps(schema).replace('"#/$defs/', '"#/components/schemas/'))
    shared |= whole.pop("$defs", {})
    return dict(whole)


def _answer(about: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": about, "content": {"application/json": {"schema": schema}}}


def _check_tool(server: Server, name: str) -> None:
    if server.find_tool(name) is None:
        raise RequestError(404, "there is no such operation", f"see {BASE}/openapi.json")


def _require_json(request: Request) -> None:
    # A web page of another origin may send plain text without a preflight request, but not JSON.
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RequestError(415, "the content-type must be application/json")


async def _body(request: Request) -> dict[str, Any]:
    _require_json(request)
    try:
        # Parsed as by the SDK, which rejects lone surrogates: they cannot be encoded in an answer.
        given = from_json(await request.body() or b"{}", allow_inf_nan=False)
    except ValueError as error:
        raise RequestError(400, f"the body is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise RequestError(400, "the body must be a JSON object with the arguments")
    return given


class RequestError(Exception):
    """A request that the API rejects, with the status of the answer."""

    def __init__(self, status: int, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.hint = hint


async def not_found(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer requests for which there is no route."""
    answer = JSONResponse(
        {"error": "there is nothing at this address", "hint": f"see {BASE}/openapi.json"}, 404
    )
    await answer(scope, receive, send)


def _errors_as_responses(
    handle: Callable[[Request], Awaitable[Response]],
) -> Callable[[Request], Awaitable[Response]]:
    """Return *handle*, with errors that the caller can correct turned into responses."""

    async def handle_errors(request: Request) -> Response:
        try:
            return await handle(request)
        except (RequestError, CommonplaceError, ToolError) as error:
            response = error_response(error)
            if response.status_code == INTERNAL_ERROR:
                tool = request.path_params.get("tool")
                LOG.exception("Tool %r raised an unexpected exception", tool)  # As the SDK does.
            return response

    return handle_errors


def error_response(error: Exception) -> Response:
    """Return *error* as a response; the cause of a tool's error decides the status."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(
        cause, RequestError | CommonplaceError | ValidationError | ArgumentUnknown
    ):
        cause = cause.__cause__
    hint = getattr(cause, "hint", "")
    if isinstance(cause, RequestError):
        status, message = cause.status, str(cause)
    elif isinstance(cause, CommonplaceError):
        status, message = (
            next((code for kind, code in STATUS.items() if isinstance(cause, kind)), 400),
            str(cause),
        )
    elif isinstance(cause, ValidationError | ArgumentUnknown):
        status, message = 422, str(error)  # `build.Server` has put it into our words.
    else:
        status, message = (
            INTERNAL_ERROR if isinstance(error, UnexpectedToolError) else 400,
            str(error),
        )
    return JSONResponse({"error": message, **({"hint": hint} if hint else {})}, status)
