"""What an episode says in a sentence or two: its goal, its outcome, what failed and what fixed it.

Its list of actions is kept, and is neither searched nor shown in answers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from commonplace.records.kinds import Record

GOAL_CHARS_MAX = 200
PART_CHARS_MAX = 160
# How many errors a summary tells, of all that the episode had.
ERRORS_TOLD_MAX = 2


NOTED_IN_FAILED_TASK = "Noted as the fix, but the task failed"
# In `meta` of a summary: the first and the last actions, without their times.
ACTIONS_KEPT = "actions_kept"


class EpisodeError(NamedTuple):
    """An error of an episode; what is not known is empty."""

    type: str = ""
    message: str = ""
    resolution: str = ""

    @property
    def sentence(self) -> str:
        """The error as text: what failed, and what fixed it."""
        return self.tell(task_failed=False)

    def tell(self, *, task_failed: bool) -> str:
        """Return the error as text; if the task failed, nobody knows that the fix works."""
        failed = f"{self.type} failed" if self.type else "Failed" if self.message else ""
        told = ": ".join(part for part in (failed, self.message.rstrip(". ")) if part)
        # A command stays as it is: a full stop after it would be taken for a part of it.
        label = NOTED_IN_FAILED_TASK if task_failed else "Fixed by"
        fixed = f"{label}: {self.resolution}" if self.resolution else ""
        return " ".join(part for part in (f"{told}." if told else "", fixed) if part)

    def cut(self) -> EpisodeError:
        """Return the error with parts that fit into a summary."""
        return EpisodeError(*(cut_text(part, PART_CHARS_MAX) for part in self))


def goal_of(record: Record) -> str:
    """Return what the episode was for, in one line; "" if it does not say."""
    context = record.fields.get("context")
    goal = context.get("goal") if isinstance(context, dict) else None
    return " ".join(goal.split()) if isinstance(goal, str) else ""


def actions_of(record: Record) -> list[dict[str, Any]]:
    """Return the actions of the episode; of a summary, those that it kept."""
    listed = record.fields.get("action_log") or record.meta.get(ACTIONS_KEPT)
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def has_failed(record: Record) -> bool:
    """Whether the task of the episode failed: then what it noted as a fix may not be one."""
    return record.fields.get("outcome") == "failure"


def errors_of(record: Record) -> list[EpisodeError]:
    """Return the errors that the episode names, each once, in its order.

    Another program may have written them in another shape: a text is a message.
    """
    listed = record.fields.get("errors_encountered")
    found: dict[EpisodeError, None] = {}
    for given in listed if isinstance(listed, list) else ():
        fields = given if isinstance(given, dict) else {"message": given}
        error = EpisodeError(*(_text(fields.get(name)) for name in EpisodeError._fields))
        if any(error):
            found[error] = None
    return list(found)


def summarise(
    record: Record,
    rank: Callable[[str], float] = lambda _sentence: 0.0,
    errors_max: int = ERRORS_TOLD_MAX,
    goal_chars_max: int = GOAL_CHARS_MAX,
) -> str:
    """Return the episode in a sentence or two: goal and outcome, what failed, what fixed it.

    Of many errors, those that *rank* puts first are told, then those that were solved.
    """
    errors = errors_of(record)
    best = sorted(errors, key=lambda one: (-rank(one.sentence), not one.resolution))[:errors_max]
    told = [one.cut().tell(task_failed=has_failed(record)) for one in errors if one in best]
    return " ".join(
        part for part in (f"{_headline(record, goal_chars_max)}.", "; ".join(told)) if part
    )


def _headline(record: Record, goal_chars_max: int) -> str:
    outcome = _text(record.fields.get("outcome")) or "unknown"
    known = outcome if outcome != "unknown" else "outcome unknown"
    goal = cut_text(goal_of(record), goal_chars_max).rstrip(". ")
    return f"{goal or 'A task whose goal was not stated'} ({cut_text(known, PART_CHARS_MAX)})"


def with_agent_id(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return *entry* with `agent`, the name in Loki's episodes, as our `agent_id`."""
    agent = entry.get("agent")
    if "agent_id" in entry or not isinstance(agent, str):
        return dict(entry)
    return {"agent_id": agent, **{name: value for name, value in entry.items() if name != "agent"}}


def _text(value: object) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


def cut_text(text: str, chars_max: int) -> str:
    """Return *text*, cut at a word if it is longer."""
    if len(text) <= chars_max:
        return text
    return f"{text[: chars_max - 2].rsplit(' ', 1)[0]} …"
