"""Events: every agent's payloads become the same few values, whatever they are called, and nothing breaks on them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace import agents
from commonplace.sessions import events, tool_call
from commonplace.sessions.events import Event, is_own_work
from commonplace.sessions.payload import read_event
from commonplace.sessions.replies import context_reply
from conftest import ROOT

DATA = ROOT / "tests" / "data" / "hooks"
PAYLOADS = sorted(DATA.glob("*/*.json"))
SHOWN = (
    "kind",
    "session",
    "called",
    "source",
    "subagent",
    "tool",
    "command",
    "files",
    "output",
    "error",
    "prompt",
)


def agent_of(path: Path) -> str:
    return path.parent.name.removesuffix("-pascal")


def payload(path: Path, cwd: Path) -> bytes:
    return path.read_bytes().replace(b'"/project', json.dumps(str(cwd)).encode()[:-1])


def event(agent: str, tmp_path: Path, **fields: Any) -> Event | None:
    raw = json.dumps({"session_id": "s", "cwd": str(tmp_path), **fields}).encode()
    return read_event(agent, raw, at=1000.0, cwd=str(tmp_path))


def test_every_payload_becomes_what_it_did_before(tmp_path: Path) -> None:
    golden = DATA / "golden.json"
    seen = {}
    for path in PAYLOADS:
        found = read_event(agent_of(path), payload(path, tmp_path), at=1000.0, cwd=str(tmp_path))
        assert found is not None, path
        shown = {name: getattr(found, name) for name in SHOWN if getattr(found, name)}
        seen[f"{path.parent.name}/{path.stem}"] = json.loads(
            json.dumps(shown).replace(json.dumps(str(tmp_path))[1:-1], "/project")
        )
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(json.dumps(seen, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    assert seen == json.loads(golden.read_text("utf-8"))


@pytest.mark.parametrize("dialect", sorted({path.parent.name for path in PAYLOADS}))
def test_every_dialect_tells_of_the_same_session(dialect: str, tmp_path: Path) -> None:
    paths = [path for path in PAYLOADS if path.parent.name == dialect]
    found = [
        read_event(agent_of(path), payload(path, tmp_path), at=1000.0, cwd=str(tmp_path))
        for path in paths
    ]
    by_number = {path.stem[:2]: one for path, one in zip(paths, found, strict=True)}
    kinds = {number: one.kind for number, one in by_number.items() if one is not None}

    wanted = {
        "01": "start",
        "02": "prompt",
        "03": "failure",
        "04": "tool",
        "05": "tool",
        "06": "tool",
        # Gemini CLI announces a compaction before every request, whether there is one or not.
        "07": "stop" if dialect == "gemini" else "compact",
    }
    wanted |= {"08": "start", "09": "stop", "10": "subagent_stop", "11": "end"}
    assert kinds == {number: kind for number, kind in wanted.items() if number in kinds}
    assert {"01", "02", "03", "04", "05", "06", "07", "09", "11"} <= set(kinds)
    assert len({one.session for one in by_number.values() if one}) == 1
    assert by_number["03"]
    assert "EACCES" in by_number["03"].error
    assert by_number["03"].command == "npm install"
    assert by_number["04"]
    assert by_number["04"].command.endswith("npm ci")
    assert by_number["05"]
    assert list(by_number["05"].files) == ["src/server.ts"]
    assert by_number["05"].edits
    if "10" in kinds:
        assert by_number["10"]
        assert by_number["10"].subagent == "worker-supervisor"


def test_what_an_agent_reads_is_in_its_own_form(tmp_path: Path) -> None:
    for dialect, start, prompt in (
        (
            "claude-code",
            {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "x"}},
            "UserPromptSubmit",
        ),
        (
            "codex",
            {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "x"}},
            "UserPromptSubmit",
        ),
        (
            "gemini",
            {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "x"}},
            "BeforeAgent",
        ),
        (
            "opencode",
            {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "x"}},
            "UserPromptSubmit",
        ),
        ("cursor", {"additional_context": "x"}, ""),
        ("copilot", {"additionalContext": "x"}, ""),
    ):
        paths = {path.stem[:2]: path for path in PAYLOADS if path.parent.name == dialect}
        said = {}
        for number, path in paths.items():
            found = read_event(dialect, payload(path, tmp_path), at=1.0, cwd=str(tmp_path))
            assert found is not None
            said[number] = context_reply(found, "x")
        assert json.loads(said["01"]) == start
        named = {"hookSpecificOutput": {"hookEventName": prompt, "additionalContext": "x"}}
        assert said["02"] == "" if not prompt else json.loads(said["02"]) == named
        assert not any(said[number] for number in said if number not in ("01", "02", "08")), dialect


def test_copilot_reads_its_own_form_though_claude_s_settings_named_the_hook(tmp_path: Path) -> None:
    raw = json.dumps(
        {"hook_event_name": "SessionStart", "session_id": "s", "cwd": str(tmp_path)}
    ).encode()
    found = read_event("claude-code", raw, at=1.0, cwd=str(tmp_path), environment=["COPILOT_CLI"])

    assert found is not None
    assert found.name == "copilot"
    assert json.loads(context_reply(found, "x")) == {"additionalContext": "x"}


def test_an_agent_that_another_one_started_is_itself(tmp_path: Path) -> None:
    """`codex exec` in a shell of Claude Code inherits its environment, and would refuse an answer in another's form."""
    raw = json.dumps(
        {"hook_event_name": "SessionStart", "session_id": "s", "cwd": str(tmp_path)}
    ).encode()
    for dialect, variable in (
        ("codex", "CLAUDECODE"),
        ("codex", "COPILOT_CLI"),
        ("gemini", "CURSOR_VERSION"),
    ):
        found = read_event(dialect, raw, at=1.0, cwd=str(tmp_path), environment=[variable])
        assert found is not None
        assert found.name == dialect
        assert list(json.loads(context_reply(found, "x"))) == ["hookSpecificOutput"]


