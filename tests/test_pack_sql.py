"""The pack `sql-core`: its sources, and every statement in it on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tools import check_pack_sql
from tools.check_pack_sql import check_postgresql, check_sqlite, runs_on
from tools.pack_sources import Code, SourceNode
from tools.scratch_postgres import programs, server

PACK = "sql-core"


@pytest.fixture(scope="module")
def postgresql() -> Iterator[Path]:
    binaries = programs()
    if binaries is None:
        pytest.skip("PostgreSQL is not installed (no `initdb` in PATH or /usr/lib/postgresql)")
    with server(binaries) as folder:
        yield folder


def test_statements_run_on_sqlite() -> None:
    nodes = check_pack_sql.nodes()
    assert sum(runs_on(node, "sqlite") for node in nodes) >= 45
    assert check_sqlite(nodes) == []


@pytest.mark.slow
def test_statements_run_on_postgresql(postgresql: Path) -> None:
    nodes = check_pack_sql.nodes()
    assert sum(runs_on(node, "postgresql") for node in nodes) >= 50
    assert check_postgresql(nodes, postgresql) == []


def node(code: str, check: str, language: str = "sql") -> SourceNode:
    codes, checks = [Code("sql", code)], [Code(language, check)]
    return SourceNode("here", "snippet.sql.x", "X", {}, "", codes, checks)


FAULTS = [
    (node("SELEC 1;\n", "SELECT 1;\n"), "syntax error"),
    (node("SELECT 1;\n", "SELECT 1 = 2;\n"), "not everything is true"),
    (node("SELECT 1;\n", "SELECT 1 WHERE 1 = 2;\n"), "not everything is true"),
    (node("SELECT 1;\n", "SELECT NULL;\n"), "not everything is true"),
    (node("SELECT 1;\n", "2\n", "text"), "the rows are\n1\nand not\n2"),
    (node("SELECT 1;\n", "-- error: no such\nSELECT 1;\n"), "it does not fail"),
    (node("SELECT 1;\n", "-- error: words\nSELEC 1;\n"), "syntax error"),
    (node("SELECT 1;\n", "-- has: 2\nSELECT 1;\n"), "must have `2`"),
    (node("SELECT 1;\n", "-- has not: 1\nSELECT 1;\n"), "must have `1`, or not"),
    (node("SELECT 1\n", "SELECT 1;\n"), "no end"),
]


@pytest.mark.parametrize(("wrong", "words"), FAULTS)
def test_faults_are_found_on_sqlite(wrong: SourceNode, words: str) -> None:
    (fault,) = check_sqlite([wrong])
    assert words in fault


@pytest.mark.slow
def test_faults_are_found_on_postgresql(postgresql: Path) -> None:
    faults = check_postgresql([wrong for wrong, _words in FAULTS], postgresql)
    for fault, (_wrong, words) in zip(faults, FAULTS, strict=True):
        assert words in fault


def test_a_block_for_the_other_engine_is_left_out() -> None:
    assert check_sqlite([node("-- PostgreSQL\nSELECT now();\n", "-- SQLite\nSELECT 1;\n")]) == []
