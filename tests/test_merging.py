"""Records that say the same become one, whose evidence and use add up; different values never do."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.cli import main
from commonplace.learn import batches
from commonplace.learn.comparison import have_same_meaning
from commonplace.learn.duplicates import LONGER_BY_ONE_MIN, pairs_with_same_words
from commonplace.learn.merging import merge
from commonplace.memory import Memory
from commonplace.records import parse_rate
from conftest import SLOW_LAW
from histories import feedback, lesson, link, pattern
from test_pruning import NOW, lines, open_memory, put

if TYPE_CHECKING:
    from collections.abc import Sequence

SAID = "mend the zeppelin with a needle and strong thread, look at every seam, fill the cells again"
SAID_MORE = f"{SAID} carefully"


def run(memory: Memory) -> dict[str, Any]:
    return merge(memory, dry_run=False, is_over=lambda: False)


def current(memory: Memory, kind: str) -> dict[str, dict[str, Any]]:
    return {record.id: record.fields for record in memory.records(kind=kind)}


# --- What says the same ---------------------------------------------------------------------------

SAME = [
    (
        "Express handlers require explicit return types",
        "Express handlers need explicit return types",
    ),
    (
        "Express route handlers need explicit return types",
        "Express handlers require an explicit return type",
    ),
    (
        "Retry flaky calls with exponential backoff",
        "Use exponential backoff when retrying flaky calls",
    ),
    ("pytest needs the PYTHONPATH to include src", "PYTHONPATH must include src for pytest"),
    ("Close connections in a finally block", "Always close connections in a `finally` block."),
    ("Don't run `npm audit` in CI", "do not run npm audit in CI"),
    ("Set `retries` to 3", "set retries to 3!"),
]
DIFFERENT = [
    ("use port 8080", "use port 9090"),
    ("pin eslint to 8.57", "pin eslint to 8.58"),
    ("pin eslint", "pin eslint to 8.57"),
    ("needs Node v18", "needs Node v20"),
    ("wait thirty seconds", "wait sixty seconds"),
    ("deploy on Tuesday", "deploy on Friday"),
    ("use npm ci in CI", "never use npm ci in CI"),
    ("use npm ci in CI", "don't use npm ci in CI"),
    ("use npm, not yarn", "use yarn, not npm"),
    ("use npm instead of yarn", "use yarn instead of npm"),
    ("copy the users to the archive", "copy the archive to the users"),
    ("move the data from Redis to Postgres", "move the data from Postgres to Redis"),
    ("run migrations before the deploy", "run migrations after the deploy"),
    ("enable the cache", "disable the cache"),
    ("increase the heap size", "decrease the heap size"),
    ("use tabs for indentation", "use spaces for indentation"),
    ("use the primary replica for writes", "use the secondary replica for writes"),
    ("users can delete the account", "admins can delete the account"),
    ("run pytest with --lf", "run pytest with --ff"),
    ("edit src/app.py", "edit src/main.py"),
    ("call getUser first", "call getOrder first"),
    ("send a GET request", "send a POST request"),
    ("set LOG_LEVEL to debug", "set LOG_FORMAT to debug"),
    ("use the timeout only in tests", "use the timeout in tests"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_values(one: str, other: str) -> None:
    assert have_same_meaning(one, other)
    assert have_same_meaning(other, one)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different_values(one: str, other: str) -> None:
    assert not have_same_meaning(one, other)
    assert not have_same_meaning(other, one)


@given(st.text(), st.text())
def test_sameness_does_not_depend_on_which_text_is_first(one: str, other: str) -> None:
    assert have_same_meaning(one, other) == have_same_meaning(other, one)
    assert have_same_meaning(one, one)


def have_same_words(one: frozenset[int], other: frozenset[int]) -> bool:
    """Whether both have the same words, or one has one more and both are long."""
    shorter, longer = sorted((one, other), key=len)
    if not shorter or len(longer) - len(shorter) > 1:
        return False
    return shorter <= longer and (len(shorter) == len(longer) or len(longer) >= LONGER_BY_ONE_MIN)


@given(st.lists(st.frozensets(st.integers(1, 20), max_size=14), max_size=12))
def test_pairs_are_found_as_comparing_all_with_all_finds_them(sets: list[frozenset[int]]) -> None:
    found = {tuple(sorted(pair)) for pair in pairs_with_same_words(sets)}
    assert found == {
        (one, other)
        for other in range(len(sets))
        for one in range(other)
        if have_same_words(sets[one], sets[other])
    }


# --- Patterns -------------------------------------------------------------------------------------


def test_patterns_of_one_meaning_merge_by_their_vectors(own_home: Path) -> None:
    told = [
        ("p-low", "Express handlers require explicit return types in strict mode", 0.85),
        ("p-high", "Express handlers need explicit return types in strict mode", 0.95),
        ("p-before", "Always run migrations before deploying the service", 0.9),
        ("p-after", "Always run migrations after deploying the service", 0.9),
        ("p-8", "Pin the version of eslint to 8.57", 0.9),
        ("p-9", "Pin the version of eslint to 9.0", 0.9),
    ]
    put(
        own_home,
        [
            pattern(
                ident,
                pattern=text,
                confidence=confidence,
                source_episodes=["ep-shared", f"ep-of-{ident}"],
                usage_count=3,
                last_used=f"2026-01-0{number + 1}T00:00:00Z",
            )
            for number, (ident, text, confidence) in enumerate(told)
        ],
    )
    with Memory.open(own_home, background=False, clock=lambda: NOW) as memory:
        done = run(memory)
        assert done["merges"] == [{"kept": "p-high", "superseded": ["p-low"]}]
        kept = memory.get("p-high")
        assert kept.fields["source_episodes"] == ["ep-shared", "ep-of-p-high", "ep-of-p-low"]
        assert kept.fields["usage_count"] == 6
        assert kept.fields["confidence"] == 0.95
        assert kept.fields["last_used"] == "2026-01-02T00:00:00Z"
        assert kept.meta["batch"] == done["batch"]
        assert set(current(memory, "pattern")) == {ident for ident, *_rest in told} - {"p-low"}
        assert memory.describe("p-low")["standing"] == "superseded"
        assert run(memory) == {"patterns": 0, "anti_patterns": 0, "lessons": 0}


def test_anti_patterns_merge_and_name_all_evidence(own_home: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": "a-1", "kind": "anti_pattern", "what_fails": SAID, "why": "x", "source": "ep-1"},
        {
            "id": "a-2",
            "kind": "anti_pattern",
            "what_fails": SAID_MORE,
            "why": "x",
            "links": [{"to": "ep-2", "rel": "derived_from"}, {"to": "ep-3", "rel": "derived_from"}],
        },
        {"id": "a-3", "kind": "anti_pattern", "what_fails": SAID, "why": "y", "source": "ep-1"},
    ]
    put(own_home, rows)
    with open_memory(own_home) as memory:
        assert run(memory)["merges"] == [{"kept": "a-2", "superseded": ["a-1"]}]
        assert set(memory.get("a-2").sources) == {"ep-1", "ep-2", "ep-3"}
        assert set(current(memory, "anti_pattern")) == {"a-2", "a-3"}


@pytest.mark.parametrize(
    "rows",
    [
        [pattern("p", pattern=SAID, repo="app"), pattern("q", pattern=SAID_MORE, repo="shop")],
        [pattern("p", pattern=SAID), pattern("q", pattern=SAID), link("q", "contradicts", "p")],
        [pattern("p", pattern=SAID), pattern("q", pattern=SAID, meta={"edited": "2026-01-02T00:00:00Z"})],
        [pattern("p", pattern=SAID), pattern("q", pattern=SAID, correct_approach="sew it twice")],
        [lesson("p", SAID), lesson("q", SAID_MORE, event_type="success")],
        [lesson("p", SAID), lesson("q", SAID, meta={"edited": "2026-01-02T00:00:00Z"})],
        [lesson("p", SAID), lesson("q", SAID, command="make"), feedback("f", "q", "wrong")],
        [lesson("p", "use port 8080"), lesson("q", "use port 9090")],
    ],
)  # fmt: skip
def test_what_does_not_merge(own_home: Path, rows: list[dict[str, Any]]) -> None:
    put(own_home, rows)
    with open_memory(own_home) as memory:
        assert run(memory) == {"patterns": 0, "anti_patterns": 0, "lessons": 0}


def test_ones_own_record_stays_and_an_imported_one_never_hides_it(own_home: Path) -> None:
    foreign = {"origin": "import:loki"}
    put(
        own_home,
        [
            pattern("p-own", pattern=SAID, confidence=0.5),
            pattern("p-foreign", pattern=SAID_MORE, confidence=0.99, meta=foreign),
            lesson("l-own", SAID),
            lesson("l-foreign", SAID_MORE, success_rate="99/99", meta=foreign),
        ],
    )
    with open_memory(own_home) as memory:
        assert [one["kept"] for one in run(memory)["merges"]] == ["p-own", "l-own"]


@pytest.mark.parametrize("kind", ["pattern", "anti_pattern"])
def test_the_feedback_on_merged_patterns_adds_up(own_home: Path, kind: str) -> None:
    field = "pattern" if kind == "pattern" else "what_fails"
    put(
        own_home,
        [
            {"id": ident, "kind": kind, field: text, "confidence": sure}
            for ident, text, sure in (("p-1", SAID, 0.95), ("p-2", SAID_MORE, 0.9))
        ],
    )
    put(own_home, [feedback("f-1", "p-1", "worked"), feedback("f-2", "p-2", "worked")])
    put(own_home, [feedback("f-3", "p-2", "worked"), feedback("f-4", "p-2", "failed")])
    with open_memory(own_home) as memory:
        (merge,) = run(memory)["merges"]
        kept = merge["kept"]
        assert memory.describe(kept)["success_rate"] == "3/4"
        # An index that is built again and a fold of the logs say the same.
        shutil.rmtree(own_home / "index", ignore_errors=True)
        own = {"p-1": "2/3", "p-2": "1/1"}[kept]
        assert memory.get(kept).meta["merged_rate"] == own
    with open_memory(own_home) as memory:
        assert memory.describe(kept)["success_rate"] == "3/4"


# --- Lessons --------------------------------------------------------------------------------------


def test_the_lesson_with_the_better_record_stays_and_rates_add_up(own_home: Path) -> None:
    put(
        own_home,
        [
            lesson("l-1", SAID, success_rate="1/3", tags=["sewing"]),
            lesson("l-2", SAID_MORE, success_rate="8/9", tags=["thread", "cells"]),
            lesson("l-3", SAID.replace(",", ";")),
            feedback("f-1", "l-1", "worked"),
            feedback("f-2", "l-2", "worked"),
            feedback("f-3", "l-3", "failed"),
        ],
    )
    with open_memory(own_home) as memory:
        assert run(memory)["merges"] == [{"kept": "l-2", "superseded": ["l-1", "l-3"]}]
        assert memory.get("l-2").fields["success_rate"] == "10/14"
        # Its own feedback still counts once.
        assert memory.describe("l-2")["success_rate"] == "11/15"
        assert [hit.id for hit in memory.recall("zeppelin", all_repos=True).hits] == ["l-2"]


def test_what_was_undone_is_not_merged_again(own_home: Path) -> None:
    put(own_home, [lesson("l-1", SAID, success_rate="5/5"), lesson("l-2", SAID_MORE)])
    with open_memory(own_home) as memory:
        before = memory.get("l-1").fields
        done = run(memory)
        assert done["lessons"] == 1
        assert batches.undo(memory, done["batch"]).changed == ("l-1",)
        assert memory.get("l-1").fields == before
        assert run(memory)["lessons"] == 0
        assert set(current(memory, "lesson")) == {"l-1", "l-2"}


def test_an_edit_protects_a_lesson_also_after_a_batch(own_home: Path) -> None:
    put(own_home, [lesson("l-1", SAID, success_rate="5/5"), lesson("l-2", SAID_MORE)])
    with open_memory(own_home) as memory:
        run(memory)
    later = NOW.replace(hour=13)
    with Memory.open(
        own_home, settings={"embedder.kind": "none"}, background=False, clock=lambda: later
    ) as memory:
        memory.edit("l-1", tags=["mine"])
        put(own_home, [lesson("l-3", f"{SAID} please")])
        assert run(memory)["lessons"] == 0


def test_a_dry_run_names_them_and_the_setting_switches_it_off(
    own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(own_home, [lesson("l-1", SAID, success_rate="5/5"), lesson("l-2", SAID_MORE)])
    before = lines(own_home)
    assert main(["maintain", "--step", "merging", "--dry-run"]) == 0
    assert "l-1 takes in l-2" in capsys.readouterr().out
    assert main(["maintain", "--step", "merging", "--dry-run", "--json"]) == 0
    steps = json.loads(capsys.readouterr().out)["steps"]
    assert steps["merging"]["merges"] == [{"kept": "l-1", "superseded": ["l-2"]}]
    with open_memory(own_home, **{"learn.merge": False}) as memory:
        assert run(memory)["lessons"] == 0
    assert lines(own_home) == before


def test_only_what_changed_is_compared_again(own_home: Path) -> None:
    put(own_home, [lesson("l-1", SAID), lesson("l-2", "another thing")])
    with open_memory(own_home) as memory:
        run(memory)
        mark = memory.home.merging_mark
        seen = mark.read_bytes()
        mark.write_bytes(seen + b" ")
        run(memory)
        assert mark.read_bytes() == seen + b" "  # It was not written again.
        memory.append([lesson("l-3", SAID_MORE, repo="app")])
        assert run(memory)["lessons"] == 1
        mark.write_bytes(b"no mark")
        assert run(memory)["lessons"] == 0


def test_a_record_that_changes_while_it_is_compared_waits_for_the_next_run(own_home: Path) -> None:
    put(own_home, [lesson("l-1", SAID, success_rate="5/5"), lesson("l-2", SAID_MORE)])
    with open_memory(own_home) as memory, open_memory(own_home) as other:
        entry = memory.prepare({**memory.get("l-1").fields, "repo": "app"})
        assert not memory.append_if("app", [entry], lambda: False)
        other.edit("l-1", tags=["mine"])
        assert run(memory)["lessons"] == 0


# --- Laws -----------------------------------------------------------------------------------------

WORDS = (["zeppelin", "needle", "thread", "seam", "cell", "gas", "rope", "mast", "hull", "rudder"])  # fmt: skip
TEXTS = st.sampled_from(
    [
        " ".join(WORDS),
        " ".join(reversed(WORDS)),
        " ".join([*WORDS, "carefully"]),
        " ".join([*WORDS, "8080"]),
        " ".join([*WORDS[1:], "balloon"]),
        " ".join(["never", *WORDS]),
    ]
)
SOURCES = st.lists(st.sampled_from(["ep-1", "ep-2", "ep-3"]), max_size=2, unique=True)


@st.composite
def _records(draw: st.DrawFn) -> list[dict[str, Any]]:
    rows = []
    for number in range(draw(st.integers(0, 7))):
        text, kind = draw(TEXTS), draw(st.sampled_from(["pattern", "anti_pattern", "lesson"]))
        row: dict[str, Any] = {"id": f"r-{number}", "kind": kind}
        row["timestamp"] = f"2026-01-0{draw(st.integers(1, 3))}T00:00:00Z"
        if kind == "pattern":
            row |= {"pattern": text, "confidence": draw(st.sampled_from([0.5, 0.9]))}
            row |= {"usage_count": draw(st.integers(0, 3)), "source_episodes": draw(SOURCES)}
        elif kind == "anti_pattern":
            row |= {"what_fails": text, "source": draw(st.sampled_from(["", "ep-1", "ep-2"]))}
        else:
            row |= {"lesson": text, "event_type": "error"}
            if draw(st.booleans()):
                row["success_rate"] = f"{draw(st.integers(0, 2))}/2"
        rows.append(row)
    return rows


def told(home: Path) -> dict[str, Any]:
    """What the records of a home say, without where and by which batch it was written."""
    with open_memory(home) as memory:
        found = {}
        for record in memory.records(superseded=True):
            fields = {name: value for name, value in record.fields.items() if name != "repo"}
            fields["meta"] = {n: v for n, v in record.meta.items() if n != "batch"}
            fields["standing"] = memory.describe(record.id).get("standing", "current")
            found[record.id] = fields
        return found


def merged(folder: Path, rows: Sequence[dict[str, Any]], log: str) -> dict[str, Any]:
    put(folder, rows, log)
    written = lines(folder)
    with open_memory(folder) as memory:
        run(memory)
        assert not written - lines(folder)
        once = lines(folder)
        assert run(memory) == {"patterns": 0, "anti_patterns": 0, "lessons": 0}
        assert lines(folder) == once
    return told(folder)


@given(_records(), st.randoms())
@SLOW_LAW
def test_merging_does_not_depend_on_order_or_log_and_adds_up(
    rows: list[dict[str, Any]], random: Any
) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        result = merged(Path(folder) / "one", rows, "app")
        assert merged(Path(folder) / "other", shuffled, "another") == result
    assert set(result) == {row["id"] for row in rows}
    kept = [fields for fields in result.values() if fields["standing"] == "current"]
    assert _sums(kept) == _sums(rows)


def _sums(rows: Sequence[dict[str, Any]]) -> tuple[Any, ...]:
    rates = [parse_rate(row["success_rate"]) for row in rows if row.get("success_rate")]
    return (
        sum(row.get("usage_count", 0) for row in rows),
        sum(rate.worked for rate in rates),
        sum(rate.tried for rate in rates),
        {one for row in rows for one in row.get("source_episodes", [])},
        {row["source"] for row in rows if row.get("source")}
        | {link["to"] for row in rows for link in row.get("links", ()) if link["rel"] == "derived_from"},
    )  # fmt: skip
