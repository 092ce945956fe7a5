"""Erasing: whatever a file of the home holds of the record goes, and nothing else."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from commonplace import erasure
from commonplace.memory import Memory
from commonplace.rules import Fold
from commonplace.where.home import Home
from conftest import git
from histories import append, feedback, lesson, link, pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

TEXT = "the Käfer vault opens at “noon”"


@pytest.fixture
def home(own_home: Path) -> Home:
    append(Home(own_home), "app", lesson("gone", TEXT), lesson("kept", "npm ci in CI"))
    return Home(own_home)


def lines(home: Home, log: str = "app") -> dict[str, dict[str, Any]]:
    rows = [json.loads(line) for line in home.log(log).read_text().splitlines()]
    return {row["id"]: row for row in rows}


FOLDERS: dict[str, Callable[[Home], Path]] = {
    "spool": lambda home: home.spool_folder,
    "sessions": lambda home: home.sessions_folder,
    "inbox": lambda home: home.inbox_folder,
    "drafts": lambda home: home.drafts_folder,
}


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize(
    "content",
    [
        f'{{"prompt": "{TEXT}"}}',
        json.dumps({"prompt": TEXT}),
        '{"id": "gone"}',
        '{"of":"gone"}',
    ],
    ids=["plain", "escaped", "id", "of"],
)
def test_state_that_speaks_of_the_erased_goes(home: Home, folder: str, content: str) -> None:
    place = FOLDERS[folder](home)
    place.mkdir(parents=True)
    (place / "1-speaks.json").write_text(content)
    (place / "2-other.json").write_text('{"prompt": "npm ci in CI"}')

    receipt = erasure.erase([home], "gone")

    assert [path.name for path in place.iterdir()] == ["2-other.json"]
    assert receipt.left_in == []


@pytest.mark.parametrize("ascii_only", [False, True])
def test_a_damaged_copy_of_the_text_goes_however_it_is_written(
    home: Home, ascii_only: bool
) -> None:
    with home.log("app").open("a") as stream:
        stream.write(json.dumps({"lesson": TEXT}, ensure_ascii=ascii_only)[:-1] + "\n")

    receipt = erasure.erase([home], "gone")

    assert receipt.lines_removed == 2
    assert list(lines(home)) == ["kept"]


@pytest.mark.parametrize("ascii_only", [False, True])
def test_what_is_left_in_a_text_file_is_told_however_it_is_written(
    home: Home, ascii_only: bool
) -> None:
    note = home.notes("ana") / "plan.md"
    note.parent.mkdir(parents=True)
    note.write_text(json.dumps(TEXT, ensure_ascii=ascii_only))

    assert erasure.erase([home], "gone").left_in == ["agents/ana/plan.md"]


POINTING: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "links": (
        {"links": [{"to": "gone", "rel": "related_to"}, {"to": "other", "rel": "uses"}]},
        {"links": [{"to": "other", "rel": "uses"}]},
    ),
    "children": ({"children": {"a": "gone", "b": "other"}}, {"children": {"b": "other"}}),
}


@pytest.mark.parametrize("what", POINTING)
def test_what_points_at_the_erased_is_taken_out_of_records_that_stay(home: Home, what: str) -> None:
    before, after = POINTING[what]
    append(home, "app", lesson("pointing", "a text", **before))

    erasure.erase([home], "gone")

    found = lines(home)["pointing"]
    assert {name: found.get(name) for name in after} == after
    assert found["lesson"] == "a text"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"source": "gone"}, {}),
        ({"source": "other"}, {"source": "other"}),
        ({"source_episodes": ["gone", "other"]}, {"source_episodes": ["other"]}),
        ({"source_episodes": ["other"]}, {"source_episodes": ["other"]}),
    ],
)
def test_an_older_version_that_named_its_source_no_longer_does(
    home: Home, before: dict[str, Any], after: dict[str, Any]
) -> None:
    """The current version rests on nothing, so the record stays; its older line loses the id."""
    row = {"id": "p", "kind": "anti_pattern", "what_fails": "x"}
    append(home, "app", {**row, **before}, {**row, "what_fails": "y"})

    erasure.erase([home], "gone")

    raw = home.log("app").read_text()
    older = next(json.loads(line) for line in raw.splitlines() if '"what_fails":"x"' in line)
    assert {name: older[name] for name in ("source", "source_episodes") if name in older} == after
    assert "gone" not in raw


def test_everything_that_rests_on_it_goes_through_any_number_of_homes(tmp_path: Path) -> None:
    """One rests on the other from home to home, so that one look at each home is not enough."""
    near, far = Home(tmp_path / "near"), Home(tmp_path / "far")
    append(
        far,
        "app",
        pattern("two", source_episodes=["one"]),
        pattern("four", source_episodes=["three"]),
    )
    append(
        near,
        "app",
        lesson("zero"),
        pattern("one", source_episodes=["zero"]),
        pattern("three", source_episodes=["two"]),
        feedback("f", "three"),
        link("kept", "uses", "one"),
        lesson("kept"),
    )

    receipt = erasure.erase([near, far], "zero")

    assert list(lines(near)) == ["kept"]
    assert far.log("app").read_text() == ""
    assert (receipt.records_erased, receipt.derived_erased) == (5, 4)
    assert receipt.lines_removed == 7


def test_a_receipt_counts_what_was_searched(home: Home) -> None:
    append(home, "other", lesson("else"))
    with Memory.open(home.path, settings={"embedder.kind": "none"}, background=False) as memory:
        receipt = memory.erase("gone")

    assert receipt.files_rewritten == ["log/app.jsonl"]
    assert receipt.files_searched >= 2


def test_a_chain_that_changes_homes_at_each_link_is_followed_once(
    own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    homes = [Home(own_home), Home(tmp_path / "other")]
    length = 40
    for n in range(length):
        links = [{"to": f"c{n - 1}", "rel": "derived_from"}] if n else []
        append(homes[n % 2], "app", lesson(f"c{n}", links=links))
    asked: list[str] = []
    dependents = Fold.dependents

    def counted(folded: Fold[Any], ids: Collection[str]) -> Any:
        asked.extend(ids)
        return dependents(folded, ids)

    monkeypatch.setattr(Fold, "dependents", counted)

    assert len(erasure.reach(homes, "c0")[0]) == length
    assert len(asked) == len(homes) * length


def test_an_index_that_cannot_be_built_is_no_error_of_the_erasure(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(own_home)
    append(home, "app", lesson("gone", TEXT), lesson("kept", "npm ci in CI"))
    with Memory.open(own_home) as memory:
        memory.recall("npm")
        monkeypatch.setattr(
            "commonplace.index.embedded.kept_vectors.restore",
            lambda *_: (_ for _ in ()).throw(sqlite3.OperationalError("database or disk is full")),
        )
        receipt = memory.erase("gone")

    assert receipt.records_erased == 1
    assert erasure.check(home) == []


def test_the_receipt_says_that_git_may_hold_it(
    commonplace: Callable[..., subprocess.CompletedProcess[str]], own_home: Path
) -> None:
    ident = commonplace("log", "--lesson", "the kettle whistles", "--type", "error").stdout.strip()
    git("init", "-q", cwd=own_home)

    done = commonplace("forget", ident, "--erase", "--yes")

    assert "older commits still hold the record" in done.stderr
