"""Adding an agent is one module and one fixture: the example in CONTRIBUTING.md, end to end."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from commonplace import agents
from commonplace.sessions import answer, ingest
from commonplace.sessions.payload import read_event
from commonplace.where.home import Home
from conftest import ROOT, git

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commonplace.memory import Memory

TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## Adding an agent")[2]
(MODULE,) = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
(FIXTURE,) = re.findall(r"^ +```json\n(.*?)^ +```", TEXT, re.MULTILINE | re.DOTALL)
LESSON = "acme writes its lock file last"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the module, which `commonplace.agents` looks into."""
    path = tmp_path / "more-agents"
    path.mkdir()
    (path / "acme.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.setattr(agents, "__path__", [*agents.__path__, str(path)])
    forget_agents()
    yield path
    forget_agents()
    sys.modules.pop("commonplace.agents.acme", None)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    git("init", "-q", cwd=path)
    return path


def forget_agents() -> None:
    agents.find.cache_clear()
    agents.all.cache_clear()


def payload(project: Path, **fields: Any) -> bytes:
    return json.dumps({**json.loads(FIXTURE), "cwd": str(project), **fields}).encode()


def run(main: str, folder: Path, *arguments: str, cwd: Path, stdin: bytes = b"") -> str:
    """A program of ours in a process of its own that knows the agents in *folder* too."""
    code = f"import sys; from commonplace import agents; agents.__path__.append({str(folder)!r}); "
    done = subprocess.run(
        [sys.executable, "-c", f"{code}from {main} import main; sys.exit(main())", *arguments],
        input=stdin,
        capture_output=True,
        cwd=cwd,
        env={**os.environ, "PATH": ""},
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_the_agent_is_found_by_its_name_alias_and_variable(folder: Path) -> None:
    assert agents.find("acme").name == "acme"
    assert agents.find("acme-cli").name == "acme"
    assert agents.find_host(["HOME", "ACME_SESSION"]) == "acme"
    assert "acme" in [agent.name for agent in agents.all()]


def test_its_fixture_becomes_an_event(folder: Path, project: Path) -> None:
    event = read_event("acme", payload(project), at=1.0, cwd="/")

    assert event is not None
    assert (event.agent, event.kind, event.called) == ("acme", "tool", "tool.finished")
    assert LESSON in event.command
    edit = {"tool_name": "patchwork", "tool_input": {"path": str(project / "a.py")}}
    event = read_event("acme", payload(project, **edit), at=1.0, cwd="/")
    assert event is not None
    assert event.edits
    assert list(event.files) == ["a.py"]


def test_it_may_call_another_agents_hook(folder: Path, project: Path) -> None:
    raw = payload(project, event="PostToolUse")
    event = read_event("claude-code", raw, at=1.0, cwd="/", environment=["ACME_SESSION"])

    assert event is not None
    assert (event.agent, event.host, event.name) == ("claude-code", "acme", "acme")


def test_a_hook_takes_its_events_in_and_replies_in_its_form(
    folder: Path, project: Path, own_home: Path
) -> None:
    hook = "commonplace.hooks"
    assert run(hook, folder, "acme", cwd=project, stdin=payload(project)) == ""
    raw = payload(project, event="session.opened", session_id="a-2")
    reply = json.loads(run(hook, folder, "acme", cwd=project, stdin=raw))

    assert list(reply) == ["context"]
    assert f"[LEARN] {LESSON}" in reply["context"]
    assert (own_home / ".state" / "hooks" / "acme").exists()


def test_a_server_answers_it_in_the_same_form(folder: Path, project: Path, memory: Memory) -> None:
    answer(memory, "acme", payload(project), cwd=str(project))
    raw = payload(project, event="session.opened", session_id="a-2")
    reply = json.loads(answer(memory, "acme", raw, cwd=str(project)))

    assert f"[LEARN] {LESSON}" in reply["context"]
    assert not ingest.has_events(Home(memory.home.path))


def test_setup_writes_its_files_doctor_lists_it_and_undo_restores_them(
    folder: Path, project: Path, own_home: Path
) -> None:
    cli = "commonplace.cli"
    settings = project / ".acme" / "settings.json"
    settings.parent.mkdir()
    before = '{\n  // mine\n  "hooks": {"session.opened": [{"hooks": [{"run": "say hello"}]}]}\n}\n'
    settings.write_text(before)
    own_home.mkdir(mode=0o700)

    run(cli, folder, "setup", "--project", "--yes", cwd=project)
    text = settings.read_text()
    run(cli, folder, "setup", "--project", "--yes", cwd=project)
    run("commonplace.hooks", folder, "acme", cwd=project, stdin=payload(project))
    doctor = json.loads(run(cli, folder, "doctor", "--json", cwd=project))
    (row,) = [row for row in doctor["agents"] if row["agent"] == "acme"]

    assert settings.read_text() == text, "the second time changes nothing"
    assert "// mine" in text
    assert re.search(r'"run": "[^"]*commonplace-hook acme --ensure",\s+"seconds": 10', text)
    assert '"matcher": "run|patchwork"' in text
    assert '"args": ["mcp", "--agent", "acme"]' in text
    assert "commonplace:end (acme)" in (project / ".acme" / "ACME.md").read_text()
    assert (row["scope"], row["outdated"]) == ("project", [])
    assert row["parts"] == ["hooks", "MCP server", "instructions"]
    assert row["hook_last_ran"]

    run(cli, folder, "setup", "--project", "--undo", "--yes", cwd=project)
    assert settings.read_text() == before
    assert not (project / ".acme" / "ACME.md").exists()


def test_an_older_installation_of_its_hook_is_updated(
    folder: Path, project: Path, own_home: Path
) -> None:
    cli = "commonplace.cli"
    (project / ".acme").mkdir()
    own_home.mkdir(mode=0o700, exist_ok=True)
    run(cli, folder, "setup", "acme", "--project", cwd=project)
    settings = project / ".acme" / "settings.json"
    text = settings.read_text()
    settings.write_text(text.replace(str(Path(sys.executable).parent), "/old"))
    assert "/old/commonplace-hook acme" in settings.read_text()
    doctor = json.loads(run(cli, folder, "doctor", "--json", cwd=project))
    run(cli, folder, "setup", "acme", "--project", cwd=project)

    (row,) = [row for row in doctor["agents"] if row["agent"] == "acme"]
    assert row["outdated"] == ["hooks", "MCP server"]
    assert json.loads(settings.read_text()) == json.loads(text)
