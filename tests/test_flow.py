"""The flow is a test: data flows right, so imports point left."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = Path(__file__).resolve().parent.parent / "src" / "commonplace"
FLOW = [
    "processes",
    "values",
    "errors",
    "vocabulary",
    "characters",
    "foreign",
    "frontmatter",
    "records",
    "redaction",
    "files",
    "where",
    "served",
    "settings",
    "settings_file",
    "rules",
    "log",
    "embed",
    "index",
    "recall",
    "compose",
    "usage",
    "injections",
    "snapshots",
    "erasure",
    "backlog",
    "background",
    "vectors",
    "lookup",
    "editing",
    "engine",
    "notes",
    "description",
    "scope",
    "notes_of_homes",
    "writing",
    "record_changer",
    "recaller",
    "tagging",
    "skills",
    "inbox",
    "learn",
    "graph",
    "memory",
    "repos",
    "announce",
    "ask",
    "agents",
    "sessions",
    "exchange",
    "setup",
    "maintenance",
    "transfer",
    "packs",
    "client",
]
# A surface is a way to the memory. It knows the memory and what is around it, not what is behind it.
SURFACES = {"cli", "hooks", "integrations", "server"}
OPEN_TO_SURFACES = [
    "served",
    "processes",
    "errors",
    "vocabulary",
    "characters",
    "foreign",
    "records",
    "where",
    "files",
    "editing",
    "settings_file",
    "writing",
    "record_changer",
    "skills",
    "inbox",
    "learn",
    "graph",
    "memory",
    "repos",
    "announce",
    "ask",
    "agents",
    "sessions",
    "exchange",
    "setup",
    "maintenance",
    "transfer",
    "snapshots",
    "packs",
]
# What a surface takes from further behind: small helpers without state.
EXCEPTIONS = {
    "cli/asking.py": {"embed"},  # Has a question embedded before the memory is imported.
    "cli/log.py": {"log"},  # Reads lines on stdin as the log reads its own.
    "integrations/langgraph.py": {"redaction"},
    "cli/serve.py": {"server"},
    "cli/mcp.py": {"server"},
    "cli/token.py": {"server"},
}


def layer_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path: Path, *, at_run_time: bool) -> set[str]:
    """The layers that the module at *path* imports; *at_run_time*, without those for types only."""
    return {
        name
        for node in nodes(ast.parse(path.read_text("utf-8")), at_run_time=at_run_time)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "commonplace"
        for name in ((node.module or "").split(".")[1:2] or [alias.name for alias in node.names])
    } - {"__version__"}


def nodes(tree: ast.AST, *, at_run_time: bool) -> Iterator[ast.AST]:
    yield tree
    for child in ast.iter_child_nodes(tree):
        is_for_types = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
        if not (at_run_time and is_for_types):
            yield from nodes(child, at_run_time=at_run_time)


def modules() -> list[Path]:
    return sorted(
        path
        for path in SOURCE.rglob("*.py")
        if path.parent != SOURCE or not path.name.startswith("__")
    )


def test_every_module_belongs_to_a_layer_or_a_surface() -> None:
    assert {layer_of(path) for path in modules()} == {*FLOW, *SURFACES}


def test_every_module_imports_only_from_upstream() -> None:
    for path in modules():
        layer = layer_of(path)
        if layer in FLOW:
            upstream = set(FLOW[: FLOW.index(layer) + 1])
            assert imports(path, at_run_time=False) <= upstream, path


def test_a_surface_knows_the_memory_and_not_what_is_behind_it() -> None:
    for path in modules():
        layer = layer_of(path)
        if layer in SURFACES:
            name = path.relative_to(SOURCE).as_posix()
            allowed = {layer, *OPEN_TO_SURFACES, *EXCEPTIONS.get(name, ())}
            assert imports(path, at_run_time=True) <= allowed, path
