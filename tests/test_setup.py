"""`commonplace setup` on real files: everything else stays, everything of ours comes out again."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from commonplace import agents
from commonplace.agents.parts import HookEntries, Scope
from commonplace.setup import launch, plan
from conftest import ROOT, git

if TYPE_CHECKING:
    from collections.abc import Callable

    from commonplace.setup.plan import Change

DATA = ROOT / "tests" / "data" / "setup"
# A settings file, whose it is, and where that agent looks for it in a project.
FILES = {
    **{path.name: ("claude-code", ".claude/settings.json") for path in DATA.glob("claude-*.json")},
    "mcp-others.json": ("claude-code", ".mcp.json"),
    "gemini-settings.json": ("gemini", ".gemini/settings.json"),
    "cursor-hooks.json": ("cursor", ".cursor/hooks.json"),
    "opencode.jsonc": ("opencode", "opencode.jsonc"),
    "vscode-mcp.json": ("vscode", ".vscode/mcp.json"),
    **{path.name: ("codex", ".codex/config.toml") for path in DATA.glob("*.toml")},
    **{path.name: ("codex", "AGENTS.md") for path in DATA.glob("AGENTS*.md")},
}
PROGRAMS = launch.Programs("/opt/a b/commonplace", "/opt/a b/commonplace-hook")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    return path


def run(
    scope: Scope, *names: str, undo: bool = False, programs: launch.Programs = PROGRAMS
) -> list[Change]:
    folders = plan.Folders(scope.root.parent / "home" / ".state" / "setup.json")
    chosen = names or [agent.name for agent in agents.all()]
    changes = plan.plan_changes(chosen, scope, programs, undo=undo)
    done = [plan.apply(change, scope, folders) for change in changes]
    folders.save()
    return done


def of_project(path: Path) -> Scope:
    return Scope(path, of_user=False, environment={})


def tree(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if ".git" not in path.parts
    }


@pytest.mark.parametrize("name", FILES)
def test_a_settings_file_gets_its_bytes_back(name: str, project: Path) -> None:
    agent, place = FILES[name]
    path = project / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes((DATA / name).read_bytes())
    before = tree(project)

    done = run(of_project(project), agent)
    once = tree(project)
    again = run(of_project(project), agent)
    run(of_project(project), agent, undo=True)

    assert [change.left_alone for change in done] == [""] * len(done)
    assert once != before
    assert {change.action for change in again} == {"unchanged"}
    assert tree(project) == before


@pytest.mark.parametrize(("before", "after"), [(None, True), (False, False)])
def test_an_entry_of_an_earlier_version_is_updated_and_one_that_you_changed_stays(
    before: bool | None, after: bool, project: Path
) -> None:
    run(of_project(project), "claude-code")
    path = project / ".claude" / "settings.json"
    settings = json.loads(path.read_text())
    handler = settings["hooks"]["PostToolUse"][0]["hooks"][0]
    assert handler.pop("async") is True
    handler |= {} if before is None else {"async": before}
    path.write_text(json.dumps(settings))

    run(of_project(project), "claude-code")

    found = json.loads(path.read_text())["hooks"]["PostToolUse"][0]["hooks"]
    assert [one["async"] for one in found] == [after]


def test_the_files_there_are_at_least_a_dozen_and_all_are_used() -> None:
    assert {path.name for path in DATA.iterdir()} - {"README.md", "damaged.json"} == set(FILES)
    assert len(FILES) >= 12


@pytest.mark.parametrize("of_user", [False, True])
def test_where_nothing_was_nothing_is_left(project: Path, of_user: bool) -> None:
    (project / ".claude").mkdir()
    (project / ".codex").mkdir()
    (project / "keep.txt").write_text("x")
    where = Scope(project, of_user, {})
    before = tree(project)

    run(where)
    once = tree(project)
    run(where, undo=True)

    assert len(once) > 15
    assert tree(project) == before
    assert not (project.parent / "home").exists()


def test_what_is_made_can_be_read_by_its_agent(project: Path) -> None:
    run(of_project(project))

    texts = {name: raw for name, raw in tree(project).items() if raw is not None}
    values = {name: json.loads(raw) for name, raw in texts.items() if name.endswith(".json")}
    assert (
        tomllib.loads(texts[".codex/config.toml"].decode())["mcp_servers"]["commonplace"]["command"]
        == PROGRAMS.main
    )
    assert values[".claude/settings.json"]["hooks"]["SessionStart"][0]["hooks"][0]["args"] == [
        "claude-code",
        "--ensure",
    ]
    assert values[".codex/hooks.json"]["hooks"]["SessionEnd"][0]["hooks"][0]["timeout"] <= 1
    assert values[".cursor/hooks.json"]["version"] == 1
    assert values[".github/hooks/commonplace.json"]["version"] == 1
    assert values[".vscode/mcp.json"]["servers"]["commonplace"]["type"] == "stdio"
    assert values["opencode.json"]["mcp"]["commonplace"]["command"][0] == PROGRAMS.main


def test_a_hook_that_could_stop_an_agent_is_never_registered() -> None:
    for agent in agents.all():
        for part in agent.parts(Scope(Path("/r"), of_user=True, environment={})):
            if isinstance(part.content, HookEntries):
                assert not {event.name.lower() for event in part.content.events} & {
                    "pretooluse",
                    "permissionrequest",
                    "beforetool",
                }


def test_agents_that_share_a_file_leave_it_to_each_other(project: Path) -> None:
    (project / "AGENTS.md").write_text("# Rules\n")
    run(of_project(project), "cursor")
    cursor_alone = (project / "AGENTS.md").read_bytes()
    run(of_project(project), "codex")

    run(of_project(project), "codex", undo=True)
    left = (project / "AGENTS.md").read_bytes()
    run(of_project(project), "cursor", undo=True)

    assert left == cursor_alone
    assert (project / "AGENTS.md").read_text() == "# Rules\n"


def test_a_file_that_an_agent_wrote_anew_still_loses_all_that_is_ours(project: Path) -> None:
    path = project / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text(
        '{"model": "opus", "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}}'
    )
    before = json.loads(path.read_text())
    run(of_project(project), "claude-code")
    path.write_text(json.dumps(json.loads(path.read_text()), indent=4))

    run(of_project(project), "claude-code", undo=True)

    assert json.loads(path.read_text()) == before


def test_another_installation_is_recognised_and_brought_up_to_date(project: Path) -> None:
    before = tree(project)
    run(of_project(project), programs=launch.Programs("/old/commonplace", "/old/commonplace-hook"))

    done = run(of_project(project))

    assert not any(b"/old/" in raw for raw in tree(project).values() if raw)
    assert {change.action for change in done if "instructions" not in change.what} == {"change"}
    run(of_project(project), undo=True)
    assert tree(project) == before


def test_a_damaged_file_is_left_alone_and_the_others_are_done(project: Path) -> None:
    path = project / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_bytes((DATA / "damaged.json").read_bytes())

    done = {change.path.name: change for change in run(of_project(project), "claude-code")}

    assert path.read_bytes() == (DATA / "damaged.json").read_bytes()
    assert done["settings.json"].left_alone == "a key is missing at its end"
    assert (project / ".mcp.json").exists()
    assert (project / "CLAUDE.md").exists()


@pytest.mark.parametrize("raw", [b"\xff\xfe{\x00}\x00", b"{}" * 3])
def test_what_is_no_text_or_no_json_is_left_alone(project: Path, raw: bytes) -> None:
    (project / ".mcp.json").write_bytes(raw)

    done = {
        change.path.name: change.left_alone for change in run(of_project(project), "claude-code")
    }

    assert done[".mcp.json"]
    assert (project / ".mcp.json").read_bytes() == raw


def test_a_read_only_file_is_left_alone(project: Path) -> None:
    path = project / ".mcp.json"
    path.write_text("{}")
    path.chmod(0o444)

    done = {
        change.path.name: change.left_alone for change in run(of_project(project), "claude-code")
    }

    assert done[".mcp.json"] == "it is read-only"
    assert path.read_text() == "{}"


def test_a_folder_where_a_file_should_be_is_left_alone(project: Path) -> None:
    (project / ".mcp.json").mkdir()

    done = {
        change.path.name: change.left_alone for change in run(of_project(project), "claude-code")
    }

    assert done[".mcp.json"] == "it is not a file"


def test_a_file_changed_in_the_meantime_is_left_alone(project: Path) -> None:
    where = of_project(project)
    (project / ".mcp.json").write_text("{}")
    changes = plan.plan_changes(["claude-code"], where, PROGRAMS, undo=False)
    (project / ".mcp.json").write_text('{"mcpServers": {"new": {}}}')

    done = [plan.apply(change, where, plan.Folders(project / "ledger")) for change in changes]

    assert ["changed in the meantime" in change.left_alone for change in done] == [
        False,
        True,
        False,
    ]
    assert (project / ".mcp.json").read_text() == '{"mcpServers": {"new": {}}}'


@pytest.mark.skipif(os.name == "nt", reason="links and modes are POSIX's")
def test_links_modes_and_owners_stay(project: Path) -> None:
    real = project / "dotfiles" / "claude.json"
    real.parent.mkdir()
    real.write_text("{}\n")
    real.chmod(0o640)
    (project / ".claude").mkdir()
    link = project / ".claude" / "settings.json"
    link.symlink_to("../dotfiles/claude.json")

    run(of_project(project), "claude-code")
    put = real.read_text()
    run(of_project(project), "claude-code", undo=True)

    assert link.is_symlink()
    assert "commonplace-hook" in put
    assert real.read_text() == "{}\n"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert [path.name for path in real.parent.iterdir()] == ["claude.json"]


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
@pytest.mark.parametrize("link", ["AGENTS.md", ".codex"])
def test_a_link_out_of_the_project_is_not_followed(project: Path, link: str) -> None:
    outside = project.parent / "outside"
    outside.mkdir()
    (outside / "file").write_text("mine\n")
    (project / link).symlink_to(outside if link == ".codex" else outside / "file")
    before = tree(outside)

    done = run(of_project(project), "codex")

    assert any("leads out of" in change.left_alone for change in done)
    assert tree(outside) == before


@pytest.mark.skipif(os.name == "nt", reason="modes are POSIX's")
def test_the_users_files_are_for_the_user_alone(project: Path) -> None:
    run(Scope(project, of_user=True, environment={}), "codex")

    assert stat.S_IMODE((project / ".codex").stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in (project / ".codex").iterdir()} == {0o600}


def test_an_agents_own_variable_moves_its_folder(project: Path) -> None:
    moved = project.parent / "moved"
    environment = {
        "CLAUDE_CONFIG_DIR": str(moved / "c"),
        "CODEX_HOME": str(moved / "x"),
        "COPILOT_HOME": str(moved / "p"),
    }

    run(Scope(project, of_user=True, environment=environment), "claude-code", "codex", "copilot")

    assert {"c/settings.json", "c/.claude.json", "x/config.toml", "p/mcp-config.json"} <= set(
        tree(moved)
    )
    assert tree(project) == {}


def test_agents_are_found_by_their_folders_and_commands(project: Path) -> None:
    (project / ".gemini").mkdir()
    commands = project.parent / "bin"
    commands.mkdir()
    for name in ("codex", "codex.exe"):
        (commands / name).touch(0o755)

    of_user = plan.find_agents(Scope(project, of_user=True, environment={"PATH": str(commands)}))
    of_repository = plan.find_agents(
        Scope(project, of_user=False, environment={"PATH": str(commands)})
    )

    assert list(of_user) == ["codex", "gemini"]
    assert of_user["codex"] == "`codex` is on the PATH"
    assert of_repository["gemini"] == "`.gemini` is in this project"


def test_a_diff_shows_no_secret_of_the_file_it_is_about(project: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    (project / ".mcp.json").write_text(
        f'{{\n  "mcpServers": {{\n    "gh": {{"env": {{"TOKEN": "{secret}"}}}}\n  }}\n}}\n'
    )

    change = plan.plan_changes(["claude-code"], of_project(project), PROGRAMS, undo=False)[1]

    assert change.after
    assert secret in change.after
    assert secret not in "\n".join(change.diff())


def test_an_installation_out_of_a_cache_is_recognised() -> None:
    cached = "/home/me/.cache/uv/archive-v0/x1/bin/commonplace"

    assert launch.is_temporary(launch.Programs(cached, f"{cached}-hook"))
    assert not launch.is_temporary(PROGRAMS)


# --- Through the command line ---------------------------------------------------------------------------------------


def test_a_dry_run_shows_the_diff_and_writes_nothing(
    commonplace: Callable[..., Any], project: Path
) -> None:
    (project / "CLAUDE.md").write_text("# Rules\n")
    before = tree(project)

    done = commonplace("setup", "claude-code", "--project", "--dry-run", cwd=project)

    assert done.returncode == 0
    assert "+<!-- commonplace:start -->" in done.stdout
    assert "claude-code: it was named" in done.stderr
    assert "\x1b" not in done.stdout
    assert tree(project) == before


def test_the_command_sets_up_says_so_and_undoes(
    commonplace: Callable[..., Any], project: Path
) -> None:
    git("init", "-q", cwd=project)
    (project / ".claude").mkdir()
    (project / "sub").mkdir()
    before = tree(project)

    done = commonplace("setup", "--project", "--yes", "--json", cwd=project / "sub", PATH="")
    again = commonplace("setup", "--project", cwd=project, PATH="")
    undone = commonplace("setup", "--project", "--undo", "--yes", cwd=project, PATH="")

    told = json.loads(done.stdout)
    assert told["agents"] == {"claude-code": "`.claude` is in this project"}
    assert told["done"] is True
    assert [file["action"] for file in told["files"]] == ["make"] * 3
    assert "Everything is set up already" in again.stdout
    assert undone.returncode == 0
    assert "Removed" in undone.stdout
    assert tree(project) == before
    assert (
        "Nothing to undo"
        in commonplace("setup", "--project", "--undo", "--yes", cwd=project, PATH="").stdout
    )


def test_undoing_names_only_the_agents_that_were_set_up(
    commonplace: Callable[..., Any], project: Path
) -> None:
    git("init", "-q", cwd=project)
    commonplace("setup", "codex", "--project", "--yes", cwd=project, PATH="")

    shown = commonplace("setup", "--project", "--undo", "--dry-run", cwd=project, PATH="")
    told = commonplace("setup", "--project", "--undo", "--yes", "--json", cwd=project, PATH="")

    assert shown.stderr.splitlines() == ["codex: it is connected"]
    assert all(file["agents"] == ["codex"] for file in json.loads(told.stdout)["files"])


def test_the_default_is_the_users_own_files_with_absolute_paths(
    commonplace: Callable[..., Any], tmp_path: Path
) -> None:
    done = commonplace("setup", "codex", "--yes", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    command = tomllib.loads((tmp_path / ".codex" / "config.toml").read_text())["mcp_servers"][
        "commonplace"
    ]["command"]
    assert Path(command).is_absolute()
    assert Path(command).exists()


def test_files_that_were_not_changed_are_reported_with_an_exit_code(
    commonplace: Callable[..., Any], project: Path
) -> None:
    (project / ".mcp.json").write_bytes((DATA / "damaged.json").read_bytes())

    done = commonplace("setup", "claude-code", "--project", cwd=project)

    assert done.returncode == 19
    assert "1 of 3 files were not changed" in done.stderr
    assert "a key is missing at its end" in done.stderr
    assert (project / "CLAUDE.md").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nobody"], 2, "there is no agent `nobody`"),
        (["codex", "--project", "--user"], 2, "contradict"),
        (["--project"], 20, "no agent was found here"),
    ],
)
def test_mistakes_are_sentences(
    commonplace: Callable[..., Any], project: Path, arguments: list[str], code: int, said: str
) -> None:
    done = commonplace("setup", *arguments, cwd=project, PATH="")

    assert (done.returncode, said in done.stderr) == (code, True)
    assert tree(project) == {}


@pytest.mark.skipif(os.name == "nt", reason="a pseudo terminal is POSIX's")
@pytest.mark.parametrize(("answer", "made"), [(b"n\n", False), (b"\n", True)])
def test_at_a_terminal_it_asks_first(project: Path, answer: bytes, made: bool) -> None:
    import pty

    ours, theirs = pty.openpty()
    os.write(ours, answer)
    done = subprocess.run(
        [sys.executable, "-m", "commonplace", "setup", "vscode", "--project"],
        stdin=theirs,
        capture_output=True,
        cwd=project,
        timeout=60,
        check=True,
    )
    os.close(ours)
    os.close(theirs)

    assert b"Change these 2 files? [Y/n]" in done.stderr
    assert (project / ".vscode" / "mcp.json").exists() is made


@pytest.mark.parametrize("arguments", [["codex"], ["--project"], ["codex", "--json"], ["--undo"]])
def test_without_a_terminal_the_users_settings_need_a_yes(
    commonplace: Callable[..., Any], project: Path, tmp_path: Path, arguments: list[str]
) -> None:
    (project / ".claude").mkdir()
    if "--undo" in arguments:
        assert commonplace("setup", "codex", "--yes", cwd=project, PATH="").returncode == 0
    before = tree(tmp_path)

    done = commonplace("setup", *arguments, cwd=project, PATH="")

    assert done.returncode == 2
    assert "there is no terminal to ask at" in done.stderr
    assert "`--yes`" in done.stderr
    assert tree(tmp_path) == before
    assert commonplace("setup", *arguments, "--yes", cwd=project, PATH="").returncode == 0
    assert tree(tmp_path) != before


@pytest.mark.parametrize("name", [agent.name for agent in agents.all()])
@pytest.mark.parametrize("scope", ["user", "project"])
def test_setup_and_doctor_say_what_an_agent_asks_before_it_uses_the_files(
    name: str,
    scope: str,
    commonplace: Callable[..., Any],
    project: Path,
    own_home: Path,
    tmp_path: Path,
) -> None:
    condition = agents.find(name).condition(scope)
    git("init", "-q", cwd=project)
    place = {"cwd": project, "HOME": str(tmp_path), "USERPROFILE": str(tmp_path)}

    def doctor() -> str:
        rows = json.loads(commonplace("doctor", "--json", **place, PATH="").stdout)["agents"]
        return next(str(row["condition"]) for row in rows if row["agent"] == name)

    done = commonplace("setup", name, f"--{scope}", "--yes", **place)
    before = doctor()
    ran = own_home / ".state" / "hooks" / name
    ran.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
    ran.touch()
    after = doctor()
    undone = commonplace("setup", name, f"--{scope}", "--undo", "--yes", **place)

    assert before == condition
    assert condition in done.stderr
    assert after == ""
    assert not condition or condition not in undone.stderr


def test_the_agents_that_ask_first_are_those_that_were_seen_to() -> None:
    asking = {
        scope: {agent.name for agent in agents.all() if agent.condition(scope)}
        for scope in ("user", "project")
    }

    assert asking == {"user": {"codex"}, "project": {"claude-code", "codex", "gemini", "copilot"}}


def test_doctor_says_who_is_wired_and_when_a_hook_last_ran(
    commonplace: Callable[..., Any], project: Path, own_home: Path
) -> None:
    git("init", "-q", cwd=project)
    commonplace("setup", "claude-code", "vscode", "--project", cwd=project)
    ran = own_home / ".state" / "hooks" / "claude-code"
    ran.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
    ran.touch()
    os.utime(ran, (1_763_208_000, 1_763_208_000))

    rows = {
        row["agent"]: row
        for row in json.loads(commonplace("doctor", "--json", cwd=project, PATH="").stdout)[
            "agents"
        ]
    }
    said = commonplace("doctor", cwd=project).stdout

    assert rows["claude-code"]["parts"] == ["hooks", "MCP server", "instructions"]
    assert rows["claude-code"]["hook_last_ran"] == "2025-11-15T12:00:00Z"
    assert rows["vscode"]["scope"] == "project"
    assert (
        "set up for the project: hooks, MCP server, instructions; its hook last ran 2025-11-15T12:00:00Z"
        in said
    )


@pytest.mark.skipif(os.name == "nt", reason="a closed pipe is another error there")
def test_a_reader_that_stops_reading_does_not_stop_the_setup(tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    environment.pop("COMMONPLACE_HOME", None)
    reader, writer = os.pipe()
    os.close(reader)

    done = subprocess.run(
        [sys.executable, "-m", "commonplace", "setup", "claude-code", "--yes"],
        stdout=writer,
        stdin=subprocess.DEVNULL,
        env=environment,
        check=False,
    )
    os.close(writer)

    assert done.returncode == 0
    assert "commonplace-hook" in (tmp_path / ".claude" / "settings.json").read_text()
