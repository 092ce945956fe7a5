"""The examples in CONTRIBUTING.md and in the how-to guides run."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import pytest
from mcp.server.mcpserver import MCPServer

from commonplace import Memory, settings
from commonplace.exchange import formats
from commonplace.exchange.importer import import_files
from commonplace.maintenance import runner, steps
from commonplace.server import tools
from commonplace.where.home import Home
from conftest import ROOT


def blocks(path: str, heading: str = "") -> list[str]:
    """The Python blocks of a page below *heading*, up to the next heading of that level."""
    text = (ROOT / path).read_text("utf-8")
    if heading:
        text = text.partition(heading)[2].partition("\n## ")[0]
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def run(code: str, **names: Any) -> dict[str, Any]:
    exec(compile(code, "<example>", "exec"), names)
    return names


def test_the_import_format_reads_its_file(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (code,) = blocks("CONTRIBUTING.md", "## Adding an import format")
    module = ModuleType("acme")
    exec(code, module.__dict__)
    monkeypatch.setitem(formats.FORMATS, "acme", module)
    file = tmp_path / "there" / ".acme" / "lessons.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text('{"text": "rest the dough", "when": 1700000000, "labels": "a"}\n{"by": 1}\n')

    report = import_files(memory, file)

    (record,) = memory.records()
    assert (record.fields["lesson"], record.fields["tags"]) == ("rest the dough", ["a"])
    assert record.timestamp == "2023-11-14T22:13:20Z"
    assert [line for _path, line, _reason in report.unread] == [2]


def test_the_setting_can_be_read_and_set(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = blocks("CONTRIBUTING.md", "## Adding a setting")
    monkeypatch.setattr(settings, "SETTINGS", dict(settings.SETTINGS))
    run(code, SETTINGS=settings.SETTINGS, Setting=settings.Setting)

    assert settings.Settings()["recall.limit"] == 5
    with Memory.open(own_home, settings={"recall.limit": 7}) as memory:
        assert memory.settings["recall.limit"] == 7


def test_the_tool_answers(memory: Memory) -> None:
    (code,) = blocks("CONTRIBUTING.md", "## Adding a tool")
    memory.log(event_type="learned", lesson="rest the dough", repo="kitchen")
    server: MCPServer[Any] = MCPServer("example")
    names = {"server": server, "open_memory": lambda _scope="read": memory}
    run(code, **{**vars(tools), **names})

    (tool,) = anyio.run(server.list_tools)
    found: Any = anyio.run(server.call_tool, "repos", {})

    assert (tool.description or "").startswith("List the repositories")
    assert "kitchen" in str(found)


def test_the_maintenance_step_runs(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = blocks("CONTRIBUTING.md", "## Adding a maintenance step")
    table = dict(steps.STEPS)
    names = {**vars(steps), "STEPS": table}
    run(code.replace("memory: Memory", "memory: object"), **names)
    monkeypatch.setattr(runner, "STEPS", table)
    memory.log(event_type="learned", lesson="rest the dough")
    memory.home.state_folder.mkdir(exist_ok=True)
    memory.home.server_log.write_bytes(b"x" * (2 << 20))

    would = runner.run(memory, ["server-log"], dry_run=True)
    assert memory.home.server_log.exists()
    did = runner.run(memory, ["server-log"])
    again = runner.run(memory, ["server-log"])

    assert [one.steps["server-log"]["files"] for one in (would, did, again)] == [1, 1, 0]


def test_the_examples_for_python_print_what_the_page_shows(tmp_path: Path) -> None:
    page = "docs/howto/use-from-python.md"
    shown = re.findall(
        r"^```text\n(.*?)^```", (ROOT / page).read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    write, bulk, test = blocks(page)

    assert plain(printed(write)) == plain(shown[0])
    assert printed(bulk) == shown[1]
    run(test)["test_a_lesson_is_recalled"](tmp_path)


def test_the_orchestrator_prints_what_the_page_shows(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = "docs/howto/compose-contexts.md"
    (shown,) = re.findall(
        r"^````text\n(.*?)^````", (ROOT / page).read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    (program,) = blocks(page)
    # The command of this environment, whichever is installed besides.
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)

    assert plain(printed(program)) == plain(shown)
    assert list(Home(own_home).log_folder.iterdir()), "the server wrote to the home of this program"


def printed(code: str) -> str:
    out = io.StringIO()
    with redirect_stdout(out):
        run(code)
    return out.getvalue()


def plain(text: str) -> str:
    """*text* without dates and the hashes of ids, which depend on the folder."""
    return re.sub(r"-[0-9a-f]{14}\b|\d{4}-\d\d-\d\d", "", text)


def test_the_hook_for_another_agent_captures_and_answers(
    tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (program,) = blocks("docs/howto/hook-for-another-agent.md")
    path = tmp_path / "mybot-hook.py"
    path.write_text(program.replace('"--ensure"', ""), encoding="utf-8")
    monkeypatch.setenv("COMMONPLACE_AGENT", "mybot")
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")

    def send(**fields: Any) -> str:
        event = {"session": "m-1", "folder": str(tmp_path), **fields}
        done = subprocess.run(
            [sys.executable, path],
            input=json.dumps(event).encode(),
            capture_output=True,
            check=True,
        )
        return done.stdout.decode()

    command = "echo LEARNED: the linter needs Node 22"
    said = send(event="ran", call="1", command=command, exit_code=0, output="")
    start = send(event="begin", session="m-2")

    assert said == ""
    assert "[LEARN] the linter needs Node 22" in start
