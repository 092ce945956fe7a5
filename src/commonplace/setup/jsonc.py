"""JSON with comments, edited in place: an edit inserts characters, and undoing it removes them.

Nothing is parsed and printed again, so order, comments, indentation, line ends and trailing commas
stay. What was inserted is not recorded anywhere; the layout shows it. An existing empty container
gets our first member after exactly one space (`{ "a": …}`), an existing blank file gets an object
with two spaces; containers that we make have neither. So undoing knows which brackets, and whether
the file, to remove.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import NamedTuple

from commonplace.files.marked_section import NotEditable

DEPTH_MAX = 100
_INDENT = "  "
_WAS_EMPTY = " "
_WAS_BLANK = "  "
_SPACE = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_SAME_LINE = re.compile(r"(?:[ \t]*(?://[^\r\n]*|/\*.*?\*/))*", re.DOTALL)
_NEWLINE = re.compile(r"\r\n|\n|\r")
_LITERAL = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null", re.ASCII)

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """A value and its position in the text; for a container also its members, in order."""

    start: int
    end: int
    value: object
    members: tuple[Member, ...] = ()


class Member(NamedTuple):
    """A value in a container. *start* is where its key begins, or in a list the value."""

    key: str | int
    start: int
    node: Node


def parse(text: str) -> Node | None:
    """Return the value in *text*; `None` if it is blank."""
    at = _skip_space(text, 0).end
    if at == len(text):
        if text.strip():
            raise NotEditable("it holds comments alone")
        return None
    root = _value(text, at, 0)
    rest = _skip_space(text, root.end).end
    if rest != len(text):
        raise NotEditable(f"there is something after its end, {_position(text, rest)}")
    return root


def find(root: Node | None, path: Path) -> Node | None:
    """Return the node at *path*. Of two members with the same key, the last applies."""
    node = root
    for step in path:
        node = (
            next((one.node for one in reversed(node.members) if one.key == step), None)
            if node
            else None
        )
    return node


def with_member(text: str, path: Path, key: str | None, value: object) -> str:
    """Return *text* with *value* as a new last member of the container at *path*."""
    container = find(parse(text), path)
    assert container is not None, "the caller has looked"
    style = _Style(text)
    indent = style.within(container)
    between = f"{style.newline}{indent}" if style.lines else " "
    member = f"{json.dumps(key, ensure_ascii=False)}: " if key is not None else ""
    member += style.render(value, indent)
    if not container.members:
        return _insert(text, (container.start + 1, _WAS_EMPTY + member))
    last = container.members[-1].node.end
    comma = _comma(text, last)
    after = last if comma is None else comma + 1
    line_end = _line_comments_end(text, after)
    if comma is None:
        return _insert(text, (last, ","), (line_end, between + member))
    return _insert(text, (line_end, between + member + ","))


def with_root(text: str | None, key: str, value: object) -> str:
    """Return a new file, or the blank file *text*, with an object that holds *value*."""
    if text is None:
        return _Style("\n").render({key: value}, "") + "\n"
    style = _Style(text or "\n")
    member = f"{json.dumps(key, ensure_ascii=False)}: {style.render(value, style.unit)}"
    return f"{text}{{{_WAS_BLANK}{member}}}"


def with_value(text: str, path: Path, value: object) -> str:
    """Return *text* with *value* instead of the value at *path*."""
    node = find(parse(text), path)
    assert node is not None, "the caller has looked"
    style = _Style(text)
    return (
        text[: node.start] + style.render(value, style.line_indent(node.start)) + text[node.end :]
    )


def without(text: str, path: Path) -> str | None:
    """Return *text* without the value at *path* and the containers that were made for it.

    `None` if the file was created for it.
    """
    root = parse(text)
    assert root is not None, "the caller has looked"
    rest = text[: root.start] + text[root.end :]
    while path:
        container = find(root, path[:-1])
        assert container is not None, "the caller has looked"
        alone = len(container.members) == 1 and (container is not root or not rest.strip())
        if not alone or not _was_made(text, container):
            # Of two members with the same key the last one, as in `find`.
            index = max(i for i, member in enumerate(container.members) if member.key == path[-1])
            return _cut(text, container, index)
        path = path[:-1]
    return rest if text[root.start + 1 : root.members[0].start] == _WAS_BLANK else None


# --- Reading --------------------------------------------------------------------------------------


class _Space(NamedTuple):
    """Space and comments: where they end, where the last comment does, and if it is a `//`."""

    end: int
    comment_end: int
    line_comment: bool


def _skip_space(text: str, at: int) -> _Space:
    comment_end, line_comment = at, False
    while True:
        space = _SPACE.match(text, at)
        assert space is not None, "the pattern matches an empty text"
        comment = _COMMENT.match(text, space.end())
        if comment is None:
            return _Space(space.end(), comment_end, line_comment)
        at = comment_end = comment.end()
        line_comment = comment[0].startswith("//")


def _value(text: str, at: int, depth: int) -> Node:
    if depth > DEPTH_MAX:
        raise NotEditable(f"it is nested more than {DEPTH_MAX} levels deep")
    match text[at : at + 1]:
        case "{":
            return _container(text, at, depth, closing="}")
        case "[":
            return _container(text, at, depth, closing="]")
        case '"':
            return _string(text, at)
    found = _LITERAL.match(text, at)
    if found is None:
        raise NotEditable(f"a value is missing {_position(text, at)}")
    return Node(at, found.end(), json.loads(found[0]))


def _string(text: str, at: int) -> Node:
    try:
        value, end = scanstring(text, at + 1, True)  # noqa: FBT003 (it takes no keywords)
    except json.JSONDecodeError as error:
        raise NotEditable(f"a text is damaged {_position(text, error.pos)}") from None
    return Node(at, end, value)


def _container(text: str, start: int, depth: int, closing: str) -> Node:
    members: list[Member] = []
    at = _skip_space(text, start + 1).end
    while text[at : at + 1] != closing:
        begins = at
        key: str | int = len(members)
        if closing == "}":
            if text[at : at + 1] != '"':
                raise NotEditable(f"a key is missing {_position(text, at)}")
            name = _string(text, at)
            key, at = str(name.value), _skip_space(text, name.end).end
            if text[at : at + 1] != ":":
                raise NotEditable(f"a colon is missing {_position(text, at)}")
            at = _skip_space(text, at + 1).end
        node = _value(text, at, depth + 1)
        members.append(Member(key, begins, node))
        at = _skip_space(text, node.end).end
        if text[at : at + 1] == ",":
            at = _skip_space(text, at + 1).end
        elif text[at : at + 1] != closing:
            raise NotEditable(f"a comma or `{closing}` is missing {_position(text, at)}")
    plain = (
        {one.key: one.node.value for one in members}
        if closing == "}"
        else [one.node.value for one in members]
    )
    return Node(start, at + 1, plain, tuple(members))


def _position(text: str, at: int) -> str:
    return "at its end" if at >= len(text) else f"in line {text.count(chr(10), 0, at) + 1}"


# --- Editing --------------------------------------------------------------------------------------


class _Style:
    """The layout of a text: on one line or several, and its indentation and line ends."""

    def __init__(self, text: str) -> None:
        self.text = text
        first = _NEWLINE.search(text)
        self.lines = first is not None
        self.newline = first[0] if first else "\n"
        self.unit = self._unit()

    def _unit(self) -> str:
        root = parse(self.text)
        for member in root.members if root else ():
            own = self.own_line(member.start)
            if own and root:
                return own.removeprefix(self.line_indent(root.start)) or own
        return _INDENT

    def within(self, container: Node) -> str:
        """Return the indentation of members of *container*."""
        own = self.own_line(container.members[-1].start) if container.members else None
        return self.line_indent(container.start) + self.unit if own is None else own

    def own_line(self, at: int) -> str | None:
        """Return the indentation of *at* if nothing else precedes it on its line; else `None`."""
        start = self._line(at)
        return self.text[start:at] if start and not self.text[start:at].strip(" \t") else None

    def line_indent(self, at: int) -> str:
        line = self.text[self._line(at) : at]
        return line[: len(line) - len(line.lstrip(" \t"))]

    def _line(self, at: int) -> int:
        return max(self.text.rfind("\n", 0, at), self.text.rfind("\r", 0, at)) + 1

    def render(self, value: object, indent: str) -> str:
        """Return *value* as text: one member on each line, but lists of scalars on one."""
        nested = isinstance(value, dict) or (
            isinstance(value, list) and any(isinstance(one, dict) for one in value)
        )
        if not (self.lines and nested and value):
            return json.dumps(value, ensure_ascii=False)
        inner = f"{self.newline}{indent}{self.unit}"
        if isinstance(value, dict):
            parts = (
                f"{json.dumps(name, ensure_ascii=False)}: {self.render(one, indent + self.unit)}"
                for name, one in value.items()
            )
            return "{" + inner + f",{inner}".join(parts) + f"{self.newline}{indent}" + "}"
        assert isinstance(value, list), "nested values are objects or lists"
        parts = (self.render(one, indent + self.unit) for one in value)
        return "[" + inner + f",{inner}".join(parts) + f"{self.newline}{indent}" + "]"


def _comma(text: str, at: int) -> int | None:
    """Return the position of the comma after a value that ends at *at*."""
    end = _skip_space(text, at).end
    return end if text[end : end + 1] == "," else None


def _line_comments_end(text: str, at: int) -> int:
    """Return the end of the comments after *at* on its line, which belong to the member before."""
    found = _SAME_LINE.match(text, at)
    assert found is not None, "the pattern matches an empty text"
    return found.end()


def _insert(text: str, *pieces: tuple[int, str]) -> str:
    for at, piece in reversed(pieces):
        text = text[:at] + piece + text[at:]
    return text


def _was_made(text: str, container: Node) -> bool:
    """Whether *container* was made for its one member."""
    only = container.members[0]
    before = text[container.start + 1 : only.start]
    comma = _comma(text, only.node.end)
    after = text[only.node.end if comma is None else comma + 1 : container.end - 1]
    return before != _WAS_EMPTY and not before.strip() and not after.strip()


def _cut(text: str, container: Node, index: int) -> str:
    member = container.members[index]
    before = container.start + 1
    comma_before = _comma(text, container.members[index - 1].node.end) if index else None
    if comma_before is not None:
        before = comma_before + 1
    space = _skip_space(text, before)
    comma_after = _comma(text, member.node.end)
    if (
        not index
        and len(container.members) > 1
        and text[before : member.start] in (_WAS_EMPTY, _WAS_BLANK)
    ):
        # The space that marks an empty container stays for the next member.
        following = container.members[1].start
        if not text[member.node.end : following].replace(",", "").strip():
            return text[: member.start] + text[following:]
    head, rest = text[: space.comment_end], text[member.node.end :]
    if comma_after is not None:
        rest = text[member.node.end : comma_after] + text[comma_after + 1 :]
    elif comma_before is not None:
        head = text[:comma_before] + text[comma_before + 1 : space.comment_end]
    if space.line_comment and not rest.startswith(("\r", "\n")):
        # Without the line end, what follows would become part of the comment.
        newline = _NEWLINE.match(text, space.comment_end)
        assert newline is not None, "a line comment ends with its line"
        head += newline[0]
    return head + rest