def test_the_same_event_in_two_dialects_has_one_key(tmp_path: Path) -> None:
    common = {
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "make"},
        "tool_use_id": "t",
    }
    ours = event("cursor", tmp_path, **common)
    theirs = event("claude-code", tmp_path, **common, tool_response={"stdout": "x"}, extra=1)

    assert ours
    assert theirs
    assert ours.key == theirs.key


@pytest.mark.parametrize(
    ("answer", "agent", "failed"),
    [
        ({"stdout": "fine", "stderr": "warning: x", "interrupted": False}, "claude-code", False),
        ({"is_error": True, "content": [{"type": "text", "text": "no"}]}, "claude-code", True),
        ({"exit_code": 2, "output": ""}, "codex", True),
        ('{"output":"boom","metadata":{"exit_code":1,"duration_seconds":0.1}}', "codex", True),
        ("Chunk ID: a\nProcess exited with code 7\nFinal output:\n", "codex", True),
        ("Chunk ID: a\nProcess exited with code 0\nFinal output:\nerror: nothing, really", "codex", False),
        ("make: *** [all] Error 2", "codex", True),
        ("zsh: command not found: bd", "codex", True),
        ("bd: command not found", "codex", True),
        ("all 12 tests passed", "codex", False),
        ("error: in a log that somebody reads", "codex", True),
        ({"llmContent": "Output: x\nError: (none)\nExit Code: 0"}, "gemini", False),
        ({"llmContent": "x", "error": {"message": "File not found", "type": "not_found"}}, "gemini", True),
        ({"resultType": "denied", "textResultForLlm": "no"}, "copilot", False),
        ({"result_type": "success", "text_result_for_llm": "no\n<shellId: 0 completed with exit code 2>"}, "copilot", True),
        ({"result_type": "success", "text_result_for_llm": "\n<shellId: 1 completed with exit code 0>"}, "copilot", False),
        ({"output": "x", "metadata": {"exit": 1}}, "opencode", True),
    ],
)  # fmt: skip
def test_failure_is_seen_in_every_agent_s_way_of_telling_it(
    answer: Any, agent: str, failed: bool, tmp_path: Path
) -> None:
    found = event(
        agent,
        tmp_path,
        hook_event_name="PostToolUse",
        tool_name="bash",
        tool_input={"command": "x"},
        tool_response=answer,
    )

    assert found is not None
    assert found.failed is failed


