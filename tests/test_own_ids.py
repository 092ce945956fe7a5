"""Ids that a program counts: the same one in two repositories is two records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace import cli
from commonplace.exchange.importer import import_files
from commonplace.exchange.own_ids import with_own_ids
from commonplace.memory import Memory
from commonplace.records import ID_CHARS_MAX, id_in_repo

IDENT = "ep-2026-01-06-001"


def episode(goal: str, repo: str, **more: Any) -> dict[str, Any]:
    context = {"goal": goal}
    return {
        "id": IDENT,
        "task_id": "t-1",
        "context": context,
        "outcome": "success",
        "repo": repo,
        **more,
    }


def test_two_repositories_may_count_alike(memory: Memory) -> None:
    first = memory.record_episode(episode("brew the tea", "shop"))
    second = memory.record_episode(episode("paint the fence", "blog"))
    again = memory.record_episode(episode("paint the fence twice", "blog", id=second.id))

    assert first.id == IDENT
    assert second.id == again.id == id_in_repo(IDENT, second.repo)
    for repo, goal in (("shop", "brew the tea"), ("blog", "paint the fence twice")):
        (found,) = memory.records(repo=repo, kind="episode")
        assert found.fields["context"]["goal"] == goal


def test_the_command_says_which_id_it_is(
    own_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = []
    for number, repo in enumerate(("shop", "shop", "blog")):
        file = tmp_path / f"{number}.json"
        file.write_text(json.dumps(episode(f"goal {number}", repo)))
        assert cli.main(["episode", "record", str(file), "--home", str(own_home)]) == 0
        said.append(capsys.readouterr())

    assert [one.out.split()[0] for one in said] == [IDENT, IDENT, id_in_repo(IDENT, "blog")]
    assert not said[0].err
    assert "was recorded before" in said[1].err
    assert "another repository" in said[2].err


def project(folder: Path, name: str) -> Path:
    """A folder as Loki leaves it: an episode, and a pattern that rests on it."""
    memory = folder / name / ".loki" / "memory"
    (memory / "episodic" / "2026-01-06").mkdir(parents=True)
    (memory / "semantic").mkdir()
    written = {
        **episode(f"goal of {name}", ""),
        "timestamp": "2026-01-06T10:00:00Z",
        "agent": "eng",
    }
    del written["repo"]
    (memory / "episodic" / "2026-01-06" / "task-001.json").write_text(json.dumps(written))
    pattern = {
        "id": "sem-001",
        "pattern": f"what {name} has taught",
        "confidence": 0.9,
        "source_episodes": [IDENT],
        "links": [{"to": IDENT, "relation": "derived_from"}],
    }
    (memory / "semantic" / "patterns.json").write_text(json.dumps({"patterns": [pattern]}))
    return folder / name


def test_two_projects_that_count_alike_are_both_imported(memory: Memory, tmp_path: Path) -> None:
    reports = [
        import_files(memory, project(tmp_path, name), repo=name) for name in ("shop", "blog")
    ]
    assert [(one.records, one.renamed) for one in reports] == [(2, 0), (2, 2)]
    for name in ("shop", "blog"):
        (found,) = memory.records(repo=name, kind="pattern")
        (task,) = memory.records(repo=name, kind="episode")
        assert found.fields["pattern"] == f"what {name} has taught"
        assert set(found.sources) == {task.id}

    again = [import_files(memory, tmp_path / name, repo=name) for name in ("shop", "blog")]
    assert [(one.lines, one.unchanged) for one in again] == [(0, 2), (0, 2)]


IDS = st.sampled_from(["a", "b", "c"])


@given(
    fields=st.fixed_dictionaries(
        {},
        optional={
            "id": IDS,
            "of": IDS,
            "source": IDS,
            "source_episodes": st.lists(IDS),
            "links": st.lists(st.fixed_dictionaries({"to": IDS, "rel": st.just("uses")})),
            "children": st.dictionaries(st.text(), IDS),
            "context": st.fixed_dictionaries({"relevant_patterns": st.lists(IDS)}),
        },
    ),
    elsewhere=st.sets(IDS),
)
def test_only_ids_of_others_change_and_twice_is_once(
    fields: dict[str, Any], elsewhere: set[str]
) -> None:
    def is_elsewhere(ident: str, _log: str) -> bool:
        return ident in elsewhere

    own = with_own_ids(fields, "repo", is_elsewhere)

    assert with_own_ids(own, "repo", is_elsewhere) == own
    text = json.dumps(own)
    assert not any(f'"{ident}"' in text.replace(f'"{ident}":', "") for ident in elsewhere)
    if not elsewhere:
        assert own == fields


@given(st.text("abc-", min_size=1, max_size=ID_CHARS_MAX), st.sampled_from(["x", "y"]))
def test_an_id_of_its_own_is_valid_and_another_in_each_repository(ident: str, repo: str) -> None:
    own = id_in_repo(ident, repo)

    assert len(own) <= ID_CHARS_MAX
    assert own != id_in_repo(ident, "z")
