"""What recalls save: both sides counted, nothing assumed."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

from commonplace.maintenance import runner
from commonplace.memory import Memory

if TYPE_CHECKING:
    from pathlib import Path


def opened(home: Path) -> Memory:
    return Memory.open(home, settings={"embedder.kind": "none"})


def fill(memory: Memory, repo: str, count: int) -> None:
    memory.append(
        {
            "repo": repo,
            "event_type": "error",
            "lesson": f"kettle number {number} boils over when the lid is left open",
        }
        for number in range(count)
    )


def bytes_of(home: Path, *repos: str) -> int:
    return sum((home / "log" / f"{repo}.jsonl").stat().st_size for repo in repos)


def test_the_report_adds_up_what_was_delivered_and_what_the_logs_held_then(own_home: Path) -> None:
    with opened(own_home) as memory:
        fill(memory, "shop", 200)
        first = memory.recall("kettle boils over")
        then = bytes_of(own_home, "shop")
        fill(memory, "bank", 50)
        second = memory.recall("kettle boils over")
        later = bytes_of(own_home, "shop", "bank")

        found = memory.savings()

    assert first.hits
    assert found["recalls"] == 2
    assert found["tokens_delivered"] == first.tokens + second.tokens
    assert found["tokens_logs"] == (then + later) // 4
    assert found["tokens_saved"] == found["tokens_logs"] - found["tokens_delivered"]
    assert 0.9 < found["share_saved"] < 1
    assert found["tokens_logs_now"] == later // 4


def test_a_recall_of_one_repository_is_held_against_that_log_alone(own_home: Path) -> None:
    with opened(own_home) as memory:
        fill(memory, "shop", 40)
        fill(memory, "bank", 400)
        memory.recall("kettle", repo="shop")

        assert memory.savings()["tokens_logs"] == bytes_of(own_home, "shop") // 4


def test_the_archive_counts_only_where_it_was_searched(own_home: Path) -> None:
    (own_home).mkdir()
    (own_home / "config.toml").write_text("[rotation]\nlines_max = 100\nmove = 60\n")
    with opened(own_home) as memory:
        fill(memory, "shop", 120)
        runner.run(memory, ["rotation"])
        archive = (own_home / "log" / "archive" / "shop.jsonl").stat().st_size
        memory.recall("kettle")
        without = memory.savings()["tokens_logs"]
        memory.recall("kettle", archived=True)

        both = memory.savings()["tokens_logs"]

    assert without == bytes_of(own_home, "shop") // 4
    assert both == (2 * bytes_of(own_home, "shop") + archive) // 4


def test_an_answer_that_costs_more_than_the_log_is_reported_as_it_is(own_home: Path) -> None:
    with opened(own_home) as memory:
        memory.recall("nothing is known of this")
        assert memory.savings()["recalls"] == 0  # There is no home yet, and a recall makes none.
        assert not own_home.exists()
        own_home.mkdir()
        answer = memory.recall("nothing is known of this")

        found = memory.savings()

    assert (found["recalls"], found["empty"]) == (1, 1)
    assert found["tokens_saved"] == -answer.tokens
    assert found["share_saved"] is None


def test_only_answers_count(own_home: Path) -> None:
    with opened(own_home) as memory:
        fill(memory, "shop", 10)
        ident = memory.recall("kettle").hits[0].id
        memory.why("kettle", ident)
        memory.recall("kettle", as_of="2030-01-01")
        memory.recent(3)
        assert memory.recall("kettle", automatic=True).hits

        assert memory.savings()["recalls"] == 1


def test_the_counts_of_another_process_are_seen_and_a_damaged_file_starts_over(
    own_home: Path,
) -> None:
    with opened(own_home) as memory, opened(own_home) as other:
        fill(memory, "shop", 10)
        memory.recall("kettle")
        other.recall("kettle")
        assert memory.savings()["recalls"] == 2
    (own_home / ".state" / "usage.sqlite").write_bytes(b"no database " * 99)

    with opened(own_home) as memory:
        assert memory.recall("kettle").hits
        memory.recall("kettle")
        assert memory.savings()["recalls"] == 2


def test_the_command_reports_and_says_what_it_counts(commonplace: Any, own_home: Path) -> None:
    with opened(own_home) as memory:
        fill(memory, "shop", 300)
        memory.recall("kettle")

    told = commonplace("stats", "--savings")
    found = json.loads(commonplace("stats", "--savings", "--json").stdout)

    assert told.returncode == 0
    assert f"{'recalls':24}  1 since" in told.stdout
    lines = told.stdout.splitlines()
    assert lines[2].startswith("the ten best instead"), "the sober figure comes first"
    assert lines[3].startswith("saved of the ten best")
    assert f"{found['tokens_saved']:,} tokens" in told.stdout
    assert "4 bytes a token" in told.stderr
    assert found["tokens_saved"] > 5 * found["tokens_delivered"]
    assert "300 records" in commonplace("stats").stdout
    assert json.loads(commonplace("stats", "--repo", "shop", "--json").stdout)["records"] == 300
    assert commonplace("stats", "--savings", "--repo", "shop").returncode == 2


def test_the_headline_compares_with_the_ten_best_records_as_they_are_stored(own_home: Path) -> None:
    with opened(own_home) as memory:
        fill(memory, "shop", 30)
        answer = memory.recall("kettle number boils over", limit=3)
        lines = (own_home / "log" / "shop.jsonl").read_bytes().splitlines()
        nothing = memory.recall("quantum chromodynamics")

        found = memory.savings()

    assert answer.hits
    assert not nothing.hits
    shortest, longest = min(map(len, lines)), max(map(len, lines))
    assert 10 * shortest // 4 <= found["tokens_best"] <= 10 * longest // 4
    assert found["tokens_delivered_instead_of_best"] == answer.tokens + nothing.tokens
    assert found["tokens_saved_of_best"] == found["tokens_best"] - answer.tokens - nothing.tokens
    assert 0 < found["share_saved_of_best"] < found["share_saved"]


def test_counts_from_before_are_kept_and_not_compared_with_the_ten_best(own_home: Path) -> None:
    (own_home / ".state").mkdir(parents=True)
    with closing(sqlite3.connect(own_home / ".state" / "usage.sqlite")) as old, old:
        old.execute(
            "CREATE TABLE answers (one INTEGER PRIMARY KEY, since TEXT, recalls INTEGER,"
            " empty INTEGER, tokens INTEGER, log_bytes INTEGER)"
        )
        old.execute("INSERT INTO answers VALUES (1, '2026-01-01T00:00:00Z', 7, 1, 500, 40000)")
    with opened(own_home) as memory:
        fill(memory, "shop", 30)
        answer = memory.recall("kettle")

        found = memory.savings()

    assert found["recalls"] == 8
    assert found["tokens_delivered"] == 500 + answer.tokens
    assert found["tokens_delivered_instead_of_best"] == answer.tokens
