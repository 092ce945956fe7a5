"""The pack cpp-core: its sources are whole, and every node with code compiles and does what it says."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from tools import check_pack_cpp, pack_sources
from tools.check_pack_cpp_headers import missing_headers

from commonplace.vocabulary import INVERSES, SYMMETRIC

if TYPE_CHECKING:
    from tools.pack_sources import Link, SourceNode

NO_COMPILER = check_pack_cpp.compiler_missing()
NEEDS_COMPILER = pytest.mark.skipif(bool(NO_COMPILER), reason=NO_COMPILER)
# What the pack is about, and a node for each topic.
TOPICS = {
    "RAII": "concept.cpp.raii",
    "the rule of zero": "concept.cpp.rule-of-zero",
    "the rule of five": "concept.cpp.rule-of-five",
    "SFINAE": "concept.cpp.sfinae",
    "concepts": "concept.cpp.concepts",
    "ADL": "concept.cpp.adl",
    "type erasure": "concept.cpp.type-erasure",
    "pImpl": "pattern.cpp.pimpl",
    "CRTP": "pattern.cpp.crtp",
    "enable-if": "pattern.cpp.enable-if",
    "ranges": "concept.cpp.ranges",
    "move semantics": "concept.cpp.move-semantics",
    "smart pointers": "concept.cpp.unique-ptr",
    "raw new and delete": "pattern.cpp.anti.raw-new",
    "exceptions": "concept.cpp.exceptions",
    "their overuse": "pattern.cpp.anti.exceptions-overused",
    "noexcept": "concept.cpp.noexcept",
    "const-correctness": "concept.cpp.const-correctness",
    "undefined behaviour": "concept.cpp.undefined-behaviour",
    "add_library": "tool.cpp.cmake.library",
    "interface libraries": "tool.cpp.cmake.interface-library",
    "FetchContent": "tool.cpp.cmake.fetchcontent",
    "Catch2": "snippet.cpp.test.catch2.basic",
    "GoogleTest": "snippet.cpp.test.gtest.basic",
    "property-based testing": "concept.cpp.property-testing",
}


def direction(ident: str, link: Link) -> tuple[str, ...]:
    """Return a link as it is kept, whichever end states it."""
    if link.rel in INVERSES:
        return link.to, INVERSES[link.rel], ident
    ends = sorted([ident, link.to]) if link.rel in SYMMETRIC else [ident, link.to]
    return ends[0], link.rel, ends[1]


@pytest.fixture(scope="module")
def nodes() -> list[SourceNode]:
    return pack_sources.read("cpp-core")


def test_the_pack_is_about_what_it_promises(nodes: list[SourceNode]) -> None:
    ids = {node.id for node in nodes}
    assert len(ids) >= 125
    assert {topic for topic, ident in TOPICS.items() if ident not in ids} == set()
    kinds = Counter(node.type for node in nodes)
    assert min(kinds[name] for name in ("concept", "pattern", "snippet", "tool")) >= 15


def test_nodes_are_small(nodes: list[SourceNode]) -> None:
    """A node is found and shown as a whole: a few sentences, and a screen of code."""
    assert {node.id for node in nodes if not 40 <= len(node.text.split()) <= 190} == set()
    assert {node.id for node in nodes if len(node.label) > 90} == set()


def test_only_tools_that_are_not_there_go_unchecked(nodes: list[SourceNode]) -> None:
    unchecked = {node.id for node in nodes if node.codes and not node.checks}
    assert unchecked == {"tool.cpp.clang-tidy", "tool.cpp.clang-format"}


def test_a_missing_include_is_noticed() -> None:
    code = "#include <vector>\nstd::vector<int> f(std::string s); // std::map\n"
    assert missing_headers([code]) == ["<string> for std::string"]


@pytest.mark.slow
@NEEDS_COMPILER
def test_the_code_of_every_node_compiles_and_its_check_holds(nodes: list[SourceNode]) -> None:
    results = check_pack_cpp.check()
    assert [(result.ids, result.error) for result in results if result.error] == []
    covered = {ident for result in results for ident in result.ids}
    assert covered == {node.id for node in nodes if node.checks}
    if reasons := sorted({result.skipped for result in results if result.skipped}):
        pytest.skip(f"the rest holds; {'; '.join(reasons)}")


@pytest.mark.slow
@NEEDS_COMPILER
@pytest.mark.parametrize(
    ("code", "check", "message"),
    [
        (
            "int f() { return 1; }",
            "#include <cassert>\nvoid check() { assert(f() == 2); }",
            "f() == 2",
        ),
        ("int f() { int unused; return 1; }", "void check() { f(); }", "unused"),
        (
            "int f() { return 1; }",
            "// fails: no such message\nint g() { return 1 }",
            "no such message",
        ),
        ("int f() { return 1; }", "// fails: anything\nint g() { return 1; }", "anything"),
        ("int f() { return 1; }", "// sanitizer: heap\nvoid misbehave() {}", "heap"),
    ],
)
def test_the_checker_finds_what_is_wrong(
    code: str, check: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = pack_sources.SourceNode("here:1", "snippet.cpp.x.y", "x", text="x")
    node.codes.append(pack_sources.Code("cpp", f"{code}\n"))
    node.checks.append(pack_sources.Code("cpp", f"{check}\n"))
    monkeypatch.setattr(pack_sources, "read", lambda pack: [node])
    errors = [result.error for result in check_pack_cpp.check() if result.error]
    assert len(errors) == 1
    assert message in errors[0]
