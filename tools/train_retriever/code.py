"""Pairs from code: a description and its function, either way round, and the errors that a function raises."""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from typing import TYPE_CHECKING

from tools.train_retriever.pair import Pair, pair, squeeze
from tools.train_retriever.words import first_sentence

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from tools.train_retriever.archives import File

FUNCTION_MAX = 1_500


def code_pairs(
    files: list[File], source: str, topic: str, chance: random.Random, functions: dict[str, str]
) -> Iterator[Pair]:
    """The pairs of all files; *functions* is filled with the code by name, of names that are used once."""
    twice: set[str] = set()
    for file in files:
        if file.ending in ("py", "pyi"):
            yield from python_pairs(file.text, source, topic, chance, functions, twice)
        elif file.ending in ("ts", "js", "mjs"):
            yield from _commented(file.text, _JS, source, chance)
        elif file.ending == "rs":
            yield from _commented(file.text, _RUST, source, chance)
        elif file.ending == "go":
            yield from _commented(file.text, _GO, source, chance)
    for name in twice:
        functions.pop(name, None)


def python_pairs(
    text: str,
    source: str,
    topic: str,
    chance: random.Random,
    functions: dict[str, str],
    twice: set[str],
) -> Iterator[Pair]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    lines = text.split("\n")
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from filter(None, [_option(node, source, topic)])
        elif isinstance(node, ast.ClassDef):
            yield from filter(None, [_exception(node, source, topic, chance)])
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            code = textwrap.dedent("\n".join(lines[node.lineno - 1 : node.end_lineno]))
            if len(code) > 80:
                if node.name in functions:
                    twice.add(node.name)
                functions[node.name] = code[:FUNCTION_MAX]
            if not node.name.startswith("test"):
                yield from filter(None, _raised(node, code, source, chance))
                yield from filter(None, [_described(node, lines, source, chance)])


def _exception(node: ast.ClassDef, source: str, topic: str, chance: random.Random) -> Pair | None:
    doc = ast.get_docstring(node)
    if not doc or len(doc) <= 60 or not re.search(r"(Error|Exception|Warning)$", node.name):
        return None
    name = chance.choice((node.name, f"{topic}.{node.name}", f"raise {node.name}"))
    return pair("error", name, doc, source)


def _described(
    node: ast.FunctionDef | ast.AsyncFunctionDef,
    lines: list[str],
    source: str,
    chance: random.Random,
) -> Pair | None:
    """What the docstring says, and the function without it; or the other way round."""
    doc = ast.get_docstring(node)
    if not doc or len(doc) < 25:
        return None
    bare = _without_docstring(node, lines)
    sentence, rest = first_sentence(doc)
    asked = squeeze(sentence)
    if len(bare) < 60 or len(asked) < 15:
        return None
    dice = chance.random()
    if dice < 0.6:
        return pair("function", asked, bare[:FUNCTION_MAX], source)
    if dice < 0.8 or len(doc) < 120:
        return pair("docstring", squeeze(bare[:300]), f"{node.name}\n{doc}", source)
    return pair("docstring", asked, f"{node.name}\n{rest}", source)


def _without_docstring(node: ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str]) -> str:
    first = node.body[0]
    kept = (
        lines[node.lineno - 1 : first.lineno - 1]
        + lines[first.end_lineno or first.lineno : node.end_lineno]
    )
    return textwrap.dedent("\n".join(kept))


_VALUES = (
    "'name'",
    "3",
    "'config.yaml'",
    "foo",
    "None",
    "'utf-8'",
    "data",
    "0",
    "'value'",
    "[]",
    "Widget",
    "'id'",
)


