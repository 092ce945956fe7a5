"""Consolidation: patterns name their evidence, pass the gate, and can be undone."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
from datetime import UTC, datetime
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace import cli, inbox
from commonplace.engine import Engine
from commonplace.errors import (
    BatchInUse,
    BatchUnknown,
    CandidateNotFound,
    ProposalHeldBack,
    RecordNotFound,
    UsageError,
)
from commonplace.learn import candidates, consolidation, gate
from commonplace.learn.comparison import are_different_rules
from commonplace.learn.gate import Asked, judge, says
from commonplace.learn.observations import OPEN, observe
from commonplace.learn.wording import central
from commonplace.log.read import lines_of
from commonplace.maintenance import runner
from commonplace.memory import Memory
from commonplace.records import make
from commonplace.where import repository
from commonplace.where.home import Home
from conftest import SLOW_LAW, make_repository

if TYPE_CHECKING:
    from pathlib import Path

    from commonplace.engine import Answer
    from commonplace.learn.consolidation import Report
    from commonplace.recall.query import Query

NOW = datetime(2026, 1, 7, tzinfo=UTC)
VOID = ("TypeScript compilation", "Missing return type annotation", "Added explicit :void")
NPM = ("npm install", "EACCES: permission denied, mkdir node_modules", "sudo chown -R $USER .")
PORT = ("dev server", "listen EADDRINUSE: address already in use :::3000", "killed the old server")
PROBLEMS = [VOID, NPM, PORT]
GOALS = {
    VOID: "Implement POST /api/item{} in Express",
    NPM: "get the web app number {} running",
    PORT: "show the page {} in the browser",
}


def episode(number: int, *errors: tuple[str, str, str], **more: Any) -> dict[str, Any]:
    goal = GOALS[errors[0]] if errors and errors[0] in GOALS else "Write the page {} of the manual"
    return {
        "id": f"ep-{number:03d}",
        "kind": "episode",
        "task_id": f"task-{number:03d}",
        "timestamp": "2026-01-06T10:30:00Z",
        "repo": "app",
        "context": {"phase": "development", "goal": goal.format(number)},
        "action_log": [{"t": 0, "action": "run", "target": "make", "result": "pass"}],
        "outcome": "success",
        "errors_encountered": [
            {"type": what, "message": why, "resolution": fix} for what, why, fix in errors
        ],
        **more,
    }


def open_memory(folder: Path) -> Memory:
    return Memory.open(
        folder, settings={"embedder.kind": "none"}, background=False, clock=lambda: NOW
    )


def learn(folder: Path, *episodes: dict[str, Any]) -> Report:
    with open_memory(folder) as memory:
        memory.append(episodes)
        return memory.consolidate("30d")


def view(memory: Memory) -> list[str]:
    return sorted(memory.export_lines(superseded=True))


episodes_of_all_sorts = st.lists(
    st.tuples(
        st.sampled_from([*PROBLEMS, None]),
        st.sampled_from(["success", "failure", "unknown"]),
        st.booleans(),
    ),
    min_size=1,
    max_size=12,
).map(
    lambda drawn: [
        episode(
            number,
            *([problem if is_solved else (*problem[:2], "")] if problem else []),
            outcome=outcome,
        )
        for number, (problem, outcome, is_solved) in enumerate(drawn)
    ]
)


@pytest.mark.parametrize("order", [("own", "user"), ("user", "own")])
def test_tasks_of_two_homes_give_a_pattern_in_any_order(
    tmp_path: Path, order: tuple[str, str]
) -> None:
    made = []
    for number, name in enumerate(order):
        with open_memory(tmp_path / name) as memory:
            memory.append([episode(number, NPM, repo=name)])
        with Memory(
            [Home(tmp_path / "own", trusted=True), Home(tmp_path / "user", of_user=True)],
            repository.find(tmp_path),
            settings={"embedder.kind": "none"},
            background=False,
            clock=lambda: NOW,
        ) as memory:
            made.append(memory.consolidate("30d" if number == 0 else None).made)
    assert not made[0]
    assert [(one.kind, one.repo) for one in made[1]] == [
        ("pattern", "all-repositories"),
        ("anti_pattern", "all-repositories"),
    ]


def test_a_third_task_takes_the_place_of_a_forgotten_one(tmp_path: Path) -> None:
    """It was no source before: the record that says the same was written by hand."""
    by_hand = {
        "id": "pat-hand",
        "kind": "pattern",
        "repo": "app",
        "pattern": "npm install may not write to node_modules",
        "correct_approach": NPM[2],
        "source_episodes": ["ep-001", "ep-002"],
    }
    with open_memory(tmp_path / "home") as memory:
        memory.append([episode(number, NPM) for number in (1, 2, 3)])
        assert memory.consolidate("30d", dry_run=True).made
        memory.append([by_hand])
        memory.append([episode(9, VOID)])
        memory.consolidate("1h")  # It reads up to here, and nothing is that new.
        assert not list(memory.records(kind="anti_pattern"))
        memory.forget("ep-001")
        (found,) = (one for one in memory.consolidate().made if one.kind == "pattern")
        assert found.fields["source_episodes"] == ["ep-002", "ep-003"]


def test_a_run_that_is_over_goes_on_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("commonplace.learn.consolidation.GATED_MAX", 2)
    whole = learn(tmp_path / "whole", *(episode(n, *PROBLEMS) for n in range(3)))
    expected = {one.id for one in whole.made}
    assert len(expected) == 6
    made: list[str] = []
    with open_memory(tmp_path / "home") as memory:
        memory.append([episode(n, *PROBLEMS) for n in range(3)])
        # Each run is stopped a little later than the one before; one that does nothing is asked, too.
        for turns in range(1, 200):
            left = repeat(False, turns)
            report = consolidation.consolidate(memory, "30d", is_over=partial(next, left, True))
            made += [one.id for one in report.made]
            if not report.looked_at:
                break
        assert report.looked_at == 0
        assert turns > 10
        assert sorted(made) == sorted(expected)
        assert {one.id for one in memory.records() if one.kind != "episode"} == expected


def test_one_question_is_asked_once_for_all_fixes_of_a_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    preview = Engine.preview

    def count(engine: Engine, query: Query) -> Answer:
        asked.append(query.text)
        return preview(engine, query)

    monkeypatch.setattr(Engine, "preview", count)
    learn(tmp_path / "home", *(episode(n, *PROBLEMS) for n in range(2)))
    # The goals of two tasks and three problems, before and after.
    assert sorted(asked) == sorted(2 * list(dict.fromkeys(asked)))
    assert len(asked) == 2 * 5


def test_of_many_errors_those_that_were_solved_are_learned_from(tmp_path: Path) -> None:
    open_ones = [(f"step {n}", f"broken in another way, number {n}", "") for n in range(40)]
    report = learn(tmp_path / "home", *(episode(n, *open_ones, NPM) for n in range(2)))
    assert {one.kind for one in report.made} == {"pattern", "anti_pattern"}


@SLOW_LAW
@given(episodes_of_all_sorts, episodes_of_all_sorts)
def test_consolidate_then_undo_gives_the_same_view(
    tmp_path_factory: pytest.TempPathFactory,
    first: list[dict[str, Any]],
    second: list[dict[str, Any]],
) -> None:
    with open_memory(tmp_path_factory.mktemp("home") / "h") as memory:
        views, batches = [], []
        for more in (first, [{**one, "id": f"more-{one['id']}"} for one in second]):
            memory.append(more)
            views.append(view(memory))
            batches.append(memory.consolidate("30d").batch)
        if batches[1]:
            memory.undo(batches[1])
        assert view(memory) == views[1]
        if batches[0]:
            memory.undo(batches[0])
        new = {f"more-{one['id']}" for one in second}
        assert [line for line in view(memory) if json.loads(line)["id"] not in new] == views[0]
        assert all(batch.undone for batch in memory.batches())


@SLOW_LAW
@given(episodes_of_all_sorts, st.randoms(use_true_random=False))
def test_the_order_of_the_episodes_does_not_matter_and_twice_is_once(
    tmp_path_factory: pytest.TempPathFactory,
    given_episodes: list[dict[str, Any]],
    shuffler: random.Random,
) -> None:
    shuffled = list(given_episodes)
    shuffler.shuffle(shuffled)
    made = []
    for order in (given_episodes, shuffled):
        with open_memory(tmp_path_factory.mktemp("home") / "h") as memory:
            memory.append(order)
            report = memory.consolidate("30d")
            made.append(sorted(_without_batch(one.fields) for one in report.made))
            before = view(memory)
            assert not memory.consolidate("30d").batch
            assert view(memory) == before
    assert made[0] == made[1]


def _without_batch(fields: dict[str, Any]) -> str:
    return json.dumps({**fields, "meta": None}, sort_keys=True)


def test_four_episodes_give_a_pattern_and_an_anti_pattern_with_all_four_as_evidence(
    tmp_path: Path,
) -> None:
    report = learn(tmp_path / "h", *(episode(n, VOID) for n in range(4)), episode(9))

    pattern, anti = report.made
    assert pattern.fields["source_episodes"] == [f"ep-00{n}" for n in range(4)]
    assert pattern.fields["correct_approach"] == VOID[2]
    assert 0.8 <= pattern.fields["confidence"] <= 1
    assert (anti.fields["what_fails"], anti.fields["why"], anti.fields["prevention"]) == VOID
    assert anti.fields["source"] == "ep-000"
    assert {link["to"] for link in anti.fields["links"]} == {f"ep-00{n}" for n in range(4)}


def test_two_fixes_of_the_same_episodes_are_both_found_after_consolidation(tmp_path: Path) -> None:
    build = ("docker build", "COPY failed: no such file dist", "run npm run build before it")
    port = ("docker run", "bind: address already in use 5432", "stop the local postgres service")
    learn(tmp_path, *(episode(number, build, port) for number in range(1, 5)))
    with open_memory(tmp_path) as memory:
        question = "docker build COPY failed and docker run address already in use"
        found = memory.recall(question, repo="app").text

    assert build[2] in found
    assert port[2] in found


def test_what_was_seen_once_is_held_back(tmp_path: Path) -> None:
    report = learn(tmp_path / "h", episode(1, VOID), episode(2, NPM))

    assert not report.made
    assert {one.reason for one in report.held_back} == {"it was seen in one session"}


def test_fixes_that_disagree_are_held_back(tmp_path: Path) -> None:
    other = (*VOID[:2], "set strict to false in tsconfig")
    report = learn(
        tmp_path / "h",
        *(episode(n, VOID) for n in range(3)),
        *(episode(n, other, context=episode(n, VOID)["context"]) for n in range(3, 5)),
    )

    assert not report.made
    assert all("confidence" in one.reason for one in report.held_back)


def test_the_goals_tell_which_fix_is_for_which(tmp_path: Path) -> None:
    redis, postgres = (
        ("connection", "connect: connection refused", f"started the {name} container")
        for name in ("redis", "postgres")
    )
    report = learn(
        tmp_path / "h",
        *(
            episode(n, one, context={"goal": f"add {name} to the worker, part {n}"})
            for start, one, name in (
                (0, redis, "caching by redis"),
                (5, postgres, "a postgres table"),
            )
            for n in range(start, start + 3)
        ),
    )

    fixes = {one.fields["correct_approach"] for one in report.made if one.kind == "pattern"}
    assert fixes == {redis[2], postgres[2]}


def test_a_failed_fix_is_the_incorrect_approach(tmp_path: Path) -> None:
    wrong = (*NPM[:2], "deleted package-lock.json")
    report = learn(
        tmp_path / "h",
        *(episode(n, NPM) for n in range(8)),
        episode(8, wrong, outcome="failure"),
    )

    (pattern,) = (one for one in report.made if one.kind == "pattern")
    assert pattern.fields["incorrect_approach"] == wrong[2]
    assert "ep-008" not in pattern.fields["source_episodes"]


def failed(first: int, count: int, problem: tuple[str, str, str], *, used: bool) -> list[Any]:
    actions = [{"t": 0, "action": "run", "target": problem[2], "result": "pass"}] if used else []
    return [
        episode(n, problem, outcome="failure", action_log=actions)
        for n in range(first, first + count)
    ]


def test_a_fix_that_failed_tasks_used_is_written_as_that(tmp_path: Path) -> None:
    home = tmp_path / "h"
    (anti,) = learn(home, *failed(0, 3, NPM, used=True)).made

    assert (anti.kind, anti.fields["prevention"]) == ("anti_pattern", NPM[2])
    assert set(anti.sources) == {"ep-000", "ep-001", "ep-002"}
    with open_memory(home) as memory:
        # The gate found the episodes; the anti-pattern says the same of itself.
        text = memory.recall("npm install EACCES: permission denied", kinds=["anti_pattern"]).text
        assert f"Noted as the fix, but the tasks failed: {NPM[2]}" in text
        memory.append([episode(n, NPM) for n in range(3, 20)])
        memory.consolidate("30d")
        assert "tasks_failed" not in memory.get(anti.id).meta


@pytest.mark.parametrize(
    ("problem", "used", "count", "reason", "waits"),
    [
        (NPM, False, 3, candidates.ALL_FAILED, True),
        (NPM, True, 2, candidates.ALL_FAILED, True),
        ((*NPM[:2], ""), False, 3, candidates.NO_FIX, False),
    ],
)
def test_a_fix_of_failed_tasks_is_held_back(
    tmp_path: Path,
    problem: tuple[str, str, str],
    used: bool,
    count: int,
    reason: str,
    waits: bool,
) -> None:
    report = learn(tmp_path / "h", *failed(0, count, problem, used=used))

    assert not report.made
    assert [one.reason for one in report.held_back] == [reason]
    with open_memory(tmp_path / "h") as memory:
        assert [one.kind for one in memory.candidates()] == ["anti_pattern"] * waits


@pytest.mark.parametrize("goal", ["get the web app running", "write the manual"])
def test_a_fix_that_worked_comes_before_one_that_failed_more_often(
    tmp_path: Path, goal: str
) -> None:
    wrong = (*NPM[:2], "deleted package-lock.json")
    report = learn(
        tmp_path / "h",
        *(episode(n, NPM) for n in range(2)),
        *({**one, "context": {"goal": goal}} for one in failed(2, 4, wrong, used=True)),
    )

    pattern, anti = report.made
    assert (pattern.fields["correct_approach"], anti.fields["prevention"]) == (NPM[2], NPM[2])


def test_a_known_pattern_gains_evidence_and_use_instead_of_a_twin(tmp_path: Path) -> None:
    home = tmp_path / "h"
    first = learn(home, *(episode(n, VOID) for n in range(2)))
    second = learn(home, episode(2, VOID))

    assert not second.made
    before, after = (
        next(one for one in records if one.kind == "pattern").fields
        for records in (first.made, second.changed)
    )
    assert after["source_episodes"] == [*before["source_episodes"], "ep-002"]
    assert after["usage_count"] == before["usage_count"] + 1
    assert after["confidence"] > before["confidence"]


def test_what_was_undone_does_not_come_back_by_itself(tmp_path: Path) -> None:
    home = tmp_path / "h"
    first = learn(home, *(episode(n, VOID) for n in range(2)))
    with open_memory(home) as memory:
        memory.undo(first.batch)
        memory.append([episode(2, VOID)])
        again = memory.consolidate("30d")

    assert not again.made
    assert {one.reason for one in again.held_back} == {"it was made before, and forgotten"}


def test_what_somebody_brought_back_is_no_longer_of_the_batch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "h"
    first = learn(home, *(episode(n, VOID) for n in range(3)))
    pattern = next(one for one in first.made if one.kind == "pattern")
    with open_memory(home) as memory:
        memory.undo(first.batch)
        memory.restore(pattern.id)
        memory.append([episode(3, VOID)])
        second = memory.consolidate("30d")
        assert [one.id for one in second.changed] == [pattern.id]
        memory.undo(second.batch)

        kept = memory.get(pattern.id)
        assert kept.sources == pattern.sources
        assert kept.fields["confidence"] == pattern.fields["confidence"]
        assert memory.undo(first.batch).made == ()
    assert cli.main(["consolidate", "--undo", first.batch, "--home", str(home)]) == 0
    output = capsys.readouterr()
    assert (output.out, "nothing was changed" in output.err) == ("", True)


def test_evidence_that_was_taken_back_does_not_return(tmp_path: Path) -> None:
    home = tmp_path / "h"
    first = learn(home, *(episode(n, VOID) for n in range(2)))
    pattern = next(one for one in first.made if one.kind == "pattern")
    second = learn(home, episode(2, VOID))
    with open_memory(home) as memory:
        memory.undo(second.batch)
        assert not memory.consolidate("60d", dry_run=True).changed
        assert not memory.consolidate("60d").changed
        memory.append([episode(3, VOID)])
        memory.consolidate()

        assert set(memory.get(pattern.id).sources) == {"ep-000", "ep-001", "ep-003"}


def test_what_was_edited_and_forgotten_is_not_made_again(tmp_path: Path) -> None:
    first = learn(tmp_path / "h", *(episode(n, VOID) for n in range(2)))
    with open_memory(tmp_path / "h") as memory:
        for one in first.made:
            memory.edit(one.id, tags=["typescript"])
            memory.forget(one.id)
        memory.append([episode(2, VOID)])
        assert not memory.consolidate("30d").made


def test_what_rests_on_a_forgotten_episode_is_learned_again_from_the_others(tmp_path: Path) -> None:
    first = learn(tmp_path, *(episode(n, VOID) for n in range(3)))
    made = {one.id for one in first.made}
    with open_memory(tmp_path) as memory:
        memory.forget("ep-001")
        assert not made & {one.id for one in memory.records()}
        again = memory.consolidate()
        patterns = [one.fields for one in memory.records() if one.kind == "pattern"]
        memory.forget("ep-002")
        at_last = memory.consolidate()

    assert len(again.made) == len(first.made)
    assert [one["source_episodes"] for one in patterns] == [["ep-000", "ep-002"]]
    assert not at_last.made  # One is left, and one is not enough.


def test_a_person_who_edits_a_pattern_keeps_it(tmp_path: Path) -> None:
    home = tmp_path / "h"
    first = learn(home, *(episode(n, VOID) for n in range(2)))
    pattern = next(one for one in first.made if one.kind == "pattern")
    with open_memory(home) as memory:
        memory.edit(pattern.id, pattern="Handlers need a return type")
        with pytest.raises(BatchInUse):
            memory.undo(first.batch)
        assert memory.get(pattern.id).fields["pattern"] == "Handlers need a return type"


def test_what_is_forgotten_while_the_gate_judges_stays_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "h"
    first = learn(home, *(episode(n, VOID) for n in range(2)))
    pattern, anti = first.made
    with open_memory(home) as memory:
        memory.append([episode(2, VOID, NPM), episode(3, NPM)])

        def forget_first(*given: Any) -> gate.Verdict:
            memory.forget(pattern.id)
            memory.edit(anti.id, why="as I say")
            return judge(*given)

        monkeypatch.setattr(gate, "judge", forget_first)
        memory.consolidate("30d")
        with pytest.raises(RecordNotFound):
            memory.get(pattern.id)
        assert memory.get(anti.id).fields["why"] == "as I say"


def test_what_came_late_is_learned_from_at_the_next_run(tmp_path: Path) -> None:
    with open_memory(tmp_path / "h") as memory:
        assert not memory.consolidate().made
        memory.log(lesson="the first record", timestamp="2026-01-06T23:00:00Z")
        memory.consolidate()
        memory.append([episode(n, VOID, timestamp="2025-12-01T00:00:00Z") for n in range(2)])
        assert memory.consolidate().made


def test_a_run_that_is_stopped_goes_on_next_time(tmp_path: Path) -> None:
    with open_memory(tmp_path / "h") as memory:
        memory.append([episode(n, VOID) for n in range(2)])
        assert not memory.consolidate("30d", is_over=lambda: True).made
        assert memory.consolidate("30d").made


def test_many_records_are_learned_from_in_rounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("commonplace.learn.pool.LINES_FIRST", 2)
    report = learn(tmp_path / "h", *(episode(n, VOID) for n in range(7)))
    with open_memory(tmp_path / "h") as memory:
        (pattern,) = memory.records(kind="pattern")

    assert report.looked_at == 7
    assert set(pattern.sources) == {f"ep-00{n}" for n in range(7)}


def test_new_evidence_makes_nobody_less_sure(tmp_path: Path) -> None:
    with open_memory(tmp_path / "h") as memory:
        memory.append([
            {"kind": "pattern", "pattern": f"{VOID[0]}: {VOID[1]}", "correct_approach": VOID[2],
             "confidence": 0.99, "repo": "app"},
            *(episode(n, VOID) for n in range(2)),
        ])  # fmt: skip
        memory.consolidate("30d")
        (pattern,) = memory.records(kind="pattern")

    assert pattern.fields["confidence"] == 0.99
    assert len(pattern.sources) == 2


def test_commands_that_differ_in_a_flag_are_two_fixes(tmp_path: Path) -> None:
    problem = ("docker compose", "Bind for 0.0.0.0:5432 failed: port is already allocated")
    fixes = ["docker compose up -d --force-recreate", "docker compose down && docker compose up -d"]
    report = learn(
        tmp_path / "h",
        *(
            episode(n, (*problem, fix), context={"goal": "start the stack"})
            for n, fix in enumerate(fixes)
        ),
    )

    assert not report.made
    assert {one.reason for one in report.held_back} == {
        "the same problem was solved in different ways"
    }
    held = report.held_back[0].as_dict()
    assert (held["evidence"], held["against"]) == (["ep-000"], ["ep-001"])


def test_problems_of_two_names_with_one_fix_are_one(tmp_path: Path) -> None:
    report = learn(
        tmp_path / "h",
        *(
            episode(
                n,
                (
                    "kubectl",
                    f"ImagePullBackOff for {name}",
                    "Logged in to the registry again with it",
                ),
                context={"goal": f"roll out {name}"},
            )
            for n, name in enumerate(("payment", "mail"))
        ),
    )

    assert [one.kind for one in report.made] == ["pattern", "anti_pattern"]


def test_what_was_imported_says_so_in_what_it_gives(tmp_path: Path) -> None:
    outside = {"meta": {"origin": "import:loki"}}
    with open_memory(tmp_path / "h") as memory:
        memory.append([episode(n, VOID) for n in range(2)])
        own = {one.id: one.sources for one in memory.consolidate("30d").made}
        memory.append([episode(n, VOID, **outside) for n in range(2, 4)])
        memory.append([episode(n, NPM, **outside) for n in range(4, 6)])
        made = memory.consolidate("30d").made

        assert {one.meta["origin"] for one in made} == {"import:loki"}
        assert {ident: memory.get(ident).sources for ident in own} == own


def test_a_strangers_episodes_are_no_evidence(tmp_path: Path) -> None:
    clone = make_repository(tmp_path / "clone")
    learn(tmp_path / "theirs", *(episode(n, VOID, repo="x") for n in range(3)))
    shutil.copytree(tmp_path / "theirs" / "log", clone / ".commonplace" / "log")
    with Memory.open(
        cwd=clone,
        settings={"embedder.kind": "none"},
        background=False,
        environment={"HOME": str(tmp_path)},
    ) as memory:
        assert len(memory.homes) == 2
        with pytest.raises(UsageError, match="not trusted"):
            memory.propose_pattern(["ep-000", "ep-001"], pattern=VOID[1], correct_approach=VOID[2])
        assert not memory.consolidate("100y").made


def test_a_batch_on_which_another_rests_is_not_undone(tmp_path: Path) -> None:
    home = tmp_path / "h"
    first = learn(home, *(episode(n, VOID) for n in range(2)))
    second = learn(home, episode(2, VOID))
    with open_memory(home) as memory:
        with pytest.raises(BatchInUse, match=second.batch):
            memory.undo(first.batch)
        with pytest.raises(BatchUnknown):
            memory.undo("batch-of-nothing")
        memory.undo(second.batch)
        memory.undo(first.batch)
        assert {one.kind for one in memory.records()} == {"episode"}


def test_repositories_that_share_a_problem_share_a_pattern(tmp_path: Path) -> None:
    home = tmp_path / "h"
    report = learn(home, *(episode(n, NPM, repo=f"app-{n}") for n in range(3)))

    assert {one.repo for one in report.made} == {"all-repositories"}
    with open_memory(home) as memory:
        (tmp_path / "elsewhere").mkdir()
        there = memory.beside(cwd=tmp_path / "elsewhere")
        assert "chown" in there.recall("npm install permission denied").text


def test_what_a_shared_server_logs_is_not_true_everywhere(tmp_path: Path) -> None:
    with open_memory(tmp_path / "h") as memory:
        lesson = {"kind": "lesson", "event_type": "learned", "lesson": "Deploy with make ship"}
        memory.append([{**lesson, "repo": "general"}])
        (tmp_path / "project").mkdir()
        there = memory.beside(cwd=tmp_path / "project")
        there.append([{**lesson, "lesson": "Deploy with kubectl", "repo": there.repository.name}])
        found = there.recall("how do I deploy with it").text

    assert "kubectl" in found
    assert "make ship" not in found


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    with open_memory(tmp_path / "h") as memory:
        memory.append([episode(n, VOID) for n in range(3)])
        before = view(memory)
        assert memory.consolidate("30d", dry_run=True).made
        assert view(memory) == before
        assert memory.consolidate("30d").made


def test_only_what_is_recent_is_looked_at(tmp_path: Path) -> None:
    with open_memory(tmp_path / "h") as memory:
        memory.append([episode(n, VOID, timestamp="2025-06-01T00:00:00Z") for n in range(3)])
        assert not memory.consolidate("24h").made
        # A longer time is not what was looked at before.
        assert memory.consolidate("1y").made


def test_lessons_are_evidence_too(tmp_path: Path) -> None:
    with open_memory(tmp_path / "h") as memory:
        memory.append([episode(1, NPM), episode(2, NPM)])
        lesson = memory.log(
            event_type="error",
            context=f"{NPM[0]}: {NPM[1]}",
            lesson=f"Own the folder before you install: {NPM[2]}",
            repo="app",
            timestamp="2026-01-06T09:00:00Z",
        )
        report = memory.consolidate("30d")

    (pattern,) = (one for one in report.made if one.kind == "pattern")
    assert pattern.fields["pattern"].startswith("Own the folder")
    assert lesson.id in pattern.sources


def test_a_gate_holds_back_what_hides_its_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With room for one memory, a record that does not tell the fix would take its place."""
    monkeypatch.setattr("commonplace.learn.gate.TOKENS_MAX", 60)
    with open_memory(tmp_path / "h") as memory:
        memory.append([episode(3, NPM)])
        goal = GOALS[NPM].format(3)
        asked = Asked(goal, "ep-003", NPM[2], "app")
        entry = memory.prepare({"kind": "pattern", "pattern": goal, "repo": "app"})
        verdict = judge(memory, [entry], {entry.record.id: [asked]})

        assert verdict.found_before == 1
        assert "no longer finds ep-003" in verdict.held_back[entry.record.id]


