"""The four ways in which agents talk to a model: what a request says, and how an answer is written.

Each is streamed as server-sent events, in the smallest form that the agents accept.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from tools.e2e.script import Item

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

JsonObject = dict[str, Any]


class Call(NamedTuple):
    """A call of an agent's shell tool."""

    tool: str
    arguments: JsonObject


class Reply(NamedTuple):
    """An answer to write: a call or text, and how many tokens the request is said to have had."""

    call: Call | None
    text: str
    tokens: int
    number: int  # Makes ids differ between answers.
    model: str


class Dialect(NamedTuple):
    """How a request is read and an answer is written."""

    name: str
    path: str  # The part of a request's path that shows the dialect.
    items: Callable[[JsonObject], list[Item]]
    tools: Callable[[JsonObject], list[str]]
    events: Callable[[Reply], list[tuple[str, JsonObject]]]
    done: str = ""  # The last line of a stream.
    named_events: bool = True

    def stream(self, reply: Reply) -> bytes:
        lines = []
        for name, data in self.events(reply):
            lines += [f"event: {name}"] if self.named_events else []
            lines += [f"data: {json.dumps(data)}", ""]
        lines += [f"data: {self.done}", ""] if self.done else []
        return ("\n".join(lines) + "\n").encode()


def of_path(path: str) -> Dialect | None:
    return next((one for one in DIALECTS if one.path in path.lower()), None)


