"""`make agents-e2e`: its parts, and what the agents' own programs sent when it last ran."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tools.e2e import dialects, fixtures, script
from tools.e2e.dialects import DIALECTS, Call, Dialect, Reply
from tools.e2e.drivers import DRIVERS
from tools.e2e.model import FULL, TOKENS, Model
from tools.e2e.scenario import BUILD, CARRY_ON, CHECK, LESSON, SHOWN
from tools.e2e.script import SUMMARY, Act, Item

from conftest import git

ACTS = (BUILD, CARRY_ON, CHECK)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)  # fmt: skip
PATHS = {
    "anthropic": "/v1/messages?beta=true",
    "responses": "/v1/responses",
    "chat": "/v1/chat/completions",
    "gemini": "/v1beta/models/scripted:streamGenerateContent?alt=sse",
}


# --- What the agents sent -------------------------------------------------------------------------


@pytest.mark.parametrize("agent", DRIVERS)
def test_what_an_agent_sent_becomes_a_lesson_and_a_candidate(
    agent: str, tmp_path: Path, own_home: Path, commonplace: Any
) -> None:
    """The payloads of a real session, fed to the hook in their order."""
    fixture = fixtures.read(agent)
    assert fixture is not None
    assert fixture["version"]
    project = tmp_path / "project"
    project.mkdir()
    git("init", "-q", cwd=project)
    own_home.mkdir(exist_ok=True)
    replies: dict[tuple[str, str], str] = {}
    for event in fixture["events"]:
        text = json.dumps(event["payload"]).replace(
            f"{fixtures.SCRATCH}/home/project", json.dumps(str(project))[1:-1]
        )
        # Without `--ensure`, which would start a server.
        arguments = [word for word in event["arguments"] if not word.startswith("-")]
        done = subprocess.run(
            [sys.executable, "-c", "from commonplace.hooks import main; main()", *arguments],
            input=text.encode(),
            capture_output=True,
            cwd=project,
            check=True,
        )
        assert done.stderr == b""
        name, source = fixtures.event_name(event["payload"]), event["payload"].get("source", "")
        replies[name, source] = done.stdout.decode()

    assert LESSON in commonplace("recall", "make config", cwd=project).stdout
    candidates = commonplace("inbox", "--json", cwd=project).stdout
    assert "make build V=1" in candidates
    resumed = [reply for key, reply in replies.items() if key[1] in ("resume", "compact")]
    assert resumed
    assert all(SHOWN in json.dumps(json.loads(reply), ensure_ascii=False) for reply in resumed)


@pytest.mark.parametrize("agent", DRIVERS)
def test_a_fixture_has_nothing_of_the_machine_it_was_made_on(agent: str) -> None:
    text = json.dumps(fixtures.read(agent))

    assert fixtures.scrub(json.loads(text), "/not/there") == json.loads(text)
    assert not re.search(r'"/(?!scratch|v1)', text)


@pytest.mark.parametrize("agent", DRIVERS)
def test_a_fixture_does_not_differ_from_itself_and_every_change_is_named(agent: str) -> None:
    fixture = fixtures.read(agent)
    assert fixture is not None
    changed = json.loads(json.dumps(fixture))
    first = changed["events"][0]["payload"]
    first["brand_new"] = {"inner": 1}
    name = fixtures.event_name(first)
    del first["cwd"]
    changed["events"] = [
        event
        for event in changed["events"]
        if fixtures.event_name(event["payload"]) != name or event["payload"] is first
    ]
    changed["request"] = changed["request"][1:]

    said = fixtures.differences(fixture, changed)

    assert fixtures.differences(fixture, fixture) == []
    assert f"{name} now has brand_new.inner: number" in said
    assert f"{name} no longer has cwd: str" in said
    assert any(line.startswith("(request) no longer has") for line in said)


@given(JSON, JSON)
def test_two_payloads_differ_exactly_if_their_shapes_do(one: Any, other: Any) -> None:
    def run(payload: Any) -> dict[str, Any]:
        events = [{"payload": {"hook_event_name": "Stop", "more": payload}}]
        return {"events": events, "request": []}

    same = fixtures.shape({"more": one}) == fixtures.shape({"more": other})
    assert (fixtures.differences(run(one), run(other)) == []) is same


@given(st.lists(st.uuids().map(str), min_size=1, max_size=5))
def test_scrubbing_keeps_which_ids_are_equal(ids: list[str]) -> None:
    value = [{"session_id": one, "cwd": f"/s/{one}/x"} for one in [*ids, *ids]]

    found = fixtures.scrub(value, "/s")

    assert all(one not in json.dumps(found) for one in ids)
    assert len({row["session_id"] for row in found}) == len(set(ids))
    assert [row["cwd"] for row in found] == [f"/scratch/{row['session_id']}/x" for row in found]


# --- The scripted model ---------------------------------------------------------------------------


@given(st.integers(0, 6))
def test_the_next_command_follows_from_the_number_of_results(done: int) -> None:
    items = [Item("other", "system"), Item("user", f'"{BUILD.prompt}"')]
    items += [Item("result", "ok")] * done

    answer = script.answer(ACTS, items, with_tools=True)

    commands = BUILD.commands
    wanted = commands[done] if done < len(commands) else ""
    assert (answer.command, bool(answer.text)) == (wanted, not wanted)


def test_a_request_for_a_summary_or_a_title_gets_no_command() -> None:
    start = [Item("user", BUILD.prompt), Item("result", "ok")]
    summary = [*start, Item("user", "Write a detailed summary of this.")]

    assert script.answer(ACTS, summary, with_tools=True).text == SUMMARY
    assert script.answer(ACTS, start, with_tools=False).text == script.OTHER
    assert script.answer(ACTS, [Item("user", "hello")], with_tools=True).text == script.OTHER


def conversation(dialect: str, prompt: str, results: int) -> dict[str, Any]:
    """A request in the form of *dialect*, with a tool and *results* of it."""
    tool = {"name": "shell", "function": {"name": "shell"}}
    if dialect == "responses":
        given: list[Any] = [{"role": "user", "content": [{"type": "input_text", "text": prompt}]}]
        given += [{"type": "function_call_output", "output": "ok"}] * results
        return {"input": given, "tools": [tool], "stream": True}
    if dialect == "gemini":
        contents: list[Any] = [{"role": "user", "parts": [{"text": prompt}]}]
        contents += [{"role": "user", "parts": [{"functionResponse": {"name": "shell"}}]}] * results
        return {"contents": contents, "tools": [{"functionDeclarations": [tool]}]}
    messages: list[Any] = [{"role": "user", "content": [{"type": "text", "text": prompt}]}]
    result: dict[str, Any] = {"role": "tool", "content": "ok"}
    if dialect == "anthropic":
        result = {"role": "user", "content": [{"type": "tool_result", "content": "ok"}]}
    return {"messages": messages + [result] * results, "tools": [tool], "stream": True}


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda one: one.name)
def test_every_dialect_reads_a_request_and_streams_an_answer(dialect: Dialect) -> None:
    body = conversation(dialect.name, BUILD.prompt, 1)

    assert dialects.of_path(PATHS[dialect.name]) == dialect
    assert [item.kind for item in dialect.items(body) if item.kind != "other"] == ["user", "result"]
    assert dialect.tools(body) == ["shell"]
    for call, text in ((Call("shell", {"command": "x"}), ""), (None, "done")):
        stream = dialect.stream(Reply(call, text, 7, 1, "scripted")).decode()
        data = [line.removeprefix("data: ") for line in stream.splitlines() if line[:5] == "data:"]
        assert [json.loads(one) for one in data if one != "[DONE]"]
        assert ("shell" in stream) is (call is not None)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda one: one.name)
def test_the_model_answers_on_loopback_and_keeps_what_it_was_asked(dialect: Dialect) -> None:
    acts = (Act("go", ("make build",), "Built."),)
    with Model(acts, lambda command, _tools: Call("shell", {"command": command})) as model:
        model.full = True
        answers = []
        for results in (0, 1):
            body = json.dumps(conversation(dialect.name, "go", results)).encode()
            request = urllib.request.Request(model.url + PATHS[dialect.name], body)
            with urllib.request.urlopen(request, timeout=30) as reply:
                answers.append(reply.read().decode())

    assert "make build" in answers[0]
    assert str(FULL) in answers[0]
    assert "Built." in answers[1]
    assert str(TOKENS) in answers[1]
    assert str(FULL) not in answers[1]
    assert [request.dialect for request in model.requests] == [dialect.name] * 2
