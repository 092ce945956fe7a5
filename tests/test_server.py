"""The MCP server, driven by the official client in both eras, in memory and over stdio."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

from commonplace.errors import UsageError
from commonplace.memory import Memory
from commonplace.server.build import build_server, choose_toolsets
from commonplace.server.toolsets import TOOLSETS
from commonplace.settings import SETTINGS
from conftest import ROOT
from test_episodes import SEED

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

ERAS = ["auto", "legacy"]


def ask(server: Any, talk: Callable[[Client], Awaitable[Any]], mode: str = "auto") -> Any:
    async def session() -> Any:
        async with Client(server, mode=mode) as client:
            return await talk(client)

    return asyncio.run(session())


def stdio(home: Path, agent: str = "default") -> StdioServerParameters:
    environment = {**os.environ, "COMMONPLACE_HOME": str(home), "COMMONPLACE_AGENT": agent}
    return StdioServerParameters(
        command=sys.executable, args=["-m", "commonplace", "mcp"], env=environment
    )


def text_of(result: Any) -> str:
    return "\n".join(block.text for block in result.content)


def server_of(memory: Memory) -> Any:
    return build_server(lambda _scope="read": memory, choose_toolsets(None, memory))


@pytest.fixture
def memory(own_home: Path) -> Iterator[Memory]:
    with Memory.open(own_home, settings={"embedder.kind": "none"}) as opened:
        yield opened


@pytest.fixture
def server(memory: Memory) -> Any:
    return server_of(memory)


@pytest.mark.parametrize("mode", ERAS)
def test_every_tool_has_a_sentence_annotations_a_schema_and_a_place_in_the_docs(
    server: Any, mode: str
) -> None:
    docs = (ROOT / "docs" / "MCP.md").read_text("utf-8")

    tools = ask(server, lambda client: client.list_tools(), mode).tools

    assert len(tools) == 10
    for tool in tools:
        hints = tool.annotations
        given = (
            hints.read_only_hint,
            hints.destructive_hint,
            hints.idempotent_hint,
            hints.open_world_hint,
        )
        assert None not in given, tool.name
        assert 40 < len(tool.description) <= 2048
        assert "  " not in tool.description, "indentation is paid for by every agent"
        assert tool.output_schema
        assert tool.name.replace("_", "").isalnum()
        assert f"`{tool.name}(" in docs
    assert [tool.name for tool in tools] == [
        tool.name for tool in ask(server, lambda c: c.list_tools(), mode).tools
    ]


@pytest.mark.parametrize("mode", ERAS)
def test_one_agent_remembers_over_one_server_and_another_recalls_over_another(
    own_home: Path, mode: str
) -> None:
    lesson = {
        "lesson": "run the migrations before the seed script",
        "type": "error",
        "repo": "shop",
    }

    stored = ask(stdio(own_home, "a"), lambda client: client.call_tool("remember", lesson), mode)
    found = ask(
        stdio(own_home, "b"),
        lambda client: client.call_tool("recall", {"text": "seed script fails"}),
        mode,
    )

    assert not stored.is_error
    assert "migrations" in text_of(found)
    assert text_of(found).startswith("**Relevant Memories (1):**")
    assert found.structured_content["hits"][0]["id"] == stored.structured_content["id"]
    assert found.structured_content["tokens"] < 500


def test_remember_remarks_on_a_plain_word_after_password(server: Any) -> None:
    lesson = {"lesson": "log in with password: horse", "type": "error"}

    said = ask(server, lambda client: client.call_tool("remember", lesson))

    assert "is followed by a plain word" in text_of(said)


def test_feedback_show_and_forget_close_the_circle(server: Any) -> None:
    async def talk(client: Client) -> list[Any]:
        said = await client.call_tool(
            "remember",
            {"lesson": "clear the kettle cache", "type": "error", "success_rate": "9/10"},
        )
        ident = said.structured_content["id"]
        return [
            await client.call_tool("feedback", {"id": ident, "outcome": "worked"}),
            await client.call_tool("show", {"id": ident[:12]}),
            await client.call_tool("forget", {"id": ident, "reason": "wrong"}),
            await client.call_tool("recall", {"text": "kettle cache"}),
        ]

    noted, shown, forgotten, recalled = ask(server, talk)

    assert noted.structured_content["success_rate"] == "10/11"
    assert shown.structured_content["record"]["lesson"] == "clear the kettle cache"
    assert not forgotten.is_error
    assert text_of(recalled) == "No relevant memories."


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("recall", {}, "text"),
        ("recall", {"text": 7}, "text"),
        ("recall", {"text": " "}, "the question is empty"),
        ("remember", {"lesson": "", "type": "error"}, "empty"),
        ("remember", {"lesson": "x", "type": "??"}, "type"),
        ("remember", {"lesson": "x", "type": "error", "success_rate": "2/1"}, "success_rate"),
        ("show", {"id": "none"}, "no record"),
        ("feedback", {"id": "none", "outcome": "worked"}, "no record"),
        ("memory_read", {"path": "../x"}, "may not be used"),
        ("memory_read", {"path": "x.md"}, "no note"),
        ("memory_read", {"path": "x.md", "view_range": [1]}, "two numbers"),
        ("memory_write", {"path": "x.md", "content": "a", "if_sha256": "0"}, "changed"),
    ],
)
def test_a_mistake_is_an_error_the_model_can_act_on(
    server: Any, tool: str, arguments: dict[str, Any], said: str
) -> None:
    async def talk(client: Client) -> Any:
        wrong = await client.call_tool(tool, arguments)
        after = await client.call_tool("recall", {"text": "still alive?"})
        return wrong, after

    wrong, after = ask(server, talk)

    assert wrong.is_error
    assert said in text_of(wrong)
    assert "Traceback" not in text_of(wrong)
    assert not after.is_error


def test_an_episode_is_recorded_over_mcp_with_every_field(memory: Memory) -> None:
    server = build_server(lambda _scope="read": memory, choose_toolsets("episodes", memory))

    async def talk(client: Client) -> Any:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        done = await client.call_tool("record_episode", SEED)
        wrong = await client.call_tool("record_episode", {**SEED, "context": {"goal": 3}})
        return tools, done, wrong

    tools, done, wrong = ask(server, talk)

    assert "record_episode" in tools
    assert done.structured_content["id"] == SEED["id"]
    stored = memory.get(SEED["id"]).fields
    assert {name: stored.get("agent_id" if name == "agent" else name) for name in SEED} == SEED
    assert wrong.is_error
    assert "`context.goal` must be text" in text_of(wrong)


def test_notes_are_exact_private_and_can_be_switched_off(own_home: Path) -> None:
    async def talk(client: Client) -> str:
        await client.call_tool("memory_write", {"path": "CONTEXT.md", "content": "one\ntwo\none\n"})
        twice = await client.call_tool(
            "memory_replace", {"path": "CONTEXT.md", "old": "one", "new": "x"}
        )
        await client.call_tool("memory_replace", {"path": "CONTEXT.md", "old": "two", "new": "2"})
        await client.call_tool(
            "memory_insert", {"path": "CONTEXT.md", "line": 0, "text": "title\n"}
        )
        return text_of(twice)

    assert "2 times, in lines 1, 3" in ask(server_of(Memory.open(own_home, agent_id="a")), talk)
    assert (own_home / "agents" / "a" / "CONTEXT.md").read_text() == "title\none\n2\none\n"
    other = server_of(Memory.open(own_home, agent_id="b"))
    assert "CONTEXT" not in text_of(ask(other, lambda client: client.call_tool("memory_list", {})))
    (own_home / "config.toml").write_text("[tools.memory]\nenabled = false\n")
    names = [
        tool.name
        for tool in ask(server_of(Memory.open(own_home)), lambda client: client.list_tools()).tools
    ]
    assert "recall" in names
    assert not [name for name in names if name.startswith("memory_")]


def test_a_model_is_told_the_hash_it_may_insist_on(server: Any) -> None:
    async def talk(client: Client) -> list[Any]:
        wrote = await client.call_tool("memory_write", {"path": "a.md", "content": "one"})
        told = text_of(wrote).rpartition("sha256 ")[2]
        listed = text_of(await client.call_tool("memory_list", {}))
        read = await client.call_tool("memory_read", {"path": "a.md"})
        again = {"path": "a.md", "content": "two", "if_sha256": told}
        first, second = [await client.call_tool("memory_write", again) for _ in range(2)]
        return [
            told in listed,
            read.structured_content["sha256"].startswith(told),
            text_of(read),
            first,
            second,
        ]

    listed, read, text, first, second = ask(server, talk)

    assert (listed, read, text) == (True, True, "one")
    assert not first.is_error
    assert second.is_error
    assert "has changed" in text_of(second)


def test_resources_and_prompts_answer(server: Any, own_home: Path) -> None:
    async def talk(client: Client) -> list[Any]:
        await client.call_tool("memory_write", {"path": "CONTEXT.md", "content": "I know this."})
        said = await client.call_tool("remember", {"lesson": "kettle", "type": "error"})
        ident = said.structured_content["id"]
        resources = [f"memory://records/{ident}", "memory://context", "memory://stats"]
        read = [(await client.read_resource(one)).contents[0].text for one in resources]  # type: ignore[union-attr]
        prompt = await client.get_prompt("recall-before-task", {"task": "fix the build"})
        return [*read, prompt.messages[0].content.text]  # type: ignore[union-attr]

    record, context, stats, prompt = ask(server, talk)

    assert '"lesson": "kettle"' in record
    assert context == "I know this."
    assert '"lesson": 1' in stats
    assert "fix the build" in prompt


def test_handoffs_to_another_agent_are_listed_by_its_name(memory: Memory) -> None:
    ident = memory.create_handoff("qa", "the login page", from_agent="eng").id

    async def talk(client: Client) -> list[str]:
        given: list[dict[str, str]] = [
            {"to": "qa"}, {}, {"to": "ops"}, {"action": "accept", "id": ident}
        ]  # fmt: skip
        return [text_of(await client.call_tool("handoff", one)) for one in given]

    to_qa, own, to_ops, accepted = ask(build_server(lambda *_: memory, ["episodes"]), talk)

    assert ident in to_qa
    assert (own, to_ops) == ("No open handoffs to you.", "No open handoffs to ops.")
    assert f"commonplace handoff accept {ident} --agent qa" in accepted


def test_a_prompt_without_its_argument_is_refused_in_a_sentence(
    server: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def talk(client: Client) -> list[str]:
        found = []
        for name in ("recall-before-task", "sing"):
            with pytest.raises(MCPError) as error:
                await client.get_prompt(name, {})
            found.append(error.value.error.message)
        return found

    needed, unknown = ask(server, talk)

    assert needed == "the prompt `recall-before-task` needs `task`"
    assert unknown.startswith("there is no prompt `sing`, but `")
    assert not caplog.records  # No traceback, and nothing else.


def test_toolsets_are_chosen_by_name(memory: Memory) -> None:
    with pytest.raises(UsageError, match="no toolset"):
        choose_toolsets("core,kitchen", memory)
    assert choose_toolsets("notes", memory) == ["notes"]
    assert list(TOOLSETS) == ["core", "notes", "episodes", "kom"]
    assert tuple(TOOLSETS) == SETTINGS["tools.sets"].choices
    # A toolset that is off unless it is named costs no session anything.
    assert choose_toolsets(None, memory) == ["core", "notes"]
    assert choose_toolsets("episodes", memory) == ["episodes"]
    with Memory.open(settings={"tools.sets": ["core"]}) as other:
        assert choose_toolsets(None, other) == ["core"]
        assert choose_toolsets("notes", other) == ["notes"]


def test_an_unknown_toolset_in_the_settings_does_not_keep_a_server_from_starting(
    own_home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    own_home.mkdir()
    (own_home / "config.toml").write_text('tools.sets = ["kom", "bogus"]\n')
    with Memory.open() as memory:
        assert choose_toolsets(None, memory) == ["kom"]
    assert caplog.messages == [
        f"there is no toolset `bogus`, which `{own_home / 'config.toml'}` names"
    ]
    (own_home / "config.toml").write_text('tools.sets = ["bogus"]\n')
    with Memory.open() as memory:
        assert choose_toolsets(None, memory) == ["core", "notes"]


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("toolsets", ["core", "notes", "core,notes"])
def test_the_instructions_speak_of_the_tools_there_are(
    memory: Memory, mode: str, toolsets: str
) -> None:
    server = build_server(lambda _scope="read": memory, choose_toolsets(toolsets, memory))

    async def talk(client: Client) -> Any:
        return client.instructions

    said = ask(server, talk, mode)

    assert ("`recall`" in said) == ("core" in toolsets)
    assert ("`memory_*`" in said) == ("notes" in toolsets)
    assert len(said) <= 2048


def test_half_a_message_and_an_unknown_tool_do_not_end_it(own_home: Path) -> None:
    hello = (
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
        b'"clientInfo":{"name":"t","version":"1"}}}\n{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
    )
    bad = b'{half a mess\n{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"nope","arguments":{}}}\n'
    last = b'{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{}}\n'
    process = subprocess.Popen(
        [sys.executable, "-m", "commonplace", "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(hello + bad + last)
    process.stdin.flush()
    lines: list[bytes] = []
    while not any(b'"id":3' in line for line in lines):
        line = process.stdout.readline()
        assert line, "the server ended"
        lines.append(line)
    process.stdin.close()
    process.stdout.close()

    assert process.wait(timeout=30) == 0
    assert all(line.startswith(b"{") for line in lines)


CORE_BYTES_MAX = 6000


def test_the_list_of_the_core_tools_is_short(memory: Memory) -> None:
    server = build_server(lambda _scope="read": memory, ["core"])

    tools = ask(server, lambda client: client.list_tools()).tools
    listed = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]

    assert len(json.dumps({"tools": listed}, separators=(",", ":")).encode()) < CORE_BYTES_MAX


def test_recall_takes_filters_names_and_nulls(memory: Memory) -> None:
    old = {"event_type": "error", "tags": ["a"], "timestamp": "2026-01-01T00:00:00Z"}
    memory.append([{**old, "repo": "shop-1a2b3c4d", "lesson": "the emulator must run first"}])
    server = server_of(memory)

    def found(**arguments: Any) -> int:
        given = {"text": "emulator", **arguments}
        result = ask(server, lambda client: client.call_tool("recall", given))
        assert not result.is_error, text_of(result)
        return len(result.structured_content["hits"])

    nothing = dict.fromkeys(("repo", "kinds", "files", "tags", "since", "until", "as_of"))
    assert found(repo="shop") == found(all_repos=True) == found(**nothing) == 1
    assert found(tags=["A"], kinds=["lesson"], since="2025-12-31", until="2026-01-01") == 1
    assert found(tags=["b"]) == found(until="2025-12-31") == found(since="2026-01-02") == 0
    assert found(as_of="2025-12-31") == 0
    assert found(kinds=["fact"]) == 0


def _call(client: Any, name: str, arguments: dict[str, Any]) -> Any:
    return client.call_tool(name, arguments)


def test_an_unknown_repository_is_named_with_a_suggestion(memory: Memory) -> None:
    memory.append([{"event_type": "error", "repo": "shop-1a2b3c4d", "lesson": "x"}])
    server = server_of(memory)
    remembered = {"lesson": "x", "type": "error", "repo": "shpo"}
    for name, given in (("recall", {"text": "x", "repo": "shpo"}), ("remember", remembered)):
        result = ask(server, partial(_call, name=name, arguments=given))
        assert result.is_error
        assert "there is no repository `shpo`. did you mean `shop`?" in text_of(result)


def test_recall_searches_the_repository_of_the_folder_first(own_home: Path, tmp_path: Path) -> None:
    with Memory.open(own_home, cwd=tmp_path / "app", settings={"embedder.kind": "none"}) as memory:
        memory.append([{"event_type": "error", "repo": "shop", "lesson": "the emulator is slow"}])
        server = server_of(memory)
        given = {"text": "emulator"}
        result = ask(server, lambda client: client.call_tool("recall", given))
        assert "(from the repository shop)" in text_of(result)
        memory.log(event_type="error", lesson="our emulator needs a licence")
        result = ask(server, lambda client: client.call_tool("recall", given))
        assert "licence" in text_of(result)
        assert "slow" not in text_of(result)
