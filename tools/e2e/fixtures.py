"""What an agent sent, kept without what differs from run to run; and how two such runs differ."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tools.e2e.scratch import Event

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "data" / "agents_e2e"
SCRATCH = "/scratch"
CONTEXT_CHARS = 200
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_IDS = rf"{_UUID}|\bses_[0-9A-Za-z]{{20,}}|\ba[0-9a-f]{{16}}\b"
_TIMES = (
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z", "2026-01-01T00:00:00.000Z"),
    (r"\d{4}-\d\d-\d\dT\d\d-\d\d(?:-\d\d(?=-))?", "2026-01-01T00-00-00"),
    (r"\b\d{4}/\d\d/\d\d\b", "2026/01/01"),
    (r"(?<=· )\d{4}-\d\d-\d\d", "2026-01-01"),
    (r"(?<=PGID: )\d+", "1"),
    (r"(?<=session-2026-01-01T00-00-00-)[0-9a-f]{8}", "00000000"),
    (r"\[main [0-9a-f]+\]", "[main 0000000]"),
    (r"(?m)^[0-9a-f]{7,12}(?= LEARNED)", "0000000"),
    (r'("(?:duration_ms|seconds_since_last_response)": )[\d.]+', r"\g<1>1"),
    (r'("estimated_cache_write_usd": )[\d.e-]+', r"\g<1>0.01"),
)


def scrub(value: Any, folder: str) -> Any:
    """Return *value* without the scratch *folder*, ids and times; equal ids stay equal."""
    text = json.dumps(value, ensure_ascii=False)
    text = text.replace(folder, SCRATCH)
    # Claude Code names a folder after the path of the project.
    text = text.replace(re.sub(r"[^a-zA-Z0-9]", "-", folder), SCRATCH.replace("/", "-"))
    seen: dict[str, str] = {}
    text = re.sub(_IDS, lambda match: seen.setdefault(match[0], f"id-{len(seen) + 1}"), text)
    for pattern, plain in _TIMES:
        text = re.sub(pattern, plain, text)
    return json.loads(text)


def select(events: Iterable[Event], first_session: int) -> list[dict[str, Any]]:
    """Return the events of the first session, and of the others those of a new kind."""
    kept, seen = [], set()
    for number, event in enumerate(events):
        key = (event_name(event.payload), event.payload.get("source"), event.payload.get("trigger"))
        if number < first_session or key not in seen:
            kept.append({"arguments": event.arguments, "payload": event.payload})
        seen.add(key)
    return kept


def event_name(payload: dict[str, Any]) -> str:
    return str(payload.get("hook_event_name", ""))


def shape(value: Any, path: str = "") -> set[str]:
    """Return the keys in *value*, each with its path and the type of its value."""
    if isinstance(value, dict):
        return {one for key, inner in value.items() for one in shape(inner, f"{path}.{key}")}
    if isinstance(value, list):
        return {one for inner in value for one in shape(inner, f"{path}[]")} or {f"{path}[]"}
    kind = {"int": "number", "float": "number"}.get(type(value).__name__, type(value).__name__)
    return {f"{path.removeprefix('.')}: {kind}"}


def shapes(events: list[dict[str, Any]]) -> dict[str, set[str]]:
    """Return the keys that each event has in any of its payloads, by its name."""
    found: dict[str, set[str]] = {}
    for event in events:
        found.setdefault(event_name(event["payload"]), set()).update(shape(event["payload"]))
    return found


def differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Return what has changed from the fixture *before* to the run *now*, a line for each."""
    old, new = shapes(before["events"]), shapes(now["events"])
    old["(request)"], new["(request)"] = set(before["request"]), set(now["request"])
    lines = []
    for name in sorted(old.keys() | new.keys()):
        if name not in new:
            lines.append(f"{name} is no longer sent")
        elif name not in old:
            lines.append(f"{name} is new")
        else:
            lines += [f"{name} no longer has {one}" for one in sorted(old[name] - new[name])]
            lines += [f"{name} now has {one}" for one in sorted(new[name] - old[name])]
    return lines


def read(agent: str) -> dict[str, Any] | None:
    path = FOLDER / f"{agent}.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else None


def write(agent: str, fixture: dict[str, Any]) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    text = json.dumps(fixture, indent=1, ensure_ascii=False)
    (FOLDER / f"{agent}.json").write_text(text + "\n", "utf-8")
