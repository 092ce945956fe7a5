"""The fields of a record without their secrets, at any depth; keys are searched as well."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from commonplace.redaction.assignments import named_form
from commonplace.redaction.names import key_kind
from commonplace.redaction.spans import marker
from commonplace.redaction.text import redact_text
from commonplace.redaction.values import is_secret_number, is_secret_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from commonplace.redaction.table import Form

# Fields of cookies are searched with their names before them, as the headers they are.
_COOKIE_NAMES = ("Cookie", "cookie", "Set-Cookie", "set-cookie")


class Redaction(NamedTuple):
    """A secret that was removed: its kind and its field, never its value."""

    kind: str
    field: str


def redact(fields: dict[str, object]) -> tuple[dict[str, object], list[Redaction]]:
    """Return *fields* without secrets, and what was removed; the same object if nothing was."""
    found: list[Redaction] = []
    clean = _redact_dict(fields, "", found)
    return (clean, found) if found else (fields, [])


def _redact_dict(fields: dict[str, object], path: str, found: list[Redaction]) -> dict[str, object]:
    clean: dict[str, object] = {}
    name = ""
    for key, value in fields.items():
        if not isinstance(key, str):
            clean[key] = _redact_value(value, f"{path}{key}", "", found)
            continue
        clean_key, kinds = _redact_key(key)
        field = f"{path}{clean_key}"
        found += [Redaction(kind, field) for kind in kinds]
        if key == "value" and name:
            clean[_free_key(clean_key, clean)] = _redact_value_field(value, field, name, found)
        else:
            clean[_free_key(clean_key, clean)] = _redact_value(value, field, key, found)
        # As in Kubernetes: {"name": "DB_PASSWORD", "value": …}, one right after the other.
        is_name = key in {"name", "key"} and isinstance(value, str) and key_kind(value)
        name = str(value) if is_name else ""
    return clean


def _redact_value(value: object, field: str, name: str, found: list[Redaction]) -> object:
    if isinstance(value, str):
        clean, kinds = _redact_text_field(value, name)
        found += [Redaction(kind, field) for kind in kinds]
        return clean
    if isinstance(value, int | float):
        return _redact_number(value, field, name, found)
    if isinstance(value, dict):
        return _redact_dict(value, f"{field}.", found)
    if isinstance(value, list | tuple):
        return [_redact_value(item, f"{field}[{i}]", name, found) for i, item in enumerate(value)]
    return value


def _redact_text_field(text: str, name: str) -> tuple[str, list[str]]:
    lead = f"{name}: " if name in _COOKIE_NAMES else ""
    clean, kinds = redact_text(lead + text)
    clean = clean.removeprefix(lead)
    kind = key_kind(name)
    form: Form = "quoted"
    if name.lower() == "pass":
        kind, form = "password", "literal"
    if kind and is_secret_value(clean, kind, name, form):
        return marker(kind), [*kinds, kind]
    return clean, kinds


def _redact_value_field(value: object, field: str, name: str, found: list[Redaction]) -> object:
    """Redact the field `value`, which the field before it has given the *name* of a secret."""
    if isinstance(value, int | float):
        return _redact_number(value, field, name, found)
    clean = _redact_value(value, field, "", found)
    kind = key_kind(name)
    if isinstance(clean, str) and is_secret_value(clean, kind, name, named_form(name, "literal")):
        found.append(Redaction(kind, field))
        return marker(kind)
    return clean


def _redact_number(value: float, field: str, name: str, found: list[Redaction]) -> object:
    kind = key_kind(name)
    if not kind or isinstance(value, bool) or not is_secret_number(str(value), kind):
        return value
    found.append(Redaction(kind, field))
    return marker(kind)


@lru_cache(maxsize=4096)  # Records have the same keys again and again.
def _redact_key(key: str) -> tuple[str, list[str]]:
    return redact_text(key)


def _free_key(key: str, taken: dict[str, object]) -> str:
    """Return *key*, or *key* with a number if two secret keys became the same one."""
    free, n = key, 2
    while free in taken:
        free, n = f"{key}~{n}", n + 1
    return free
