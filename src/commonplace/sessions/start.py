"""What a session starts with: seed 003's display, the agent's own CONTEXT.md, an open handoff, what matters here.

Facts with their dates and sources. It is cut to a bound that counts the envelope it is printed in, and when there is
nothing worth saying, nothing is said.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from commonplace.compose import tokens
from commonplace.errors import CommonplaceError
from commonplace.files.plain import open_for_read
from commonplace.records import Handoff, Lesson, from_line, micros, slug, to_utc
from commonplace.rules import (
    Fold,
    SeveralHomes,
    Stamp,
    Standing,
    Tally,
    is_doubted,
    is_statement,
    standings,
    tally,
)
from commonplace.sessions.replies import printed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from commonplace.memory import Memory
    from commonplace.records import Record
    from commonplace.sessions.events import Event
    from commonplace.where.home import Home

CHARS_MAX = 8000
TOKENS_MAX = 2000
RECENT_MAX = 5
ENTRY_CHARS_MAX = 420
CONTEXT_CHARS_MAX = 3000
HANDOFF_CHARS_MAX = 1600
# Of a long log the end is read: the newest is what is shown.
TAIL_BYTES_MAX = 4 << 20
HANDOFF_AGE_MAX = timedelta(days=14)
KNOWLEDGE = ("lesson", "pattern", "anti_pattern", "fact")
_LABELS = {"learned": "LEARN", "error": "ERROR", "success": "SUCCESS", "pattern": "PATTERN"}
_SPOKEN = ("decision", "fact", "gotcha", "pattern")
_CLOSED = frozenset(["closed", "done", "completed", "accepted", "taken"])
# Each try gives the parts this share of their room.
_SHARES = (1.0, 0.75, 0.55, 0.4, 0.28, 0.18, 0.1)


class Known(NamedTuple):
    """What there is to say at a start."""

    recent: Sequence[Record] = ()
    total: str = "0"
    context: str = ""
    handoff: Record | None = None
    relevant: str = ""
    where: str = ""


def text(event: Event, known: Known) -> str:
    """What *known* comes to for the agent of *event*, within the bounds as it will be printed."""
    for share in _SHARES:
        said = _composed(event, known, share)
        shown = printed(event, said)
        if len(shown) <= CHARS_MAX and tokens.count(shown) <= TOKENS_MAX:
            return said
    return ""


def from_files(memory: Memory, event: Event) -> Known:
    """What the files alone say, without an index: for a hook that found no server."""
    tails = [_fold_tail(home, event) for home in memory.homes]
    folds = [folded for folded, _whole in tails]
    unique = deduplicated(
        record
        for record, feedback in _current(folds)
        if record.kind in KNOWLEDGE and not is_doubted(feedback)
    )
    whole = all(complete for _folded, complete in tails)
    handoffs = [record for record, feedback in _current(folds) if is_open(record, feedback, event)]
    return Known(
        recent=unique[:RECENT_MAX],
        total=f"{len(unique)}" if whole else f"over {len(unique)}",
        context=context_of(memory, event),
        handoff=max(handoffs, key=lambda record: record.timestamp, default=None),
    )


def _current(folds: Sequence[Fold[bytes]]) -> Iterator[tuple[Record, Tally]]:
    """The records that are not hidden, each with its feedback; of one id the nearest home's."""
    facts, seen = SeveralHomes(folds), set[str]()
    for folded in folds:
        ids = [ident for ident in folded.ids() if ident not in seen]
        seen.update(ids)
        for ident, standing in standings(ids, facts).items():
            kept = folded.current(ident)
            if standing is Standing.CURRENT and not is_statement(kept.kind):
                outcomes: dict[str, str] = {}
                for other in reversed(folds):
                    outcomes |= other.feedback(ident)
                yield from_line(kept.value), tally(outcomes.values())


def context_of(memory: Memory, event: Event) -> str:
    """The agent's own CONTEXT.md, if it can be read: a session starts without it, too."""
    with suppress(CommonplaceError, OSError):
        return memory.read_at_start(agent=event.name).strip()
    return ""


def deduplicated(entries: Iterable[Record]) -> list[Record]:
    """The latest of each key (seed 003), newest first; of one moment, the later line."""
    newest: dict[str, Record] = {}
    for record in sorted(entries, key=lambda one: one.timestamp):
        newest.pop(_key(record), None)
        newest[_key(record)] = record
    return list(reversed(newest.values()))


def repos(event: Event) -> list[str]:
    """The logs that are this repository's: under its own name, and under the plain one that scripts give it."""
    return list(dict.fromkeys(name for name in (event.repo, event.short) if name))


