"""The arguments of a tool: other names that agents use for them, and what is wrong with them."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from commonplace.records.json_text import quoted, type_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

# By tool: an argument's other name, and its name. The schemas have only the second.
OTHER_NAMES = {
    "recall": {
        "query": "text",
        "tag": "tags",
        "kind": "kinds",
        "file": "files",
        "tokens": "tokens_max",
    },
    "recall_context": {"task_id": "id"},
    "remember": {"text": "lesson", "event_type": "type", "tag": "tags"},
}
# What a JSON schema calls a type, in words.
_TYPES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
}


class ArgumentUnknown(ValueError):
    """An argument that a tool does not have."""


def use_own_names(tool: str, given: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments *given* to *tool* under the names of its *schema*.

    Raises `ArgumentUnknown` for a name that it does not have: a filter that is ignored gives wrong
    answers.
    """
    properties: Mapping[str, Any] = schema.get("properties", {})
    names = {
        other: name for other, name in OTHER_NAMES.get(tool, {}).items() if other not in properties
    }
    own = {name: value for name, value in given.items() if name not in names}
    for other, name in names.items():
        if given.get(other) is not None and own.get(name) is None:
            is_list = _expected(properties.get(name, {}), schema).get("type") == "array"
            value = given[other]
            own[name] = [value] if is_list and isinstance(value, str) else value
    unknown = next((name for name in own if name not in properties), None)
    if unknown is not None:
        takes = ", ".join(f"`{name}`" for name in properties)
        close = difflib.get_close_matches(unknown, properties, 1)
        meant = f"; did you mean `{close[0]}`?" if close else ""
        raise ArgumentUnknown(f"there is no argument `{unknown}`{meant}. The arguments are {takes}")
    return own


def explain(error: ValidationError, schema: Mapping[str, Any]) -> str:
    """Return what is wrong with the arguments of a tool that has *schema*, in one sentence."""
    found: dict[str, str] = {}
    for detail in error.errors():
        *above, last = detail["loc"] or ("arguments",)
        if detail["type"] == "extra_forbidden" and above:
            place, keys = _at(schema, above)
            reason = f"has no key {quoted(last)}; its keys are {_names(keys)}"
        else:
            place, expected = _at(schema, [*above, last])
            reason = _reason(detail, expected)
        found.setdefault(place, f"`{place}` {reason}")
    return f"{'; '.join(found.values())}. The arguments are {_names(schema)}"


def _names(schema: Mapping[str, Any]) -> str:
    return ", ".join(f"`{name}`" for name in schema.get("properties", {}))


def _at(schema: Mapping[str, Any], location: Sequence[int | str]) -> tuple[str, Mapping[str, Any]]:
    """Return the name of a place in the arguments, and the schema of the value there.

    A location also has the names of types, where a value may have one of several.
    """
    first, *rest = location
    place, found = str(first), _expected(schema.get("properties", {}).get(first, {}), schema)
    for part in rest:
        properties = found.get("properties", {})
        if isinstance(part, int):
            place, found = f"{place}[{part}]", _expected(found.get("items", {}), schema)
        elif part in properties:
            place, found = f"{place}.{part}", _expected(properties[part], schema)
    return place, found


def _reason(detail: ErrorDetails, expected: Mapping[str, Any]) -> str:
    value = detail["input"]
    if detail["type"] == "missing":
        return "is missing"
    if "enum" in expected:
        return f"is {quoted(value)}, not one of {', '.join(map(str, expected['enum']))}"
    limits = expected.get("minimum"), expected.get("maximum")
    if isinstance(value, int | float) and not isinstance(value, bool) and limits != (None, None):
        least, most = limits
        if most is None:
            return f"is {quoted(value)}, under {least}"
        return f"is {quoted(value)}, not between {least} and {most:,}"
    wanted = _TYPES.get(expected.get("type", ""), "a value of another type")
    return f"must be {wanted}, not {type_name(value)}"


def _expected(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of a value that is there: without the `null` of an optional one."""
    options = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
    found: Mapping[str, Any] = options[0] if options else schema
    if "$ref" in found:
        found = root.get("$defs", {}).get(found["$ref"].rpartition("/")[2], {})
    return found