@pytest.mark.parametrize(
    ("agent", "called", "answer"),
    [
        (
            "claude-code",
            "PostToolUse",
            {"stdout": "LEARNED: exit code 137 is the OOM killer", "stderr": ""},
        ),
        ("claude-code", "PostToolUse", {"stdout": "the worker said:\nexit status 3", "stderr": ""}),
        ("codex", "PostToolUse", "[main 1a2b3c4] LEARNED: exit code 137 is the OOM killer"),
        (
            "gemini",
            "AfterTool",
            {"llmContent": "Command: echo 'exit code 137'\nOutput: exit code 137 is\nExit Code: 0"},
        ),
        (
            "copilot",
            "PostToolUse",
            {"text_result_for_llm": "exit code 137 is the OOM killer\n<exited with exit code 0>"},
        ),
    ],
)
def test_what_speaks_of_an_exit_code_has_not_failed(
    agent: str, called: str, answer: Any, tmp_path: Path
) -> None:
    given = {"command": "git commit -m 'LEARNED: exit code 137 is the OOM killer'"}
    found = event(
        agent,
        tmp_path,
        hook_event_name=called,
        tool_name="bash",
        tool_input=given,
        tool_response=answer,
    )

    assert found is not None
    assert found.kind == "tool"


@pytest.mark.parametrize(
    ("command", "printed_out", "failed"),
    [
        (
            "pytest -q 2>&1 | tail -5",
            "FAILED tests/test_a.py::test_b\n1 failed, 3 passed in 0.2s",
            True,
        ),
        ("npm test | tail", "Tests:       1 failed, 11 passed, 12 total", True),
        ("npx mocha | tail", "  3 passing\n  1 failing", True),
        ("go test ./... | tail -3", "--- FAIL: TestX (0.00s)\nFAIL", True),
        ("cargo test; echo done", "test result: FAILED. 1 passed; 1 failed", True),
        ("pytest -q | tail -5", "4 passed in 0.2s", False),
        ("pytest -q", "1 failed, as the code would tell", False),
        ("cat report.txt | tail", "1 failed, 3 passed", False),
    ],
)
def test_a_pipe_does_not_hide_a_failure(
    command: str, printed_out: str, failed: bool, tmp_path: Path
) -> None:
    answer = {"stdout": printed_out, "stderr": ""}
    gemini = {"llmContent": f"Output: (see below)\n{printed_out}\nError: (none)\nExit Code: 0"}
    for agent, called, said in (
        ("claude-code", "PostToolUse", answer),
        ("gemini", "AfterTool", gemini),
    ):
        given = {"command": command}
        found = event(
            agent,
            tmp_path,
            hook_event_name=called,
            tool_name="bash",
            tool_input=given,
            tool_response=said,
        )
        assert found is not None
        assert found.failed is failed


@given(place=st.integers(0, 6000), tail=st.integers(0, 6000))
def test_no_cut_leaves_half_of_a_secret(place: int, tail: int) -> None:
    lines = "\n".join(
        "MIIEpAIBAAKCAQEAz0Yq8wabcdEFGH1234abcdEFGH1234abcdEFGH1234abcdEF" for _ in range(24)
    )
    for secret, part in (
        ("ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8", "A1b2C3"),
        (
            f"-----BEGIN RSA PRIVATE KEY-----\n{lines}\n-----END RSA PRIVATE KEY-----",
            "abcdEFGH1234",
        ),
    ):
        text = f"{'x ' * (place // 2)}\n{secret}\n{'y ' * (tail // 2)}"
        kept = events.redact_event(
            Event("a", "failure", "s", 1.0, error=events.cut(text, 2000))
        ).error
        assert part not in kept


