"""Claude's memory tool over an agent's notes: the documented commands and texts, restated as our own tests."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from commonplace.memory import Memory
from commonplace.notes import NOTE_BYTES_MAX, Notes

pytest.importorskip("anthropic", reason="the extra `anthropic` is not installed")

from anthropic import Anthropic
from anthropic.lib.tools import ToolError

from commonplace.integrations.anthropic import VIEW_CHARS_MAX, AsyncMemoryTool, MemoryTool
from commonplace.where.home import Home

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def tool(memory: Memory) -> MemoryTool:
    return MemoryTool(memory, agent="claude")


def say(tool: MemoryTool, command: str, **given: Any) -> str:
    """What the model reads, called as the SDK's runner does; an error begins with `!`."""
    try:
        said = tool.call({"command": command, **given})
    except ToolError as error:
        said = f"!{error.content}"
    assert isinstance(said, str)
    return said


def test_it_is_declared_as_the_api_wants_it(memory: Memory) -> None:
    assert MemoryTool(memory).to_dict() == {"type": "memory_20250818", "name": "memory"}
    cached = MemoryTool(memory, cache_control={"type": "ephemeral"}).to_dict()
    assert cached.get("cache_control") == {"type": "ephemeral"}


def test_the_first_view_of_an_empty_memory_is_no_error(tool: MemoryTool, own_home: Path) -> None:
    header = "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items and node_modules:"

    assert say(tool, "view", path="/memories") == f"{header}\n0B\t/memories"
    assert not own_home.exists()


def test_a_folder_is_shown_two_levels_deep_with_sizes(tool: MemoryTool, own_home: Path) -> None:
    for path, size in (
        ("a.md", 5632),
        ("plans/b.md", 1),
        ("plans/deep/c.md", 3),
        ("node_modules/x.md", 9),
    ):
        say(tool, "create", path=f"/memories/{path}", file_text="x" * size)
    (own_home / "agents" / "claude" / ".hidden").write_text("x")

    said = say(tool, "view", path="/memories").splitlines()[1:]
    below = say(tool, "view", path="/memories/plans/").splitlines()[1:]

    assert said == [
        "5.5K\t/memories",
        "5.5K\t/memories/a.md",
        "4B\t/memories/plans/",
        "1B\t/memories/plans/b.md",
        "3B\t/memories/plans/deep/",
    ]
    assert below == [
        "4B\t/memories/plans",
        "1B\t/memories/plans/b.md",
        "3B\t/memories/plans/deep/",
        "3B\t/memories/plans/deep/c.md",
    ]
    named = say(tool, "view", path="/memories/node_modules").splitlines()[1:]
    assert named == ["9B\t/memories/node_modules", "9B\t/memories/node_modules/x.md"]


def test_a_file_is_shown_with_line_numbers(tool: MemoryTool) -> None:
    assert say(tool, "create", path="/memories/a.md", file_text="one\ntwo\nthree\n") == (
        "File created successfully at: /memories/a.md"
    )
    header = "Here's the content of /memories/a.md with line numbers:"

    assert (
        say(tool, "view", path="/memories/a.md")
        == f"{header}\n     1\tone\n     2\ttwo\n     3\tthree"
    )
    assert (
        say(tool, "view", path="/memories/a.md", view_range=[2, 3])
        == f"{header}\n     2\ttwo\n     3\tthree"
    )
    assert (
        say(tool, "view", path="/memories/a.md", view_range=[3, -1]) == f"{header}\n     3\tthree"
    )
    assert say(tool, "view", path="/memories/a.md", view_range=[0, 99]).endswith("\tthree")
    assert say(tool, "view", path="/memories/a.md", view_range=[1]).startswith(
        "!Error: Invalid `view_range`"
    )
    assert say(tool, "view", path="/memories/b.md") == (
        "!The path /memories/b.md does not exist. Please provide a valid path."
    )


def test_a_long_view_is_cut_and_says_how_to_see_the_rest(tool: MemoryTool) -> None:
    say(
        tool,
        "create",
        path="/memories/long.md",
        file_text="".join(f"line {n}\n" for n in range(9000)),
    )

    said = say(tool, "view", path="/memories/long.md")

    assert len(said) < VIEW_CHARS_MAX + 100
    assert said.endswith("more lines; use `view_range` to see them")
    assert "\tline 8999" in say(tool, "view", path="/memories/long.md", view_range=[8990, -1])


