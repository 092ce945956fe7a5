"""Check a node as a client gives it, before anything is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.errors import RecordInvalid
from commonplace.records.fields import (
    check_count,
    check_filled_text,
    check_links,
    check_list,
    check_mapping,
    check_number,
    check_tags,
    check_time,
)
from commonplace.records.ids import check_id
from commonplace.records.json_text import encode_sorted
from commonplace.records.nodes import KINDS_OF_TYPE, NODE_KIND, NODE_TYPES, TYPES_WITH_RECORDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# What the log keeps of a node, besides its id, kind, time and repository.
CONTENT = ("type", "label", "payload", "links", "children", "tags", "meta")
# What a program reads of a node and may give back; none of it is content.
_READ_ONLY = ("kind", "score", "hop", "likeness")
_KNOWN = ("id", *CONTENT, "embeddings", "stats", "resonance", "repo", "timestamp")
FILE_PREFIXES = ("skill:", "note:")
# The fields of a link, and other words for two of them.
_LINK_FIELDS = ("to", "rel", "w", "relation", "weight")


class GivenNode(NamedTuple):
    """A node that may be written: its content, and what this machine keeps beside the log."""

    id: str
    # Only the fields that were given, in the form in which they are stored.
    content: dict[str, Any]
    repo: str | None = None
    timestamp: str | None = None
    # `value`, `uses` and `last_used_at`, as far as they were given.
    state: Mapping[str, Any] = {}
    # The model of the vector that was given. The vector itself is checked and dropped.
    model: str = ""


def kind_of(type_: str) -> str:
    """Return the kind of the record that keeps a node of this type."""
    return NODE_KIND if type_ in TYPES_WITH_RECORDS else type_


def check_node(given: object) -> GivenNode:
    """Return the node that *given* describes. Raises `RecordInvalid` for the first mistake."""
    _call("node", check_mapping, given)
    assert isinstance(given, dict)
    fields = {name: value for name, value in given.items() if value is not None}
    for name in fields:
        if name not in (*_KNOWN, *_READ_ONLY):
            raise RecordInvalid(
                str(name), "is no field of a node", "put what is your own into `payload` or `meta`"
            )
    for name, check in _CHECKS.items():
        if name in fields:
            _call(name, check, fields[name])
    ident = fields.get("id")
    if ident is None:
        raise RecordInvalid("id", "is missing", "give a path such as `skill.cpp.raii`")
    _check_kind(fields)
    content = {name: fields[name] for name in CONTENT if name in fields}
    _call("node", encode_sorted, content)  # Raises for what JSON cannot hold.
    if "links" in content:
        content["links"] = _one_link_each(content["links"], ident)
    if ident in content.get("children", {}).values():
        raise RecordInvalid("children", f"has `{ident}` itself", "a node is not its own child")
    model = _model(fields.get("embeddings"))
    return GivenNode(
        ident, content, fields.get("repo"), fields.get("timestamp"), _state(fields), model
    )


def check_node_id(value: object) -> None:
    """Raise `ValueError` unless *value* can be the id of a node: a path, its parts between dots."""
    check_id(value)
    assert isinstance(value, str)
    if value.startswith(FILE_PREFIXES):
        raise ValueError(
            f"begins with `{value.partition(':')[0]}:`, which belongs to files of this home"
        )
    if not all(value.split(".")):
        raise ValueError(f"is `{value}`, a path with an empty part between its dots")


def _check_type(value: object) -> None:
    if value not in NODE_TYPES:
        raise ValueError(f"is `{value}`, not one of {', '.join(NODE_TYPES)}")


def _check_kind(fields: Mapping[str, Any]) -> None:
    """Raise if the node says that it is a record of another kind, such as a lesson."""
    kind, type_ = fields.get("kind"), fields.get("type")
    if kind in (None, NODE_KIND) or kind in NODE_TYPES:
        return
    of_type = type_ in NODE_TYPES and kind in KINDS_OF_TYPE[type_]
    what = f"is `{kind}`, which is a kind of record and no node"
    raise RecordInvalid(
        "kind", what, "`commonplace edit` changes records" if of_type else "leave it out"
    )


def _check_node_links(value: object) -> None:
    check_links(value)
    assert isinstance(value, list)
    for link in value:
        unknown = next((name for name in link if name not in _LINK_FIELDS), None)
        if unknown is not None:
            raise ValueError(f"has a link with the field `{unknown}`; it has `to`, `rel` and `w`")
        if link.get("w") is None:
            check_links([{"to": link["to"], "w": link.get("weight")}])
        _check_reference(link["to"])
        for name in ("rel", "relation"):
            if link.get(name) is not None:
                check_filled_text(link[name])


def _check_children(value: object) -> None:
    check_mapping(value)
    assert isinstance(value, dict)
    for name, child in value.items():
        if not name.strip():
            raise ValueError("has a child without a name")
        if not isinstance(child, str):
            raise ValueError(f"must hold ids: the child `{name}` is given whole, not by its id")
        _check_reference(child)


def _check_reference(value: str) -> None:
    if not value:
        raise ValueError("names no id: it is empty")
    try:
        check_id(value)
    except ValueError as error:
        raise ValueError(f"names `{value}`, and an id {error}") from None


def _one_link_each(links: list[dict[str, Any]], ident: str) -> list[dict[str, Any]]:
    """Return the links with `to`, `rel` and the `w` that was given.

    Of two with one target and relation, the last.
    """
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for link in links:
        rel = link.get("rel") or link.get("relation") or "related_to"
        weight = link.get("weight") if link.get("w") is None else link["w"]
        if link["to"] == ident:
            raise RecordInvalid("links", f"leads to `{ident}` itself", "a link has two ends")
        found[link["to"], rel] = {"to": link["to"], "rel": rel}
        if weight is not None:
            found[link["to"], rel]["w"] = weight
    return list(found.values())


def _model(embeddings: object) -> str:
    """Return the name of the model in *embeddings*, whose vector must be one."""
    if embeddings is None:
        return ""
    _call("embeddings", check_mapping, embeddings)
    assert isinstance(embeddings, dict)
    model, vector = embeddings.get("model"), embeddings.get("vector")
    _call("embeddings.model", check_filled_text, model)
    _call("embeddings.vector", check_list, vector)
    for number in vector or ():
        _call("embeddings.vector", check_number, number)
    return str(model)


def _state(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the use and the resonance that the client has seen."""
    given: dict[str, Mapping[str, Any]] = {}
    for name in ("stats", "resonance"):
        _call(name, check_mapping, fields.get(name, {}))
        given[name] = fields.get(name, {})
    stats, resonance = given["stats"], given["resonance"]
    found = {
        "value": resonance.get("value"),
        "last_activated_at": resonance.get("last_activated_at"),
        "uses": stats.get("uses"),
        "last_used_at": stats.get("last_used_at") or resonance.get("last_activated_at"),
    }
    checks: dict[str, tuple[str, Callable[[Any], None]]] = {
        "value": ("resonance.value", _check_share),
        "last_activated_at": ("resonance.last_activated_at", check_time),
        "uses": ("stats.uses", check_count),
        "last_used_at": ("stats.last_used_at", check_time),
    }
    if resonance.get("decay") is not None:  # The decay of this home applies.
        _call("resonance.decay", _check_share, resonance["decay"])
    for name, (field, check) in checks.items():
        if found[name] is not None:
            _call(field, check, found[name])
    return {name: value for name, value in found.items() if value is not None}


def _check_share(value: object) -> None:
    check_number(value)
    assert isinstance(value, int | float)
    if not 0 <= value <= 1:
        raise ValueError(f"is {value}, not between 0 and 1")


_CHECKS: dict[str, Callable[[Any], None]] = {
    "id": check_node_id,
    "type": _check_type,
    "label": check_filled_text,
    "links": _check_node_links,
    "children": _check_children,
    "tags": check_tags,
    "meta": check_mapping,
    "repo": check_filled_text,
    "timestamp": check_time,
}


def _call(name: str, check: Callable[[Any], object], value: object) -> None:
    try:
        check(value)
    except ValueError as error:
        raise RecordInvalid(name, str(error)) from None
