"""What a pattern, an anti-pattern, a handoff or a ledger says, in words that cannot be misread.

Every surface takes these words. In an anti-pattern the fix is marked as such: after a heading like
"mistakes to avoid", a fix that only follows what fails reads as the thing to avoid.
"""

from __future__ import annotations

from commonplace.foreign import flat
from commonplace.records.episodes import cut_text
from commonplace.records.kinds import AntiPattern, Handoff, Ledger, Pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from commonplace.records.kinds import Record

# How much of the reason a short sentence tells: the fix after it is worth more.
WHY_CHARS_MAX = 160
# In `meta` of an anti-pattern: every task that it was learned from failed.
TASKS_FAILED = "tasks_failed"
_LEFT_TO_DO = {"needs_testing": "Needs testing", "known_issues": "Known issues"}


def sentence_of(record: Record, *, short: bool = False) -> str:
    """Return what *record* says; "" if it is of another kind. *short* cuts a long reason."""
    separator = ": " if isinstance(record, Pattern) else " "
    return separator.join(paragraphs_of(record, short=short))


def paragraphs_of(record: Record, *, short: bool = False) -> list[str]:
    """Return the parts of the sentence, for a text of several paragraphs."""
    if isinstance(record, Pattern):
        approach = record.correct_approach
        is_told = _plain(approach) in ("", _plain(record.pattern))
        return [record.pattern] if is_told else [record.pattern, approach]
    if isinstance(record, AntiPattern):
        why = cut_text(" ".join(record.why.split()), WHY_CHARS_MAX) if short else record.why
        return [_failure(record.what_fails, why), *_labelled(_label(record), record.prevention)]
    if isinstance(record, Handoff):
        return list(_handoff(record))
    if isinstance(record, Ledger):
        return list(_ledger(record))
    return []


def _label(record: AntiPattern) -> str:
    """Return what the prevention is: no task that used it may have succeeded."""
    if not record.meta.get(TASKS_FAILED):
        return "Instead"
    return "Noted as the fix, but the tasks failed"


def _failure(what: str, why: str) -> str:
    what = what.strip().rstrip(".")
    fails = what if what.lower().endswith((" fails", " failed")) else f"{what} fails"
    reason = why.strip().rstrip(". ")
    return f"{fails}: {reason}." if reason and _plain(reason) != _plain(what) else f"{fails}."


def _handoff(record: Handoff) -> Iterable[str]:
    """Yield who hands over to whom, what was done, and what is left to do."""
    left = {label: record.context.get(name) for name, label in _LEFT_TO_DO.items()}
    # Another program may have used other names: then everything is told.
    others = {name: value for name, value in record.context.items() if name not in _LEFT_TO_DO}
    done = flat(record.context.get("what_was_done") or others).rstrip(". ")
    yield f"Handoff from {record.from_agent} to {record.to_agent}" + (f": {done}." if done else ".")
    for label, value in left.items():
        yield from _labelled(label, flat(value or ""))


def _ledger(record: Ledger) -> Iterable[str]:
    """Yield what the agent was doing, in which files, and what it has learned."""
    doing = (record.current_task, flat(record.context.get("current_goal") or ""))
    what = ": ".join(part.rstrip(". ") for part in doing if part)
    who = f"Ledger of {record.agent_id}" if record.agent_id else "Ledger"
    yield f"{who}: {what}." if what else f"{who}."
    yield from _labelled("Files", flat(record.state.get("files_modified") or ""))
    yield from _labelled("Patterns learned", flat(record.context.get("patterns_learned") or ""))


def _labelled(label: str, text: str) -> list[str]:
    # A command stays as it is: a full stop after it would be taken for a part of it.
    return [f"{label}: {text}"] if text.strip() else []


def _plain(text: str) -> str:
    return " ".join(text.split()).rstrip(".").casefold()
