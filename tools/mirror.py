"""Figures about the source code of this checkout, and of another one beside it.

    python tools/mirror.py [OTHER]

OTHER is another checkout (`git worktree add ../before COMMIT`). The figures are a mirror and not a
quota: a long module with one idea may stay. What each line counts:

- modules over 400 lines, and which;
- hidden imports: imports of our own modules inside a function;
- `Any` for each 1,000 lines of source, imports of it left out;
- functions of a cyclomatic complexity over 10 as radon counts it (`and`, `or`, comprehensions and
  asserts are decisions too), as a share of all functions;
- lines over 100 columns, as a share of all lines;
- classes with more than 15 methods (properties included), and which;
- functions whose name is or begins with a participle, as a share of all functions: a word that ends
  in -ed, or one of the irregular ones below. Tests are not looked at.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "commonplace"
LINES_MAX, COLUMNS_MAX, METHODS_MAX, COMPLEXITY_MAX = 400, 100, 15, 10
DECISIONS = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.Assert, ast.match_case)
IRREGULAR = frozenset(
    [
        "asked",
        "begun",
        "bound",
        "bought",
        "brought",
        "built",
        "caught",
        "chosen",
        "come",
        "done",
        "drawn",
        "fallen",
        "felt",
        "found",
        "given",
        "gone",
        "grown",
        "had",
        "heard",
        "held",
        "kept",
        "known",
        "laid",
        "left",
        "let",
        "lost",
        "made",
        "meant",
        "met",
        "paid",
        "put",
        "read",
        "run",
        "said",
        "seen",
        "sent",
        "set",
        "shown",
        "shut",
        "sold",
        "spoken",
        "spent",
        "stood",
        "taken",
        "taught",
        "thought",
        "thrown",
        "told",
        "torn",
        "understood",
        "used",
        "won",
        "worn",
        "written",
    ]
)
# Verbs in the present that look like participles; `read`, `run`, `set`, `put`, `let` and `shut`
# are the imperative far more often.
IMPERATIVE = frozenset(
    {
        "read",
        "run",
        "set",
        "put",
        "let",
        "shut",
        "embed",
        "feed",
        "need",
        "seed",
        "proceed",
        "exceed",
    }
)


class Figures(NamedTuple):
    """What one checkout looks like."""

    lines: int
    modules: int
    long_modules: list[str]
    hidden_imports: int
    any_count: int
    functions: int
    complex_functions: int
    wide_lines: int
    large_classes: list[str]
    participles: list[str]


def main() -> int:
    checkouts = [Path(argument).resolve() for argument in sys.argv[1:2]] + [ROOT]
    found = [measure(checkout) for checkout in checkouts]
    heads = ["before", "after"] if len(found) > 1 else ["now"]
    print(f"{'':44}" + "".join(f"{head:>12}" for head in heads))
    for label, values in rows(found):
        print(f"{label:44}" + "".join(f"{value:>12}" for value in values))
    last = found[-1]
    for label, names in (
        ("modules over 400 lines", last.long_modules),
        ("classes over 15 methods", last.large_classes),
        ("named by a participle", last.participles),
    ):
        print(f"\n{label}: {', '.join(names) or 'none'}")
    return 0


def rows(found: list[Figures]) -> list[tuple[str, list[str]]]:
    def share(part: int, whole: int) -> str:
        return f"{100 * part / whole:.1f} %"

    return [
        ("modules", [f"{one.modules:,}" for one in found]),
        ("lines", [f"{one.lines:,}" for one in found]),
        (f"modules over {LINES_MAX} lines", [str(len(one.long_modules)) for one in found]),
        ("hidden imports of our own modules", [str(one.hidden_imports) for one in found]),
        ("Any for each 1,000 lines", [f"{1000 * one.any_count / one.lines:.1f}" for one in found]),
        (
            f"functions of complexity over {COMPLEXITY_MAX}",
            [share(one.complex_functions, one.functions) for one in found],
        ),
        (f"lines over {COLUMNS_MAX} columns", [share(one.wide_lines, one.lines) for one in found]),
        (f"classes over {METHODS_MAX} methods", [str(len(one.large_classes)) for one in found]),
        (
            "functions named by a participle",
            [share(len(one.participles), one.functions) for one in found],
        ),
    ]


def measure(checkout: Path) -> Figures:
    source = checkout / "src" / PACKAGE
    paths = sorted(source.rglob("*.py"))
    lines = wide = hidden = any_count = functions = complex_functions = 0
    long_modules, large_classes, participles = [], [], []
    for path in paths:
        text = path.read_text("utf-8")
        name = path.relative_to(source).as_posix()
        rows_of = text.splitlines()
        lines += len(rows_of)
        wide += sum(len(row) > COLUMNS_MAX for row in rows_of)
        if len(rows_of) > LINES_MAX:
            long_modules.append(f"{name} ({len(rows_of)})")
        tree = ast.parse(text)
        any_count += sum(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(tree))
        hidden += count_hidden_imports(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                methods = [one for one in node.body if is_function(one)]
                if len(methods) > METHODS_MAX:
                    large_classes.append(f"{node.name} ({len(methods)})")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                functions += 1
                complex_functions += complexity(node) > COMPLEXITY_MAX
                if is_participle(node.name):
                    participles.append(f"{name}:{node.name}")
    return Figures(
        lines,
        len(paths),
        long_modules,
        hidden,
        any_count,
        functions,
        complex_functions,
        wide,
        large_classes,
        participles,
    )


def is_function(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def count_hidden_imports(tree: ast.Module) -> int:
    """How many statements inside functions import a module of our own."""
    found: set[ast.AST] = set()
    for function in ast.walk(tree):
        if is_function(function):
            found |= {node for node in ast.walk(function) if imports_ours(node)}
    return len(found)


def imports_ours(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.level > 0 or (node.module or "").partition(".")[0] == PACKAGE
    if isinstance(node, ast.Import):
        return any(one.name.partition(".")[0] == PACKAGE for one in node.names)
    return False


def is_participle(name: str) -> bool:
    if name.startswith("__"):
        return False
    word = re.split(r"_", name.lstrip("_"), maxsplit=1)[0]
    return word not in IMPERATIVE and (word in IRREGULAR or bool(re.fullmatch(r"\w{2,}ed", word)))


def complexity(function: ast.AST) -> int:
    """The number of ways through *function*: one, and one more for each decision in it."""
    decisions = 0
    for node in ast.walk(function):
        if isinstance(node, ast.BoolOp):
            decisions += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            decisions += 1 + len(node.ifs)
        elif isinstance(node, ast.Try):
            decisions += len(node.handlers) + bool(node.orelse)
        elif isinstance(node, DECISIONS):
            decisions += 1
    return 1 + decisions


if __name__ == "__main__":
    sys.exit(main())
