"""Mutation testing: put small faults into a copy of the code and see which the tests notice.

    python tools/mutants.py --minutes 10 --sample 12 --seed 1 [package ...]

Each package of `PACKAGES` gets a random sample of faults, one at a time, and only the tests nearest
to it are run. It prints the share that was noticed for each package, and every fault that was not,
as a diff.
"""

from __future__ import annotations

import argparse
import ast
import copy
import difflib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parent.parent
SOURCE = "src/commonplace"
# What is mutated, and the tests that should notice, the quickest first.
PACKAGES: dict[str, tuple[str, tuple[str, ...]]] = {
    "rules": ("rules", ("rules", "index_contract")),
    "log": ("log", ("prepare", "log", "rotate", "scan", "upkeep", "rules")),
    "redaction": (
        "redaction",
        ("redaction_spans", "redaction_values", "redaction_table", "redact", "scan"),
    ),
    "recall": ("recall", ("recall_rules", "recall", "homes", "savings")),
    "sessions": (
        "sessions",
        (
            "session_tables",
            "session_rules",
            "lesson_prefixes",
            "events",
            "spool",
            "inbox",
            "typed_inbox",
            "session_state",
            "sessions",
        ),
    ),
    "guard": ("server/guard.py", ("guard_rules", "guard")),
}
COPIED = ("src", "tests", "tools", "docs", "plugins", "pyproject.toml", "README.md")
PYTEST = ("-x", "-q", "-m", "not slow", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist")
# A fault that makes the tests take this many times as long, and some seconds more, is noticed.
SLOWER_MAX = 3
SLOWER_S = 15


class Mutant(NamedTuple):
    """One fault: a piece of a file, by its place in the text, and what it is replaced with."""

    package: str
    path: Path
    line: int
    start: int
    end: int
    text: str

    def apply(self, source: str) -> str:
        return source[: self.start] + self.text + source[self.end :]


# --- Faults ---------------------------------------------------------------------------------------

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Add,
}
REMOVABLE = (ast.Expr, ast.AugAssign, ast.Raise, ast.Continue, ast.Break, ast.Delete)


def faults(node: ast.AST) -> Iterator[ast.AST | str]:
    """What may stand in the place of *node*: another node, or a text."""
    if type(node) in FAULTS:
        yield from FAULTS[type(node)](node)
    elif isinstance(node, REMOVABLE) or _assigns_a_part(node):
        yield "pass"


def _compared(node: ast.Compare) -> Iterator[ast.AST]:
    for place, operator in enumerate(node.ops):
        for other in COMPARISONS[type(operator)]:
            ops = [*node.ops[:place], other(), *node.ops[place + 1 :]]
            yield ast.Compare(node.left, ops, node.comparators)


def _joined(node: ast.BoolOp) -> Iterator[ast.AST]:
    yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    yield from (_without(node, "values", place) for place in range(len(node.values)))


def _negated(node: ast.UnaryOp) -> Iterator[ast.AST]:
    if isinstance(node.op, ast.Not):
        yield node.operand


def _computed(node: ast.BinOp) -> Iterator[ast.AST]:
    if type(node.op) in OPERATORS:
        yield ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right)


def _listed(node: ast.List | ast.Tuple | ast.Set) -> Iterator[ast.AST]:
    if len(node.elts) > 1:
        yield from (_without(node, "elts", place) for place in range(len(node.elts)))


def _mapped(node: ast.Dict) -> Iterator[ast.AST]:
    for place in range(len(node.keys)) if len(node.keys) > 1 else ():
        keys, values = node.keys[:], node.values[:]
        del keys[place], values[place]
        yield ast.Dict(keys, values)


def _constant(node: ast.Constant) -> Iterator[ast.AST]:
    if isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node.value, (int, float)):
        yield ast.Constant(node.value + 1)


def _returned(node: ast.Return) -> Iterator[str]:
    if node.value is not None and ast.unparse(node.value) != "None":
        yield "return None"