def test_what_was_told_of_once_waits_in_the_inbox_and_can_be_accepted(tmp_path: Path) -> None:
    with open_memory(tmp_path / "h") as memory:
        memory.append([episode(1, VOID), episode(2, NPM, meta={"origin": "hooks"})])
        assert memory.consolidate("30d").proposed == 1
        (candidate,) = memory.candidates()
        assert (candidate.kind, candidate.evidence) == ("anti_pattern", ["ep-001"])
        memory.accept(candidate.id)
        (record,) = memory.records(kind="anti_pattern")
        assert record.fields["prevention"] == VOID[2]


def test_a_candidate_that_became_a_record_waits_no_longer(tmp_path: Path) -> None:
    with open_memory(tmp_path / "h") as memory:
        memory.append([episode(1, VOID)])
        memory.consolidate("30d")
        (stale,) = memory.candidates()
        memory.append([episode(2, VOID), episode(3, NPM)])
        memory.consolidate("30d")

        assert [one.evidence for one in memory.candidates()] == [["ep-003"]]
        assert stale.id not in {one.id for one in memory.candidates()}


def test_accepting_an_old_candidate_takes_nothing_from_the_record(tmp_path: Path) -> None:
    def outcomes(first: int, *found: str) -> list[dict[str, Any]]:
        return [episode(first + n, VOID, outcome=one) for n, one in enumerate(found)]

    with open_memory(tmp_path / "h") as memory:
        memory.append(outcomes(1, "success", "success", "failure", "failure"))
        memory.consolidate("30d")
        (stale,) = memory.candidates("pattern")
        # Somebody has begun to edit it, so it goes on waiting.
        inbox.edit(memory, stale.id, fields={"category": "types"})
        memory.append(outcomes(5, *["success"] * 20))
        report = memory.consolidate("30d")
        (learned,) = (one for one in report.made if one.kind == "pattern")
        assert learned.id == stale.fields["id"]

        memory.accept(stale.id)
        accepted = memory.get(learned.id)
        assert accepted.sources == learned.sources
        assert accepted.fields["confidence"] == learned.fields["confidence"] > 0.8
        assert accepted.fields["category"] == "types"


