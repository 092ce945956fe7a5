"""The passages of a document that get a vector, and which units of its text are in each."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from commonplace.index.document import Document
from commonplace.index.passages import PASSAGE_CHARS_MAX, Block, split_block
from commonplace.index.units import units_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from commonplace.index.units import Unit

EMBEDDED_MAX = 12
TITLE_CHARS_MAX = 120
# If less of a document is shown, such as of an episode, all that is searched gets vectors.
SHOWN_SHARE_MIN = 0.7
# What is of no unit: the title and the headings.
NO_UNIT = -1


class Passage(NamedTuple):
    """A text that gets a vector, and what of it is of which unit, in order."""

    text: str
    # Empty if it is the whole document, or of no text that is shown.
    parts: tuple[tuple[int, str], ...] = ()


def passages_to_embed(found: Document, units: Sequence[Unit] | None = None) -> list[Passage]:
    """Return the passages of a document that get a vector, each with the title before it.

    What stands below a heading has it before it, too: often it alone says what a section is about.
    *units* are those of what is shown, if they are known.
    """
    if len(found.text) <= PASSAGE_CHARS_MAX:
        return [Passage(found.text)]
    title = found.title.strip().split("\n", 1)[0][:TITLE_CHARS_MAX]
    is_shown = len(found.shown) >= SHOWN_SHARE_MIN * len(found.text)
    passages = []
    text = found.shown if is_shown else found.text
    for parts in _passages(text, title, units if is_shown and units else units_of(text)):
        begins_with_title = parts[0][1].startswith(title)
        head = [(NO_UNIT, title)] if title and not begins_with_title else []
        whole = (*head, *parts)
        joined = "\n".join(part for _unit, part in whole)
        passages.append(Passage(joined, whole if is_shown else ()))
        if len(passages) == EMBEDDED_MAX:
            break
    return passages


def texts_to_embed(title: str, text: str) -> list[str]:
    """Return the passages of a document of which all that is searched is shown."""
    return [passage.text for passage in passages_to_embed(Document(title, text, text))]


def _passages(text: str, title: str, units: Sequence[Unit]) -> Iterator[list[tuple[int, str]]]:
    """Yield the units of *text* in groups of about equal length, with their headings."""
    held: list[tuple[int, str]] = []
    size = 0
    above: tuple[str, ...] = ()
    for number, unit in enumerate(units):
        heading = unit.headings[-1] if unit.headings else ""
        lead = [(NO_UNIT, heading)] if heading and heading not in title else []
        for block in split_block(Block(unit.of(text), unit.headings), PASSAGE_CHARS_MAX):
            new = [*(lead if unit.headings != above else ()), (number, block.text)]
            length = sum(len(part) + 2 for _unit, part in new)
            if held and size + length > PASSAGE_CHARS_MAX:
                yield held
                held, size = [], 0
            if not held:
                new = [*lead, (number, block.text)]
            held += new
            size += sum(len(part) + 2 for _unit, part in new)
            above = unit.headings
    if held:
        yield held