def _message(node: ast.expr, chance: random.Random) -> str:
    """The text of an error message, with values where the code would put some."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.sub(
            r"%(?:\(\w+\))?[srdi]|\{[\w.!:]*\}", lambda _m: chance.choice(_VALUES), node.value
        )
    if isinstance(node, ast.JoinedStr):
        return "".join(
            _message(v, chance) if isinstance(v, ast.Constant) else chance.choice(_VALUES)
            for v in node.values
        )
    if isinstance(node, ast.BinOp):
        return _message(node.left, chance) + (
            _message(node.right, chance) if isinstance(node.op, ast.Add) else ""
        )
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "format"
    ):
        return _message(node.func.value, chance)
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "_"
        and node.args
    ):
        return _message(node.args[0], chance)
    return ""


def _raised(
    node: ast.FunctionDef | ast.AsyncFunctionDef, code: str, source: str, chance: random.Random
) -> Iterator[Pair | None]:
    """The first error that the function raises with a message, and the function or what it says of itself."""
    doc = ast.get_docstring(node)
    for inner in ast.walk(node):
        if (
            not isinstance(inner, ast.Raise)
            or not isinstance(inner.exc, ast.Call)
            or not inner.exc.args
        ):
            continue
        message = squeeze(_message(inner.exc.args[0], chance))
        if len(message.split()) < 4:
            continue
        kind = ast.unparse(inner.exc.func).rpartition(".")[2]
        query = f"{kind}: {message}"
        if chance.random() < 0.2:
            query = f'File "{chance.choice(("app", "main", "run", "client"))}.py", line {chance.randint(9, 400)}, in {node.name} {query}'
        if doc and len(doc) > 150 and chance.random() < 0.5:
            yield pair("error", query, f"{node.name}\n{doc}", source)
        else:
            first = max(0, inner.lineno - node.lineno - 12)
            shown = (
                code
                if len(code) <= FUNCTION_MAX
                else "\n".join(code.split("\n")[:1] + code.split("\n")[first : first + 30])
            )
            yield pair("error", query, shown[:FUNCTION_MAX], source)
        return


def _option(node: ast.Call, source: str, topic: str) -> Pair | None:
    """`add_argument("--name", help=…)` and click's `option`."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name not in ("add_argument", "add_option", "option", "addoption"):
        return None
    flags = [
        a.value
        for a in node.args
        if isinstance(a, ast.Constant) and isinstance(a.value, str) and a.value.startswith("-")
    ]
    texts = [
        k.value.value
        for k in node.keywords
        if k.arg == "help" and isinstance(k.value, ast.Constant) and isinstance(k.value.value, str)
    ]
    if not flags or not texts:
        return None
    sentence, rest = first_sentence(squeeze(texts[0]))
    if len(rest) > 40:
        return pair("option", sentence, f"{topic} {', '.join(flags)}\n{rest}", source)
    return pair("option", f"{topic} {flags[-1]}", texts[0], source)


# A comment before a declaration: the comment's text, and the code from there on.
_JS = re.compile(
    r"/\*\*((?:[^*]|\*(?!/)){30,1500})\*/\s*((?:export |public |static |async |declare |default |abstract |readonly )*(?:function|class|interface|type|const|let|var|[a-zA-Z_$][\w$]*\s*[(:?=]))"
)
_RUST = re.compile(
    r"((?:^[ \t]*///[^\n]*\n){1,30})(?:[ \t]*#\[[^\n]*\n)*[ \t]*((?:pub(?:\([a-z]+\))? )?(?:const |async |unsafe )*(?:fn|struct|enum|trait) )",
    re.MULTILINE,
)
_GO = re.compile(r"((?:^//[^\n]*\n){1,30})((?:func|type) )", re.MULTILINE)


def _commented(
    text: str, pattern: re.Pattern[str], source: str, chance: random.Random
) -> Iterator[Pair]:
    for match in pattern.finditer(text):
        comment = re.sub(r"^[ \t]*(?:\*|///?|//) ?", "", match[1], flags=re.MULTILINE)
        comment = re.sub(r"\{@\w+ ([^}]*)\}", r"\1", comment)
        prose = squeeze(re.split(r"^\s*@\w+", comment, maxsplit=1, flags=re.MULTILINE)[0])
        if len(prose) < 25 or re.search(
            r"copyright|licen[cs]e|deprecated|@internal|eslint|autogenerated|## What it does",
            prose,
            re.IGNORECASE,
        ):
            continue
        code = _block(text[match.start(2) : match.start(2) + FUNCTION_MAX])
        if len(code) < 60:
            continue
        sentence, rest = first_sentence(prose)
        dice = chance.random()
        if dice < 0.65:
            found = pair("function", sentence, code, source)
        elif len(rest) > 80 and dice < 0.8:
            found = pair("docstring", sentence, f"{code.split(chr(10))[0]}\n{rest}", source)
        else:
            found = pair("docstring", squeeze(code[:300]), prose, source)
        if found:
            yield found


def _block(code: str) -> str:
    """*code* up to the end of its first block of braces, or its first statement."""
    depth = 0
    for position, char in enumerate(code):
        if char in "{(":
            depth += 1
        elif char in "})":
            depth -= 1
            if depth <= 0 and char == "}":
                return code[: position + 1]
        elif char == ";" and depth == 0:
            return code[: position + 1]
        if depth < 0:
            return code[:position]
    return code
