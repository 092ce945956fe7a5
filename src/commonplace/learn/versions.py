"""The versions of records that maintenance writes; each names the batch it belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.learn.batches import mark
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
    """Whether a person has changed the record last: an edit takes it out of its batch."""
    return "edited" in record.meta and "batch" not in record.meta