def test_creating_what_is_there_is_an_error_unless_overwriting_was_chosen(
    memory: Memory, tool: MemoryTool
) -> None:
    say(tool, "create", path="/memories/a.md", file_text="one")

    assert (
        say(tool, "create", path="/memories/a.md", file_text="two")
        == "!Error: File /memories/a.md already exists"
    )
    assert "one" in say(tool, "view", path="/memories/a.md")
    assert (
        say(
            MemoryTool(memory, agent="claude", overwrite=True),
            "create",
            path="/memories/a.md",
            file_text="2",
        )[0]
        != "!"
    )
    assert (
        say(tool, "create", path="/memories", file_text="x")
        == "!Error: The path /memories is a directory"
    )


def test_a_replacement_shows_the_lines_around_it(tool: MemoryTool) -> None:
    say(tool, "create", path="/memories/a.md", file_text="1\n2\n3\nblue\n5\n6\n7\n")

    said = say(tool, "str_replace", path="/memories/a.md", old_str="blue", new_str="red\ngreen")

    assert said == (
        "The memory file has been edited.\n     2\t2\n     3\t3\n     4\tred\n     5\tgreen\n     6\t5\n     7\t6"
    )


def test_a_replacement_must_match_exactly_once(tool: MemoryTool) -> None:
    say(tool, "create", path="/memories/a.md", file_text="one\ntwo\none\n")

    assert say(tool, "str_replace", path="/memories/a.md", old_str="six", new_str="x") == (
        "!No replacement was performed, old_str `six` did not appear verbatim in /memories/a.md."
    )
    assert say(tool, "str_replace", path="/memories/a.md", old_str="one", new_str="x") == (
        "!No replacement was performed. Multiple occurrences of old_str `one` in lines: 1, 3. Please ensure it is unique"
    )
    for path in ("/memories/b.md", "/memories"):
        assert say(tool, "str_replace", path=path, old_str="a", new_str="b") == (
            f"!Error: The path {path} does not exist. Please provide a valid path."
        )
    say(
        tool, "str_replace", path="/memories/a.md", old_str="two\n"
    )  # Without `new_str` it is deleted.
    assert say(tool, "view", path="/memories/a.md").splitlines()[1:] == [
        "     1\tone",
        "     2\tone",
    ]


def test_an_insertion_comes_behind_its_line(tool: MemoryTool) -> None:
    say(tool, "create", path="/memories/a.md", file_text="one\ntwo")

    assert say(tool, "insert", path="/memories/a.md", insert_line=0, insert_text="top\n") == (
        "The file /memories/a.md has been edited."
    )
    say(tool, "insert", path="/memories/a.md", insert_line=2, insert_text="middle")
    say(tool, "insert", path="/memories/a.md", insert_line=4, insert_text="end")

    lines = [
        line.partition("\t")[2]
        for line in say(tool, "view", path="/memories/a.md").splitlines()[1:]
    ]
    assert lines == ["top", "one", "middle", "two", "end"]
    assert say(tool, "insert", path="/memories/a.md", insert_line=6, insert_text="x") == (
        "!Error: Invalid `insert_line` parameter: 6. It should be within the range of lines of the file: [0, 5]"
    )
    for path in ("/memories/b.md", "/memories"):
        assert (
            say(tool, "insert", path=path, insert_line=0, insert_text="x")
            == f"!Error: The path {path} does not exist"
        )


def test_files_and_folders_are_deleted_the_root_never(tool: MemoryTool, own_home: Path) -> None:
    for path in ("a.md", "plans/b.md", "plans/deep/c.md"):
        say(tool, "create", path=f"/memories/{path}", file_text="x")

    assert say(tool, "delete", path="/memories/a.md") == "Successfully deleted /memories/a.md"
    assert (
        say(tool, "delete", path="/memories/a.md")
        == "!Error: The path /memories/a.md does not exist"
    )
    assert say(tool, "delete", path="/memories/plans") == "Successfully deleted /memories/plans"
    for root in ("/memories", "/memories/"):
        assert (
            say(tool, "delete", path=root) == "!Error: Cannot delete the /memories directory itself"
        )
    assert Notes(Home(own_home), "claude").list() == []


