"""A pattern that is sure and often used ranks above an equal one that is neither, and says so."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace import cli
from commonplace.memory import Memory
from commonplace.recall.priors import NO_PRIORS, Weights, evidence
from conftest import SLOW_LAW

if TYPE_CHECKING:
    from pathlib import Path

WEIGHTS = Weights()
SHARES = st.floats(0, 1)
USES = st.integers(0, 10**12)


@given(SHARES, SHARES, USES, USES)
def test_more_confidence_or_use_never_lowers_the_factor(
    confidence: float, more_confidence: float, used: int, more_used: int
) -> None:
    low = evidence(min(confidence, more_confidence), min(used, more_used), WEIGHTS)
    high = evidence(max(confidence, more_confidence), max(used, more_used), WEIGHTS)
    assert 1 <= low <= high <= 1 + WEIGHTS.evidence + 1e-9


def test_without_priors_it_changes_nothing() -> None:
    assert evidence(1.0, 10**6, NO_PRIORS) == 1


def pattern(ident: str, **fields: Any) -> dict[str, Any]:
    return {
        "id": ident,
        "kind": "pattern",
        "timestamp": "2026-01-06T10:30:00Z",
        "pattern": "Express route handlers require explicit return types",
        "correct_approach": f"Add the type to the signature of {ident}",
        **fields,
    }


@SLOW_LAW
@given(st.data())
def test_raising_confidence_or_use_never_lowers_the_rank(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    home = tmp_path_factory.mktemp("law") / "home"
    low = {"confidence": data.draw(SHARES), "usage_count": data.draw(USES)}
    high = {
        "confidence": data.draw(st.floats(low["confidence"], 1)),
        "usage_count": data.draw(st.integers(int(low["usage_count"]), 10**13)),
    }
    names = data.draw(st.permutations(["sem-01", "sem-02"]))
    with Memory.open(home, settings={"embedder.kind": "none"}) as memory:
        memory.append([pattern(names[0], **low), pattern(names[1])])
        before = [hit.id for hit in memory.rank("express route handlers return types")]
        memory.append([pattern(names[0], **high)])
        after = [hit.id for hit in memory.rank("express route handlers return types")]
    assert after.index(names[0]) <= before.index(names[0])


def log_pattern(**fields: Any) -> None:
    with Memory.open() as memory:
        memory.append([pattern(**fields)])


def test_a_confident_often_used_pattern_comes_first_and_explain_says_why(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log_pattern(ident="sem-a")
    log_pattern(ident="sem-b", confidence=0.95, usage_count=8)
    question = ["recall", "express route handlers return types", "--no-cutoff"]
    assert cli.main([*question, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["hits"]
    assert [hit["id"] for hit in found] == ["sem-b", "sem-a"]
    assert found[0]["why"]["evidence"] > 1
    assert "evidence" not in found[1]["why"]
    # The record's own count, not how often it was delivered.
    assert found[0]["record"]["usage_count"] == 8
    assert cli.main([*question, "--explain"]) == 0
    assert "evidence 1." in capsys.readouterr().err


def test_show_prints_a_patterns_own_counts(capsys: pytest.CaptureFixture[str]) -> None:
    log_pattern(
        ident="sem-001",
        confidence=0.95,
        usage_count=8,
        last_used="2026-01-06T14:00:00Z",
        source_episodes=["ep-1", "ep-2"],
    )
    assert cli.main(["recall", "express return types"]) == 0
    capsys.readouterr()
    assert cli.main(["show", "sem-001"]) == 0
    lines = [line.split(None, 1) for line in capsys.readouterr().out.splitlines() if line.strip()]
    shown = {line[0]: line[1] for line in lines if len(line) > 1}
    assert shown["confidence"] == "0.95"
    assert shown["usage_count"] == "8"
    assert shown["last_used"] == "2026-01-06T14:00:00Z"
    assert shown["sources"] == "2 records"
    assert shown["delivered"] == "1 time"
    assert cli.main(["show", "sem-001", "--json"]) == 0
    described = json.loads(capsys.readouterr().out)
    assert (described["usage_count"], described["sources"], described["delivered"]) == (8, 2, 1)


def test_a_count_beyond_what_an_index_holds_is_only_very_many(own_home: Path) -> None:
    log_pattern(ident="sem-a", confidence=1, usage_count=10**30)
    with Memory.open() as memory:
        (hit,) = memory.recall("express return types").hits
        assert hit.why is not None
        assert hit.why.factors["evidence"] == pytest.approx(1 + WEIGHTS.evidence, abs=1e-3)
    assert (own_home / "log").is_dir()
