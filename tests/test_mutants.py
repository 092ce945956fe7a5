"""The mutation tool: which faults it makes of a piece of code."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.mutants import PACKAGES, ROOT, SOURCE, all_mutants, mutants_of, nearest_tests


def made(source: str) -> list[str]:
    return [mutant.apply(source) for mutant in mutants_of("x", Path("x.py"), source)]


@pytest.mark.parametrize(
    ("source", "faults"),
    [
        ("a < b", ["(a <= b)", "(a >= b)"]),
        ("a == b", ["(a != b)"]),
        ("a is not None", ["(a is None)"]),
        ("a and b", ["(a or b)", "b", "a"]),
        ("not a", ["a"]),
        ("a + b", ["(a - b)"]),
        ("[a, b]", ["[b]", "[a]"]),
        ("{'a': b, 'c': d}", ["{'c': d}", "{'a': b}"]),
        ("7", ["8"]),
        ("True", ["False"]),
        ("'é' if a else b", ["'é' if (not (a)) else b"]),
    ],
)
def test_an_expression_has_these_faults(source: str, faults: list[str]) -> None:
    assert made(f"x = {source}\n") == [f"x = {fault}\n" for fault in faults]


@pytest.mark.parametrize(
    ("source", "faults"),
    [
        ("f()\n", ["pass\n"]),
        ("a.b = c\n", ["pass\n"]),
        ("a = b\n", []),
        ("a += b\n", ["pass\n"]),
        ("def f():\n    return a\n", ["def f():\n    return None\n"]),
        ("def f() -> None:\n    return None\n", []),
        ("if a:\n    raise b\n", ["if (not (a)):\n    raise b\n", "if a:\n    pass\n"]),
        ('"""Text."""\nassert a < b\n', []),
        ("def f(a: tuple[int, str]) -> dict[int, str]: ...\n", []),
        ("if TYPE_CHECKING:\n    f()\n", []),
        ("__all__ = ['a', 'b']\n", []),
    ],
)
def test_a_statement_has_these_faults(source: str, faults: list[str]) -> None:
    assert made(source) == faults


def test_every_package_it_knows_has_faults_and_tests() -> None:
    for package, (target, names) in PACKAGES.items():
        assert (ROOT / SOURCE / target).exists()
        assert len(nearest_tests(ROOT, package)) == len(names), package
    assert len(all_mutants(ROOT, "rules")) > 100