def test_files_and_folders_are_renamed_where_nothing_is(tool: MemoryTool) -> None:
    for path in ("a.md", "plans/b.md"):
        say(tool, "create", path=f"/memories/{path}", file_text=path)

    assert say(tool, "rename", old_path="/memories/a.md", new_path="/memories/old/a.md") == (
        "Successfully renamed /memories/a.md to /memories/old/a.md"
    )
    assert say(tool, "rename", old_path="/memories/plans", new_path="/memories/old/plans")[0] == "S"
    assert "plans/b.md" in say(tool, "view", path="/memories/old/plans/b.md")
    assert say(tool, "rename", old_path="/memories/a.md", new_path="/memories/c.md") == (
        "!Error: The path /memories/a.md does not exist"
    )
    for taken in ("/memories/old/a.md", "/memories/old", "/memories"):
        assert say(tool, "rename", old_path="/memories/old/plans", new_path=taken) == (
            f"!Error: The destination {taken} already exists"
        )
    assert say(tool, "rename", old_path="/memories", new_path="/memories/x") == (
        "!Error: Cannot rename the /memories directory itself"
    )
    assert "is within" in say(
        tool, "rename", old_path="/memories/old", new_path="/memories/old/older"
    )


ATTACKS = [
    "", "memories/x", "/etc/passwd", "/memoriesx", "/memories_evil/x", "/memories/..", "/memories/../x", "/memories/a/../../x",
    "/memories/./x", "/memories//x", "/memories/..%2fx", "/memories/%2e%2e%2fx", "/memories/..\\x", "/memories/a\\..\\..\\x",
    "/memories/~/x", "/memories/x\x00.md", "/memories/C:/x", "/memories/.hidden", "/memories/nul", "../memories/x",
]  # fmt: skip


@pytest.mark.parametrize("path", ATTACKS)
def test_no_path_leads_out_of_the_agents_folder(
    tool: MemoryTool, tmp_path: Path, path: str
) -> None:
    say(tool, "create", path="/memories/mine.md", file_text="mine")
    before = sorted(str(found) for found in tmp_path.rglob("*"))
    calls: list[dict[str, Any]] = [
        {"command": "view", "path": path},
        {"command": "create", "path": path, "file_text": "x"},
        {"command": "str_replace", "path": path, "old_str": "mine", "new_str": "x"},
        {"command": "insert", "path": path, "insert_line": 0, "insert_text": "x"},
        {"command": "delete", "path": path},
        {"command": "rename", "old_path": path, "new_path": "/memories/y"},
        {"command": "rename", "old_path": "/memories/mine.md", "new_path": path},
    ]

    for call in calls:
        assert say(tool, **call).startswith("!"), call

    assert sorted(str(found) for found in tmp_path.rglob("*")) == before


@pytest.mark.skipif(os.name != "posix", reason="links need rights on Windows")
def test_a_link_is_never_followed_nor_what_it_leads_to_deleted(
    tool: MemoryTool, tmp_path: Path, own_home: Path
) -> None:
    say(tool, "create", path="/memories/plans/mine.md", file_text="mine")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "x.md").write_text("theirs")
    (own_home / "agents" / "claude" / "plans" / "link").symlink_to(tmp_path / "theirs")

    for command in ("view", "delete"):
        assert "symbolic link" in say(tool, command, path="/memories/plans/link")
    assert "symbolic link" in say(
        tool, "rename", old_path="/memories/plans/mine.md", new_path="/memories/plans/link/x"
    )
    assert say(tool, "delete", path="/memories/plans") == "Successfully deleted /memories/plans"
    assert (tmp_path / "theirs" / "x.md").read_text() == "theirs"


@pytest.mark.parametrize(
    "given",
    [
        {"command": "view"},
        {"command": "view", "path": 7},
        {"command": "create", "path": "/memories/a.md"},
        {"command": "str_replace", "path": "/memories/a.md", "old_str": None},
        {"command": "insert", "path": "/memories/a.md", "insert_line": "two", "insert_text": "x"},
        {"command": "rename", "old_path": "/memories/a.md"},
        {"command": "create", "path": "/memories/a.md", "file_text": "x" * (NOTE_BYTES_MAX + 1)},
        {"command": "create", "path": "/memories/a.md/b.md/c", "file_text": "\ud800"},
    ],
)
def test_what_the_model_gets_wrong_is_an_error_it_can_read(
    tool: MemoryTool, given: dict[str, Any]
) -> None:
    said = say(tool, **given)

    assert said.startswith("!Error: ")
    assert len(said) < 300


