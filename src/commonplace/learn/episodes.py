"""Record an episode: the trace of one task, as JSON of Loki's memory (`.loki/memory/episodic/`).

All its fields are kept as they are, also those that are not known here. The known ones are checked
down to the entries of lists: what a program sends by mistake would be found much later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.errors import RecordInvalid
from commonplace.records import decode, id_in_repo
from commonplace.records.episodes import with_agent_id
from commonplace.records.fields import (
    check_list,
    check_mapping,
    check_number,
    check_text,
    check_texts,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from commonplace.recaller import Recaller
    from commonplace.records import Record

    Checks = Mapping[str, Callable[[object], None]]

_HINT = "docs/FORMAT.md lists the fields of an episode"
_ENTRY_CHECKS: dict[str, Checks] = {
    "action_log": {
        "t": check_number,
        **dict.fromkeys(("action", "target", "result", "error"), check_text),
    },
    "errors_encountered": dict.fromkeys(("type", "message", "resolution"), check_text),
}


def parse(raw: bytes) -> dict[str, Any]:
    """Return the episode in a file. Raises `RecordInvalid` if it holds no JSON object."""
    try:
        return decode(raw.strip())
    except ValueError as error:
        raise RecordInvalid("episode", f"is not a JSON object: {error}", _HINT) from None


def record_episode(memory: Recaller, given: Mapping[str, Any]) -> Record:
    """Check the episode *given* and write it to the log of its repository.

    An id that this log has already is that of an earlier version. If another repository's record
    has it, the episode gets an id of its own: programs that count give the same ones everywhere.
    """
    fields = check_episode(given)
    if fields.get("repo") is not None:
        fields["repo"] = memory.log_to_write(fields["repo"])
    entry = memory.prepare(fields)
    if fields.get("id"):
        logs = memory.logs_with(entry.record.id)
        if logs and entry.record.repo not in logs:
            own = id_in_repo(entry.record.id, entry.record.repo)
            entry = memory.prepare({**fields, "id": own})
    memory.store([entry])
    return entry.record


def check_episode(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the record that *given* describes; raise `RecordInvalid` if it is none.

    What every record needs is checked when it is written.
    """
    if given.get("kind", "episode") != "episode":
        raise RecordInvalid("kind", f"is `{given['kind']}`, not `episode`", _HINT)
    if given.get("agent") is not None:
        _check("agent", check_text, given["agent"])
    fields = with_agent_id(given)
    _check_context(fields.get("context"))
    for name, checks in _ENTRY_CHECKS.items():
        _check_entries(name, fields.get(name), checks)
    seconds = fields.get("duration_seconds")
    if seconds is not None:
        _check("duration_seconds", _check_duration, seconds)
    if fields.get("repo") is not None:
        _check("repo", check_text, fields["repo"])
    return {**fields, "kind": "episode"}


def _check_context(context: object) -> None:
    if context is None:
        return
    _check("context", check_mapping, context)
    assert isinstance(context, dict)
    for name, check in _CONTEXT_CHECKS.items():
        if context.get(name) is not None:
            _check(f"context.{name}", check, context[name])


def _check_entries(name: str, entries: object, checks: Checks) -> None:
    if entries is None:
        return
    _check(name, check_list, entries)
    assert isinstance(entries, list)
    for number, entry in enumerate(entries, 1):
        _check(f"{name}, entry {number}", check_mapping, entry)
        for field, check in checks.items():
            if entry.get(field) is not None:
                _check(f"{name}, entry {number}: {field}", check, entry[field])


def _check_duration(value: object) -> None:
    check_number(value)
    assert isinstance(value, int | float)
    if value < 0:
        raise ValueError("is less than 0")


_CONTEXT_CHECKS: Checks = {
    "phase": check_text,
    "goal": check_text,
    "constraints": check_texts,
    "files_involved": check_texts,
}


def _check(name: str, check: Callable[[Any], None], value: object) -> None:
    try:
        check(value)
    except ValueError as error:
        raise RecordInvalid(name, str(error), _HINT) from None
