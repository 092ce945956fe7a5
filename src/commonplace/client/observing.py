"""What an agent does and learns, as nodes: observations (episodes) and skills."""

from __future__ import annotations

import hashlib
import secrets
from typing import TYPE_CHECKING, Any

from commonplace.records.ids import slug

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

INVOLVES_WEIGHT = 0.7
_SLUG_CHARS_MAX = 60
NUMBERS = 1 << 16


def new_id(start: str, at: str, number: int = 0) -> str:
    """Return an id that no other has: *start*, the time, a *number* and a few random digits.

    Of several in one second, the one with the higher number came later.
    """
    moment = at.replace("-", "").replace(":", "").partition(".")[0].rstrip("Z").lower()
    return f"{start}{moment}-{number % NUMBERS:04x}{secrets.token_hex(3)}"


def observation(  # noqa: PLR0913 (what an agent says of one step)
    action: str,
    outcome: str,
    at: str,
    *,
    task_id: str = "",
    involved: Iterable[str] = (),
    files: Sequence[str] = (),
    details: str = "",
    tags: Sequence[str] = (),
    number: int = 0,
) -> dict[str, Any]:
    """Return the node of something that was done, linked to what was involved."""
    said = {"outcome": outcome, "task_id": task_id, "files": list(files), "details": details}
    payload = {"action": action, "at": at, **{name: text for name, text in said.items() if text}}
    place = slug(task_id, _SLUG_CHARS_MAX) or "work"
    return {
        "id": new_id(f"episode.{place}.", at, number),
        "type": "episode",
        "label": " ".join(action.split()),
        "payload": payload,
        "links": links(involved, "uses"),
        "tags": list(tags),
        "timestamp": at,
    }


def skill(
    label: str,
    definition: str,
    *,
    ident: str = "",
    type_: str = "skill",
    examples: Sequence[str] = (),
    anti_patterns: Sequence[str] = (),
    related: Iterable[str] = (),
    tags: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the node of something that was learned. The same label and domain give its id."""
    payload: dict[str, Any] = {"definition": definition}
    if examples:
        payload["examples"] = list(examples)
    if anti_patterns:
        payload["anti_patterns"] = list(anti_patterns)
    return {
        "id": ident or f"{type_}.{_path(*tags[:1], label)}",
        "type": type_,
        "label": " ".join(label.split()),
        "payload": payload,
        "links": links(related, "related_to"),
        "tags": list(tags),
    }


def _path(*names: str) -> str:
    """Return the path of *names*, another one for other names.

    Where the words of an id do not say a whole name (`C++`, `operator<<`, Cyrillic, a long one), a
    checksum does.
    """
    words = [" ".join(name.lower().split()) for name in names]
    parts = [slug(name, _SLUG_CHARS_MAX) for name in words]
    if parts != [name.replace(" ", "-") for name in words]:
        text = "\0".join(words).encode("utf-8", "replace")
        parts.append(hashlib.blake2b(text, digest_size=4).hexdigest())
        parts[-2:] = ["-".join(filter(None, parts[-2:]))]
    return ".".join(filter(None, parts))


def links(ids: Iterable[str], rel: str) -> list[dict[str, Any]]:
    return [{"to": ident, "rel": rel, "w": INVOLVES_WEIGHT} for ident in dict.fromkeys(ids)]