def test_secrets_do_not_land_and_agents_do_not_meet(
    memory: Memory, tool: MemoryTool, own_home: Path
) -> None:
    secret = "ghp_" + "Ab12" * 9
    say(tool, "create", path="/memories/a.md", file_text=f"use {secret}")

    assert secret not in (own_home / "agents" / "claude" / "a.md").read_text()
    assert "does not exist" in say(MemoryTool(memory, agent="other"), "view", path="/memories/a.md")
    assert memory.notes("claude").read("a.md").startswith("use [redacted:")


def test_all_of_it_can_be_cleared_by_the_program(tool: MemoryTool, own_home: Path) -> None:
    for path in ("a.md", "plans/b.md"):
        say(tool, "create", path=f"/memories/{path}", file_text="x")
    Notes(Home(own_home), "other").write("a.md", "theirs")

    assert tool.clear_all_memory() == "All memory cleared"
    assert Notes(Home(own_home), "claude").entries() == []
    assert len(Notes(Home(own_home), "other").list()) == 1


def test_the_asynchronous_twin_says_the_same(memory: Memory) -> None:
    async def talk() -> list[Any]:
        tool = AsyncMemoryTool(memory, agent="claude")
        steps: list[dict[str, Any]] = [
            {"command": "create", "path": "/memories/a.md", "file_text": "one\n"},
            {
                "command": "insert",
                "path": "/memories/a.md",
                "insert_line": 1,
                "insert_text": "two\n",
            },
            {"command": "str_replace", "path": "/memories/a.md", "old_str": "two", "new_str": "2"},
            {"command": "rename", "old_path": "/memories/a.md", "new_path": "/memories/b.md"},
            {"command": "view", "path": "/memories/b.md"},
            {"command": "delete", "path": "/memories/b.md"},
        ]
        said = [await tool.call(step) for step in steps]
        return [*said, await tool.clear_all_memory()]

    said = asyncio.run(talk())

    assert (
        said[4] == "Here's the content of /memories/b.md with line numbers:\n     1\tone\n     2\t2"
    )
    assert said[-1] == "All memory cleared"


def test_the_runner_of_the_sdk_carries_it(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK's own loop, with a stand-in for the service: it asks for three commands, then it is done."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    asked: list[Any] = []
    wanted = [
        {"command": "view", "path": "/memories"},
        {"command": "create", "path": "/memories/a.md", "file_text": "likes tea"},
        {"command": "create", "path": "/memories/a.md", "file_text": "again"},
    ]

    class Service(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append(body)
            turn = len(asked) - 1
            use = turn < len(wanted)
            content: dict[str, Any] = {"type": "text", "text": "done"}
            if use:
                content = {
                    "type": "tool_use",
                    "id": f"t{turn}",
                    "name": "memory",
                    "input": wanted[turn],
                }
            reply = {
                "id": f"m{turn}", "type": "message", "role": "assistant", "model": body["model"], "content": [content],
                "stop_reason": "tool_use" if use else "end_turn", "stop_sequence": None,
                "usage": {"input_tokens": 1, "output_tokens": 1},
            }  # fmt: skip
            raw = json.dumps(reply).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Service) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with Anthropic(
            api_key="k", base_url=f"http://127.0.0.1:{server.server_port}", max_retries=0
        ) as client:
            final = client.beta.messages.tool_runner(
                model="claude-test",
                max_tokens=99,
                tools=[MemoryTool(memory, agent="claude")],
                messages=[{"role": "user", "content": "remember that I like tea"}],
            ).until_done()
        server.shutdown()

    assert final.content[0].type == "text"
    assert asked[0]["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    results = [body["messages"][-1]["content"][0] for body in asked[1:]]
    assert [bool(result.get("is_error")) for result in results] == [False, False, True]
    assert "already exists" in str(results[2]["content"])
    assert memory.notes("claude").read("a.md") == "likes tea"


def test_the_package_is_imported_by_nobody_who_did_not_ask() -> None:
    code = (
        "import sys, commonplace, commonplace.memory, commonplace.integrations;"
        "print([n for n in ('anthropic', 'langgraph') if n in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("module", "package"), [("anthropic", "anthropic"), ("langgraph", "langgraph.store.base")]
)
def test_a_missing_package_is_a_sentence_that_names_the_extra(module: str, package: str) -> None:
    code = f"import sys; sys.modules['{package}'] = None; import commonplace.integrations.{module}"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert "ExtraMissing" in done.stderr
    assert f"install `commonplace[{module}]`" in done.stderr.splitlines()[-1]