def test_accepting_what_is_known_leaves_its_batch_to_undo(tmp_path: Path) -> None:
    with open_memory(tmp_path / "h") as memory:
        memory.append([episode(1, VOID)])
        memory.consolidate("30d")
        (stale,) = memory.candidates()
        proposal = inbox.Proposal(
            stale.kind, stale.title, stale.fields, ("ep-001",), repo=stale.repo
        )
        memory.append([episode(2, VOID)])
        batch = memory.consolidate("30d").batch
        memory.propose(proposal)
        (fields,) = memory.accept(stale.id)

        assert set(memory.get(fields["id"]).sources) == {"ep-001", "ep-002"}
        memory.undo(batch)
        assert not list(memory.records(kind="anti_pattern"))


def test_what_was_accepted_is_not_proposed_again(tmp_path: Path) -> None:
    with open_memory(tmp_path / "h") as memory:
        memory.append([episode(1, VOID)])
        memory.consolidate("30d")
        memory.accept(*(one.id for one in memory.candidates()))
        memory.consolidate("60d")

        assert not memory.candidates()


def test_a_task_that_solved_it_otherwise_is_no_evidence(tmp_path: Path) -> None:
    other = (*VOID[:2], "set strict to false in tsconfig")
    with open_memory(tmp_path / "h") as memory:
        memory.append([episode(5, VOID), episode(6, other)])
        memory.consolidate("30d")
        (candidate,) = memory.candidates()
        assert (candidate.evidence, candidate.against) == (["ep-005"], ["ep-006"])

        (fields,) = memory.accept(candidate.id)
        assert set(memory.get(fields["id"]).sources) == {"ep-005"}


