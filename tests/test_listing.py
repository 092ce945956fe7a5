"""`list` and `tags`: every record once, page by page, with a beginning of its id that is enough."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.cli import main
from commonplace.errors import UsageError
from commonplace.memory import Memory
from conftest import SLOW_LAW

if TYPE_CHECKING:
    from collections.abc import Sequence

DAY = "2026-11-{:02}T10:00:00Z"


def lesson(number: int, **fields: Any) -> dict[str, Any]:
    return {
        "id": f"les-{number:03}",
        "event_type": "error",
        "lesson": f"lesson {number}",
        "timestamp": DAY.format(number % 28 + 1),
        **fields,
    }


IDS = st.lists(st.text("ab-", min_size=1, max_size=24).map("les-".__add__), unique=True, max_size=8)


@SLOW_LAW
@given(IDS, st.integers(1, 5))
def test_the_pages_together_are_all_records_once_and_each_prefix_finds_its_record(
    tmp_path_factory: pytest.TempPathFactory, ids: Sequence[str], size: int
) -> None:
    with Memory.open(tmp_path_factory.mktemp("home")) as memory:
        memory.append([lesson(n, id=ident) for n, ident in enumerate(ids)])
        for ident in ids[::3]:
            memory.forget(ident)
        kept = [ident for n, ident in enumerate(ids) if n % 3]
        pages = memory.list_records(limit=size).pages

        listed = [memory.list_records(page=n + 1, limit=size) for n in range(pages)]

        found = [hit for page in listed for hit in page.hits]
        assert sorted(hit.id for hit in found) == sorted(kept)
        assert [hit.timestamp for hit in found] == sorted(
            (hit.timestamp for hit in found), reverse=True
        )
        assert {page.total for page in listed} == {len(kept)}
        for page in listed:
            for ident, prefix in page.prefixes.items():
                assert memory.get(prefix).id == ident
    with pytest.raises(UsageError, match="no page"):
        memory.list_records(page=pages + 1, limit=size)


def test_the_orders(memory: Memory) -> None:
    memory.append(
        [lesson(1, success_rate="1/2"), lesson(2), lesson(3, success_rate="9/10"), lesson(4)]
    )
    memory.recall("lesson 2", limit=1, cutoff=False)

    def order(sort: str) -> list[str]:
        return [hit.id[-1] for hit in memory.list_records(sort).hits]

    assert order("newest") == ["4", "3", "2", "1"]
    assert order("oldest") == ["1", "2", "3", "4"]
    assert order("rate") == ["3", "1", "4", "2"]
    assert order("uses")[0] == memory.recall("lesson 2", limit=1, cutoff=False).hits[0].id[-1]
    with pytest.raises(UsageError, match="no order `best`"):
        order("best")


def test_the_filters(memory: Memory) -> None:
    memory.append(
        [
            lesson(1, tags=["CI", "npm"], agent_id="codex"),
            lesson(2, tags=["ci"], repo="other"),
            lesson(3, event_type="success"),
            {"kind": "pattern", "id": "pat-1", "pattern": "retry", "timestamp": DAY.format(2)},
        ]
    )

    def ids(**narrowing: Any) -> list[str]:
        return sorted(hit.id for hit in memory.list_records(**narrowing).hits)

    assert ids(tags=["ci"]) == ["les-001"]
    assert ids(tags=["ci"], all_repos=True) == ["les-001", "les-002"]
    assert ids(repo="other") == ["les-002"]
    assert ids(agent="codex") == ["les-001"]
    assert ids(kinds=["pattern"]) == ["pat-1"]
    assert ids(types=["success"]) == ["les-003"]
    assert ids(since="2026-11-04") == ["les-003"]
    assert memory.tags(all_repos=True) == {"ci": 2, "npm": 1}
    assert memory.tags(repo="other") == {"ci": 1}


def test_the_list_is_one_line_a_record(memory: Memory, capsys: pytest.CaptureFixture[str]) -> None:
    memory.append(
        [
            lesson(1, id="les-verify-ownership-0001", success_rate="9/10", context="npm fails"),
            lesson(2, id="les-verify-ownership-0002", repo="elsewhere"),
        ]
    )

    assert main(["list"]) == 0
    assert capsys.readouterr().out == (
        "2026-11-02  error  9/10  les-verify-ownership-0001  npm fails: lesson 1\n"
    )
    assert main(["list", "--all-repos", "--limit", "1", "--page", "2", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["page"], printed["pages"], printed["total"]) == (2, 2, 2)
    assert [row["id"] for row in printed["records"]] == ["les-verify-ownership-0001"]
    assert main(["list", "--repo", "nothing-here"]) == 30
    assert "nothing-here" in capsys.readouterr().err
    assert main(["list", "--tag", "nothing-has-it"]) == 0
    assert "No records match" in capsys.readouterr().err
    assert main(["tags"]) == 0
    assert "No tags yet" in capsys.readouterr().err
