"""The versions of records that maintenance writes; each names the batch it belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.learn.batches import PREFIX, mark
from commonplace.records import to_utc

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from commonplace.records import Record


def next_version(
    record: Record, changes: Mapping[str, Any], *, batch: str, step: str, now: datetime
) -> dict[str, Any]:
    """Return the fields of *record* with *changes*, as a version that *batch* writes.

    *changes* may hold more of `meta`.
    """
    meta = {**record.meta, **changes.get("meta", {}), "edited": to_utc(now)}
    return mark({**record.fields, **changes, "meta": meta}, batch, step)


def was_edited_by_user(record: Record) -> bool:
    """Whether a person changed the record, after a batch or without one.

    A batch is named after the moment that its versions have in `meta.edited`.
    """
    edited, batch = record.meta.get("edited"), record.meta.get("batch")
    if not isinstance(edited, str):
        return False
    return not (isinstance(batch, str) and batch.startswith(f"{PREFIX}{_compact(edited)}"))


def _compact(time: str) -> str:
    """Return `2026-01-31T09:30:00Z` as `20260131-093000`."""
    return time[:19].replace("-", "").replace(":", "").replace("T", "-")
