"""Read the sources of the shipped packs: Markdown files in `packs/NAME/`, a section for each node.

    ## snippet.cpp.raii.file: Close a FILE with a unique_ptr
    tags: raii, files
    links: example_of concept.cpp.raii 0.9, related_to pattern.cpp.rule-of-zero

    What it is and when to use it, in a few sentences.

    ```cpp
    the code of the node, at most 30 lines
    ```

    ```cpp check
    code that is run together with the node's code, and is not in the pack
    ```

The first part of the id is the type of the node, the second one its domain. A node with code has a
check, or a line `unchecked: WHY`. A line `check: HOW` tells the checker of its language what to do.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKS = Path(__file__).resolve().parent.parent / "packs"
TYPES = ("concept", "skill", "fact", "snippet", "pattern", "tool")
CODE_LINES_MAX = 30
PROSE = "it has no code"
_HEADING = re.compile(r"## (?P<id>[a-z]+(?:\.[a-z0-9_-]+){2,}): (?P<label>\S.*)")
_FIELD = re.compile(r"(?P<name>tags|links|children|check|unchecked): (?P<value>\S.*)")
_LINK = re.compile(r"(?P<rel>[a-z_]+) (?P<to>[a-z0-9._-]+)(?: (?P<w>0?\.\d+|1))?")
_FENCE = re.compile(r"```(?P<language>[a-z]+)(?P<check> check)?")


@dataclass
class Link:
    """A link to another node of the pack: its id, the relation and the weight."""

    to: str
    rel: str
    w: float


@dataclass
class Code:
    """A block of code and its language."""

    language: str
    text: str


@dataclass
class SourceNode:
    """A node of a pack as its source has it. `where` is its file and line."""

    where: str
    id: str
    label: str
    fields: dict[str, str] = field(default_factory=dict)
    text: str = ""
    codes: list[Code] = field(default_factory=list)
    checks: list[Code] = field(default_factory=list)

    @property
    def type(self) -> str:
        return self.id.partition(".")[0]

    @property
    def tags(self) -> list[str]:
        own = [tag.strip() for tag in self.fields.get("tags", "").split(",")]
        return list(dict.fromkeys([self.id.split(".")[1], *filter(None, own)]))

    @property
    def links(self) -> list[Link]:
        found = []
        for part in filter(None, self.fields.get("links", "").split(",")):
            match = _LINK.fullmatch(part.strip())
            if match is None:
                raise SourceError(self.where, f"`{part.strip()}` is not `relation id [weight]`")
            found.append(Link(match["to"], match["rel"], float(match["w"] or 0.7)))
        return found

    @property
    def children(self) -> dict[str, str]:
        """Return the nodes below this one: the last part of the id, and the id."""
        ids = filter(None, (one.strip() for one in self.fields.get("children", "").split(",")))
        return {ident.rpartition(".")[2]: ident for ident in ids}

    @property
    def unchecked(self) -> str:
        """Why no machine checks this node; empty if one does."""
        return "" if self.checks else self.fields.get("unchecked", PROSE)


# A line end within a paragraph: the sources are wrapped, what a pack says is not.
_WRAP = re.compile(r"(?<=\S)\n(?=[^\s\-*#>|`])(?!\d+[.)]\s)")


class SourceError(Exception):
    """A source of a pack that is not as it must be."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where}: {what}")


def names() -> list[str]:
    """Return the names of the packs that have sources."""
    return sorted(path.parent.name for path in PACKS.glob("*/pack.toml"))


def about(pack: str) -> dict[str, Any]:
    """Return what `pack.toml` says: name, version, title, domain_tags, authors, licence."""
    return tomllib.loads((PACKS / pack / "pack.toml").read_text("utf-8"))


def read(pack: str) -> list[SourceNode]:
    """Return the nodes of *pack*, in the order of the files. Raises `SourceError`."""
    nodes: list[SourceNode] = []
    for path in sorted((PACKS / pack).glob("*.md")):
        nodes += _read_file(path)
    for node in nodes:
        node.text = re.sub(r"\n{3,}", "\n\n", node.text).strip()  # Blocks of code stood there.
        node.text = _WRAP.sub(" ", node.text)
    _check_all(nodes)
    return nodes


def _read_file(path: Path) -> list[SourceNode]:
    nodes: list[SourceNode] = []
    lines = enumerate(path.read_text("utf-8").splitlines(), start=1)
    for number, line in lines:
        where = f"{path.parent.name}/{path.name}:{number}"
        if heading := _HEADING.fullmatch(line):
            nodes.append(SourceNode(where, heading["id"], heading["label"]))
        elif line.startswith("## "):
            raise SourceError(where, "a heading is `## type.domain.name: label`")
        elif nodes:  # Before the first node, a file speaks to its readers.
            _add(nodes[-1], where, line, (text for _number, text in lines))
    return nodes


def _add(node: SourceNode, where: str, line: str, rest: Iterator[str]) -> None:
    """Add *line* to *node*; if a block of code begins with it, the *rest* up to its end as well."""
    given = _FIELD.fullmatch(line)
    if line.startswith("```"):
        fence = _FENCE.fullmatch(line)
        if fence is None:
            raise SourceError(where, "a block begins with ```language or ```language check")
        code = Code(fence["language"], "".join(f"{text}\n" for text in _until_fence(where, rest)))
        (node.checks if fence["check"] else node.codes).append(code)
    elif given and not node.text.strip() and not node.codes:
        node.fields[given["name"]] = given["value"]
    else:
        node.text += f"{line}\n"


def _until_fence(where: str, lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        if line == "```":
            return
        yield line
    raise SourceError(where, "this block of code has no end")


def _check_all(nodes: list[SourceNode]) -> None:
    ids = {node.id for node in nodes}
    linked = {link.to for node in nodes for link in node.links}
    seen: set[str] = set()
    for node in nodes:
        if node.id in seen:
            raise SourceError(node.where, f"the id {node.id} is there twice")
        seen.add(node.id)
        if node.type not in TYPES:
            raise SourceError(node.where, f"a type is one of {', '.join(TYPES)}")
        for to in [*(link.to for link in node.links), *node.children.values()]:
            if to not in ids or to == node.id:
                raise SourceError(node.where, f"there is no other node {to}")
        if not node.links and node.id not in linked:
            raise SourceError(node.where, "nothing links it to another node")
        if not node.text and not node.codes:
            raise SourceError(node.where, "it is empty")
        if node.codes and not node.checks and "unchecked" not in node.fields:
            raise SourceError(
                node.where, "its code has neither a check nor a line `unchecked: WHY`"
            )
        if any(code.text.count("\n") > CODE_LINES_MAX for code in node.codes):
            raise SourceError(node.where, f"its code has more than {CODE_LINES_MAX} lines")
