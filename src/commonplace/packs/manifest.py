"""`pack.json`: what a pack says about itself. It is signed, and names the hash of the records."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.errors import PackRefused
from commonplace.packs.tar import MANIFEST

if TYPE_CHECKING:
    from collections.abc import Mapping

FORMAT = 2
BYTES_MAX = 256 << 10
_ID = re.compile(r"(?=.{1,64}\Z)[a-z0-9]+(?:[._-][a-z0-9]+)*", re.ASCII)
_CHECKSUM = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z", re.ASCII)
_TEXT_CHARS_MAX = 200
_LIST_MAX = 100


class Manifest(NamedTuple):
    """The description of a pack. `fields` is all of `pack.json`."""

    id: str
    name: str
    version: str
    domain_tags: tuple[str, ...]
    embedding_model: str
    created_at: str
    authors: tuple[str, ...]
    licence: str
    records: int
    types: dict[str, int]
    checksum: str
    fields: dict[str, Any]


def make(
    pack: str, given: Mapping[str, Any], records: int, size: int, checksum: str
) -> tuple[Manifest, bytes]:
    """Return the manifest, and the bytes of `pack.json`.

    *given* has `id`, `name`, `version`, `created_at`; optionally `domain_tags`, `embedding_model`,
    `authors`, `licence`, `counts` (`{"types": {…}}`) and other fields.
    """
    counts = {**dict(given.get("counts") or {}), "records": records, "bytes": size}
    optional = {"domain_tags": [], "embedding_model": "", "authors": [], "licence": ""}
    fields = {
        "format": FORMAT,
        **optional,
        **given,
        "counts": dict(sorted(counts.items())),
        "checksum": checksum,
    }
    raw = json.dumps(fields, ensure_ascii=False, indent=1, allow_nan=False).encode() + b"\n"
    if len(raw) > BYTES_MAX:
        raise PackRefused(pack, f"would have a `{MANIFEST}` of over {BYTES_MAX:,} bytes")
    return parse(pack, raw), raw


def parse(pack: str, raw: bytes) -> Manifest:
    """Return the manifest in *raw*. Raises `PackRefused` if it is not valid."""
    try:
        found = json.loads(
            raw.decode("utf-8"), object_pairs_hook=_without_duplicates, parse_constant=_refuse
        )
        json.dumps(found, ensure_ascii=False).encode()  # Raises if half a character is in it.
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or type(found.get("format")) is not int:
        raise PackRefused(pack, f"has a `{MANIFEST}` that does not describe a pack")
    if found["format"] != FORMAT:
        is_newer = found["format"] > FORMAT
        raise PackRefused(
            pack,
            f"has the format {str(found['format'])[:20]}, and this version reads {FORMAT}",
            "install a newer version of Commonplace" if is_newer else "export it again",
        )
    problem = _problem(found)
    if problem:
        raise PackRefused(pack, f"has a `{MANIFEST}` whose `{problem}` is missing or not valid")
    counts = found["counts"]
    return Manifest(
        found["id"],
        found["name"],
        found["version"],
        tuple(found["domain_tags"]),
        found["embedding_model"],
        found["created_at"],
        tuple(found["authors"]),
        found["licence"],
        counts["records"],
        counts.get("types", {}),
        found["checksum"],
        found,
    )


def _problem(found: dict[str, Any]) -> str:
    """Return the first field that is not valid; "" if all are."""
    patterns = (("id", _ID), ("checksum", _CHECKSUM), ("created_at", _TIME))
    for field, pattern in patterns:
        if not (isinstance(found.get(field), str) and pattern.fullmatch(found[field])):
            return field
    for field in ("name", "version"):
        if not (_is_text(found.get(field)) and found[field].strip()):
            return field
    for field in ("embedding_model", "licence"):
        if not _is_text(found.get(field)):
            return field
    for field in ("domain_tags", "authors"):
        given = found.get(field)
        if not isinstance(given, list) or len(given) > _LIST_MAX or not all(map(_is_text, given)):
            return field
    return "" if _are_counts(found.get("counts")) else "counts"


def _are_counts(counts: Any) -> bool:  # noqa: ANN401 (JSON)
    return (
        isinstance(counts, dict)
        and _is_count(counts.get("records"))
        and _is_count(counts.get("bytes"))
        and isinstance(types := counts.get("types", {}), dict)
        and len(types) <= _LIST_MAX
        and all(_is_text(name) and _is_count(count) for name, count in types.items())
    )


def _is_count(value: Any) -> bool:  # noqa: ANN401 (JSON)
    return type(value) is int and value >= 0


def _is_text(value: Any) -> bool:  # noqa: ANN401 (JSON)
    """Whether *value* can be shown on one line: no control character, nothing hidden."""
    return isinstance(value, str) and len(value) <= _TEXT_CHARS_MAX and value.isprintable()


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")
