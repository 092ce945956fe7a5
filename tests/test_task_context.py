"""What a session's episode says of its task: only what was stated, within bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.sessions import state
from commonplace.sessions.episode import LINKS_MAX
from commonplace.sessions.task_context import (
    CONSTRAINT_CHARS_MAX,
    CONSTRAINTS_MAX,
    constraints_in,
    phase_of,
)
from conftest import git, make_repository
from test_sessions import LEARNED, Agent, kinds

if TYPE_CHECKING:
    from pathlib import Path

    from commonplace.memory import Memory


@given(st.text(max_size=300))
def test_constraints_are_words_of_the_prompt_and_few(prompt: str) -> None:
    found = constraints_in(f"{prompt}\nYou must not touch the API.\n" * 20)

    assert len(found) <= CONSTRAINTS_MAX
    assert all(
        len(one) <= CONSTRAINT_CHARS_MAX and one in prompt + "You must not touch the API"
        for one in found
    )


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("Add the endpoint. Do not add dependencies.", ["Do not add dependencies"]),
        ("add it, but don't touch the schema", ["add it, but don't touch the schema"]),
        ("No third-party deps; responses < 200ms.", ["No third-party deps", "responses < 200ms"]),
        ("- must run on Python 3.11\n- nice colours", ["must run on Python 3.11"]),
        ("Refactor the parser without changing its output.",
         ["Refactor the parser without changing its output"]),
        ("1. Never log tokens\n2. Write tests", ["Never log tokens"]),
        # What is no constraint:
        ("I don't understand why the test never finishes", []),
        ("Must I use uv here?", []),
        ("```\nraise ValueError('must not be empty')\n```\nfix this", []),
        ("    assert x  # must not happen", []),
        ("> you must not do that", []),
        ("at foo (must.js:3)", []),
        ("the build fails without network", []),
        ("", []),
    ],
)  # fmt: skip
def test_the_constraints_that_a_prompt_states(prompt: str, expected: list[str]) -> None:
    assert constraints_in(prompt) == expected


@pytest.mark.parametrize(
    ("mode", "role", "branch", "phase"),
    [
        ("plan", "", "fix/login", "planning"),
        ("acceptEdits", "", "fix/login", "debugging"),
        ("", "", "feat/todos", "development"),
        ("", "", "docs/howto", "documentation"),
        ("", "code-reviewer", "feat/todos", "review"),
        ("", "qa-001", "main", "testing"),
        ("", "", "main", ""),
        ("", "", "fix", ""),
        ("", "", "ana/fix-login", ""),
        ("default", "general-purpose", "", ""),
    ],
)
def test_the_phase_is_what_mode_agent_or_branch_states(
    mode: str, role: str, branch: str, phase: str
) -> None:
    assert phase_of(mode, role, branch) == phase


def test_an_episode_of_hooks_has_phase_constraints_and_links(
    memory: Memory, tmp_path: Path
) -> None:
    root = make_repository(tmp_path / "project")
    git("checkout", "-q", "-b", "feat/kettle", cwd=root)
    given_lesson = memory.log(lesson="descale the kettle with vinegar", repo="project")
    agent = Agent(memory, root)
    agent.tell("SessionStart", source="startup")
    agent.tell("UserPromptSubmit", prompt="Build the kettle. Do not use plastic parts.")
    agent.tell("UserPromptSubmit", prompt="and you must keep it under 2 kg")
    agent.run(LEARNED.format("copper conducts heat best"))
    agent.run("make")
    agent.tell("SessionEnd", reason="exit")

    (episode,) = kinds(memory, "episode")
    learned = [one for one in kinds(memory, "lesson") if "copper" in one["lesson"]]
    assert episode["context"]["phase"] == "development"
    assert episode["context"]["constraints"] == [
        "Do not use plastic parts",
        "and you must keep it under 2 kg",
    ]
    links = {link["to"]: link["w"] for link in episode["links"]}
    assert links[learned[0]["id"]] == 1.0
    assert links.get(given_lesson.id, 0.5) == 0.5
    assert {link["rel"] for link in episode["links"]} == {"related_to"}


def test_plan_mode_is_the_phase_while_it_lasts(memory: Memory, tmp_path: Path) -> None:
    agent = Agent(memory, make_repository(tmp_path / "project"))
    agent.tell("UserPromptSubmit", prompt="how would you build a kettle", permission_mode="plan")
    agent.run("ls", permission_mode="plan")
    agent.tell("Stop")
    (planned,) = kinds(memory, "episode")
    agent.run("make", permission_mode="acceptEdits")
    agent.tell("SessionEnd", reason="exit")
    (built,) = kinds(memory, "episode")

    assert planned["context"]["phase"] == "planning"
    assert "phase" not in built["context"]
    assert built["id"] == planned["id"]


def test_links_are_bounded_and_name_records_only(memory: Memory, tmp_path: Path) -> None:
    agent = Agent(memory, make_repository(tmp_path / "project"))
    agent.run("make")
    session = state.load(memory.home, "s-1")
    session.mark_shown(["skill:brew", "note:ana/tea.md", *(f"les-{n}" for n in range(50))])
    session.mark_logged([f"own-{n}" for n in range(3)])
    session.save()
    agent.tell("SessionEnd", reason="exit")

    (episode,) = kinds(memory, "episode")
    linked = [link["to"] for link in episode["links"]]
    assert len(linked) == LINKS_MAX
    assert linked[:4] == ["own-0", "own-1", "own-2", "les-49"]
    assert not any(":" in ident for ident in linked)
