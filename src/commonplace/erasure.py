"""Erase a record: remove every version, every copy and what derives from it, then verify it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace import records
from commonplace.errors import FindingsLeft, unusable
from commonplace.files import atomic
from commonplace.files.lock import hold
from commonplace.files.plain import read_all
from commonplace.index import removal
from commonplace.log import read
from commonplace.log.fold import fold
from commonplace.log.logs import files
from commonplace.rules import is_statement, spread

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from commonplace.where.home import Home

# Shorter texts (a tag, an outcome) may occur elsewhere by chance.
_PROOF_CHARS_MIN = 12
# Fields that records of one repository, task or moment have in common.
_NOT_CONTENT = frozenset([
    "id", "kind", "timestamp", "agent_id", "repo", "tags", "links", "of", "to", "rel", "w",
    "event_type", "outcome", "success_rate", "task_id", "category", "type", "source",
    "source_episodes", "children", "stats", "last_used", "last_checkpoint", "from_agent",
    "to_agent", "git_commit",
])  # fmt: skip


class Receipt(NamedTuple):
    """What an erasure removed, how much it searched afterwards, and where traces are left."""

    id: str
    records_erased: int
    derived_erased: int
    lines_removed: int
    files_rewritten: list[str]
    files_searched: int
    left_in: list[str]


def erase(homes: Sequence[Home], ident: str) -> Receipt:
    """Remove *ident*, what derives from it and what mentions it from every file of *homes*."""
    erased, gone = reach(homes, ident)
    proofs = _proofs(_logs_of(homes), gone)
    removed = {
        path: count
        for path in _logs_of(homes)
        if (count := _rewrite_without(path, gone, proofs)) is not None
    }
    if not sum(removed.values()):
        raise FindingsLeft(f"no line of `{ident}` could be removed", "run `commonplace doctor`")
    long_ids = [other for other in gone if len(other) >= _PROOF_CHARS_MIN]
    traces = [*_claims(gone), *_forms(long_ids), *_forms(proofs)]
    for home in homes:
        _remove_copies(home)
        _remove_state(home, traces)
    searched = [path for home in homes for path in files(home) if not atomic.in_progress(path)]
    left = [path for path in searched if _mentions(read_all(path), traces)]
    return Receipt(
        id=ident,
        records_erased=len(erased),
        derived_erased=len(erased) - 1,
        lines_removed=sum(removed.values()),
        files_rewritten=[_display_path(path, homes) for path in removed],
        files_searched=len(searched),
        left_in=[_display_path(path, homes) for path in left],
    )


def reach(homes: Iterable[Home], ident: str) -> tuple[set[str], set[str]]:
    """Return *ident* with its dependents in all homes; and these with the statements on them."""
    folds = [fold(home)[0] for home in homes]
    everything: set[str] = set()
    # One step in all homes at a time: what rests on a record may be in another home each time.
    spread(
        {ident},
        lambda ids: (one for folded in folds for one in folded.dependents(ids)),
        everything,
    )
    statements = {
        one
        for folded in folds
        for one in everything
        if one in folded and is_statement(folded.current(one).kind)
    }
    return everything - statements | {ident}, everything


def _is_one_of(value: object, ids: set[str]) -> bool:
    return isinstance(value, str) and value in ids


def _logs_of(homes: Iterable[Home]) -> list[Path]:
    return [path for home in homes for path in files(home) if path.suffix == ".jsonl"]


def _remove_copies(home: Home) -> None:
    """Remove the index, which is rebuilt without the record, and leftover temporary files."""
    removal.remove(home)
    for path in files(home):
        if atomic.is_leftover(path):
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise unusable(path, error) from error


def _remove_state(home: Home, traces: list[bytes]) -> None:
    """Remove the files of hooks (spool, sessions, inbox) that mention an erased record."""
    for folder in (home.spool_folder, home.sessions_folder, home.inbox_folder):
        for path in folder.glob("*.json*"):
            try:
                if path.is_file() and _mentions(read_all(path), traces):
                    path.unlink(missing_ok=True)
            except OSError as error:
                raise unusable(path, error) from error


def _proofs(paths: Iterable[Path], gone: set[str]) -> list[str]:
    """Return the texts that only the erased records contain, to search for afterwards."""
    theirs: set[str] = set()
    others: set[str] = set()
    for path in paths:
        for found in read.parse(path):
            if not isinstance(found, read.Damage):
                record = found[1]
                if record.id in gone:
                    content = {
                        name: value
                        for name, value in record.fields.items()
                        if name not in _NOT_CONTENT
                    }
                    theirs.update(text for text in _texts(content) if len(text) >= _PROOF_CHARS_MIN)
                else:
                    others.update(_texts(record.fields))
    return sorted(text for text in theirs - others if not _is_time(text))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def _is_time(text: str) -> bool:
    try:
        return bool(records.to_utc(text))
    except ValueError:
        return False


def _rewrite_without(path: Path, gone: set[str], proofs: list[str]) -> int | None:
    """Rewrite the file at *path* without the erased records.

    Return the number of lines removed, `None` if nothing had to change.
    """
    ids = _forms(gone)
    if not _mentions(read_all(path), [*ids, *_forms(proofs)]):
        return None
    copied = [*_claims(gone), *_forms(proofs)]
    with hold(path):
        lines = list(read.lines(path, whole=True))
        kept = [_strip_line(line.raw, gone, ids, copied) for line in lines]
        if kept == [line.raw for line in lines]:
            return None
        pairs = zip(lines, kept, strict=True)
        atomic.replace(
            path, [raw if line.torn else raw + b"\n" for line, raw in pairs if raw is not None]
        )
    return kept.count(None)


def _strip_line(raw: bytes, gone: set[str], ids: list[bytes], copied: list[bytes]) -> bytes | None:
    """Return the line without links to erased records.

    Return `None` if it belongs to an erased record or is a damaged copy of one.
    """
    try:
        fields = records.decode(raw) if _mentions(raw, ids) else None
    except ValueError:
        fields = None
    if fields is None:
        return None if _mentions(raw, copied) and not _is_record(raw) else raw
    about = [
        fields.get("id"),
        fields.get("of"),
        fields.get("to") if fields.get("kind") == "link" else None,
    ]
    if any(_is_one_of(ident, gone) for ident in about):
        return None
    unlinked = _remove_links(fields, gone)
    return raw if unlinked == fields else records.encode(unlinked).encode()


def _is_record(raw: bytes) -> bool:
    try:
        records.from_line(raw)
    except ValueError:
        return False
    return True


def _remove_links(fields: dict[str, Any], gone: set[str]) -> dict[str, Any]:
    """Return *fields* without links to erased ids; texts stay, as a word may look like an id."""
    kept = dict(fields)
    if isinstance(links := fields.get("links"), list):
        kept["links"] = [
            link
            for link in links
            if not (isinstance(link, dict) and _is_one_of(link.get("to"), gone))
        ]
    if isinstance(episodes := fields.get("source_episodes"), list):
        kept["source_episodes"] = [episode for episode in episodes if not _is_one_of(episode, gone)]
    if isinstance(children := fields.get("children"), dict):
        kept["children"] = {
            name: child for name, child in children.items() if not _is_one_of(child, gone)
        }
    if _is_one_of(fields.get("source"), gone):
        del kept["source"]
    return kept


def _mentions(raw: bytes, forms: Iterable[bytes]) -> bool:
    return any(form in raw for form in forms)


def _claims(gone: Iterable[str]) -> list[bytes]:
    """Return the JSON by which a line is, or is about, an erased record.

    A short id alone could be any word.
    """
    return [
        f'"{name}":{space}"{ident}"'.encode()
        for ident in gone
        for name in ("id", "of")
        for space in ("", " ")
    ]


def _forms(texts: Iterable[str]) -> list[bytes]:
    """Return each text as it is and as JSON encodes it."""
    return [
        form
        for text in texts
        for form in {
            text.encode(),
            json.dumps(text, ensure_ascii=False)[1:-1].encode(),
            json.dumps(text)[1:-1].encode(),
        }
    ]


def _display_path(path: Path, homes: Sequence[Home]) -> str:
    """Return the path relative to the nearest home, if it is inside."""
    nearest = homes[0].path
    return str(path.relative_to(nearest) if path.is_relative_to(nearest) else path)
