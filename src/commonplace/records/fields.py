"""The fields of a kind: what each may hold, and the check that refuses anything else.

A check raises `ValueError` with a reason that follows the field's name: "`tags` has 65 entries".
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from commonplace.records.json_text import NUMBER_MAX, type_name
from commonplace.records.rates import parse_rate
from commonplace.records.times import to_utc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from commonplace.records.kinds import Record

TAGS_MAX = 64
EMPTY: Mapping[str, Any] = MappingProxyType({})


class Field:
    """One known field of a kind. Reading an absent one returns its default."""

    __slots__ = ("check", "check_read", "default", "name", "needed", "required", "stand_in")

    def __init__(
        self,
        check: Callable[[Any], None],
        default: object,
        *,
        required: bool,
        needed: bool | None = None,
        check_read: Callable[[Any], None] | None = None,
        stand_in: object = None,
    ) -> None:
        self.check = check
        # A line may come from another program or a newer version: what is over a limit here, or an
        # option that is not known, is no damage. It can be read.
        self.check_read = check_read or check
        self.default = default
        self.required = required
        # Whether a line without it holds no record. A writer may have to give more than that.
        self.needed = required if needed is None else needed
        # What a needed value that cannot be used is read as; `None`: the line holds no record.
        self.stand_in = stand_in
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, record: Record | None, owner: type | None = None) -> Any:  # noqa: ANN401
        if record is None:
            return self
        value = record.fields.get(self.name)
        return self.default if value is None else value


# The four functions below are typed `Any` so that a kind can declare `lesson: str = text()`.


def field(
    check: Callable[[Any], None],
    default: object = None,
    *,
    required: bool = False,
    check_read: Callable[[Any], None] | None = None,
    stand_in: object = None,
) -> Any:  # noqa: ANN401
    """Return a field whose value must pass *check*, and in lines that are read *check_read*."""
    return Field(check, default, required=required, check_read=check_read, stand_in=stand_in)


def text(*, required: bool = False) -> Any:  # noqa: ANN401
    """Return a field that holds text; a *required* one is not blank."""
    return Field(check_filled_text if required else check_text, "", required=required)


def choice(options: Sequence[str], *, needed: bool = True) -> Any:  # noqa: ANN401
    """Return a required field that holds one of *options*; unless *needed*, a line may lack it."""

    def check(value: object) -> None:
        if value not in options:
            raise ValueError(f"is `{value}`, not one of {', '.join(options)}")

    return Field(check, "", required=True, needed=needed, check_read=check_text)


def mapping() -> Any:  # noqa: ANN401
    """Return a field that holds an object."""
    return Field(check_mapping, EMPTY, required=False)


def check_text(value: object) -> None:
    if not isinstance(value, str):
        raise ValueError(f"must be text, not {type_name(value)}")


def check_filled_text(value: object) -> None:
    check_text(value)
    assert isinstance(value, str)
    if not value.strip():
        raise ValueError("is empty")


def check_texts(value: object) -> None:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError("must be a list in which every entry is text")


def check_tags(value: object) -> None:
    check_texts(value)
    assert isinstance(value, list)
    if len(value) > TAGS_MAX:
        raise ValueError(f"has {len(value)} entries, over {TAGS_MAX}")


def check_list(value: object) -> None:
    if not isinstance(value, list):
        raise ValueError(f"must be a list, not {type_name(value)}")


def check_mapping(value: object) -> None:
    if not isinstance(value, dict):
        raise ValueError(f"must be an object, not {type_name(value)}")


def check_number(value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"must be a number, not {type_name(value)}")
    if not -NUMBER_MAX <= value <= NUMBER_MAX:
        raise ValueError("is too large a number")


def check_share(value: object) -> None:
    check_number(value)
    assert isinstance(value, int | float)
    if not 0 <= value <= 1:
        raise ValueError("must be between 0 and 1")


def check_count(value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError("must be a whole number, 0 or more")


def check_rate(value: object) -> None:
    parse_rate(value)


def check_time(value: object) -> None:
    to_utc(value)


def check_links(value: object) -> None:
    check_links_read(value)
    assert isinstance(value, list)
    for link in value:
        if link.get("w") is not None and not 0 <= link["w"] <= 1:
            raise ValueError("has a link whose `w` is not between 0 and 1")


def check_links_read(value: object) -> None:
    check_list(value)
    assert isinstance(value, list)
    for link in value:
        if not isinstance(link, dict) or not isinstance(link.get("to"), str):
            raise ValueError('must be a list of objects like {"to": ID, "rel": "related_to"}')
        if not isinstance(link.get("rel", link.get("relation", "")), str):
            raise ValueError("has a link whose `rel` is not text")
        if link.get("w") is not None:
            check_number(link["w"])


def accept_anything(_value: object) -> None:
    """A payload may hold whatever its author likes."""
