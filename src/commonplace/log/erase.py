"""Erasing a record for good: every version, what derives from it, every copy; then a search that proves it."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace import records
from commonplace.log import read, rewrite

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from commonplace.log.logs import Logs

# Shorter texts (a tag, an outcome) prove nothing when they turn up elsewhere.
_PROOF_CHARS_MIN = 12


class Receipt(NamedTuple):
    """What an erasure removed, what it searched afterwards, and where something is still left."""

    id: str
    records_erased: int
    derived_erased: int
    lines_removed: int
    files_rewritten: list[str]
    files_searched: int
    left_in: list[str]


def erase(home: Path, logs: Logs, ident: str) -> Receipt:
    """Remove *ident*, what derives from it and what speaks of it from every file of the home."""
    view = logs.view()
    erased = view.closure({ident})
    gone = erased | {other for other in view.ids() if view.latest(other).record.fields.get("of") in erased}
    files = [path for path in _files(home) if path.suffix == ".jsonl"]
    proofs = _proofs(files, gone)
    rewritten, removed = [], 0
    for path in files:
        count = _without(path, gone, proofs)
        if count is not None:
            rewritten.append(path)
            removed += count
    # The index is derived: what it held of the record goes with it, and the rest is built again.
    shutil.rmtree(home / ".index", ignore_errors=True)
    searched = _files(home)
    left = [path for path in searched if _holds(path, [*gone, *proofs])]
    return Receipt(
        id=ident,
        records_erased=len(erased),
        derived_erased=len(erased) - 1,
        lines_removed=removed,
        files_rewritten=[str(path.relative_to(home)) for path in rewritten],
        files_searched=len(searched),
        left_in=[str(path.relative_to(home)) for path in left],
    )


def _files(home: Path) -> list[Path]:
    return sorted(path for path in home.rglob("*") if path.is_file() and not path.is_symlink())


def _proofs(files: Iterable[Path], gone: set[str]) -> list[str]:
    """The texts that only the erased records say: if one turns up afterwards, something was left."""
    theirs: set[str] = set()
    others: set[str] = set()
    for path in files:
        for found in read.parse(path):
            if not isinstance(found, read.Damage):
                record = found[1]
                texts = theirs if record.id in gone else others
                texts.update(text for text in _texts(record.fields) if len(text) >= _PROOF_CHARS_MIN)
    return sorted(theirs - others)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def _without(path: Path, gone: set[str], proofs: list[str]) -> int | None:
    """Rewrite the file at *path* without the erased; the number of lines removed, `None` if nothing had to change."""
    if not _holds(path, [*gone, *proofs]):
        return None
    removed = 0
    with rewrite.held(path):
        kept: list[bytes] = []
        for line in read.lines(path, whole=True):
            raw = _line_without(line.raw, gone, proofs)
            if raw is None:
                removed += 1
            else:
                kept.append(raw if line.torn else raw + b"\n")
        rewrite.replace(path, kept)
    return removed


def _line_without(raw: bytes, gone: set[str], proofs: list[str]) -> bytes | None:
    """The line, less what points at the erased; `None` if it is one of theirs."""
    if not _mentions(raw, [*gone, *proofs]):
        return raw
    try:
        fields = records.decode(raw)
    except ValueError:
        return None  # A damaged copy of something erased.
    if gone & {fields.get("id"), fields.get("of"), fields.get("to")}:
        return None
    return records.encode(_unlinked(fields, gone)).encode()


def _unlinked(value: Any, gone: set[str]) -> Any:  # noqa: ANN401
    """*value* without list entries and links that name an erased id."""
    if isinstance(value, dict):
        return {key: _unlinked(item, gone) for key, item in value.items() if not _names(item, gone)}
    if isinstance(value, list):
        return [_unlinked(item, gone) for item in value if not (_names(item, gone) or _links_to(item, gone))]
    return value


def _names(item: object, gone: set[str]) -> bool:
    return isinstance(item, str) and item in gone


def _links_to(item: object, gone: set[str]) -> bool:
    return isinstance(item, dict) and item.get("to") in gone


def _holds(path: Path, needles: list[str]) -> bool:
    return _mentions(path.read_bytes(), needles)


def _mentions(raw: bytes, needles: list[str]) -> bool:
    """Whether a text is in *raw*, plainly or as JSON writes it."""
    return any(form in raw for needle in needles for form in _forms(needle))


def _forms(text: str) -> set[bytes]:
    plain = text.encode("utf-8", "surrogatepass")
    return {
        plain,
        json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass"),
        json.dumps(text)[1:-1].encode(),
    }
