"""Change one setting in a `config.toml`, and show where each setting's value comes from.

The file is the user's: comments, order and line ends stay. So its text is edited, not written anew;
the result is parsed before it is stored, and must differ in that one setting alone.
"""

from __future__ import annotations

import json
import re
import tomllib
from typing import TYPE_CHECKING, Any

from commonplace.characters import remove_hidden
from commonplace.errors import SettingsInvalid, UsageError
from commonplace.files import atomic
from commonplace.files.lock import hold
from commonplace.files.plain import read_all
from commonplace.redaction.text import redact_text
from commonplace.settings import SETTINGS, SETTINGS_BYTES_MAX, check_value, parse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from commonplace.settings import Settings
    from commonplace.where.home import Home

_HEADER = re.compile(r"^[ \t]*\[([^\[\]]+)\][ \t]*(?:#.*)?$")
_KEY = re.compile(r"^[ \t]*([A-Za-z0-9_.\"' \t-]+?)[ \t]*=")


def names() -> list[str]:
    return list(SETTINGS)


def rows(settings: Settings) -> list[dict[str, Any]]:
    """Return each setting with its value, the file that sets it, its default and its meaning."""
    return [
        {
            "name": name,
            "value": settings[name],
            "origin": str(settings.origins.get(name, "default")),
            "default": setting.default,
            "meaning": setting.meaning,
            "user_only": setting.user_only,
        }
        for name, setting in SETTINGS.items()
    ]


def parse_value(name: str, text: str) -> Any:  # noqa: ANN401 (of the setting's type)
    """Return the value of the setting *name* that a user typed. Raises `UsageError`."""
    setting = SETTINGS[name]
    value: Any = text
    try:
        if isinstance(setting.default, list):
            is_list = text.lstrip().startswith("[")
            value = tomllib.loads(f"x = {text}")["x"] if is_list else _split(text)
        elif not isinstance(setting.default, str):
            value = tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        pass  # Then it is text, and of the wrong type.
    try:
        check_value("settings", name, setting, value)
    except SettingsInvalid as error:
        raise UsageError(str(error).partition(": ")[2], setting.meaning) from None
    if remove_hidden(text) != text or "\n" in text:
        raise UsageError(f"`{name}` holds control characters", "write it in one line")
    if redact_text(text)[1]:
        raise UsageError(
            f"the value for `{name}` looks like a secret, and `config.toml` is a plain file",
            "keep keys in an environment variable (see `embedder.key_variable`)",
        )
    return value


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def change(home: Home, name: str, value: Any) -> Path:  # noqa: ANN401 (see above)
    """Set *name* to *value* in the file of *home*, and return the path of the file."""
    path = home.settings_file
    if SETTINGS[name].user_only and not home.of_user:
        raise UsageError(
            f"`{name}` may be set in the user's home only", "add `--user` to set it there"
        )
    with hold(path):
        raw = read_all(path, SETTINGS_BYTES_MAX)
        before = dict(parse(path, raw))
        text = edit(raw.decode("utf-8"), before, name, value)
        if text is None:
            raise SettingsInvalid(
                path, f"`{name}` cannot be changed here without rewriting the file; edit it by hand"
            )
        atomic.replace(path, [text.encode()])
    return path


def edit(text: str, before: dict[str, Any], name: str, value: Any) -> str | None:  # noqa: ANN401
    """Return *text*, which says *before*, with *name* as *value*; `None` if that is too hard."""
    wanted = {**before, name: value}
    for candidate in _candidates(text, name, to_toml(value)):
        try:
            found = dict(parse("settings", candidate.encode()))
        except SettingsInvalid:
            continue
        if found == wanted and all(type(found[one]) is type(wanted[one]) for one in wanted):
            return candidate
    return None


def to_toml(value: Any) -> str:  # noqa: ANN401
    """Return *value* as TOML writes it, which for these types is what JSON writes."""
    return json.dumps(value, ensure_ascii=False)


def _candidates(text: str, name: str, value: str) -> Iterator[str]:
    """Yield edits of *text*, the most fitting first; some may not be valid."""
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    end = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    table, _dot, key = name.rpartition(".")
    place: str = ""
    last_of_table = first_header = None
    for number, line in enumerate(lines):
        header = _HEADER.match(line.rstrip("\r\n"))
        if header:
            place = _plain_key(header[1])
            first_header = number if first_header is None else first_header
        found = _KEY.match(line)
        if found and ".".join(filter(None, (place, _plain_key(found[1])))) == name:
            replaced = _replace_value(lines, number, found.end(), value, end)
            if replaced is not None:
                yield replaced
        if place == table and line.strip():
            last_of_table = number
    if table and last_of_table is not None:
        yield _insert(lines, last_of_table + 1, f"{key} = {value}{end}")
    if table:
        gap = end if lines else ""
        yield "".join([*lines, f"{gap}[{table}]{end}{key} = {value}{end}"])
    top = len(lines) if first_header is None else first_header
    while top and first_header is not None and not lines[top - 1].strip():
        top -= 1  # Before the empty lines above the first table.
    yield _insert(lines, top, f"{name} = {value}{end}")
    yield _insert(lines, 0, f"{name} = {value}{end}")


def _plain_key(text: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in text.split("."))


def _insert(lines: list[str], at: int, line: str) -> str:
    return "".join([*lines[:at], line, *lines[at:]])


def _replace_value(lines: list[str], number: int, start: int, value: str, end: str) -> str | None:
    """Return the text with the value that begins at *start* of a line replaced.

    It may go on over several lines; a comment after it stays.
    """
    for last in range(number, len(lines)):
        rest = "".join(lines[number : last + 1])[start:].rstrip("\r\n")
        final = rest.rpartition("\n")[2]
        offset = len(rest) - len(final)
        for at in [*(n for n, one in enumerate(final) if one == "#"), len(final)]:
            if _is_value(rest[: offset + at]):
                comment = f"  {final[at:]}" if final[at:] else ""
                line = f"{lines[number][:start]} {value}{comment}{end}"
                return "".join([*lines[:number], line, *lines[last + 1 :]])
    return None


def _is_value(text: str) -> bool:
    try:
        tomllib.loads(f"x ={text}")
    except tomllib.TOMLDecodeError:
        return False
    return True
