"""What is wrong with the arguments of a tool is said in a sentence of ours, over MCP and HTTP."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from mcp.server.mcpserver.exceptions import ToolError

from commonplace.cli import main
from commonplace.errors import UsageError
from commonplace.server.api import error_response
from commonplace.server.build import build_server
from commonplace.server.toolsets import TOOLSETS
from conftest import SLOW_LAW

if TYPE_CHECKING:
    from commonplace.memory import Memory

TOOLS = [
    *("recall", "remember", "feedback", "show", "forget"),
    *(f"memory_{what}" for what in ("read", "write", "replace", "insert", "list")),
]
WORDS_OF_PYDANTIC = ("pydantic", "validation error", "Field required", "Input should", "type=")


def call(memory: Memory, tool: str, **arguments: Any) -> str:
    server = build_server(lambda *_scope: memory, list(TOOLSETS))
    result = asyncio.run(server.call_tool(tool, arguments))
    return str(result.content[0].text)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("tool", "arguments", "error"),
    [
        ("recall", {}, "`text` is missing. The arguments are `text`, `repo`"),
        ("recall", {"text": 3}, "`text` must be text, not a number"),
        ("recall", {"text": "x", "limit": 99}, "`limit` is `99`, not between 1 and 50"),
        ("recall", {"text": "x", "limit": "many"}, "`limit` must be a whole number, not text"),
        ("recall", {"text": "x", "kinds": "lesson"}, "`kinds` must be a list, not text"),
        ("recall", {"text": "x", "kinds": ["a", 1]}, "`kinds[1]` must be text, not a number"),
        ("remember", {"lesson": "x", "type": "?"}, "`type` is `?`, not one of error, success"),
        ("feedback", {"id": "x", "outcome": "so"}, "`outcome` is `so`, not one of worked"),
        ("memory_insert", {"path": "a", "line": -1, "text": "x"}, "`line` is `-1`, under 0"),
        ("recall", {"text": "x", "tagz": ["a"]}, "no argument `tagz`; did you mean `tags`?"),
        ("feedback", {"id": "x", "outcome": "worked", "why": 1}, "there is no argument `why`"),
    ],
)
def test_a_wrong_argument_is_explained(
    memory: Memory, tool: str, arguments: dict[str, Any], error: str
) -> None:
    with pytest.raises(ToolError) as raised:
        call(memory, tool, **arguments)

    assert error in str(raised.value)
    response = error_response(raised.value)
    assert response.status_code == 422
    assert error in json.loads(bytes(response.body))["error"]


JSON = st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text() | st.integers())
NAMES = [
    "text",
    "query",
    "id",
    "outcome",
    "lesson",
    "type",
    "path",
    "line",
    "limit",
    "kinds",
    "tags",
]


@SLOW_LAW
@given(st.sampled_from(TOOLS), st.dictionaries(st.sampled_from(NAMES), JSON, max_size=3))
def test_no_arguments_get_a_sentence_of_pydantic(
    memory: Memory, tool: str, arguments: dict[str, Any]
) -> None:
    # What the caller gave is repeated, and may hold anything.
    assume(not any(word in json.dumps(arguments) for word in WORDS_OF_PYDANTIC))
    said = ""
    try:
        call(memory, tool, **arguments)
    except ToolError as error:
        said = str(error)
    assert not any(word in said for word in WORDS_OF_PYDANTIC)


def test_names_of_the_command_line_and_of_the_records_work(memory: Memory) -> None:
    call(memory, "remember", text="pin the kettle", event_type="error", tag="tea")
    call(memory, "remember", lesson="fill the kettle")

    found = call(memory, "recall", query="kettle", tag="tea", kind="lesson", tokens=300)

    assert "pin the kettle" in found
    assert "fill the kettle" not in found


def test_an_error_is_our_sentence_alone(memory: Memory) -> None:
    with pytest.raises(ToolError) as raised:
        call(memory, "show", id="nobody")

    assert not str(raised.value).startswith("Error executing")


def test_a_lesson_is_enough_to_remember(memory: Memory) -> None:
    call(memory, "remember", lesson="use npm ci in CI")

    (record,) = memory.records()
    assert record.fields["event_type"] == "learned"


def test_a_question_has_two_names_everywhere(memory: Memory) -> None:
    memory.log(event_type="error", lesson="use npm ci in CI")

    by_text = call(memory, "recall", text="npm ci")
    assert "use npm ci" in by_text
    assert call(memory, "recall", query="npm ci") == by_text
    assert call(memory, "recall", query="npm ci", text=None) == by_text
    assert memory.recall(query="npm ci").text == memory.recall(text="npm ci").text == by_text
    with pytest.raises(UsageError, match="two names"):
        memory.recall("npm", text="ci")


def test_a_question_and_a_lesson_need_no_quotes_and_no_flags(
    capsys: pytest.CaptureFixture[str], memory: Memory
) -> None:
    assert main(["log", "run", "npm ci", "--tags", "ci", "in", "CI"]) == 0
    (record,) = memory.records()
    assert record.fields["lesson"] == "run npm ci in CI"
    assert record.fields["event_type"] == "learned"
    capsys.readouterr()

    assert main(["recall", "npm", "ci", "--limit", "3"]) == 0
    plain = capsys.readouterr().out
    assert "run npm ci in CI" in plain
    assert main(["recall", "npm ci", "--limit", "3"]) == 0
    assert capsys.readouterr().out == plain
    assert main(["search", "npm", "ci", "--limit", "3"]) == 0
    assert capsys.readouterr().out == plain
    assert main(["log", "one", "--lesson", "two"]) == 2
    assert "given twice" in capsys.readouterr().err
    assert main(["log"]) == 2
    assert "a lesson is needed" in capsys.readouterr().err