FAULTS: dict[type[ast.AST], Callable[[Any], Iterator[ast.AST | str]]] = {
    ast.Compare: _compared,
    ast.BoolOp: _joined,
    ast.UnaryOp: _negated,
    ast.BinOp: _computed,
    ast.List: _listed,
    ast.Tuple: _listed,
    ast.Set: _listed,
    ast.Dict: _mapped,
    ast.Constant: _constant,
    ast.Return: _returned,
}


def _without(node: ast.AST, field: str, place: int) -> ast.AST:
    """*node* without one of its parts; of two operands, the other one alone."""
    made = copy.deepcopy(node)
    parts = getattr(made, field)
    del parts[place]
    return parts[0] if isinstance(made, ast.BoolOp) and len(parts) == 1 else made


def _assigns_a_part(node: ast.AST) -> bool:
    """Whether *node* sets a part of an object; without a name the next line just fails."""
    return isinstance(node, ast.Assign) and all(
        isinstance(target, (ast.Attribute, ast.Subscript)) for target in node.targets
    )


def mutable_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below *node* that run: no docstrings, annotations, assertions or type checking."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Assert, ast.Import, ast.ImportFrom, ast.JoinedStr, ast.Slice)):
            continue
        if isinstance(child, ast.Expr) and isinstance(child.value, (ast.Constant, ast.Yield)):
            continue
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.Assign) and ast.unparse(child.targets[0]) in (
            "__all__",
            "TYPE_CHECKING",
        ):
            continue
        if child in _unrun(node) or isinstance(getattr(child, "ctx", None), (ast.Store, ast.Del)):
            continue
        yield child
        yield from mutable_nodes(child)


def _unrun(node: ast.AST) -> list[ast.AST]:
    """Annotations and type parameters."""
    if isinstance(node, ast.AnnAssign):
        return [node.annotation]
    if isinstance(node, ast.arg):
        return [node.annotation] if node.annotation else []
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return [*([node.returns] if node.returns else []), *node.decorator_list]
    return [*node.decorator_list, *node.bases] if isinstance(node, ast.ClassDef) else []


def mutants_of(package: str, path: Path, source: str) -> Iterator[Mutant]:
    """Every fault that can be put into the file at *path*."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    lines = source.split("\n")

    def place(line: int, byte: int) -> int:
        return starts[line - 1] + len(lines[line - 1].encode()[:byte].decode())

    def mutant(node: ast.expr | ast.stmt, text: str) -> Mutant:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = place(node.lineno, node.col_offset)
        end = place(node.end_lineno, node.end_col_offset)
        return Mutant(package, path, node.lineno, start, end, text)

    for node in mutable_nodes(ast.parse(source)):
        for condition in _conditions(node):
            yield mutant(condition, f"(not ({ast.unparse(condition)}))")
        if isinstance(node, (ast.expr, ast.stmt)):
            for fault in faults(node):
                yield mutant(node, fault if isinstance(fault, str) else _as_text(fault))


def _conditions(node: ast.AST) -> list[ast.expr]:
    """The conditions of *node* that no other fault turns around."""
    found: list[ast.expr] = []
    if isinstance(node, (ast.If, ast.While, ast.IfExp)):
        found = [node.test]
    elif isinstance(node, ast.comprehension):
        found = node.ifs
    return [one for one in found if not isinstance(one, (ast.Compare, ast.UnaryOp))]


def _as_text(node: ast.AST) -> str:
    text = ast.unparse(ast.fix_missing_locations(node))
    # What is put into the place of an operand must stay one operand.
    return f"({text})" if isinstance(node, (ast.Compare, ast.BoolOp, ast.BinOp)) else text


def all_mutants(root: Path, package: str) -> list[Mutant]:
    target = root / SOURCE / PACKAGES[package][0]
    files = [target] if target.is_file() else sorted(target.rglob("*.py"))
    found = []
    for path in files:
        source = path.read_text()
        for mutant in mutants_of(package, path.relative_to(root), source):
            try:
                compile(mutant.apply(source), str(path), "exec")
            except SyntaxError:
                continue
            found.append(mutant)
    return found


# --- Trying them ----------------------------------------------------------------------------------


def nearest_tests(root: Path, package: str) -> list[str]:
    names = [f"tests/test_{name}.py" for name in PACKAGES[package][1]]
    return [name for name in names if (root / name).exists()]


def run_tests(root: Path, package: str, seconds: float | None) -> bool | None:
    """Whether the tests of *package* pass; `None` if they took longer than *seconds*."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(root / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_PROFILE": "local",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", *PYTEST, *nearest_tests(root, package)],
        cwd=root,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return process.wait(seconds) == 0
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, 9)
            process.wait()


