"""What new records suggest: contradictions, replacements and links, in the inbox and nowhere else."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace import inbox
from commonplace.learn import contradictions
from commonplace.learn.disagreement import disagreement, replaces_openly
from commonplace.maintenance import runner
from commonplace.memory import Memory
from conftest import SLOW_LAW, git

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from commonplace.records import Record

START = datetime(2026, 11, 1, tzinfo=UTC)
OLD, NEW = "the database listens on port 5432", "the database listens on port 6432"


@pytest.fixture
def memory(own_home: Path) -> Iterator[Memory]:
    with opened(own_home) as found:
        yield found


def opened(home: Path) -> Memory:
    return Memory.open(home, settings={"embedder.kind": "none"})


def add(memory: Memory, *lessons: str, **more: Any) -> list[str]:
    """Log lessons, each a day later than the one before."""
    return [
        memory.log(
            **{"lesson": text, "repo": "shop", "timestamp": START + timedelta(days=day), **more}
        ).id
        for day, text in enumerate(lessons)
    ]


def state(memory: Memory) -> dict[str, bytes]:
    """Everything that suggesting writes."""
    paths = [*memory.home.inbox_folder.glob("*"), memory.home.suggestions_mark]
    return {path.name: path.read_bytes() for path in paths if path.is_file()}


def maintain(memory: Memory, **options: Any) -> dict[str, Any]:
    return runner.run(memory, ["suggestions"], **options).steps["suggestions"]


# --- Two texts ------------------------------------------------------------------------------------

SHAPES = [
    "the database of the shop listens on port {}",
    "build the release images with {} on the runner",
    "the API client must retry {} times",
    "sessions are kept in {} for a week",
]
VALUES = ["5432", "6432", "v1.2.0", "v2.0.0", "--fast", "config/base.toml", "redis", "postgres"]


@given(
    st.sampled_from(SHAPES),
    st.lists(st.sampled_from(VALUES), min_size=2, max_size=2, unique=True),
    st.sampled_from(["", " It was measured.", "\nSee the runbook."]),
)
def test_another_value_in_the_same_sentence_is_a_difference_from_either_side(
    shape: str, values: list[str], end: str
) -> None:
    one, other = (shape.format(value) + "." for value in values)

    found, reverse = disagreement(one + end, other), disagreement(other, one + end)
    assert found is not None
    assert reverse is not None
    assert (found.newer, found.older) == (reverse.older, reverse.newer) == tuple(values)


@given(st.sampled_from(SHAPES), st.sampled_from(VALUES), st.sampled_from(["Never ", "Do not "]))
def test_a_negation_is_a_difference(shape: str, value: str, word: str) -> None:
    text = f"use it when {shape.format(value)}"

    found = disagreement(word + text, text)
    assert found is not None
    assert found.kind == "negation"


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_two_texts_can_be_compared_and_a_text_agrees_with_itself(one: str, other: str) -> None:
    disagreement(one, other)
    replaces_openly(one, other)
    assert disagreement(one, one) is None


@pytest.mark.parametrize(
    ("newer", "older", "kind"),
    [
        ("use npm ci in CI", "use npm install in CI", "name"),
        ("Never use npm install in CI", "Use npm install in CI", "negation"),
        ("avoid mocks of the queue in tests", "use mocks of the queue in tests", "negation"),
        ("Don't deploy on Fridays", "Deploy on Fridays", "negation"),
        ("Log messages go to stderr as JSON", "Log messages go to stdout as plain text", "name"),
        ("Run the tests with `pytest -n auto`", "Run the tests with `nose -v`", "value"),
        # Another subject.
        ("the staging port is 5432", "the production port is 6432", None),
        ("the staging port is 5432", "the production port is 5432", None),
        ("Agent: ui Failure: pid 61571 dead", "Agent: api Failure: pid 58318 dead", None),
        ("File a/b.ts required 4 edits", "File c/d.ts required 4 edits", None),
        ("Use Node 18 for the web build", "Use Node 20 for the docs build", None),
        ("Use Node 18 for the web build", "Use Node 18 for the docs build", None),
        ("Use Node 18 for the web build", "Use Node 20 for the web build", "value"),
        ("Run the web tests with vitest", "Run the api tests with pytest", None),
        ("Run the web tests with vitest", "Run the api tests with vitest", None),
        ("Use pnpm in the docs folder", "Use npm in the web folder", None),
        ("Use pnpm in docs", "Use pnpm in web", None),
        ("Replace cwd() with root() in hooks.ts", "Replace cwd() with root() in check.ts", None),
        ("Replace exec with async in tools", "Replace exec with async calls", None),
        ("Write agent definition templates", "Write slash command templates", None),
        ("Use port 5432 on db-1", "Use port 6432 on db-2", None),
        ("Retry when the API answers 429", "Retry when the API answers 503", None),
        (
            "CI must retry 5 times within 20 seconds",
            "CI must retry 3 times within 9 seconds",
            "value",
        ),
        ("The traces are kept for 30 days", "The traces are kept for 60 days", "value"),
        (
            "never put the generated files of the web client into the main branch of the shop",
            "put the generated files of the docs client into the main branch of the shop",
            None,
        ),
        # A qualification, or something else about the same.
        ("use npm ci in CI and in images", "use npm ci in CI", None),
        ("Release branches are named release/1", "Release branches are never rebased", None),
        ("cache the wheels in CI", "use npm ci in CI", None),
    ],
)
def test_what_is_a_difference(newer: str, older: str, kind: str | None) -> None:
    found = disagreement(newer, older)

    assert (found.kind if found else None) == kind


def test_a_replacement_names_what_it_replaces() -> None:
    assert replaces_openly("CI checks types with pyright instead of mypy", "CI runs mypy")
    assert not replaces_openly("use pytest instead of nose", "CI runs mypy")
    assert not replaces_openly("CI runs mypy, too", "CI runs mypy")


# --- A run ----------------------------------------------------------------------------------------


def test_another_value_later_is_proposed_as_a_replacement_with_both_texts(memory: Memory) -> None:
    older, newer = add(memory, OLD, NEW)
    assert maintain(memory) == {"proposed": 1, "supersessions": 1}

    (one,) = memory.candidates()
    assert (one.kind, one.record["of"], one.record["to"]) == ("supersession", newer, older)
    assert (one.record["of_text"], one.record["to_text"]) == (NEW, OLD)
    assert one.evidence == [newer, older]
    assert "6432" in one.reason
    assert memory.links(older) == [], "nothing is applied by itself"
    memory.accept(one.id)
    assert NEW in memory.recall("which port", repo="shop").text
    assert OLD not in memory.recall("which port", repo="shop").text


@pytest.mark.parametrize("port", range(9090, 9098))
def test_within_one_second_the_later_line_replaces_the_earlier_one(
    memory: Memory, port: int
) -> None:
    """Whatever their ids, which come from the text."""
    older, newer = (
        memory.log(lesson=text, repo="shop", timestamp=START).id
        for text in (OLD, f"the database listens on port {port}")
    )
    maintain(memory)
    (one,) = memory.candidates()
    assert (one.kind, one.record["of"], one.record["to"]) == ("supersession", newer, older)


def test_the_opposite_is_proposed_as_a_contradiction_which_is_marked_until_resolved(
    memory: Memory,
) -> None:
    first, second = add(memory, "use npm install in CI", "never use npm install in CI")
    assert maintain(memory) == {"proposed": 1, "contradictions": 1}
    memory.accept(memory.candidates()[0].id)

    marks = {hit.id: hit.marks for hit in memory.recall("npm install in CI", repo="shop").hits}
    assert f"contradicts {second}" in marks[first]
    assert f"contradicts {first}" in marks[second]
    memory.resolve(first, second, "both")
    memory.home.suggestions_mark.unlink()
    assert maintain(memory) == {"proposed": 0}


def test_likeness_is_proposed_as_a_link_unless_there_is_a_series(memory: Memory) -> None:
    ids = add(
        memory,
        "the checkout tests need the emulator, start it before pytest on a laptop",
        "start the emulator before the checkout tests, pytest waits for it on a laptop forever",
        "rotate the signing key of the archive once a year",
    )
    for number in range(5):
        add(memory, f"Agent: builder{number} Failure: the process of its session has ended early")
    maintain(memory)

    (one,) = memory.candidates()
    assert (one.kind, {one.record["of"], one.record["to"]}) == ("link", set(ids[:2]))
    assert one.record["rel"] == "related_to"
    memory.accept(one.id)
    assert [link.to for link in memory.links(ids[0])] == [ids[1]]


WORDS = ["port", "5432", "6432", "npm", "never", "use", "the", "database", "listens", "on", "in"]


@given(st.lists(st.lists(st.sampled_from(WORDS), min_size=3, max_size=8), max_size=8))
@SLOW_LAW
def test_maintaining_twice_is_maintaining_once(
    tmp_path_factory: pytest.TempPathFactory, lessons: list[list[str]]
) -> None:
    with opened(tmp_path_factory.mktemp("any") / "home") as memory:
        add(memory, OLD, NEW, *(" ".join(words) for words in lessons))
        logs = memory.home.log("shop").read_bytes()
        maintain(memory)
        once = state(memory)

        assert maintain(memory) == {"proposed": 0}
        assert state(memory) == once
        assert memory.home.log("shop").read_bytes() == logs
        # Killed before the mark was written, it proposes the same again.
        memory.home.suggestions_mark.unlink()
        before = [one.id for one in memory.candidates()]
        maintain(memory)
        assert [one.id for one in memory.candidates()] == before


def test_a_run_looks_at_everything_new_and_at_nothing_else(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    suggest = contradictions.suggest

    def watched(memory: Memory, records: Sequence[Record], *more: Any) -> Any:
        seen.extend(record.id for record in records)
        return suggest(memory, records, *more)

    monkeypatch.setattr(contradictions, "suggest", watched)
    monkeypatch.setattr(contradictions, "RECORDS_MAX", 2)
    ids = add(memory, *(f"rule number {number} of the shop" for number in range(5)))
    maintain(memory)
    assert seen == ids
    seen.clear()
    ids = add(memory, "one more rule of the shop")
    maintain(memory)
    assert seen == ids


def test_only_new_records_are_looked_at_after_a_log_was_rewritten(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def watched(_memory: Memory, records: Sequence[Record], _is_over: Any) -> list[Any]:
        seen.extend(record.id for record in records)
        return []

    monkeypatch.setattr(contradictions, "suggest", watched)
    ids = add(memory, "the first rule", "the second rule", "the third rule")
    maintain(memory)
    assert seen == ids
    seen.clear()
    log = memory.home.log("shop")
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[1:]))
    ids = add(memory, "a rule that is new")
    maintain(memory)
    assert seen == ids
    # A mark that is damaged, or that an earlier version wrote, is none.
    for damaged in ("{", "[]", json.dumps({"shop": [1, ""]}), json.dumps({"build": 1})):
        seen.clear()
        memory.home.suggestions_mark.write_text(damaged)
        maintain(memory)
        assert len(seen) == 3


ALIKE = (
    "the checkout tests need the emulator, start it before pytest on a laptop",
    "start the emulator before the checkout tests, pytest waits for it on a laptop forever",
)


@pytest.mark.parametrize("case", ["source", "derived", "stated", "batch", "elaborates", "none"])
def test_one_thing_written_down_twice_is_not_proposed_as_related(memory: Memory, case: str) -> None:
    episode = memory.record_episode(task_id="t", context={"goal": "green"}, outcome="success").id
    from_it = {"links": [{"to": episode, "rel": "derived_from"}]}
    ours: dict[str, dict[str, Any]] = {
        "source": from_it,
        "batch": {"meta": {"batch": "batch-20261101-000000-abcd"}},
    }
    (first,) = add(memory, ALIKE[0], **ours.get(case, {}))
    theirs: dict[str, dict[str, Any]] = {
        "source": {"source_episodes": [episode]},
        "derived": {"source_episodes": [first]},
        "stated": {"source_episodes": ["ep-2"]},
        "elaborates": {"links": [{"to": first, "rel": "elaborates"}]},
    }
    if case == "stated":
        memory.append(
            [{"kind": "episode", "id": "ep-2", "task_id": "t-2", "repo": "shop",
              "links": [{"to": first, "rel": "related_to", "w": 1.0}]}]
        )  # fmt: skip
    more = theirs.get(case) or ours.get(case, {})
    memory.log(kind="pattern", pattern=ALIKE[1], repo="shop", **more)

    assert maintain(memory)["proposed"] == (1 if case == "none" else 0)


def test_a_dry_run_says_what_would_be_proposed_and_proposes_nothing(memory: Memory) -> None:
    add(memory, OLD, NEW)

    assert maintain(memory, dry_run=True) == {"proposed": 1, "supersessions": 1}
    assert memory.candidates() == []
    assert maintain(memory)["proposed"] == 1


def test_what_was_dropped_or_linked_is_not_proposed_again(memory: Memory) -> None:
    older, newer = add(memory, OLD, NEW)
    maintain(memory)
    memory.drop(memory.candidates()[0].id)
    memory.home.suggestions_mark.unlink()
    assert maintain(memory) == {"proposed": 0}
    memory.home.dropped_file.unlink()
    memory.link(newer, "elaborates", older)
    memory.home.suggestions_mark.unlink()
    assert maintain(memory) == {"proposed": 0}


def test_what_was_imported_does_not_judge_what_the_user_wrote(memory: Memory) -> None:
    add(memory, OLD)
    memory.log(lesson=NEW, repo="shop", meta={"origin": "import:beads"})
    maintain(memory)

    assert [one.kind for one in memory.candidates()] in ([], ["link"])


def test_another_repository_or_kind_states_nothing_else(memory: Memory) -> None:
    add(memory, OLD)
    add(memory, NEW, repo="bank")
    memory.log(kind="fact", label=NEW, repo="shop")
    maintain(memory)

    assert inbox.counts(memory.candidates()).keys() <= {"link"}


def test_it_can_be_switched_off(own_home: Path) -> None:
    settings = {"embedder.kind": "none", "maintenance.suggestions": False}
    with Memory.open(own_home, settings=settings) as memory:
        add(memory, OLD, NEW)
        assert maintain(memory) == {}
        assert memory.candidates() == []


def test_nothing_of_a_home_that_is_not_trusted_is_proposed(own_home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "clone"
    log = folder / ".commonplace" / "log" / "shop.jsonl"
    log.parent.mkdir(parents=True)
    git("init", "-q", cwd=folder)
    own_home.mkdir(mode=0o700)
    rows = [
        {"id": f"les-{day}", "kind": "lesson", "lesson": text, "timestamp": f"2026-11-0{day}T00:00:00Z"}
        for day, text in enumerate((OLD, NEW), 1)
    ]  # fmt: skip
    log.write_text("".join(json.dumps({**row, "repo": "shop"}) + "\n" for row in rows))
    with Memory.open(cwd=folder, settings={"embedder.kind": "none"}) as memory:
        assert not memory.trusts(memory.home)
        assert maintain(memory) == {"proposed": 0}
        assert not memory.home.suggestions_mark.exists()
        assert inbox.candidates(*memory.homes) == []
