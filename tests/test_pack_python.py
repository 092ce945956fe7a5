"""The pack `python-core`: its sources, and every piece of Python in it and in `sql-core`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools import check_pack_python
from tools.pack_sources import Code, SourceNode

PACK = "python-core"


@pytest.mark.slow
def test_the_code_has_right_types_and_runs(tmp_path: Path) -> None:
    nodes = check_pack_python.nodes()
    assert len(nodes) >= 60
    assert check_pack_python.check(nodes, tmp_path) == []


def node(name: str, code: str, check: str, how: str = "") -> SourceNode:
    codes, checks = [Code("python", code)], [Code("python", check)]
    fields = {"check": how} if how else {}
    return SourceNode("here", f"snippet.python.{name}", "X", fields, "", codes, checks)


@pytest.mark.slow
def test_faults_are_found(tmp_path: Path) -> None:
    nodes = [
        node("types", "x: int = ''\n", ""),
        node("run", "x = 1\n", "assert x == 2\n"),
        node("test", "def test_x() -> None:\n    assert 1 > 2\n", "", "pytest"),
    ]
    types, tests, run = check_pack_python.check(nodes, tmp_path)
    assert "Incompatible types in assignment" in types
    assert "1 failed" in tests
    assert "snippet.python.run" in run
    assert "AssertionError" in run
