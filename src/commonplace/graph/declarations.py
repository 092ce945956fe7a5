"""The signatures that a source file declares, each in one line however many it has in the file.

Python is parsed. C and C++ are cut at braces and semicolons, since what a class or namespace holds
is indented like any statement. Other languages, and Python that does not parse, are read by the
lines that begin a declaration, up to where its brackets are closed.
"""

from __future__ import annotations

import ast
import re
import warnings
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from commonplace.foreign import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SIGNATURES_MAX = 10
SIGNATURE_CHARS_MAX = 140
# The maximum length of a declaration in the file, with its line ends and comments.
DECLARATION_CHARS_MAX = 1_500
_PYTHON = (".py", ".pyi")
_C = (".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".hh")


class _Syntax(NamedTuple):
    """How a declaration begins, and the characters that end it outside of brackets."""

    begins: re.Pattern[str]
    ends: str


_BEFORE_NAME = (
    r"^[ \t]*(?:(?:export|default|declare|abstract|public|protected|static|async|pub(?:\([^)]*\))?)"
    r"\s+)*"
)
_DECLARATIONS = {
    _PYTHON: (r"^(?:    )?(?:async )?(?:def|class) (?:(?!_)|(?=__init__\())", "\n"),
    (".js", ".jsx", ".ts", ".tsx", ".mjs", ".mts"): (
        _BEFORE_NAME
        + r"(?:function\b|class |interface |type |(?:const )?enum |const \w+ = (?:async )?(?=\()"
        r"|const \w+: )",
        "\n{;",
    ),
    (".go",): (r"^(?:func|type) ", "\n{"),
    (".rs",): (
        r"^[ \t]*pub(?:\([^)]*\))? (?:async |unsafe |const )*(?:fn|struct|enum|trait) ",
        "\n{;",
    ),
    (".java", ".kt", ".cs", ".scala"): (
        r"^[ \t]*(?:public|protected|internal|fun|def) ",
        "\n{=;",
    ),
    (".rb",): (r"^[ \t]*(?:def|class|module) ", "\n"),
    (".php",): (
        r"^[ \t]*(?:(?:public|protected|static|abstract|final) )*(?:function|class) ",
        "\n{;",
    ),
    (".swift",): (
        r"^[ \t]*(?:public |open |static )*(?:func|class|struct|protocol|enum) ",
        "\n{",
    ),
}
_SYNTAXES = {
    end: _Syntax(re.compile(pattern, re.MULTILINE), ends)
    for file_ends, (pattern, ends) in _DECLARATIONS.items()
    for end in file_ends
}
_COMMENT = re.compile(r"/\*.*?\*/|(?<![:\"'])//[^\n]*", re.DOTALL)
_PYTHON_COMMENT = re.compile(r"(?<=[\s,(])# [^\n]*")
_OPEN, _CLOSED = "([{", ")]}"
_BEFORE_CLOSED = re.compile(r",? (?=[)\]])")
_AFTER_OPEN = re.compile(r"(?<=[(\[]) ")


def signatures(name: str, text: str) -> list[str]:
    """Return the declarations in the text of a file of that name, in their order."""
    end = Path(name).suffix.lower()
    if end in _PYTHON:
        found = _of_python(text)
    elif end in _C:
        found = _of_c(text)
    elif syntax := _SYNTAXES.get(end):
        found = _by_lines(_COMMENT.sub("", text), syntax)
    else:
        return []
    lines = (_line(one)[:SIGNATURE_CHARS_MAX] for one in found)
    return list(islice(dict.fromkeys(filter(None, lines)), SIGNATURES_MAX))


def _line(declaration: str) -> str:
    line = _BEFORE_CLOSED.sub("", _AFTER_OPEN.sub("", one_line(declaration)))
    return line.removesuffix("=>").rstrip("{:;( ")


def _of_python(text: str) -> Iterable[str]:
    try:
        # The file may be anyone's: what is doubtful in it is not reported to our user.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return list(islice(_of_body(ast.parse(text).body), SIGNATURES_MAX))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _by_lines(_PYTHON_COMMENT.sub("", text), _SYNTAXES[".py"])


def _of_body(body: Iterable[ast.stmt], *, is_class: bool = False) -> Iterator[str]:
    """Yield the public functions and classes, and how objects of a class are made."""
    for one in body:
        match one:
            case ast.If() | ast.Try():
                yield from _of_body([*one.body, *one.orelse], is_class=is_class)
            case ast.ClassDef() if not one.name.startswith("_"):
                bases = ", ".join(map(ast.unparse, [*one.bases, *one.keywords]))
                yield f"class {one.name}({bases})" if bases else f"class {one.name}"
                if not is_class:
                    yield from _of_body(one.body, is_class=True)
            case ast.FunctionDef() | ast.AsyncFunctionDef() if (
                not one.name.startswith("_") or one.name == "__init__"
            ):
                word = "async def" if isinstance(one, ast.AsyncFunctionDef) else "def"
                result = f" -> {ast.unparse(one.returns)}" if one.returns else ""
                yield f"{word} {one.name}({ast.unparse(one.args)}){result}"


def _by_lines(text: str, syntax: _Syntax) -> Iterator[str]:
    for begin in syntax.begins.finditer(text):
        yield _until_closed(text, begin.start(), begin.end(), syntax.ends)


def _until_closed(text: str, start: int, place: int, ends: str) -> str:
    """Return the text from *start* to one of *ends*, from *place* on, that is in no brackets."""
    depth = 0
    limit = min(len(text), start + DECLARATION_CHARS_MAX)
    for at in range(place, limit):
        character = text[at]
        if depth <= 0 and character in ends:
            return text[start:at]
        depth += (character in _OPEN) - (character in _CLOSED)
    if limit == len(text) and depth <= 0:
        return text[start:]
    return text[start:limit].partition("\n")[0]  # Its brackets are never closed.


# What braces and semicolons do not count in, and what cuts C++ into declarations.
_C_TOKEN = re.compile(
    r"/\*.*?\*/|//[^\n]*|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])'"
    r"|[{}();]",
    re.DOTALL | re.MULTILINE,
)
_C_ACCESS = re.compile(r"\b(public|protected|private)(?:\s+\w+)?\s*:(?!:)")
_C_SCOPE = re.compile(r"(?:inline\s+)?namespace\b|extern\s+\"C\"$")
_C_CLASS = re.compile(
    r"(?:template\s*<.*>\s*)?(?:typedef\s+)?(class|struct|union)\s+(?:\[\[.*?\]\]\s*)?"
    r"(?:[A-Z_]+\s+)?(\w+)",
    re.DOTALL,
)
_C_ENUM = re.compile(r"(?:typedef\s+)?enum\b")
_C_FUNCTION = re.compile(
    r"(?:template\s*<.*?>\s*)?(?!(?:return|using|typedef|static_assert|friend|if|else|for|while"
    r"|switch|case|throw|new|delete|goto)\b)[^=(]*?([~\w]+|operator\s*[^\s\w]+)\s*\(",
    re.DOTALL,
)
# What follows the parameters of a constructor, but for what decides whether it can be called.
_C_INITIALISERS = re.compile(r"(?<!:):(?!:)|=(?!\s*(?:0|default|delete)\b)")


class _Scope(NamedTuple):
    """What is between braces: whether declarations, the name of the class, and who may use them."""

    declares: bool
    name: str = ""
    is_open: bool = True


def _of_c(text: str) -> Iterator[str]:
    scopes = [_Scope(declares=True)]
    head: list[str] = []
    depth = start = 0
    for token in _C_TOKEN.finditer(text):
        head.append(text[start : token.start()])
        start = token.end()
        word = token[0]
        if word in "()":
            depth = max(0, depth + (1 if word == "(" else -1))
        if depth or word not in "{};":
            # Comments and lines for the preprocessor are left out; the rest belongs to the head.
            head.append("" if word[0] in "/#" else word)
            continue
        declaration, scopes[-1] = _access("".join(head).strip(), scopes[-1])
        head = []
        inside = scopes[-1]
        if word == "}":
            scopes = scopes[:-1] or [_Scope(declares=True)]
            continue
        if inside.declares and inside.is_open and len(declaration) <= DECLARATION_CHARS_MAX:
            yield from _c_signature(declaration, inside.name, has_body=word == "{")
        if word == "{":
            scopes.append(_opened(declaration, inside))


def _access(declaration: str, scope: _Scope) -> tuple[str, _Scope]:
    """Return what follows the last `public:` or its like, and the scope as that leaves it."""
    *_before, last = [None, *_C_ACCESS.finditer(declaration)] if scope.name else [None]
    if last is None:
        return declaration, scope
    return declaration[last.end() :].strip(), scope._replace(is_open=last[1] != "private")


def _opened(declaration: str, inside: _Scope) -> _Scope:
    if not inside.declares or not inside.is_open:
        return _Scope(declares=False)
    if _C_SCOPE.match(declaration):
        return _Scope(declares=True)
    if found := _C_CLASS.match(declaration):
        if "(" in declaration:  # A function that returns a `struct x *`.
            return _Scope(declares=False)
        return _Scope(declares=True, name=found[2], is_open=found[1] != "class")
    return _Scope(declares=False)


def _c_signature(declaration: str, of_class: str, *, has_body: bool) -> Iterator[str]:
    if "(" not in declaration:
        if has_body and (_C_CLASS.match(declaration) or _C_ENUM.match(declaration)):
            yield declaration
        return
    found = _C_FUNCTION.match(declaration)
    if found is None:
        return
    is_made = found[1].lstrip("~") == of_class and bool(of_class)
    has_type = bool(declaration[: found.start(1)].strip())
    if is_made or has_type:
        parameters = _until_closed(declaration, found.end(), found.end(), ")")
        rest = declaration[found.end() + len(parameters) :]
        yield declaration[: found.end()] + parameters + _C_INITIALISERS.split(rest, maxsplit=1)[0]