def _texts(content: object) -> str:
    """Return the text of a message's content, which is a string or a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))


def _names(tools: Iterable[JsonObject]) -> list[str]:
    return [str(tool.get("name") or tool.get("function", {}).get("name", "")) for tool in tools]


# --- Anthropic Messages ---------------------------------------------------------------------------


def _anthropic_items(body: JsonObject) -> list[Item]:
    found = [Item("other", _texts(body.get("system")))]
    for message in body.get("messages", ()):
        content = message["content"]
        if message["role"] != "user" or isinstance(content, str):
            kind: Any = "user" if message["role"] == "user" else "other"
            found.append(Item(kind, _texts(content)))
            continue
        results = [part for part in content if part.get("type") == "tool_result"]
        text = _texts([part for part in content if part.get("type") == "text"])
        found += [Item("result", _texts(part.get("content"))) for part in results]
        # Beside a result, text is a reminder of the agent's.
        found += [Item("other" if results else "user", text)] if text else []
    return found


def _anthropic_events(reply: Reply) -> list[tuple[str, JsonObject]]:
    usage = {"input_tokens": reply.tokens, "output_tokens": 10}
    message: JsonObject = {
        "id": f"msg_{reply.number}", "type": "message", "role": "assistant", "content": [],
        "model": reply.model, "stop_reason": None, "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    block: JsonObject = {"type": "text", "text": ""}
    delta: JsonObject = {"type": "text_delta", "text": reply.text}
    if reply.call:
        block = {
            "type": "tool_use", "id": f"toolu_{reply.number}", "name": reply.call.tool, "input": {},
        }  # fmt: skip
        delta = {"type": "input_json_delta", "partial_json": json.dumps(reply.call.arguments)}
    reason = "tool_use" if reply.call else "end_turn"
    return [
        ("message_start", {"type": "message_start", "message": message}),
        (
            "content_block_start",
            {"type": "content_block_start", "index": 0, "content_block": block},
        ),
        ("content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}),
        ("content_block_stop", {"type": "content_block_stop", "index": 0}),
        (
            "message_delta",
            {
                "type": "message_delta",
                "delta": {"stop_reason": reason, "stop_sequence": None},
                "usage": usage,
            },
        ),
        ("message_stop", {"type": "message_stop"}),
    ]


# --- OpenAI Responses -----------------------------------------------------------------------------


def _responses_items(body: JsonObject) -> list[Item]:
    found = [Item("other", str(body.get("instructions", "")))]
    given = body.get("input", ())
    for item in [{"role": "user", "content": given}] if isinstance(given, str) else given:
        kind = item.get("type", "message")
        if kind.endswith("_output"):
            found.append(Item("result", _texts(item.get("output"))))
        elif kind == "message":
            role: Any = "user" if item.get("role") == "user" else "other"
            found.append(Item(role, _texts(item.get("content"))))
    return found


def _responses_events(reply: Reply) -> list[tuple[str, JsonObject]]:
    ident = f"resp_{reply.number}"
    item: JsonObject = {
        "type": "message", "id": f"msg_{reply.number}", "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": reply.text, "annotations": []}],
    }  # fmt: skip
    if reply.call:
        item = {
            "type": "function_call", "id": f"fc_{reply.number}", "call_id": f"call_{reply.number}",
            "name": reply.call.tool, "arguments": json.dumps(reply.call.arguments),
            "status": "completed",
        }  # fmt: skip
    usage = {
        "input_tokens": reply.tokens, "output_tokens": 10, "total_tokens": reply.tokens + 10,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }  # fmt: skip
    started = {"id": ident, "object": "response", "status": "in_progress", "output": []}
    completed = {**started, "status": "completed", "output": [item], "usage": usage}
    return [
        ("response.created", {"type": "response.created", "response": started}),
        (
            "response.output_item.added",
            {"type": "response.output_item.added", "output_index": 0, "item": item},
        ),
        (
            "response.output_item.done",
            {"type": "response.output_item.done", "output_index": 0, "item": item},
        ),
        ("response.completed", {"type": "response.completed", "response": completed}),
    ]


# --- OpenAI chat completions ----------------------------------------------------------------------


def _chat_items(body: JsonObject) -> list[Item]:
    kinds: dict[str, Any] = {"user": "user", "tool": "result"}
    return [
        Item(kinds.get(message["role"], "other"), _texts(message.get("content")))
        for message in body.get("messages", ())
    ]


def _chat_events(reply: Reply) -> list[tuple[str, JsonObject]]:
    delta: JsonObject = {"role": "assistant", "content": reply.text}
    if reply.call:
        function = {"name": reply.call.tool, "arguments": json.dumps(reply.call.arguments)}
        call = {"index": 0, "id": f"call_{reply.number}", "type": "function", "function": function}
        delta = {"role": "assistant", "content": None, "tool_calls": [call]}
    chunk = {
        "id": f"chat_{reply.number}", "object": "chat.completion.chunk", "created": 0,
        "model": reply.model,
    }  # fmt: skip
    reason = "tool_calls" if reply.call else "stop"
    usage = {
        "prompt_tokens": reply.tokens, "completion_tokens": 10, "total_tokens": reply.tokens + 10,
    }  # fmt: skip
    return [
        ("", {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}),
        ("", {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}),
        ("", {**chunk, "choices": [], "usage": usage}),
    ]


# --- Gemini ---------------------------------------------------------------------------------------


def _gemini_items(body: JsonObject) -> list[Item]:
    found = [Item("other", _texts(body.get("systemInstruction", {}).get("parts")))]
    for content in body.get("contents", ()):
        results = [part for part in content["parts"] if "functionResponse" in part]
        found += [Item("result", json.dumps(part["functionResponse"])) for part in results]
        text = _texts([part for part in content["parts"] if "text" in part])
        by_user = content.get("role") == "user" and not results
        found += [Item("user" if by_user else "other", text)] if text else []
    return found


def _gemini_tools(body: JsonObject) -> list[str]:
    groups = body.get("tools") or ()
    return [name for group in groups for name in _names(group.get("functionDeclarations", ()))]


def _gemini_events(reply: Reply) -> list[tuple[str, JsonObject]]:
    part: JsonObject = {"text": reply.text}
    if reply.call:
        part = {"functionCall": {"name": reply.call.tool, "args": reply.call.arguments}}
    candidate = {
        "content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0,
    }  # fmt: skip
    usage = {
        "promptTokenCount": reply.tokens, "candidatesTokenCount": 10,
        "totalTokenCount": reply.tokens + 10,
    }  # fmt: skip
    return [("", {"candidates": [candidate], "usageMetadata": usage, "modelVersion": reply.model})]


DIALECTS = (
    Dialect(
        "anthropic",
        "/v1/messages",
        _anthropic_items,
        lambda body: _names(body.get("tools") or ()),
        _anthropic_events,
    ),
    Dialect(
        "responses",
        "/responses",
        _responses_items,
        lambda body: _names(body.get("tools") or ()),
        _responses_events,
    ),
    Dialect(
        "chat",
        "/chat/completions",
        _chat_items,
        lambda body: _names(body.get("tools") or ()),
        _chat_events,
        done="[DONE]",
        named_events=False,
    ),
    Dialect(
        "gemini", "generatecontent", _gemini_items, _gemini_tools, _gemini_events,
        named_events=False,
    ),
)  # fmt: skip