def test_a_candidate_is_hidden_with_what_it_rests_on(tmp_path: Path) -> None:
    with open_memory(tmp_path / "h") as memory:
        memory.append([episode(1, VOID)])
        memory.consolidate("30d")
        (candidate,) = memory.candidates()
        memory.forget("ep-001")

        assert not memory.candidates()
        for decide in (memory.accept, lambda one: inbox.find(memory, one)):
            with pytest.raises(CandidateNotFound, match="rests on `ep-001`, which was forgotten"):
                decide(candidate.id)
        memory.restore("ep-001")
        assert [one.id for one in memory.candidates()] == [candidate.id]
        memory.forget("ep-001")
        memory.consolidate()
        assert not inbox.candidates(memory.home)


def test_a_hidden_pattern_names_the_record_to_bring_back(tmp_path: Path) -> None:
    with open_memory(tmp_path / "h") as memory:
        memory.append([episode(1, VOID), episode(2, VOID)])
        (pattern,) = (one for one in memory.consolidate("30d").made if one.kind == "pattern")
        memory.forget("ep-001")
        for find in (memory.get, memory.restore):
            with pytest.raises(RecordNotFound, match="it rests on `ep-001`, which was") as error:
                find(pattern.id)
            assert "forget --undo ep-001" in error.value.hint
        memory.restore("ep-001")
        assert memory.get(pattern.id).sources


def test_undoing_a_batch_withdraws_what_it_proposed(tmp_path: Path) -> None:
    with open_memory(tmp_path / "h") as memory:
        memory.append([episode(1, NPM), episode(2, VOID), episode(3, VOID)])
        report = memory.consolidate("30d")
        (candidate,) = memory.candidates()
        memory.undo(report.batch)
        assert not memory.candidates()

    with open_memory(tmp_path / "other") as memory:
        memory.append([episode(1, NPM), episode(2, VOID), episode(3, VOID)])
        report = memory.consolidate("30d")
        inbox.edit(memory, candidate.id, fields={"why": "somebody has looked at it"})
        memory.undo(report.batch)
        assert [one.id for one in memory.candidates()] == [candidate.id]


def test_maintenance_consolidates_and_twice_is_once(tmp_path: Path) -> None:
    with open_memory(tmp_path / "h") as memory:
        memory.append([episode(n, VOID, timestamp="2026-01-06T20:00:00Z") for n in range(3)])
        assert runner.run(memory).steps["learning"]["made"] == 2
        before = view(memory)
        runner.run(memory)
        assert view(memory) == before


def test_a_summary_of_an_old_episode_is_nothing_new(tmp_path: Path) -> None:
    with open_memory(tmp_path / "h") as memory:
        memory.append([episode(n, VOID, timestamp=f"2025-0{n}-06T20:00:00Z") for n in range(1, 6)])
        runner.run(memory)
        before = view(memory)
        runner.run(memory)
        assert view(memory) == before


def test_an_agents_words_pass_the_same_gate_and_both_are_kept(tmp_path: Path) -> None:
    with open_memory(tmp_path / "h") as memory:
        memory.append([episode(n, VOID) for n in range(3)])
        (made, _anti) = memory.consolidate("30d").made
        with pytest.raises(ProposalHeldBack, match="two are needed"):
            memory.propose_pattern(["ep-000"], pattern="x", correct_approach="y")
        with pytest.raises(ProposalHeldBack, match="says little"):
            memory.propose_pattern(
                ["ep-000", "ep-001"], pattern="Bananas are yellow", correct_approach="Eat them"
            )
        worded = memory.propose_pattern(
            ["ep-000", "ep-001"],
            pattern="Express route handlers need a return type in strict mode",
            correct_approach="Added explicit :void to the handler",
        )
        assert {"to": made.id, "rel": "elaborates"} in worded.fields["links"]
        assert {one.id for one in memory.records(kind="pattern")} == {made.id, worded.id}
        memory.undo(worded.meta["batch"])
        assert {one.id for one in memory.records(kind="pattern")} == {made.id}


@pytest.mark.skipif(sys.platform == "win32", reason="it is killed by a signal")
def test_a_consolidation_that_is_killed_anywhere_leaves_a_readable_home(tmp_path: Path) -> None:
    episodes = [episode(n, VOID, repo=f"app-{n % 2}") for n in range(6)]
    episodes += [episode(n, NPM, repo="app-0") for n in range(6, 9)]
    whole = tmp_path / "whole"
    learn(whole, *episodes)
    step = 0
    is_killed = True
    while is_killed:
        home = tmp_path / f"killed-{step}"
        with open_memory(home) as memory:
            memory.append(episodes)
            memory.engine().catch_up()
        is_killed = _consolidate_and_die(home, step)
        for path in (home / "log").glob("*.jsonl"):
            with path.open("rb") as stream:
                assert all(json.loads(line.raw) for line in lines_of(stream))
        with open_memory(home) as memory:
            memory.consolidate("30d")
            memory.mend()  # A temporary file may be left.
            assert not memory.check()
            made = {one.id for one in memory.records() if one.kind != "episode"}
            for batch in memory.batches():
                memory.undo(batch.id)
            assert {one.kind for one in memory.records()} == {"episode"}
        with open_memory(whole) as memory:
            assert made == {one.id for one in memory.records() if one.kind != "episode"}
        step += 1
    assert step > 1


KILLED = """
import os, signal, sys
from datetime import UTC, datetime
from commonplace.memory import Memory

home, left = sys.argv[1], int(sys.argv[2])
CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir"}


def kill(event, given):
    global left
    is_write = event == "open" and isinstance(given[2], int) and given[2] & os.O_ACCMODE
    if (is_write or event in CHANGES) and home in str(given[0]):
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1


now = datetime(2026, 1, 7, tzinfo=UTC)
settings = {"embedder.kind": "none"}
with Memory.open(home, settings=settings, background=False, clock=lambda: now) as memory:
    memory.engine().catch_up()
    sys.addaudithook(kill)
    memory.consolidate("30d")
"""


def _consolidate_and_die(home: Path, step: int) -> bool:
    """Consolidate in a process that is killed before its change number *step*; whether it was."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(home), str(step)], capture_output=True, check=False
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode != 0


@pytest.mark.parametrize(
    "fix", ["retried", "Ran it again", "re-ran the tests", "waited", "", "n/a"]
)
def test_trying_again_is_no_fix(fix: str) -> None:
    record = make(episode(1, (*VOID[:2], fix)), now=NOW, repo="app", agent_id="a")

    (seen,) = observe(record, 0, "app")
    assert (seen.fix, seen.outcome) == ("", OPEN)


@pytest.mark.parametrize(
    "fix", ["restarted the docker daemon", "reran with --no-cache", "wait-for-it.sh db"]
)
def test_a_fix_that_begins_like_trying_again_is_one(fix: str) -> None:
    record = make(episode(1, (*VOID[:2], fix)), now=NOW, repo="app", agent_id="a")

    assert next(observe(record, 0, "app")).fix == fix


@pytest.mark.parametrize(
    ("one", "other", "differ"),
    [
        ("use port 8080", "use port 9090", True),
        ("use `npm ci`", "never use `npm ci`", True),
        ("use Node 18.2 here", "use Node 20.1 here", True),
        ("started the redis container", "started the postgres container", True),
        ("start the redis container", "starts the redis container", False),
        ("copy redis to postgres", "copy postgres to redis", True),
        ("start redis first", "never start postgres first", True),
        ("deploy with `make ship`", "deploy with `just send it`", True),
        ("use npm ci in CI", "run npm ci in CI", False),
        ("run make test", "run make test", False),
        ("run the migrations", "run the migrations with --all", False),
        ("add : void to the handler", "the handler needs a return type", False),
    ],
)
def test_another_value_is_another_rule(one: str, other: str, differ: bool) -> None:
    assert are_different_rules(one, other) is differ
    assert are_different_rules(other, one) is differ


@given(st.lists(st.text(), min_size=1))
def test_the_central_text_is_one_of_the_texts(texts: list[str]) -> None:
    assert central(texts) in {*texts, ""}


@given(st.text(min_size=1).filter(str.strip), st.text())
def test_a_text_that_holds_the_fix_says_it(fix: str, around: str) -> None:
    assert says(f"{around} {fix} {around}", fix)


def test_forgetting_says_how_many_records_it_hides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = learn(tmp_path, *(episode(number, VOID) for number in range(1, 5)))
    made = len(report.made)
    for ident, hidden in (("ep-001", made), ("ep-002", 0)):  # The second finds them hidden.
        with open_memory(tmp_path) as memory:
            before = {one.id for one in memory.records()}
        assert cli.main(["forget", ident, "--home", str(tmp_path)]) == 0
        told = capsys.readouterr().err
        with open_memory(tmp_path) as memory:
            gone = before - {one.id for one in memory.records()}

        assert len(gone - {ident}) == hidden
        assert ("Hidden with it" in told) is bool(hidden)
        assert f"{made} records derived from it" in told or not hidden
