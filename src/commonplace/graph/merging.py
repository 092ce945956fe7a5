"""Merge two versions of a node, field by field: pure functions over JSON values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.records.json_text import encode_sorted

if TYPE_CHECKING:
    from collections.abc import Mapping


def merge_content(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return *old* with the fields of *new* merged in.

    Maps are merged key by key, lists are united, links are one for each target and relation, and
    any other value is replaced. Doing it again changes nothing.
    """
    merged = dict(old)
    for name, value in new.items():
        if name == "links" and name in old:
            merged[name] = _merge_links(old[name], value)
        elif name == "tags" and name in old:
            merged[name] = _merge_tags(old[name], value)
        else:
            merged[name] = merge_value(old[name], value) if name in old else value
    return merged


def merge_value(old: Any, new: Any) -> Any:  # noqa: ANN401 (any JSON value)
    """Return *new* merged into *old*."""
    if isinstance(old, dict) and isinstance(new, dict):
        return old | {
            key: merge_value(old[key], value) if key in old else value for key, value in new.items()
        }
    if isinstance(old, list) and isinstance(new, list):
        known = {encode_sorted(item) for item in old}
        added = {text: item for item in new if (text := encode_sorted(item)) not in known}
        return [*old, *added.values()]
    return new


def _merge_links(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one link for each target and relation; a weight that *new* does not give stays."""
    links = {(link["to"], link["rel"]): link for link in old}
    for link in new:
        end = link["to"], link["rel"]
        links[end] = {**links.get(end, {}), **link}
    return list(links.values())


def _merge_tags(old: list[str], new: list[str]) -> list[str]:
    """Return the tags of both; the same tag in other letters, `A` and `a`, is there already."""
    merged, known = list(old), {tag.lower() for tag in old}
    for tag in new:
        if tag.lower() not in known:
            known.add(tag.lower())
            merged.append(tag)
    return merged


def with_weights(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return *content* with a weight for each link: 1 where none was given."""
    if "links" not in content:
        return dict(content)
    return {**content, "links": [{**link, "w": link.get("w", 1.0)} for link in content["links"]]}
