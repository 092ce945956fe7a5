"""Front matter: the lines of YAML before a Markdown text.

This reads texts, lists, inner fields, and folded or literal blocks. Any other YAML, and what is
nested deeper than `LEVELS_MAX`, is kept as the text it is, so that a note is read whatever its
front matter says.
"""

from __future__ import annotations

import re
from typing import Any

LEVELS_MAX = 8
_OPENING = re.compile(r"\A---[ \t]*\r?\n")
_CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*\r?$\n?", re.MULTILINE)
_FIELD = re.compile(
    r"^(?P<indent> *)(?P<name>[A-Za-z_][\w .-]*?|\"[^\"]+\"|'[^']+') *:(?: +(?P<value>.*)|)$"
)
_BLOCK = re.compile(r"^[|>][+-]?\d?$")
_ESCAPED = re.compile(r"\\(.)")
_ESCAPES = {"n": "\n", "t": "\t"}
_COMMENT = re.compile(r"(?:^|\s)#.*$")


def split(text: str) -> tuple[dict[str, Any] | None, str]:
    """Return the fields of the front matter, or `None` if there is none, and the text after it."""
    opening = _OPENING.match(text)
    if opening is None:
        return None, text
    closing = _CLOSING.search(text, opening.end())
    if closing is None:
        return None, text
    inner = text[opening.end() : closing.start()].replace("\r\n", "\n")
    return _fields(inner.split("\n")), text[closing.end() :].lstrip("\r\n")


def _fields(lines: list[str], levels: int = LEVELS_MAX) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    at = 0
    while at < len(lines):
        found = _FIELD.match(lines[at])
        at += 1
        if found is None:
            continue
        indent, value = len(found["indent"]), (found["value"] or "").strip()
        inner: list[str] = []
        while at < len(lines) and _continues(lines[at], indent):
            inner.append(lines[at])
            at += 1
        fields[found["name"].strip("\"'")] = _value(value, inner, levels)
    return fields


def _continues(line: str, indent: int) -> bool:
    """Whether *line* belongs to the field above it: it is indented further or is a list item."""
    stripped = line.strip()
    own = len(line) - len(line.lstrip(" "))
    return (
        not stripped
        or own > indent
        or (own == indent and stripped.startswith("- "))
        or stripped == "-"
    )


def _value(value: str, inner: list[str], levels: int) -> Any:  # noqa: ANN401 (what the field holds)
    if _BLOCK.match(value):
        return _block(inner, folded=value.startswith(">"))
    filled = [line.strip() for line in inner if line.strip() and not line.strip().startswith("#")]
    plain = _COMMENT.sub("", value).strip() if value[:1] not in ("'", '"') else value
    if not filled:
        return _scalar(plain)
    if not plain and filled[0].startswith("-"):
        return _items(filled)
    if not plain and levels > 1 and _FIELD.match(filled[0]):
        return _fields([line for line in inner if line.strip()], levels - 1)
    return _scalar(" ".join([plain, *filled]).strip())  # A text over several lines.


def _items(lines: list[str]) -> list[Any]:
    items: list[list[str]] = []
    for line in lines:
        if line == "-" or line.startswith("- "):
            items.append([line[1:].strip()])
        elif items:
            items[-1].append(line)
    return [_scalar(" ".join(parts).strip()) for parts in items]


def _block(inner: list[str], *, folded: bool) -> str:
    margin = min((len(line) - len(line.lstrip(" ")) for line in inner if line.strip()), default=0)
    lines = [line[margin:].rstrip() for line in inner]
    return " ".join(line for line in lines if line) if folded else "\n".join(lines).strip("\n")


def _scalar(value: str, levels: int = LEVELS_MAX) -> Any:  # noqa: ANN401 (a text or a list)
    if levels and value[:1] == "[" and value.rstrip(",").endswith("]"):
        items = _split_list(value.rstrip(",")[1:-1])
        return [_scalar(item.strip(), levels - 1) for item in items if item.strip()]
    if len(value) > 1 and value[0] == value[-1] == '"':
        return _ESCAPED.sub(lambda found: _ESCAPES.get(found[1], found[1]), value[1:-1])
    if len(value) > 1 and value[0] == value[-1] == "'":
        return value[1:-1].replace("''", "'")
    return value


def _split_list(inner: str) -> list[str]:
    items: list[str] = []
    quote, start, is_blank = "", 0, True
    for at, char in enumerate(inner):
        if char == "," and not quote:
            items.append(inner[start:at])
            start, is_blank = at + 1, True
            continue
        if char in "\"'" and (not quote or quote == char) and (quote or is_blank):
            quote = "" if quote else char
        is_blank = is_blank and char.isspace()
    return [*items, inner[start:]]