@pytest.mark.parametrize(
    ("tool", "command", "ours"),
    [
        ("mcp__commonplace__recall", "", True),
        ("mcp__plugin_commonplace_commonplace__remember", "", True),
        ("mcp_commonplace_recall", "", True),
        ("Bash", 'commonplace log --type learned --lesson "x"', True),
        ("Bash", "cd api && cpb recall 'npm EACCES'", True),
        ("Bash", "python3 -m commonplace doctor", True),
        ("Bash", "/usr/local/bin/commonplace recall x | head", False),
        ("Bash", "pip install commonplace && make", False),
        ("Bash", "git commit -m 'use commonplace'", False),
    ],
)
def test_our_own_tools_are_told_apart(tool: str, command: str, ours: bool, tmp_path: Path) -> None:
    found = event(
        "claude-code",
        tmp_path,
        hook_event_name="PostToolUse",
        tool_name=tool,
        tool_input={"command": command},
    )

    assert found is not None
    assert is_own_work(found) is ours


def test_secrets_leave_before_anything_is_kept(tmp_path: Path) -> None:
    secret = "ghp_" + "aB3dE6gH9" * 4
    found = event(
        "claude-code",
        tmp_path,
        hook_event_name="PostToolUse",
        tool_name="Bash",
        tool_input={"command": f"curl -H 'Authorization: Bearer {secret}' https://x.example"},
        tool_response={"stdout": f"token={secret}", "stderr": ""},
    )

    assert found is not None
    assert secret not in json.dumps(found._asdict())


def test_no_name_that_an_agent_sends_keeps_a_secret(tmp_path: Path) -> None:
    names = ("session_id", "reason", "agent_type", "tool_name", "tool_use_id", "hook_event_name")
    secrets = {name: f"ghp_{number}" + "aB3dE6gH9" * 4 for number, name in enumerate(names)}
    payload = {**secrets, "hook_event_name": "PostToolUse", "tool_input": {"command": "ls"}}

    found, other = (
        event("claude-code", tmp_path, **payload | {"session_id": session})
        for session in (secrets["session_id"], "ghp_9" + "aB3dE6gH9" * 4)
    )

    assert found is not None
    assert other is not None
    kept = json.dumps(found._asdict()).lower()
    assert not any(secret.lower() in kept for secret in secrets.values())
    assert found.session != other.session


def test_a_long_output_keeps_its_head_and_its_tail(tmp_path: Path) -> None:
    found = event("claude-code", tmp_path, hook_event_name="PostToolUse", tool_name="Bash",
                  tool_input={"command": "x"}, tool_response={"stdout": "HEAD" + "x" * 20_000_000 + "TAIL"})  # fmt: skip

    assert found is not None
    assert len(found.output) <= tool_call.OUTPUT_CHARS_MAX
    assert found.output.startswith("HEAD")
    assert found.output.endswith("TAIL")


def test_an_event_of_a_newer_version_is_passed_over_and_its_new_fields_too(tmp_path: Path) -> None:
    assert event("claude-code", tmp_path, hook_event_name="PostQuantumUse") is None
    found = event(
        "claude-code", tmp_path, hook_event_name="Stop", novelty={"deep": [1, {"er": None}]}
    )

    assert found is not None


AGENTS = [agent.name for agent in agents.all()]
EVENT_NAMES = sorted({name for agent in agents.all() for name in agent.events})
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4)
    ),
    max_leaves=12,
)
FIELDS = st.sampled_from(
    ["session_id", "cwd", "tool_name", "tool_input", "tool_response", "toolArgs", "toolResult", "prompt", "source",
     "error", "workspace_roots", "tool_use_id", "command", "output", "sessionId", "files", "file_path", "event"],
)  # fmt: skip


@given(
    st.dictionaries(FIELDS, JSON),
    st.sampled_from([*EVENT_NAMES, "", "x"]),
    st.sampled_from(AGENTS),
)
def test_no_payload_breaks_it_and_every_event_survives_the_spool(
    fields: dict[str, Any], called: str, agent: str
) -> None:
    found = read_event(
        agent, json.dumps({"hook_event_name": called, **fields}).encode(), at=1.0, cwd="/"
    )

    if found is not None:
        again = events.from_fields(json.loads(json.dumps(found._asdict())))
        assert again is not None
        assert again._replace(files=list(again.files)) == found._replace(files=list(found.files))
        json.dumps(found._asdict(), ensure_ascii=False).encode("utf-8")


@given(st.binary(max_size=300), st.sampled_from(AGENTS))
def test_no_bytes_break_it(raw: bytes, agent: str) -> None:
    read_event(agent, raw, at=1.0, cwd="/")
