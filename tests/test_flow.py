"""The flow is a test: data flows right, so imports point left."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "commonplace"
FLOW = ["errors", "records", "where", "settings", "redaction", "files", "rules", "log", "embed"]
FLOW += ["index", "recall", "compose", "usage", "erasure", "backlog", "background", "lookup"]
FLOW += ["engine", "notes", "writing", "memory", "agents", "sessions", "exchange", "setup"]
FLOW += ["maintenance"]
# Surfaces know the memory, the records and the errors; where something is, they may ask too.
SURFACES = {"cli", "hooks", "integrations", "server"}
OPEN_TO_SURFACES = {
    "memory",
    "records",
    "errors",
    "where",
    "agents",
    "sessions",
    "exchange",
    "setup",
    "maintenance",
    "writing",
}


def layer_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def layers_imported_by(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if (
            isinstance(node, ast.ImportFrom)
            and (node.module or "").partition(".")[0] == "commonplace"
        ):
            rest = (node.module or "").split(".")[1:]
            found |= {rest[0]} if rest else {alias.name for alias in node.names}
    return found - {"__version__"}


def modules() -> list[Path]:
    return sorted(
        path
        for path in SOURCE.rglob("*.py")
        if path.parent != SOURCE or not path.name.startswith("__")
    )


def test_every_module_belongs_to_a_layer_or_a_surface() -> None:
    assert {layer_of(path) for path in modules()} <= {*FLOW, *SURFACES}


def test_every_module_imports_only_from_upstream() -> None:
    for path in modules():
        layer = layer_of(path)
        if layer in FLOW:
            assert layers_imported_by(path) <= set(FLOW[: FLOW.index(layer) + 1]), path


def test_a_surface_knows_the_memory_and_not_what_is_behind_it() -> None:
    # Types of what the memory returns may be named, and stdin is read with the log's own line reader.
    allowed = {
        "log",
        "files",
        "redaction",
        "engine",
        "erasure",
        "index",
        "recall",
        "notes",
        "server",
    }
    for path in modules():
        layer = layer_of(path)
        if layer in SURFACES:
            assert layers_imported_by(path) <= {layer, *OPEN_TO_SURFACES, *allowed}, path
