"""Split a long text into passages: its paragraphs, lists and code blocks, none of them too long."""

from __future__ import annotations

import re
from typing import NamedTuple

PASSAGE_CHARS_MAX = 900
_FENCE = re.compile(r"^\s*(```|~~~)")
_HEADING = re.compile(r"^#{1,6}\s+(.*)$")
# A sentence with such a label starts a new passage.
LABEL = re.compile(
    r"(?:fix|solution|resolution|remedy|workaround|answer|lesson|prevention|root cause)\s*:",
    re.IGNORECASE,
)
SENTENCE = re.compile(r"(?<=[.!?。])\s+(?=[A-Z0-9`\"'(\[]|[^\x00-\x7f])")


class Block(NamedTuple):
    """A paragraph, list or code block, and the headings above it."""

    text: str
    headings: tuple[str, ...]


def split_blocks(text: str) -> list[Block]:
    """Split *text* at blank lines and headings, but not within a fenced block."""
    found: list[Block] = []
    headings: list[tuple[int, str]] = []
    held: list[str] = []
    fenced = False

    def flush() -> None:
        joined = "\n".join(held).strip("\n")
        if joined.strip():
            found.append(Block(joined, tuple(title for _depth, title in headings)))
        held.clear()

    for line in text.split("\n"):
        if _FENCE.match(line):
            fenced = not fenced
        heading = None if fenced else _HEADING.match(line)
        if heading:
            flush()
            depth = len(line) - len(line.lstrip("#"))
            headings[:] = [(known, title) for known, title in headings if known < depth]
            headings.append((depth, heading.group(1).strip()))
        elif not line.strip() and not fenced:
            flush()
        else:
            held.append(line)
    flush()
    return _join_lead_ins(found)


def _join_lead_ins(found: list[Block]) -> list[Block]:
    """Join a block that ends with a colon with the block that it introduces."""
    joined: list[Block] = []
    for block in found:
        if (
            joined
            and joined[-1].headings == block.headings
            and joined[-1].text.rstrip().endswith(":")
        ):
            joined[-1] = Block(f"{joined[-1].text}\n{block.text}", block.headings)
        else:
            joined.append(block)
    return joined


def split_block(block: Block, chars_max: int) -> list[Block]:
    """Split *block* into parts of at most *chars_max*: at lines, else sentences, else anywhere."""
    if len(block.text) <= chars_max:
        return [block]
    glue = "\n" if "\n" in block.text.strip() else " "
    parts = block.text.split("\n") if glue == "\n" else SENTENCE.split(block.text)
    found: list[str] = []
    for part in (short for long in parts for short in _split_line(long, chars_max)):
        if (
            found
            and len(found[-1]) + len(part) < chars_max
            and not LABEL.match(part.lstrip("*-• "))
        ):
            found[-1] += glue + part
        else:
            found.append(part)
    return [Block(part, block.headings) for part in found if part.strip()]


def _split_line(text: str, chars_max: int) -> list[str]:
    """Split a line into parts of at most *chars_max*: at sentences, else spaces, else anywhere."""
    if len(text) <= chars_max:
        return [text]
    found = [""]
    for sentence in SENTENCE.split(text):
        if len(found[-1]) + len(sentence) < chars_max:
            found[-1] = f"{found[-1]} {sentence}".strip()
            continue
        rest = sentence
        while len(rest) > chars_max:
            at = rest.rfind(" ", chars_max // 2, chars_max)
            found.append(rest[: at if at > 0 else chars_max])
            rest = rest[at + 1 if at > 0 else chars_max :]
        found.append(rest)
    return [part for part in found if part]
