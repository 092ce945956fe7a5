"""The files of the inbox: a candidate each, and the digests of what was dropped."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from commonplace.files import atomic
from commonplace.files.plain import read_small
from commonplace.inbox.candidate import Candidate
from commonplace.inbox.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from commonplace.log.check import Finding
    from commonplace.where.home import Home

CANDIDATE_BYTES_MAX = 1 << 20
DROPPED_MAX = 20_000
_DROPPED_BYTES_MAX = 1 << 20
_TYPES: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("seen", "at", "worth", "attempts"), (int, float)),
    **dict.fromkeys(("tried", "edits", "evidence", "against"), list),
    **dict.fromkeys(("fields", "changed"), dict),
}


def path_of(home: Home, ident: str) -> Path:
    return home.inbox_folder / f"{ident}.json"


def paths(home: Home) -> Iterator[Path]:
    return home.inbox_folder.glob("cand-*.json")


def damaged(home: Home) -> list[Finding]:
    """Return what `doctor` says of the files that cannot be read: such a candidate is not shown."""
    from commonplace.log.check import Finding  # noqa: PLC0415 (only `doctor` needs it)

    reason = "this candidate of the inbox cannot be read: mend the file, or delete it"
    return [
        Finding("damaged candidate", path, 0, reason, "")
        for path in sorted(paths(home))
        if read(path) is None
    ]


def read(path: Path) -> Candidate | None:
    """Return the candidate in the file at *path*; `None` if the file is damaged."""
    try:
        fields = json.loads(read_small(path, CANDIDATE_BYTES_MAX))
        if not isinstance(fields, dict):
            return None
        known = {name: fields[name] for name in Candidate._fields if name in fields}
        one = Candidate(**_in_todays_form(known))
    except (OSError, ValueError, TypeError):
        return None
    is_typed = all(
        isinstance(value, _TYPES.get(name, str)) for name, value in one._asdict().items()
    )
    return one if is_typed and is_whole(one) and one.id == path.stem else None


def is_whole(one: Candidate) -> bool:
    """Whether its kind is known and it has what that kind must have."""
    kind = KINDS.get(one.kind)
    texts = (one.record.get(name) for name in kind.required) if kind else [None]
    return all(isinstance(text, str) and text.strip() for text in texts)


def _in_todays_form(known: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a candidate; one of an earlier version has its pattern in `lesson`."""
    if known.get("kind") != "pattern" or "fields" in known:
        return known
    text = known.get("lesson", "")
    return {**known, "title": text, "lesson": "", "worth": 3.0, "fields": {"pattern": text}}


def write(home: Home, one: Candidate) -> None:
    raw = json.dumps(one._asdict(), ensure_ascii=False, indent=1).encode("utf-8", "replace")
    atomic.replace(path_of(home, one.id), [raw])


def remove(home: Home, one: Candidate) -> None:
    with suppress(OSError):
        path_of(home, one.id).unlink()


def dropped(home: Home) -> list[str]:
    """Return the digests of what was dropped, the latest last."""
    try:
        return read_small(home.dropped_file, _DROPPED_BYTES_MAX).decode("ascii", "replace").split()
    except OSError:
        return []


def add_dropped(home: Home, digests: list[str]) -> None:
    """Note what was dropped. The caller holds `home.spool_lock`."""
    kept = list(dict.fromkeys([*reversed(digests), *reversed(dropped(home))]))[:DROPPED_MAX]
    atomic.replace(home.dropped_file, ["".join(f"{one}\n" for one in reversed(kept)).encode()])
