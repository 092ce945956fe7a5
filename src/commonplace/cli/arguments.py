"""The arguments that several commands take, and the types of their values."""

from __future__ import annotations

from argparse import ArgumentTypeError
from typing import TYPE_CHECKING

from commonplace.vocabulary import RELATIONS

if TYPE_CHECKING:
    from argparse import Action, ArgumentParser
    from collections.abc import Callable, Sequence

NUMBER_MAX = 999_999_999


def add_home(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--home",
        metavar="PATH",
        help="Home to use (default: the one `commonplace where` shows)",
    )


def add_json(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="Print JSON")


def add_id(parser: ArgumentParser, what: str = "record") -> None:
    ident = parser.add_argument(
        "id", metavar="ID", help=f"Id of the {what}, or any unique beginning of it"
    )
    suggest(ident, ())  # Without this, completion offers the files of the folder.


def add_ends(parser: ArgumentParser) -> None:
    """Add the arguments that name a link: two records and a relation."""
    add_id(parser)
    rel = parser.add_argument("rel", metavar="RELATION", help=f"One of {', '.join(RELATIONS)}")
    suggest(rel, RELATIONS)
    to = parser.add_argument("to", metavar="ID2", help="Id of the other record, or its beginning")
    suggest(to, ())


def add_agent(parser: ArgumentParser, what: str) -> None:
    parser.add_argument(
        "--agent", metavar="NAME", help=f"{what} (default: $COMMONPLACE_AGENT, else `default`)"
    )


def add_toolsets(parser: ArgumentParser) -> None:
    action = parser.add_argument(
        "--toolsets",
        metavar="A,B",
        help="Toolsets to offer: core, notes, episodes, kom"
        " (default: the setting `tools.sets`, else core and notes)",
    )
    suggest(action, ("core", "notes", "episodes", "kom"))


def suggest(action: Action, values: Sequence[str]) -> None:
    """Offer *values* in shell completion. The command itself checks what it is given."""
    action.completer = lambda **_context: values  # type: ignore[attr-defined]


def whole_number(minimum: int = 0, maximum: int = NUMBER_MAX) -> Callable[[str], int]:
    """Return the type of an argument that is a whole number from *minimum* to *maximum*."""

    def number(text: str) -> int:
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdecimal()):
            raise ArgumentTypeError(f"is `{text}`, not a whole number")
        # Python refuses to read a number of thousands of digits.
        if len(digits) > len(str(NUMBER_MAX)) or not minimum <= int(text) <= maximum:
            raise ArgumentTypeError(f"is {text}, not between {minimum:,} and {maximum:,}")
        return int(text)

    return number


def comma_list(text: str) -> list[str]:
    """Return the values in a list with commas: the type of an argument."""
    return [part.strip() for part in text.split(",") if part.strip()]
