"""A model server on loopback: answers the agents' requests from a script and keeps them."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from tools.e2e import dialects, script
from tools.e2e.dialects import Call, Reply

if TYPE_CHECKING:
    from collections.abc import Callable

TOKENS = 1000  # Of an ordinary request, as far as the agent is told.
FULL = 900_000  # Above the limit of every model here.
MODEL = "scripted"


class Request(NamedTuple):
    """A request as it came, and what was answered."""

    method: str
    path: str
    dialect: str
    body: dict[str, Any]
    answer: script.Answer | None

    def text(self) -> str:
        return json.dumps(self.body, ensure_ascii=False)


class Model:
    """The server. *shell* turns a command into a call of the agent's own shell tool."""

    def __init__(
        self, acts: tuple[script.Act, ...], shell: Callable[[str, list[str]], Call]
    ) -> None:
        self.acts = acts
        self.shell = shell
        # Once: the next answer tells the agent that its context is full, so that it compacts it.
        self.full = False
        self.requests: list[Request] = []
        self._lock = threading.Lock()
        model = self

        class Handler(_Handler):
            owner = model

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def respond(self, method: str, path: str, body: dict[str, Any]) -> tuple[str, bytes]:
        """Return the type and the bytes of the answer."""
        dialect = dialects.of_path(path)
        if method != "POST" or dialect is None or "count_tokens" in path:
            self._keep(Request(method, path, "", body, None))
            if "ountTokens" in path or "count_tokens" in path:
                return _json({"totalTokens": TOKENS, "input_tokens": TOKENS})
            return _json({"data": [{"id": MODEL, "object": "model"}], "object": "list"})
        items, tools = dialect.items(body), dialect.tools(body)
        answer = script.answer(self.acts, items, with_tools=bool(tools))
        number = self._keep(Request(method, path, dialect.name, body, answer))
        call = self.shell(answer.command, tools) if answer.command else None
        model = str(body.get("model", MODEL))
        reply = Reply(call, answer.text, self._tokens(call), number, model)
        if body.get("stream") is False or (dialect.name == "gemini" and "stream" not in path):
            return _json(_whole(dialect, reply))
        return "text/event-stream", dialect.stream(reply)

    def _tokens(self, call: Call | None) -> int:
        with self._lock:
            is_full, self.full = self.full and call is not None, self.full and call is None
        return FULL if is_full else TOKENS

    def _keep(self, request: Request) -> int:
        with self._lock:
            self.requests.append(request)
            return len(self.requests)


def _json(value: object) -> tuple[str, bytes]:
    return "application/json", json.dumps(value).encode()


def _whole(dialect: dialects.Dialect, reply: Reply) -> object:
    """Return an answer that is not streamed, for the dialects whose agents ask for one."""
    events = dialect.events(reply)
    if dialect.name == "responses":
        return events[-1][1]["response"]
    if dialect.name == "anthropic":
        content: dict[str, Any] = {"type": "text", "text": reply.text}
        return {**events[0][1]["message"], "content": [content], "stop_reason": "end_turn"}
    if dialect.name == "chat":
        message = events[0][1]["choices"][0]["delta"]
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return {**events[-1][1], "object": "chat.completion", "choices": [choice]}
    return events[0][1]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: Model

    def do_GET(self) -> None:
        self._respond()

    do_POST = do_HEAD = do_GET  # noqa: N815

    def _respond(self) -> None:
        with suppress(OSError):  # The agent has closed the connection.
            raw = self._body()
            try:
                body = json.loads(raw or b"{}")
            except ValueError:
                body = {}
            kind, data = self.owner.respond(self.command, self.path, body)
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        whole = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            whole += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return whole

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass
