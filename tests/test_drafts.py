"""Drafts of episodes: what was noted is written, whoever is killed, and nothing is written twice."""

from __future__ import annotations

import json
import os
import shutil
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.cli import main
from commonplace.errors import EpisodeNotStarted, IdAmbiguous, RecordInvalid, UsageError
from commonplace.learn import drafts
from commonplace.learn.drafts import Note
from commonplace.maintenance import runner
from commonplace.memory import Memory
from conftest import SLOW_LAW, make_repository, run_until_killed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

START = datetime(2026, 1, 6, 10, 30, tzinfo=UTC)


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.at = START

    def __call__(self) -> datetime:
        return self.at

    def move(self, **more: float) -> None:
        self.at += timedelta(**more)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def timed(own_home: Path, clock: Clock) -> Any:
    with Memory.open(own_home, clock=clock) as memory:
        yield memory


def episodes(memory: Memory) -> list[dict[str, Any]]:
    return [json.loads(line) for line in memory.export_lines(kind="episode")]


def draft_files(memory: Memory) -> list[str]:
    return sorted(path.name for path in memory.home.drafts_folder.glob("*.json"))


# --- Laws -------------------------------------------------------------------------------------------------

WORDS = st.text("abc d", min_size=1, max_size=8).filter(str.strip)
NOTES = st.builds(
    Note,
    text=st.just("") | WORDS,
    action=WORDS,
    target=st.just("") | WORDS,
    result=st.sampled_from(["", "pass", "fail"]),
    error=WORDS,
    error_type=st.just("") | WORDS,
    resolution=st.just("") | WORDS,
    files=st.lists(WORDS, max_size=2),
    artifacts=st.lists(WORDS, max_size=2),
    constraints=st.lists(WORDS, max_size=2),
)


@SLOW_LAW
@given(notes=st.lists(NOTES, max_size=4), reopened=st.booleans())
def test_an_episode_has_all_that_was_noted(
    tmp_path: Path, notes: list[Note], reopened: bool
) -> None:
    home = tmp_path / "one"
    shutil.rmtree(home, ignore_errors=True)
    clock = Clock()
    with Memory.open(home, clock=clock) as memory:
        memory.start_episode("brew tea", phase="kitchen", task_id="t-1", files=["kettle"])
    opened = [Memory.open(home, clock=clock)]
    for note in notes:
        clock.move(seconds=5)
        if reopened:  # Each note may come from a process of its own.
            opened.append(Memory.open(home, clock=clock))
        opened[-1].note_episode(note)
    record = opened[-1].end_episode("success")
    (fields,) = episodes(opened[-1])
    for memory in opened:
        memory.close()

    assert fields["id"] == record.id
    assert (fields["outcome"], fields["task_id"]) == ("success", "t-1")
    assert fields["duration_seconds"] == 5 * len(notes)
    assert fields["context"]["goal"] == "brew tea"
    assert fields["context"].get("notes", []) == [note.text for note in notes if note.text]
    assert [(one["t"], one["action"]) for one in fields["action_log"]] == [
        (5 * number, note.action) for number, note in enumerate(notes, 1)
    ]
    assert [
        (one["type"], one["message"], one.get("resolution", ""))
        for one in fields["errors_encountered"]
    ] == [(note.error_type or note.action, note.error, note.resolution) for note in notes]
    assert fields["context"]["files_involved"] == list(
        dict.fromkeys(["kettle", *(name for note in notes for name in note.files)])
    )
    assert fields["artifacts_produced"] == list(
        dict.fromkeys(name for note in notes for name in note.artifacts)
    )


STEPS: dict[str, Callable[[Memory], object]] = {
    "start": lambda memory: memory.start_episode("brew tea", ident="ep-tea"),
    "note": lambda memory: memory.note_episode(Note("hot"), "ep-tea"),
    "end": lambda memory: memory.end_episode("success", ident="ep-tea"),
}


@pytest.mark.skipif(os.name != "posix", reason="kill -9 and fork are POSIX's")
@pytest.mark.parametrize("killed", STEPS)
def test_killed_anywhere_the_step_can_be_repeated(tmp_path: Path, killed: str) -> None:
    for change in range(1, 60):
        home = tmp_path / f"home-{change}"
        before = list(STEPS)[: list(STEPS).index(killed)]
        with Memory.open(home, clock=Clock()) as memory:
            for name in before:
                STEPS[name](memory)
        died = run_until_killed(change, partial(Memory.open, home, clock=Clock()), STEPS[killed])
        with Memory.open(home, clock=Clock()) as memory:
            for name in list(STEPS)[len(before) :]:
                try:
                    STEPS[name](memory)
                except RecordInvalid:
                    assert name == "start"  # It was done before the kill.
                except EpisodeNotStarted:
                    assert name == "end"
            (fields,) = episodes(memory)
            assert (fields["id"], fields["outcome"]) == ("ep-tea", "success")
            assert set(fields["context"]["notes"]) == {"hot"}
            assert memory.open_episodes() == []
        if not died:
            return
    pytest.fail("it was killed each time")


@pytest.mark.skipif(os.name != "posix", reason="kill -9 and fork are POSIX's")
def test_an_end_that_was_killed_is_finished_by_whoever_comes_next(tmp_path: Path) -> None:
    for change in range(1, 60):
        home = tmp_path / f"home-{change}"
        with Memory.open(home, clock=Clock()) as memory:
            STEPS["start"](memory)
            STEPS["note"](memory)
        died = run_until_killed(change, partial(Memory.open, home, clock=Clock()), STEPS["end"])
        with Memory.open(home, clock=Clock()) as memory:
            is_open = bool(memory.open_episodes())
            drafts.tidy(memory)
            found = [one["outcome"] for one in episodes(memory)]
            # Before its decision is on the disk the episode is open; after that it has ended.
            assert found == ([] if is_open else ["success"])
            assert bool(draft_files(memory)) == is_open
        if not died:
            return
    pytest.fail("it was killed each time")


# --- One for each agent and repository ---------------------------------------------------------------------


def test_agents_and_repositories_have_drafts_of_their_own(tmp_path: Path, own_home: Path) -> None:
    one, two = make_repository(tmp_path / "one"), make_repository(tmp_path / "two")
    with Memory.open(own_home) as memory:
        places = [
            memory.beside(agent_id=agent, cwd=folder)
            for agent in ("ana", "ben")
            for folder in (one, two)
        ]
        for number, place in enumerate(places):
            place.start_episode(f"goal {number}")
        for number, place in enumerate(places):
            place.note_episode(Note(f"note {number}"))
            place.end_episode("success")

        found = episodes(memory)
    assert {(one["agent_id"], one["context"]["notes"][0]) for one in found} == {
        ("ana", "note 0"),
        ("ana", "note 1"),
        ("ben", "note 2"),
        ("ben", "note 3"),
    }
    assert len({one["git_commit"] for one in found} - {""}) >= 1
    assert {one["meta"]["branch"] for one in found} == {"main"}


def test_a_second_start_ends_the_first_with_an_unknown_outcome(timed: Memory) -> None:
    first = timed.start_episode("brew tea").draft
    timed.note_episode(Note("hot"))
    started = timed.start_episode("wash up")

    assert started.abandoned == first.id
    assert [(one["id"], one["outcome"]) for one in episodes(timed)] == [(first.id, "unknown")]
    assert [one.id for one in timed.open_episodes()] == [started.draft.id]


def test_a_draft_without_a_note_leaves_no_episode(timed: Memory) -> None:
    timed.start_episode("brew tea")
    timed.start_episode("wash up")

    assert episodes(timed) == []
    assert len(draft_files(timed)) == 1


def test_named_episodes_stand_side_by_side(timed: Memory) -> None:
    for ident in ("ep-a1", "ep-a2"):
        timed.start_episode("brew tea", ident=ident)
    with pytest.raises(RecordInvalid, match="ep-a1"):
        timed.start_episode("brew tea", ident="ep-a1")
    with pytest.raises(UsageError, match="2 episodes are open"):
        timed.note_episode(Note("hot"))
    with pytest.raises(IdAmbiguous):
        timed.note_episode(Note("hot"), "ep-a")
    with pytest.raises(EpisodeNotStarted, match="ep-b"):
        timed.end_episode("success", ident="ep-b")
    timed.note_episode(Note("hot"), "ep-a1")
    timed.end_episode("failure", ident="ep-a2")
    timed.end_episode("success")

    assert {one["id"]: one["outcome"] for one in episodes(timed)} == {
        "ep-a1": "success",
        "ep-a2": "failure",
    }


# --- What nobody ended -----------------------------------------------------------------------------------


def test_what_nobody_ended_is_written_once_and_can_still_be_ended(
    timed: Memory, clock: Clock
) -> None:
    ident = timed.start_episode("brew tea").draft.id
    timed.note_episode(Note("hot"))
    assert drafts.tidy(timed) == 0
    clock.move(minutes=31)

    assert drafts.tidy(timed, dry_run=True) == 1
    runner.run(timed, ["drafts"])
    assert drafts.tidy(timed) == 0
    assert [one["outcome"] for one in episodes(timed)] == ["unknown"]
    timed.note_episode(Note("milk"))
    timed.end_episode("partial")
    (fields,) = episodes(timed)
    assert (fields["id"], fields["outcome"]) == (ident, "partial")
    assert fields["context"]["notes"] == ["hot", "milk"]


def test_old_drafts_are_removed_and_damaged_ones_named(timed: Memory, clock: Clock) -> None:
    timed.start_episode("brew tea", ident="ep-old")
    clock.move(days=15)
    timed.start_episode("wash up", ident="ep-new")
    damaged = timed.home.drafts_folder / "x.json"
    counts = '"named": true, "notes": 1, "written": 0'
    for text in ("", "{", "[]", '{"episode": {}}', "null", f'{{{counts}, "episode": []}}'):
        damaged.write_text(text)
        assert [one.id for one in timed.open_episodes()] == ["ep-new", "ep-old"]
    drafts.tidy(timed)

    assert [one.id for one in timed.open_episodes()] == ["ep-new"]
    assert len(draft_files(timed)) == 2
    (finding,) = (one for one in timed.check() if one.what == "damaged draft")
    assert finding.path == damaged


# --- Refusals -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("note", "reason"),
    [
        (Note(), "`note` is empty"),
        (Note(target="x"), "`action` is missing"),
        (Note(result="pass"), "`action` is missing"),
        (Note(error_type="x"), "`error` is missing"),
        (Note(resolution="x"), "is of no error"),
        (Note("x" * 3_000_000), "over the limit|is longer than"),
    ],
)
def test_a_note_that_fits_nothing_is_refused_and_costs_nothing(
    timed: Memory, note: Note, reason: str
) -> None:
    timed.start_episode("brew tea")
    timed.note_episode(Note("hot"))
    with pytest.raises(RecordInvalid, match=reason):
        timed.note_episode(note)

    timed.end_episode("success")
    assert episodes(timed)[0]["context"]["notes"] == ["hot"]


def test_a_resolution_solves_the_last_open_error(timed: Memory) -> None:
    timed.start_episode("brew tea")
    for message in ("cold", "bitter"):
        timed.note_episode(Note(action="taste", error=message))
    timed.note_episode(Note(resolution="less leaf"))
    timed.note_episode(Note(resolution="boil it"))
    timed.end_episode("success")

    assert episodes(timed)[0]["errors_encountered"] == [
        {"type": "taste", "message": "cold", "resolution": "boil it"},
        {"type": "taste", "message": "bitter", "resolution": "less leaf"},
    ]


def test_a_draft_holds_no_secret_and_is_its_owner_s(timed: Memory) -> None:
    key = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    timed.start_episode(f"rotate {key}")
    timed.note_episode(Note(action="run", target=f"export TOKEN={key}"))

    (path,) = timed.home.drafts_folder.glob("*.json")
    assert key not in path.read_text()
    assert os.name != "posix" or path.stat().st_mode & 0o077 == 0


def test_the_commands_from_start_to_end(commonplace: Callable[..., Any]) -> None:
    assert commonplace("episode", "note", "hot").returncode == 36
    started = commonplace("episode", "start", "--goal", "brew tea", "--phase", "kitchen")
    commonplace("episode", "note", "--action", "boil", "--error", "no water")
    commonplace("episode", "note", "--resolution", "fill the kettle", "--file", "kettle")
    assert "brew tea" in commonplace("episode").stdout
    ident = started.stdout.strip()
    shown = json.loads(commonplace("episode", "show", ident, "--json").stdout)
    assert shown["errors_encountered"][0]["resolution"] == "fill the kettle"
    wrong = commonplace("episode", "end", "--outcome", "good")
    ended = commonplace("episode", "end", "--outcome", "success", "--json")
    listed = commonplace("episode", "list")

    assert (wrong.returncode, json.loads(ended.stdout)["id"]) == (3, ident)
    assert "Fixed by: fill the kettle" in listed.stdout
    assert "[open]" not in listed.stdout
    assert commonplace("episode", "start", "--goal", " ").returncode == 3
    assert commonplace("episode", "start").returncode == 2


def test_a_task_that_ends_is_learned_from_in_the_background(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Memory] = []
    monkeypatch.setattr("commonplace.maintenance.due.start_if_due", started.append)
    for phase, outcome in (("plan", "unknown"), ("plan", "success"), ("build", "unknown")):
        before = len(started)
        main(["episode", "start", "--goal", "brew tea", "--phase", phase])
        main(["episode", "note", "the water boils"])
        main(["episode", "end", "--outcome", outcome])
        # Its outcome is known, or another phase begins.
        assert len(started) - before == (outcome != "unknown") + (phase == "build")


@pytest.mark.parametrize(("outcome", "is_started"), [("success", True), ("unknown", False)])
def test_a_task_that_is_recorded_is_learned_from_in_the_background(
    memory: Memory,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    outcome: str,
    is_started: bool,
) -> None:
    started: list[Memory] = []
    monkeypatch.setattr("commonplace.maintenance.due.start_if_due", started.append)
    path = tmp_path / "task.json"
    path.write_text(
        json.dumps({"task_id": "t", "context": {"goal": "brew tea"}, "outcome": outcome})
    )
    assert main(["episode", "record", str(path)]) == 0
    assert bool(started) is is_started
