"""Shorter schemas of tools: every agent reads them at the start of every session.

Titles repeat the names of fields, and a field that may be left out need not say that it may be null
too; null is still accepted.
"""

from __future__ import annotations

from typing import Any

_NULL = {"type": "null"}


def shorten_arguments(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a tool's arguments without titles and nulls."""
    return _shorten(schema, dropped=("title",), nullable=False)


def shorten_result(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a tool's result without titles and descriptions."""
    return _shorten(schema, dropped=("title", "description"), nullable=True)


def _shorten(schema: dict[str, Any], *, dropped: tuple[str, ...], nullable: bool) -> dict[str, Any]:
    short: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("properties", "$defs"):  # The keys in these are names.
            short[key] = {
                name: _shorten(one, dropped=dropped, nullable=nullable)
                for name, one in value.items()
            }
        elif isinstance(value, dict):
            short[key] = _shorten(value, dropped=dropped, nullable=nullable)
        elif key not in dropped:
            short[key] = value
    choices = short.get("anyOf", [])
    if not nullable and _NULL in choices and len(choices) == 2:  # noqa: PLR2004
        (other,) = (choice for choice in choices if choice != _NULL)
        short = {**other, **{k: v for k, v in short.items() if k not in ("anyOf", "default")}}
    return short
