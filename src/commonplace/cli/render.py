"""What a person reads at a terminal: memories with a title, wrapped at words, code in colours.

This module imports rich, so commands import it only when stdout is a terminal. Every text has gone
through `foreign` before, and rich's own markup and emoji codes are off: a memory is shown as text.
"""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.padding import Padding
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from commonplace.cli.output import has_colours, number_of, terminal_columns
from commonplace.foreign import FRAME, code, one_line, origin, render

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.console import RenderableType

INDENT = 3
# Beyond this, lines are hard to read.
COLUMNS_MAX = 120
# A longer one is a whole text, and would be too much in bold.
TITLE_CHARS_MAX = 100
# The fields of a record that are its title, if its text begins with one.
_TITLES = ("context", "pattern", "label")
_FENCE = re.compile(r"^\s*(`{3,})\s*(\w*)")
_INLINE_CODE = re.compile(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_DAYS = ((365, "year"), (30, "month"), (7, "week"), (1, "day"))


def console() -> Console:
    """Return the terminal as rich sees it, without colours where the user wants none."""
    return Console(
        file=sys.stdout,
        width=min(terminal_columns() or 80, COLUMNS_MAX),
        color_system="auto" if has_colours() else None,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
    )


def print_hits(hits: Sequence[Mapping[str, Any]], now: datetime | None = None) -> None:
    """Print the hits of an answer, in their JSON form."""
    terminal = console()
    memories = number_of(len(hits), "memory", "memories")
    terminal.print(Text(f"{memories}: {FRAME}", style="dim"))
    for number, hit in enumerate(hits, 1):
        terminal.print()
        terminal.print(_entry(number, hit, now or datetime.now(UTC)))


def print_candidates(rows: Iterable[tuple[str, str, str, str, str]]) -> None:
    """Print the candidates of the inbox: id, counts, title, what worked, what accepting does."""
    terminal = console()
    for number, (ident, counts, context, worked, effect) in enumerate(rows):
        if number:
            terminal.print()
        terminal.print(_inline(context, style="bold"))
        about = _command(worked) if worked else Text(effect)
        lines = Group(about, Text(counts, style="cyan"), Text(ident, style="dim"))
        terminal.print(Padding(lines, (0, 0, 0, INDENT)))


def print_fields(
    text: str, fields: Iterable[tuple[str, str]], about: Iterable[tuple[str, str]]
) -> None:
    """Print a record: its *text*, its other *fields*, and at last what is known *about* it."""
    terminal = console()
    terminal.print(Group(*_body(text)))
    for pairs, style in ((list(fields), ""), (list(about), "dim")):
        if not pairs:
            continue
        grid = Table.grid(padding=(0, 2))
        grid.add_column(no_wrap=True, style=style or "bold")
        grid.add_column(ratio=1, style=style)
        for name, value in pairs:
            grid.add_row(name, _code(value, "bash") if name == "command" else Text(value))
        terminal.print()
        terminal.print(grid)


def _entry(number: int, hit: Mapping[str, Any], now: datetime) -> RenderableType:
    """Return title, age and success rate in a line, the text, and the id below it."""
    title, text, command = split_text(hit)
    rate = hit.get("success_rate") or ""
    beside = [age(str(hit["timestamp"]), now), f"worked {rate}" if _is_tried(rate) else ""]
    head = Table.grid(padding=(0, 1), expand=True)
    head.add_column(width=INDENT - 1, no_wrap=True)
    head.add_column(ratio=1)
    head.add_column(justify="right", no_wrap=True)
    head.add_row(
        Text(str(number), style="bold"),
        _inline(title, style="bold" if len(title) <= TITLE_CHARS_MAX else ""),
        Text(one_line(", ".join(part for part in beside if part)), style="cyan"),
    )
    record = hit.get("record") or {}
    tags = record.get("tags")
    below = [hit["id"], hit.get("repo") or "", *(tags if isinstance(tags, list) else ())]
    lines: list[RenderableType] = _body(text) if text else []
    if command:
        lines.append(_command(render(command)))
    marks = _marks(hit)
    if marks:
        lines.append(Text(one_line("; ".join(marks)), style="yellow"))
    lines.append(Text(one_line(" · ".join(str(part) for part in below if part)), style="dim"))
    return Group(head, Padding(Group(*lines), (0, 0, 0, INDENT)))


def split_text(hit: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return the title, the text and the command of a hit, from what an agent would read of it.

    What is shown beside it, or below, is cut off: date, success rate, marks and id.
    """
    record = hit.get("record") or {}
    text = str(hit["text"]).removesuffix(f" [{one_line(str(hit['id']))}]")
    for shown in (_marks(hit), [f"{hit.get('success_rate')} success"]):
        text = text.removesuffix(f" ({'; '.join(map(one_line, shown))})")
    text = text.removeprefix(f"[{one_line(str(hit['timestamp'])[:10])}] ")
    first, newline, rest = text.partition("\n")
    if newline:
        return first, re.sub(rf"^ {{1,{INDENT}}}", "", rest, flags=re.MULTILINE), ""
    command = str(record.get("command") or "")
    if command and text.endswith(code(command)):
        text = text.removesuffix(code(command)).rstrip().removesuffix(":")
    else:
        command = ""
    for name in _TITLES:
        value = record.get(name)
        title = one_line(value) if isinstance(value, str) else ""
        if title and text.startswith(f"{title}: "):
            return title, text.removeprefix(f"{title}: "), command
    return text, "", command


def _marks(hit: Mapping[str, Any]) -> list[str]:
    meta = (hit.get("record") or {}).get("meta")
    given = (origin(meta, short=True) if isinstance(meta, dict) else "", *hit.get("marks", ()))
    return [one_line(str(mark)) for mark in given if mark]


def _is_tried(rate: str) -> bool:
    return bool(rate) and not rate.endswith("/0")


def age(timestamp: str, now: datetime) -> str:
    """Return how long ago *timestamp* was; of a time in the future, or of none, the date."""
    try:
        days = (now - datetime.fromisoformat(timestamp)).days
    except (ValueError, TypeError):
        return timestamp[:10]
    if days < 0:
        return timestamp[:10]
    for length, name in _DAYS:
        if days >= length:
            return "yesterday" if days == 1 else f"{number_of(days // length, name)} ago"
    return "today"


def _body(text: str) -> list[RenderableType]:
    """Return *text* as paragraphs, with the code between fences in colours, or as it is."""
    if not has_colours():
        return [Text(line) for line in text.split("\n")]  # Only the fences show what is code.
    parts: list[RenderableType] = []
    fence, language, held = "", "", list[str]()
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if fence:
            if found and found[1].startswith(fence) and not found[2]:
                parts.append(_code("\n".join(held), language))
                fence, held = "", []
            else:
                held.append(line)
        elif found and "`" not in line[found.end() :]:
            fence, language = found[1], found[2] or "text"
        else:
            parts.append(_inline(line))
    if fence:  # It was cut off, or its author left it open.
        parts.append(_code("\n".join(held), language))
    return parts


def _code(text: str, language: str) -> Syntax:
    return Syntax(text, language, theme="ansi_dark", background_color="default", word_wrap=True)


def _command(text: str) -> RenderableType:
    grid = Table.grid(padding=(0, 1))
    grid.add_row(Text("$", style="dim"), _code(text, "bash"))
    return grid


def _inline(text: str, style: str = "") -> Text:
    """Return a line of text, with what is between backticks in a colour."""
    line = Text(text, style=style)
    for found in _INLINE_CODE.finditer(text):
        line.stylize("green", *found.span())
    return line