def is_noticed(root: Path, mutant: Mutant, seconds: float) -> bool:
    path = root / mutant.path
    source = path.read_text()
    path.write_text(mutant.apply(source))
    try:
        return run_tests(root, mutant.package, seconds) is not True
    finally:
        path.write_text(source)


def diff(root: Path, mutant: Mutant) -> str:
    before = (root / mutant.path).read_text()
    lines = difflib.unified_diff(
        before.splitlines(), mutant.apply(before).splitlines(), n=0, lineterm=""
    )
    return "\n".join(f"    {line}" for line in list(lines)[3:])


def copied_tree(into: Path) -> Path:
    """A copy of the tree. Bytecode is checked by content, as two versions may share a second."""
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, into / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif (ROOT / name).exists():
            shutil.copy2(ROOT / name, into / name)
    compiling = ["-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "src", "tests"]
    subprocess.run([sys.executable, *compiling], cwd=into, check=True)
    return into


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="stop after this time")
    parser.add_argument("--sample", type=int, default=12, help="faults for each package")
    parser.add_argument("--seed", type=int, default=None, help="choose the same faults again")
    parser.add_argument("--list", action="store_true", help="only count the possible faults")
    parser.add_argument("packages", nargs="*", metavar="package", help=", ".join(PACKAGES))
    arguments = parser.parse_args()
    packages = arguments.packages or list(PACKAGES)
    if unknown := set(packages) - set(PACKAGES):
        parser.error(f"no such package: {', '.join(sorted(unknown))}")
    seed = random.randrange(10_000) if arguments.seed is None else arguments.seed
    with tempfile.TemporaryDirectory() as folder:
        root = copied_tree(Path(folder))
        chosen: dict[str, list[Mutant]] = {}
        for package in packages:
            known = all_mutants(root, package)
            chosen[package] = random.Random(f"{seed} {package}").sample(
                known, min(arguments.sample, len(known))
            )
            print(f"{package}: {len(chosen[package])} of {len(known)} possible faults", flush=True)
        if arguments.list:
            return 0
        print(f"seed {seed}, at most {arguments.minutes:g} minutes", flush=True)
        return report(root, chosen, time.monotonic() + 60 * arguments.minutes)


def report(root: Path, chosen: dict[str, list[Mutant]], until: float) -> int:
    limits: dict[str, float] = {}
    for package in chosen:
        started = time.monotonic()
        if run_tests(root, package, None) is not True:
            print(f"the tests of {package} fail without a fault: {nearest_tests(root, package)}")
            return 1
        limits[package] = SLOWER_MAX * (time.monotonic() - started) + SLOWER_S
    tried: Counter[str] = Counter()
    noticed: Counter[str] = Counter()
    # One of each package after the other, so that a run that ends early has tried them all.
    for turn in range(max(map(len, chosen.values()))):
        for package, mutants in chosen.items():
            if turn < len(mutants) and time.monotonic() < until:
                mutant = mutants[turn]
                tried[package] += 1
                if is_noticed(root, mutant, limits[package]):
                    noticed[package] += 1
                else:
                    print(f"{mutant.path}:{mutant.line}\n{diff(root, mutant)}", flush=True)
    print()
    for package in [*chosen, "all"]:
        count = tried.total() if package == "all" else tried[package]
        good = noticed.total() if package == "all" else noticed[package]
        print(f"{package:10} {good:4} of {count:4} noticed  {good / max(count, 1):4.0%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
