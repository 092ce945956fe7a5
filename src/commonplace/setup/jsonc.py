"""JSON with comments, edited in place: what is put in is a run of characters, and taking it out gives back the rest.

Nothing is parsed and printed again, so order, comments, indentation, line ends and trailing commas stay as they are.
No note is kept of what was done; the file itself says it. A container that was there and empty gets our first member
after exactly one space (`{ "a": …}`), a file that was there and blank an object with two; containers that we make never
have either. So undoing knows which brackets to take along, and whether the file.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import NamedTuple

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


class NotEditable(ValueError):
    """A text that is left as it is: damaged, or laid out so that nothing can be added. Says why."""


@dataclass(frozen=True, slots=True)
class Node:
    """A value and the characters it was read from; of a container also its members, in order."""

    start: int
    end: int
    value: object
    members: tuple[Member, ...] = ()


class Member(NamedTuple):
    """A value within a container, by key or number. *start* is where its key begins, or in a list the value itself."""

    key: str | int
    start: int
    node: Node


def parse(text: str) -> Node | None:
    """The value that *text* holds; nothing if it is blank."""
    at = _skipped(text, 0).end
    if at == len(text):
        if text.strip():
            raise NotEditable("it holds comments alone")
        return None
    root = _value(text, at, 0)
    rest = _skipped(text, root.end).end
    if rest != len(text):
        raise NotEditable(f"there is something behind its end, {_place(text, rest)}")
    return root


def find(root: Node | None, path: Path) -> Node | None:
    """The node at *path*. Of a key that is there twice the last counts, as it does for those who read the file."""
    node = root
    for step in path:
        node = (
            next((one.node for one in reversed(node.members) if one.key == step), None)
            if node
            else None
        )
    return node


def with_member(text: str, path: Path, key: str | None, value: object) -> str:
    """*text* with *value* as the last member of the container at *path*, which must be there."""
    container = find(parse(text), path)
    assert container is not None, "the caller has looked"
    style = _Style(text)
    indent = style.within(container)
    between = f"{style.newline}{indent}" if style.lines else " "
    member = f"{json.dumps(key, ensure_ascii=False)}: " if key is not None else ""
    member += style.rendered(value, indent)
    if not container.members:
        return _inserted(text, (container.start + 1, _WAS_EMPTY + member))
    last = container.members[-1].node.end
    comma = _comma(text, last)
    behind = last if comma is None else comma + 1
    line_end = _line_comments_end(text, behind)
    if comma is None:
        return _inserted(text, (last, ","), (line_end, between + member))
    return _inserted(text, (line_end, between + member + ","))


def with_root(text: str | None, key: str, value: object) -> str:
    """A file with one object that holds *value*: a new one, or *text*, which is blank."""
    if text is None:
        return _Style("\n").rendered({key: value}, "") + "\n"
    style = _Style(text or "\n")
    member = f"{json.dumps(key, ensure_ascii=False)}: {style.rendered(value, style.unit)}"
    return f"{text}{{{_WAS_BLANK}{member}}}"


def with_value(text: str, path: Path, value: object) -> str:
    """*text* with *value* in the place of the one at *path*."""
    node = find(parse(text), path)
    assert node is not None, "the caller has looked"
    style = _Style(text)
    return (
        text[: node.start] + style.rendered(value, style.line_indent(node.start)) + text[node.end :]
    )


def without(text: str, path: Path) -> str | None:
    """*text* less what is at *path*, and less the containers around it that were made to hold it.

    Nothing at all is left of a file that was made for it.
    """
    root = parse(text)
    assert root is not None, "the caller has looked"
    rest = text[: root.start] + text[root.end :]
    while path:
        container = find(root, path[:-1])
        assert container is not None, "the caller has looked"
        alone = len(container.members) == 1 and (container is not root or not rest.strip())
        if not alone or not _was_made(text, container):
            # Of a key that is there twice the last one, as in `find`.
            index = max(i for i, member in enumerate(container.members) if member.key == path[-1])
            return _cut(text, container, index)
        path = path[:-1]
    return rest if text[root.start + 1 : root.members[0].start] == _WAS_BLANK else None


# --- Reading --------------------------------------------------------------------------------------------------------


class _Skipped(NamedTuple):
    """The space and comments from a place on: where they end, and where the last comment does (and if it is a line)."""

    end: int
    comment_end: int
    line_comment: bool


def _skipped(text: str, at: int) -> _Skipped:
    comment_end, line_comment = at, False
    while True:
        space = _SPACE.match(text, at)
        assert space is not None, "it matches nothing as well"
        comment = _COMMENT.match(text, space.end())
        if comment is None:
            return _Skipped(space.end(), comment_end, line_comment)
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
        raise NotEditable(f"a value is missing {_place(text, at)}")
    return Node(at, found.end(), json.loads(found[0]))


def _string(text: str, at: int) -> Node:
    try:
        value, end = scanstring(text, at + 1, True)  # noqa: FBT003 (it takes no keywords)
    except json.JSONDecodeError as error:
        raise NotEditable(f"a text is damaged {_place(text, error.pos)}") from None
    return Node(at, end, value)


def _container(text: str, start: int, depth: int, closing: str) -> Node:
    members: list[Member] = []
    at = _skipped(text, start + 1).end
    while text[at : at + 1] != closing:
        begins = at
        key: str | int = len(members)
        if closing == "}":
            if text[at : at + 1] != '"':
                raise NotEditable(f"a key is missing {_place(text, at)}")
            name = _string(text, at)
            key, at = str(name.value), _skipped(text, name.end).end
            if text[at : at + 1] != ":":
                raise NotEditable(f"a colon is missing {_place(text, at)}")
            at = _skipped(text, at + 1).end
        node = _value(text, at, depth + 1)
        members.append(Member(key, begins, node))
        at = _skipped(text, node.end).end
        if text[at : at + 1] == ",":
            at = _skipped(text, at + 1).end
        elif text[at : at + 1] != closing:
            raise NotEditable(f"a comma or `{closing}` is missing {_place(text, at)}")
    plain = (
        {one.key: one.node.value for one in members}
        if closing == "}"
        else [one.node.value for one in members]
    )
    return Node(start, at + 1, plain, tuple(members))


def _place(text: str, at: int) -> str:
    return "at its end" if at >= len(text) else f"in line {text.count(chr(10), 0, at) + 1}"


# --- Editing --------------------------------------------------------------------------------------------------------


class _Style:
    """How a text is laid out: on one line or on many, and with which indentation and line ends."""

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
        """The indentation of what comes into *container*."""
        own = self.own_line(container.members[-1].start) if container.members else None
        return self.line_indent(container.start) + self.unit if own is None else own

    def own_line(self, at: int) -> str | None:
        """The space before what begins at *at*, if it begins a line."""
        start = self._line(at)
        return self.text[start:at] if start and not self.text[start:at].strip(" \t") else None

    def line_indent(self, at: int) -> str:
        line = self.text[self._line(at) : at]
        return line[: len(line) - len(line.lstrip(" \t"))]

    def _line(self, at: int) -> int:
        return max(self.text.rfind("\n", 0, at), self.text.rfind("\r", 0, at)) + 1

    def rendered(self, value: object, indent: str) -> str:
        """*value* as it stands on a line with that *indent*: a member a line, but for lists of plain values."""
        nested = isinstance(value, dict) or (
            isinstance(value, list) and any(isinstance(one, dict) for one in value)
        )
        if not (self.lines and nested and value):
            return json.dumps(value, ensure_ascii=False)
        inner = f"{self.newline}{indent}{self.unit}"
        if isinstance(value, dict):
            parts = (
                f"{json.dumps(name, ensure_ascii=False)}: {self.rendered(one, indent + self.unit)}"
                for name, one in value.items()
            )
            return "{" + inner + f",{inner}".join(parts) + f"{self.newline}{indent}" + "}"
        assert isinstance(value, list), "the other nested kind"
        parts = (self.rendered(one, indent + self.unit) for one in value)
        return "[" + inner + f",{inner}".join(parts) + f"{self.newline}{indent}" + "]"


def _comma(text: str, at: int) -> int | None:
    """Where the comma is that follows what ends at *at*."""
    end = _skipped(text, at).end
    return end if text[end : end + 1] == "," else None


def _line_comments_end(text: str, at: int) -> int:
    """The end of the comments that stand on the same line from *at* on: they belong to what is before them."""
    found = _SAME_LINE.match(text, at)
    assert found is not None, "it matches nothing as well"
    return found.end()


def _inserted(text: str, *pieces: tuple[int, str]) -> str:
    for at, piece in reversed(pieces):
        text = text[:at] + piece + text[at:]
    return text


def _was_made(text: str, container: Node) -> bool:
    """Whether *container*, which has one member, is one that was made for it."""
    only = container.members[0]
    before = text[container.start + 1 : only.start]
    comma = _comma(text, only.node.end)
    behind = text[only.node.end if comma is None else comma + 1 : container.end - 1]
    return before != _WAS_EMPTY and not before.strip() and not behind.strip()


def _cut(text: str, container: Node, index: int) -> str:
    member = container.members[index]
    before = container.start + 1
    comma_before = _comma(text, container.members[index - 1].node.end) if index else None
    if comma_before is not None:
        before = comma_before + 1
    space = _skipped(text, before)
    comma_behind = _comma(text, member.node.end)
    if (
        not index
        and len(container.members) > 1
        and text[before : member.start] in (_WAS_EMPTY, _WAS_BLANK)
    ):
        # What says that the container was empty stays for the next one.
        following = container.members[1].start
        if not text[member.node.end : following].replace(",", "").strip():
            return text[: member.start] + text[following:]
    head, rest = text[: space.comment_end], text[member.node.end :]
    if comma_behind is not None:
        rest = text[member.node.end : comma_behind] + text[comma_behind + 1 :]
    elif comma_before is not None:
        head = text[:comma_before] + text[comma_before + 1 : space.comment_end]
    if space.line_comment and not rest.startswith(("\r", "\n")):
        # What follows would become part of the comment: the end of its line stays.
        newline = _NEWLINE.match(text, space.comment_end)
        assert newline is not None, "a line comment ends with its line"
        head += newline[0]
    return head + rest