def is_open(record: Record, feedback: Tally, event: Event) -> bool:
    """Whether a handoff still waits for the agent of *event*: for it, lately, and nobody has said how it went."""
    if not isinstance(record, Handoff) or record.to_agent.lower() not in (
        event.name.lower(),
        event.agent,
        "any",
        "*",
    ):
        return False
    status = str(record.fields.get("status") or record.context.get("status") or "").lower()
    if status in _CLOSED or any(feedback) or record.from_agent == event.name:
        return False
    age = event.at - datetime.fromisoformat(to_utc(record.timestamp)).timestamp()
    return age <= HANDOFF_AGE_MAX.total_seconds()


def _fold_tail(home: Home, event: Event) -> tuple[Fold[bytes], bool]:
    """What the ends of this repository's logs say, and whether that is all of them."""
    folded: Fold[bytes] = Fold()
    complete = True
    for repo in repos(event):
        with suppress(CommonplaceError, OSError):
            lines, all_of_it = _tail(home.log(repo))
            complete = complete and all_of_it
            for position, line in enumerate(lines):
                with suppress(ValueError):
                    record = from_line(line)
                    folded.add(Stamp(micros(record.timestamp), repo, position), record, line)
    return folded, complete


def _tail(path: Path) -> tuple[list[bytes], bool]:
    stream = open_for_read(path)
    if stream is None:
        return [], True
    with stream:
        size = stream.seek(0, 2)
        stream.seek(max(0, size - TAIL_BYTES_MAX))
        lines = stream.read(TAIL_BYTES_MAX).split(b"\n")
    cut = size > TAIL_BYTES_MAX
    return [line for line in (lines[1:] if cut else lines) if line.strip()], not cut


def _key(record: Record) -> str:
    said = _said(record)
    return slug(said[:60], 60) or said[:60]


def _said(record: Record) -> str:
    """What a record says, in one line."""
    fields = record.fields
    if isinstance(record, Lesson):
        said = record.lesson
    else:
        said = next(
            (str(fields[name]) for name in ("pattern", "what_fails", "label") if fields.get(name)),
            "",
        )
        telling = ("correct_approach", "prevention", "payload")
        more = next((str(fields[name]) for name in telling if fields.get(name)), "")
        said = f"{said}: {more}" if more else said
    return " ".join(said.split())


def _label(record: Record) -> str:
    if isinstance(record, Lesson):
        spoken = (
            next((tag for tag in record.tags if tag in _SPOKEN), "")
            if record.event_type == "learned"
            else ""
        )
        return spoken.upper() or _LABELS.get(record.event_type, record.event_type.upper())
    return record.kind.replace("_", "-").upper()


def _entry(record: Record, chars_max: int) -> str:
    said = _said(record)
    if len(said) > chars_max:
        said = _shortened(said, chars_max, " ") + " …"
    source = record.meta.get("source") or record.agent_id or "unknown"
    return f"[{_label(record)}] {said} ({source}) · {record.timestamp[:10]}"


def _composed(event: Event, known: Known, share: float) -> str:
    parts: list[str] = []
    if known.context:
        title = f"## Notes of {event.name} (CONTEXT.md)"
        parts.append(f"{title}\n\n{_cut(known.context, int(CONTEXT_CHARS_MAX * share))}")
    if known.handoff is not None:
        parts.append(_handed(known.handoff, int(HANDOFF_CHARS_MAX * share)))
    if known.recent:
        lines = [_entry(record, int(ENTRY_CHARS_MAX * share)) for record in known.recent]
        heading = f"## Recent Knowledge ({known.total} entries)"
        parts.append("\n".join([heading, "", *lines, "", 'Search: commonplace recall "keyword"']))
    if known.relevant:
        parts.append(
            f"## Known about {known.where}\n\n{_cut(known.relevant, int(CONTEXT_CHARS_MAX * share))}"
        )
    return "\n\n".join(parts)


def _handed(record: Record, chars_max: int) -> str:
    assert isinstance(record, Handoff)
    lines = [
        f"{name.replace('_', ' ')}: {_flat(value)}"
        for name, value in record.context.items()
        if value
    ]
    said = _cut("\n".join(lines), chars_max)
    title = f"## Handoff from {record.from_agent} to {record.to_agent} ({record.timestamp[:10]})"
    return f"{title}\n\n{said}\n\nOpen until `commonplace feedback {record.id} worked` closes it."


def _flat(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, list):
        return "; ".join(_flat(item) for item in value)
    if isinstance(value, dict):
        return "; ".join(f"{name}: {_flat(item)}" for name, item in value.items())
    return " ".join(str(value).split())


def _cut(said: str, chars_max: int) -> str:
    if len(said) <= chars_max:
        return said
    return _shortened(said, chars_max, "\n") + "\n…"


def _shortened(said: str, chars_max: int, end: str) -> str:
    """The beginning of *said* up to an *end*, or to a blank; but not half of it is given up for that."""
    kept = said[:chars_max]
    at = next((at for mark in (end, " ") if (at := kept.rfind(mark)) > chars_max // 2), chars_max)
    return kept[:at].rstrip()
