"""Text in columns: wrapped to the terminal's width, but only if stdout is a terminal."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING
from unicodedata import combining, east_asian_width

from commonplace.cli.output import style, terminal_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

# A narrower column is not wrapped; the terminal then breaks the lines.
COLUMN_WIDTH_MIN = 16


def print_pairs(pairs: Sequence[tuple[str, str]]) -> None:
    """Print names in a first column and their values in a second."""
    width = max(width_of(name) for name, _value in pairs)
    lines: list[str] = []
    for name, value in pairs:
        first, *others = _wrap(value, width + 2)
        lines.append(f"{style(name, 'bold')}{' ' * (width - width_of(name))}  {first}")
        lines += [f"{' ' * width}  {other}" for other in others]
    print_lines(lines)


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str]) -> None:
    """Print *rows* below *header*, the columns named in *right* aligned there.

    The first column is wrapped where a row is wider than the terminal.
    """
    widths = [max(width_of(row[at]) for row in (header, *rows)) for at in range(len(header))]
    others_width = sum(widths[1:]) + 2 * len(widths) - 1
    columns = terminal_columns()
    if columns is not None and columns - others_width >= COLUMN_WIDTH_MIN:
        widths[0] = min(widths[0], columns - others_width)
    lines: list[str] = []
    for row in (header, *rows):
        for number, first in enumerate(_wrap(row[0], others_width)):
            cells = [first, *(row[1:] if number == 0 else [""] * len(row[1:]))]
            line = "  ".join(
                _pad(cell, width, to_right=name in right)
                for cell, width, name in zip(cells, widths, header, strict=True)
            )
            lines.append(f" {style(line, 'bold') if row is header else line}")
    print_lines(lines)


def print_wrapped(text: str) -> None:
    """Print a line; where it is wider than the terminal, it goes on below, indented."""
    columns = terminal_columns()
    if columns is None or columns <= COLUMN_WIDTH_MIN or width_of(text) <= columns:
        print_lines([text])
        return
    first, *rest = _wrap_line(text, columns)
    others = _wrap_line(text[len(first) :].strip(), columns - 4) if rest else []
    print_lines([first, *(f"    {line}" for line in others)])


def print_lines(lines: Sequence[str]) -> None:
    """Print *lines* without spaces at their ends."""
    # In one write: a reader of the first lines only (`| head`) then does not break the pipe.
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in lines))


def _pad(text: str, width: int, *, to_right: bool) -> str:
    space = " " * (width - width_of(text))
    return space + text if to_right else text + space


def _wrap(text: str, others_width: int) -> list[str]:
    """Return *text* in lines that fit beside *others_width* columns of other text."""
    columns = terminal_columns()
    lines = text.split("\n")
    if columns is None or columns - others_width < COLUMN_WIDTH_MIN:
        return lines
    return [part for line in lines for part in _wrap_line(line, columns - others_width)]


def _wrap_line(text: str, width: int) -> list[str]:
    lines = [""]
    for word in re.findall(r"\s+|\S+", text):
        if width_of(lines[-1]) + width_of(word) <= width:
            lines[-1] += word
        elif not word.isspace():
            if lines[-1].strip():
                lines.append("")
            for char in word:  # A word longer than a line is broken.
                if width_of(lines[-1]) + width_of(char) > width:
                    lines.append("")
                lines[-1] += char
    return lines


def width_of(text: str) -> int:
    """Return the columns that *text* needs: none for an accent, two for a wide letter."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def cut(text: str, width: int) -> str:
    """Return *text* in at most *width* columns, cut after a whole word if it is longer."""
    if width_of(text) <= width:
        return text
    first = _wrap_line(text, width - 2)[0].rstrip()
    return f"{first} …"
