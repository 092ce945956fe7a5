"""What patterns, anti-patterns and handoffs say is the same sentence everywhere."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.cli.consolidate import _text as consolidated
from commonplace.cli.history import summary
from commonplace.compose.answer import summary_line
from commonplace.memory import Memory
from commonplace.records import make
from commonplace.records.sentences import sentence_of
from commonplace.sessions.start import _text as at_session_start
from conftest import make_repository

if TYPE_CHECKING:
    from pathlib import Path

    from commonplace.records import Record

ANTI = {
    "kind": "anti_pattern", "id": "anti-npm", "what_fails": "npm ci",
    "why": "EACCES: permission denied", "prevention": "chown node_modules before npm ci",
}  # fmt: skip
PATTERN = {
    "kind": "pattern", "id": "pat-gen", "pattern": "Generated code is missing after npm ci",
    "correct_approach": "make gen",
}  # fmt: skip
NPM_CI = "npm ci fails: EACCES: permission denied. Instead: chown node_modules before npm ci"
GENERATED = "Generated code is missing after npm ci: make gen"


def record_of(fields: dict[str, Any]) -> Record:
    return make(fields, now=datetime(2026, 1, 7, tzinfo=UTC), repo="app", agent_id="dev")


def handoff(**context: Any) -> dict[str, Any]:
    return {"kind": "handoff", "from_agent": "dev", "to_agent": "qa", "context": context}


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (ANTI, NPM_CI),
        ({**ANTI, "why": ""}, "npm ci fails. Instead: chown node_modules before npm ci"),
        ({**ANTI, "why": "No rights. "}, NPM_CI.replace("EACCES: permission denied", "No rights")),
        ({**ANTI, "why": "npm ci", "prevention": ""}, "npm ci fails."),
        ({**ANTI, "prevention": ""}, "npm ci fails: EACCES: permission denied."),
        ({**ANTI, "what_fails": "npm ci fails", "prevention": "", "why": ""}, "npm ci fails."),
        (PATTERN, GENERATED),
        ({**PATTERN, "correct_approach": ""}, PATTERN["pattern"]),
        ({**PATTERN, "pattern": "Run  make gen.", "correct_approach": "Run make gen"}, "Run make gen."),
        (
            handoff(what_was_done="GraphQL.", needs_testing=["login", "a b"], git_state="commit 1"),
            "Handoff from dev to qa: GraphQL. Needs testing: login; a b",
        ),
        (
            handoff(what_was_done="GraphQL", known_issues=["slow"]),
            "Handoff from dev to qa: GraphQL. Known issues: slow",
        ),
        (handoff(todo="the login"), "Handoff from dev to qa: todo: the login."),
        (handoff(), "Handoff from dev to qa."),
        ({"kind": "lesson", "event_type": "learned", "lesson": "x"}, ""),
    ],
)  # fmt: skip
def test_each_kind_has_its_sentence(fields: dict[str, Any], sentence: str) -> None:
    assert " ".join(sentence_of(record_of(fields)).split()) == sentence


WORDS = st.text("ab .:`$\n", max_size=300)


@given(WORDS.filter(str.strip), WORDS, WORDS)
def test_what_to_do_is_told_as_it_is_stored_after_its_label(what: str, why: str, do: str) -> None:
    record = record_of({**ANTI, "what_fails": what, "why": why, "prevention": do})
    for is_short in (False, True):
        sentence = sentence_of(record, short=is_short)
        assert ("Instead: " in sentence) is bool(do.strip())
        assert sentence.endswith(f"Instead: {do}" if do.strip() else ".")


@pytest.mark.parametrize(("fields", "sentence"), [(ANTI, NPM_CI), (PATTERN, GENERATED)])
def test_every_surface_shows_the_sentence(
    own_home: Path, tmp_path: Path, fields: dict[str, Any], sentence: str
) -> None:
    make_repository(tmp_path / "project")
    settings = {"embedder.kind": "none"}
    with Memory.open(own_home, cwd=tmp_path / "project", settings=settings) as memory:
        memory.append([{**fields, "repo": memory.repository.name}])
        memory.checkpoint("dev", task="t", patterns=[fields["id"]])
        goal = "npm ci permission denied"
        record = memory.get(fields["id"])
        shown = {
            "recall": memory.recall("npm ci").text,
            "recent": memory.recent(1, kinds=[fields["kind"]])[0].text,
            "brief": memory.before_task(goal).text,
            "continuity": memory.update_continuity(goal).section,
            "ledger": memory.resume("dev").text,
            "consolidate": consolidated(record),
            "history": summary(record),
            "session start": at_session_start(record),
            "line": summary_line(record),
        }

    assert [name for name, text in shown.items() if sentence not in text] == []


def test_a_long_anti_pattern_marks_its_fix_too(own_home: Path) -> None:
    why = " ".join(f"Line {number} of the report says npm has no rights." for number in range(30))
    with Memory.open(own_home, settings={"embedder.kind": "none"}) as memory:
        memory.append([{**ANTI, "why": why, "repo": "app"}])
        answer = memory.recall("npm ci rights", repo="app", tokens_max=600).text
        line = memory.recent(1, repo="app")[0].text

    assert "Instead: chown node_modules before npm ci" in answer
    assert "Instead: chown" in line
