"""Episodes: every field that is recorded comes back, and an answer tells them in a sentence or two."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.characters import remove_hidden
from commonplace.errors import RecordInvalid
from commonplace.exchange.exporter import export_layout
from commonplace.index.document import document
from commonplace.memory import Memory
from commonplace.records import Episode, to_utc
from commonplace.records.episodes import errors_of, summarise
from conftest import SLOW_LAW
from test_sessions import Agent, kinds

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SEED: dict[str, Any] = {
    "id": "ep-2026-01-06-001",
    "task_id": "task-042",
    "timestamp": "2026-01-06T10:30:00Z",
    "duration_seconds": 342,
    "agent": "eng-001-backend",
    "context": {
        "phase": "development",
        "goal": "Implement POST /api/todos endpoint",
        "constraints": ["No third-party deps", "< 200ms response"],
        "files_involved": ["src/routes/todos.ts", "src/db/todos.ts"],
    },
    "action_log": [
        {"t": 0, "action": "read_file", "target": "openapi.yaml"},
        {"t": 5, "action": "write_file", "target": "src/routes/todos.ts"},
        {"t": 120, "action": "run_test", "result": "fail", "error": "missing return type"},
        {"t": 140, "action": "edit_file", "target": "src/routes/todos.ts"},
        {"t": 180, "action": "run_test", "result": "pass"},
    ],
    "outcome": "success",
    "errors_encountered": [
        {
            "type": "TypeScript compilation",
            "message": "Missing return type annotation",
            "resolution": "Added explicit :void to route handler",
        }
    ],
    "artifacts_produced": ["src/routes/todos.ts", "tests/todos.test.ts"],
    "git_commit": "abc123",
}
TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"]),
    min_size=1,
    max_size=30,
).filter(lambda text: text.strip() and remove_hidden(text) == text)
TEXTS = st.lists(TEXT, max_size=3)
NUMBER = st.one_of(st.integers(0, 10**6), st.floats(0, 1e6, allow_nan=False))
EPISODES = st.fixed_dictionaries(
    {"task_id": TEXT},
    optional={
        "id": st.from_regex(r"ep-[a-z0-9.]{1,12}", fullmatch=True),
        "timestamp": st.datetimes().map(lambda at: at.replace(microsecond=0).isoformat() + "Z"),
        "duration_seconds": NUMBER,
        "agent": TEXT,
        "context": st.fixed_dictionaries(
            {},
            optional={
                "phase": TEXT,
                "goal": TEXT,
                "constraints": TEXTS,
                "files_involved": TEXTS,
                "theirs": NUMBER,
            },
        ),
        "action_log": st.lists(
            st.fixed_dictionaries(
                {"t": NUMBER, "action": TEXT},
                optional={"target": TEXT, "result": TEXT, "error": TEXT, "theirs": TEXTS},
            ),
            max_size=3,
        ),
        "outcome": TEXT,
        "errors_encountered": st.lists(
            st.fixed_dictionaries(
                {}, optional={"type": TEXT, "message": TEXT, "resolution": TEXT, "theirs": NUMBER}
            ),
            max_size=3,
        ),
        "artifacts_produced": TEXTS,
        "git_commit": TEXT,
        "theirs": st.dictionaries(TEXT, TEXTS, max_size=2),
    },
)


def exported(memory: Memory) -> list[dict[str, Any]]:
    return [json.loads(line) for line in memory.export_lines(kind="episode")]


# --- Laws -------------------------------------------------------------------------------------------------


@SLOW_LAW
@given(EPISODES)
def test_what_is_recorded_is_exported_field_by_field(
    tmp_path: Path, episode: dict[str, Any]
) -> None:
    shutil.rmtree(tmp_path / "one", ignore_errors=True)
    with Memory.open(tmp_path / "one") as memory:
        memory.record_episode(json.loads(json.dumps(episode)))
        (stored,) = exported(memory)

    given_fields = {"agent_id" if name == "agent" else name: v for name, v in episode.items()}
    if "timestamp" in given_fields:
        given_fields["timestamp"] = to_utc(given_fields["timestamp"])
    assert {name: stored.get(name) for name in given_fields} == given_fields
    assert "agent" not in stored


@given(EPISODES)
def test_no_summary_tells_an_action_or_is_long(episode: dict[str, Any]) -> None:
    mark = "no text of an episode is as long as this mark"
    marked = {**episode, "action_log": [{"t": 0, "action": mark, "target": mark, "error": mark}]}
    record = Episode({"kind": "episode", **marked})
    found = document(record)

    assert mark not in found.text + found.shown
    assert found.shown == summarise(record)
    assert len(summarise(record)) < 1500


@given(EPISODES)
def test_goal_errors_files_and_constraints_are_searched(episode: dict[str, Any]) -> None:
    record = Episode({"kind": "episode", **episode})
    text = " ".join(document(record).text.split())
    context = episode.get("context", {})
    wanted = [context.get("goal", ""), *context.get("files_involved", [])]
    wanted += context.get("constraints", [])
    for error in errors_of(record):
        wanted += [part.rstrip(". ") for part in error]

    assert [one for one in wanted if " ".join(one.split()) not in text] == []


WRONG: dict[str, Any] = {
    "task_id": [3, "", None, ["a"]],
    "timestamp": ["yesterday", 5],
    "duration_seconds": ["long", -1, True],
    "agent": [7, {}],
    "context": ["text", [], {"goal": 3}, {"constraints": "one"}, {"files_involved": [1]}],
    "action_log": [{}, ["text"], [{"t": "soon"}], [{"t": 0, "action": 3}]],
    "outcome": [1, []],
    "errors_encountered": ["text", [3], [{"type": 1}], [{"resolution": ["a"]}]],
    "artifacts_produced": ["a", [1]],
    "git_commit": [1],
    "id": [5, "two words"],
    "kind": ["lesson"],
    "repo": [3, "a/b/c:d"],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in WRONG.items() for value in values]
)
def test_a_field_of_the_wrong_type_is_refused_and_named(
    memory: Memory, name: str, value: object
) -> None:
    with pytest.raises(RecordInvalid) as refusal:
        memory.record_episode({**SEED, name: value})

    assert name in str(refusal.value)
    assert list(memory.records()) == []


# --- The command and the library ---------------------------------------------------------------------------


def test_the_seed_s_episode_is_kept_by_the_command(
    commonplace: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "task.json").write_text(json.dumps(SEED, indent=2))
    from_file = commonplace("episode", "record", "task.json")
    from_stdin = commonplace("episode", "record", "-", stdin=json.dumps(SEED))
    shown = json.loads(commonplace("show", SEED["id"], "--json").stdout)

    assert (from_file.stdout, from_stdin.stdout) == (f"{SEED['id']}\n", f"{SEED['id']}\n")
    assert {name: shown.get(name) for name in SEED if name != "agent"} == {
        name: value for name, value in SEED.items() if name != "agent"
    }
    assert shown["agent_id"] == "eng-001-backend"


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("not json", "not a JSON object"),
        ("[]", "not a JSON object"),
        ("", "not a JSON object"),
        (b"\xff\xfe", "UTF-8"),
        ('{"task_id": 3}', "`task_id` must be text"),
        ("{}", "`task_id` is missing"),
        ("[" * 5000, "not a JSON object"),
    ],
)
def test_what_is_no_episode_is_refused_in_a_sentence(
    commonplace: Callable[..., Any], own_home: Path, raw: str | bytes, reason: str
) -> None:
    done = commonplace("episode", "record", "-", stdin=raw)

    assert done.returncode == 3
    assert done.stderr.startswith("error: ")
    assert reason in done.stderr
    assert "Traceback" not in done.stderr
    assert not list((own_home / "log").glob("*.jsonl"))


@pytest.mark.parametrize("name", ["missing.json", "."])
def test_a_file_that_cannot_be_read_is_named(commonplace: Callable[..., Any], name: str) -> None:
    done = commonplace("episode", "record", name)

    assert done.returncode == 2
    assert f"`{name}` cannot be read" in done.stderr


def test_an_episode_takes_keywords_and_the_agent_of_the_memory(memory: Memory) -> None:
    record = memory.record_episode(task_id="t-1", context={"goal": "brew tea"}, outcome="success")

    assert (record.kind, record.agent_id) == ("episode", "default")
    assert record.id.startswith("ep-")


def test_secrets_are_redacted(memory: Memory) -> None:
    key = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    record = memory.record_episode({**SEED, "action_log": [{"t": 0, "action": f"export T={key}"}]})

    assert key not in json.dumps(record.fields)
    assert record.redactions


# --- Recall -----------------------------------------------------------------------------------------------


def test_an_episode_is_told_in_two_sentences(memory: Memory) -> None:
    memory.record_episode(SEED)

    assert summarise(memory.get(SEED["id"])) == (
        "Implement POST /api/todos endpoint (success). TypeScript compilation failed: Missing return"
        " type annotation. Fixed by: Added explicit :void to route handler"
    )
    for question in ("missing return type annotation", "todos.ts", "No third-party deps"):
        answer = memory.recall(question)
        assert [hit.id for hit in answer.hits] == [SEED["id"]]
        assert "Added explicit :void" in answer.text
        assert "read_file" not in answer.text
    assert not memory.recall("openapi.yaml").hits


def test_the_command_that_fixed_it_is_told_as_it_was_typed(memory: Memory) -> None:
    error = {"type": "npm install", "message": "EACCES.", "resolution": "sudo chown -R $USER ."}
    memory.record_episode({**SEED, "errors_encountered": [error]})

    assert summarise(memory.get(SEED["id"])).endswith("EACCES. Fixed by: sudo chown -R $USER .")


def test_what_a_failed_task_noted_is_not_told_as_a_fix(memory: Memory) -> None:
    memory.record_episode({**SEED, "outcome": "failure"})
    answer = memory.recall("missing return type annotation").text

    assert "Noted as the fix, but the task failed: Added explicit :void" in answer
    assert "Fixed by" not in answer


def test_of_many_errors_the_one_that_was_asked_for_is_told(memory: Memory) -> None:
    errors = [
        {"type": f"tool-{n}", "message": f"gadget{n} jammed", "resolution": f"oil gadget{n}"}
        for n in range(12)
    ]
    memory.record_episode({**SEED, "errors_encountered": errors})

    for number in (0, 7, 11):
        text = memory.recall(f"gadget{number} jammed", tokens_max=120).text
        assert f"oil gadget{number}" in text
        assert text.count("Fixed by") <= 2


def test_a_lesson_ranks_above_the_episodes_that_it_sums_up(memory: Memory) -> None:
    for number in range(15):
        memory.record_episode(
            {
                **SEED,
                "id": f"ep-{number}",
                "task_id": f"t-{number}",
                "context": {"goal": f"Missing return type annotation in route number {number}"},
            }
        )
    lesson = memory.log(
        lesson="Put an explicit :void on each route handler; it was added everywhere",
        context="strict TypeScript wants a return type",
    )
    unrelated = memory.log(lesson="A road sign of the missing type is in the city map")

    question = "Missing return type annotation in a route"
    plain = [hit.id for hit in memory.recall(question, limit=20, cutoff=False).hits]
    hits = memory.recall(question, limit=20).hits
    order = [hit.id for hit in hits]

    assert plain.index(lesson.id) > 0  # Its score alone would not do.
    assert order[0] == lesson.id
    assert hits[0].score >= hits[1].score
    assert unrelated.id not in order[:2]
    assert not any("superseded" in mark for hit in hits for mark in hit.marks)


def test_episodes_of_hooks_read_the_same(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    agent = Agent(memory, tmp_path / "project")
    agent.tell("UserPromptSubmit", prompt="get the web app running")
    for number in range(60):
        agent.run(f"ls part{number}")
    for _ in range(2):
        agent.run("pnpm install", error="EACCES: permission denied, mkdir node_modules")
    agent.run("sudo chown -R $USER . && pnpm install")
    agent.tell("SessionEnd", reason="exit")

    (episode,) = kinds(memory, "episode")
    text = memory.recall("pnpm install permission denied", all_repos=True).text
    assert len(episode["action_log"]) == 63
    assert "chown" in text
    assert "ls part7" not in text
    assert not memory.recall("ls part7", all_repos=True, kinds=["episode"]).hits


def test_the_loki_layout_gives_back_every_field(memory: Memory, tmp_path: Path) -> None:
    memory.record_episode(SEED)
    export_layout(memory, "loki", tmp_path / "out")
    path = tmp_path / "out" / ".loki" / "memory" / "episodic" / "2026-01-06" / "task-042.json"

    written = json.loads(path.read_text())
    assert {name: written[name] for name in SEED} == SEED
