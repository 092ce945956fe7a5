"""Rewrite a file of JSON lines without the erased records and what points at them."""

from __future__ import annotations

from bisect import bisect_right
from io import BytesIO
from typing import TYPE_CHECKING, Any

from commonplace import records
from commonplace.erasure.traces import find
from commonplace.errors import unusable
from commonplace.files import atomic
from commonplace.files.lock import hold
from commonplace.files.plain import read_all
from commonplace.log import read

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from commonplace.erasure.traces import Trace

# A line may write any character of an id like this, so it has to be decoded. So has one that does
# not begin with its id: it may be a lesson without one.
_ESCAPE = b"\\u"


def rewrite_without(path: Path, ids: frozenset[str], texts: frozenset[Trace]) -> int | None:
    """Rewrite the file at *path* without the erased records, and without damaged copies of them.

    Return the number of lines removed, `None` if nothing had to change.
    """
    if _stripped(path, ids, texts) is None:
        return None
    with hold(path):
        remove_temporaries(path)
        pairs = _stripped(path, ids, texts)
        if pairs is None:
            return None
        atomic.replace(
            path, [raw if line.torn else raw + b"\n" for line, raw in pairs if raw is not None]
        )
    return sum(raw is None for _line, raw in pairs)


def claims(ids: Iterable[str]) -> list[bytes]:
    """Return the JSON by which a line is, or is about, an erased record.

    A short id alone could be any word.
    """
    return [
        f'"{name}":{space}"{ident}"'.encode("utf-8", "surrogatepass")
        for ident in ids
        for name in ("id", "of")
        for space in ("", " ")
    ]


def _stripped(
    path: Path, ids: frozenset[str], texts: frozenset[Trace]
) -> list[tuple[read.Line, bytes | None]] | None:
    """Return each line with what stays of it, `None` for all of it; `None` if all stays."""
    return strip(read_all(path), ids, texts)


def strip(
    content: bytes, ids: frozenset[str], texts: frozenset[Trace]
) -> list[tuple[read.Line, bytes | None]] | None:
    """Return each line of *content* with what stays of it, as above."""
    forms = [ident.encode("utf-8", "surrogatepass") for ident in ids]
    copies = sorted(find(content, texts))
    if (
        not copies
        and _ESCAPE not in content
        and not read.may_lack_ids(content)
        and not any(form in content for form in forms)
    ):
        return None
    lines = list(read.lines_of(BytesIO(content), whole=True))
    starts = [line.offset for line in lines]
    with_copies = {bisect_right(starts, copy) - 1 for copy in copies}
    claimed = claims(ids)
    pairs: list[tuple[read.Line, bytes | None]] = []
    for number, line in enumerate(lines):
        kept: bytes | None = line.raw
        is_decoded = _ESCAPE in line.raw or not line.raw.startswith(read.ID_FIRST)
        if is_decoded or any(form in line.raw for form in forms):
            kept = strip_line(line.raw, ids)
        is_copy = number in with_copies or any(claim in line.raw for claim in claimed)
        if kept is not None and is_copy and not _is_record(line.raw):
            kept = None
        pairs.append((line, kept))
    return pairs if any(kept != line.raw for line, kept in pairs) else None


def strip_line(raw: bytes, ids: frozenset[str]) -> bytes | None:
    """Return the line without links to erased records, `None` if it belongs to one of them."""
    try:
        fields = records.fill_identity(records.decode(raw))
    except ValueError:
        return raw
    about = [
        fields.get("id"),
        fields.get("of"),
        fields.get("to") if fields.get("kind") == "link" else None,
    ]
    if any(_is_one_of(ident, ids) for ident in [*about, *_nodes_of_context(fields)]):
        return None
    unlinked = _remove_links(fields, ids)
    return raw if unlinked == fields else records.encode(unlinked).encode()


def _nodes_of_context(fields: dict[str, Any]) -> list[Any]:
    """Return the ids of the records whose words a saved context repeats.

    Only the version that repeats them goes. The keys of its knowledge are ids, at any depth.
    """
    if fields.get("kind") != "context":
        return []
    meta = fields.get("meta")
    noted = meta.get("nodes") if isinstance(meta, dict) else None
    found: list[Any] = list(noted) if isinstance(noted, list) else []
    waiting: list[Any] = [fields.get("frames")]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            found += value
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return found


def _remove_links(fields: dict[str, Any], ids: frozenset[str]) -> dict[str, Any]:
    """Return *fields* without links to erased ids; texts stay, as a word may look like an id."""
    kept = dict(fields)
    if isinstance(links := fields.get("links"), list):
        kept["links"] = [
            link
            for link in links
            if not (isinstance(link, dict) and _is_one_of(link.get("to"), ids))
        ]
    if isinstance(episodes := fields.get("source_episodes"), list):
        kept["source_episodes"] = [episode for episode in episodes if not _is_one_of(episode, ids)]
    if isinstance(children := fields.get("children"), dict):
        kept["children"] = {
            name: child for name, child in children.items() if not _is_one_of(child, ids)
        }
    if _is_one_of(fields.get("source"), ids):
        del kept["source"]
    return kept


def remove_temporaries(path: Path) -> None:
    """Remove unfinished rewrites of the file. Under its lock none is in progress.

    The number of the killed process that began it may belong to another process by now.
    """
    for temporary in atomic.temporaries_of(path):
        try:
            temporary.unlink(missing_ok=True)
        except OSError as error:
            raise unusable(temporary, error) from error


def _is_one_of(value: object, ids: frozenset[str]) -> bool:
    return isinstance(value, str) and value in ids


def _is_record(raw: bytes) -> bool:
    try:
        records.from_line(raw)
    except ValueError:
        return False
    return True
