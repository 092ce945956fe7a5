"""`commonplace log`: seed 000's write helper, one lesson by flags or any number of records on stdin."""

from __future__ import annotations

import json
import sys
from typing import Any

from commonplace.cli import plain
from commonplace.cli.open_memory import opened
from commonplace.errors import LinesRefused, RecordInvalid, UsageError
from commonplace.log.prepare import controls_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from commonplace.memory import Memory
    from commonplace.records import Record

REFUSALS_SHOWN_MAX = 20


def log(options: Mapping[str, str | bool]) -> int:
    """Write what *options* say and print its id (or, for stdin, how many were stored)."""
    fields: dict[str, Any] = {
        name: value for name, value in options.items() if name not in ("home", "stdin", "json")
    }
    home = options.get("home")
    with opened(str(home) if home else None) as memory:
        if options.get("stdin"):
            if fields:
                raise UsageError(
                    "`--stdin` takes whole records",
                    "put the fields into the JSON lines instead of flags",
                )
            return _log_stdin(memory, as_json=bool(options.get("json")))
        for name in controls_in(fields):
            raise RecordInvalid(
                name, "holds control characters", "leave terminal colours and binary data out"
            )
        record = memory.log(**_lesson(fields))
        if options.get("json"):
            print(json.dumps(_receipt(memory, record), ensure_ascii=False))
        else:
            print(record.id)
    _tell_redactions(record)
    return 0


def _lesson(fields: dict[str, Any]) -> dict[str, Any]:
    """Seed 000's event with all its fields; only a rate nobody stated stays away."""
    tags = [tag.strip() for tag in str(fields.get("tags") or "").split(",")]
    return {
        "kind": "lesson",
        "timestamp": fields.get("timestamp"),
        "agent_id": fields.get("agent_id") or None,
        "repo": fields.get("repo"),
        "event_type": fields.get("event_type"),
        "context": fields.get("context") or "",
        "command": fields.get("command") or "",
        "lesson": fields.get("lesson"),
        "success_rate": fields.get("success_rate"),
        "tags": list(dict.fromkeys(tag for tag in tags if tag)),
        "id": fields.get("id"),
    }


def _receipt(memory: Memory, record: Record) -> dict[str, Any]:
    return {
        "id": record.id,
        "repo": record.repo,
        "home": str(memory.home.path),
        "redactions": [redaction._asdict() for redaction in record.redactions],
    }


def _tell_redactions(record: Record) -> None:
    for redaction in record.redactions:
        print(f"redacted: {redaction.kind} in `{plain(redaction.field)}`", file=sys.stderr)


def _log_stdin(memory: Memory, *, as_json: bool) -> int:
    from commonplace.log.read import lines_of  # noqa: PLC0415 (only this form of the command reads lines)

    bulk = memory.append_lines(line.raw for line in lines_of(sys.stdin.buffer))
    memory.flush()
    if as_json:
        refused = [refusal._asdict() for refusal in bulk.refused]
        print(
            json.dumps(
                {"taken": bulk.taken, "redacted": bulk.redacted, "refused": refused},
                ensure_ascii=False,
            )
        )
    else:
        print(f"{bulk.taken:,} records stored")
    if bulk.redacted:
        print(f"redacted: secrets in {bulk.redacted:,} records", file=sys.stderr)
    for refusal in bulk.refused[:REFUSALS_SHOWN_MAX]:
        print(f"line {refusal.line}: {plain(refusal.reason)}", file=sys.stderr)
    if bulk.refused:
        raise LinesRefused(len(bulk.refused), bulk.taken)
    return 0
