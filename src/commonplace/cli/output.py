"""What several commands print: data on stdout, remarks on stderr, colours at a terminal only."""

from __future__ import annotations

import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from commonplace.errors import CommonplaceError
    from commonplace.memory import Memory

_STYLES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "cyan": 36}


def number_of(count: int, noun: str, plural: str = "") -> str:
    """Return *count* with *noun* in its number: `1 record`, `2,000 records`."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def note(text: str) -> None:
    """Print a remark on stderr."""
    from commonplace.foreign import render  # noqa: PLC0415 (many commands print none)

    print(render(text), file=sys.stderr)


def print_json(value: object) -> None:
    print(json.dumps(value, ensure_ascii=False))


def report_error(error: CommonplaceError) -> int:
    """Print what is wrong and what to do about it on stderr, and return the exit code."""
    from commonplace.foreign import one_line  # noqa: PLC0415 (see `note`)

    note(one_line(f"error: {error}"))
    if error.hint:
        note(one_line(f"hint: {error.hint}"))
    return error.exit_code


def report_damages(memory: Memory) -> None:
    """Print on stderr how many lines could not be read as records, and where."""
    damages = memory.damages
    if damages:
        places = ", ".join(
            dict.fromkeys(relative_path(damage.path, memory.home.path) for damage in damages)
        )
        lines = "line" if len(damages) == 1 else "lines"
        from commonplace.foreign import one_line  # noqa: PLC0415 (see `note`)

        note(one_line(f"{len(damages)} damaged {lines} in {places}; see `commonplace doctor`"))


def relative_path(path: Path, home: Path) -> str:
    """Return *path* relative to *home* if it is in it."""
    return str(path.relative_to(home)) if path.is_relative_to(home) else str(path)


def count_list(counts: Mapping[str, int]) -> str:
    """Return the *counts* that are not zero, as a list: `1,200 lessons, 3 notes`."""
    from commonplace.foreign import one_line  # noqa: PLC0415 (see `note`)

    return ", ".join(f"{count:,} {one_line(name)}" for name, count in counts.items() if count)


def terminal_columns() -> int | None:
    """Return the width of the terminal; `None` if stdout is not a terminal."""
    if not sys.stdout.isatty():
        return None
    given = os.environ.get("COLUMNS", "")
    try:
        return (
            int(given) if given.isdecimal() else os.get_terminal_size(sys.stdout.fileno()).columns
        )
    except (OSError, ValueError):
        return None


def style(text: str, name: str) -> str:
    """Return *text* in bold or a colour, where stdout is a terminal that shows them."""
    return f"\x1b[{_STYLES[name]}m{text}\x1b[0m" if name and has_colours() else text


def has_colours() -> bool:
    """Whether stdout is a terminal that shows colours, and the user has not switched them off."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return False
    if os.name == "nt":
        return "WT_SESSION" in os.environ  # Older consoles show the codes themselves.
    return os.environ.get("TERM") != "dumb"
