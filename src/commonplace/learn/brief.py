"""A brief: what is known before a task, within a limit in tokens.

Patterns and lessons that apply, mistakes to avoid, skills, similar tasks, open handoffs, and
contradictions among those. It uses trusted homes only: nobody asked for its parts one by one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.compose import tokens as token_count
from commonplace.compose.answer import entry_text, summary_line
from commonplace.compose.unit_scores import Wanted
from commonplace.errors import UsageError
from commonplace.foreign import FRAME, one_line, origin, render
from commonplace.learn.gathering import Task, gather, purpose
from commonplace.records import micros, to_utc
from commonplace.vocabulary import TOKENS_MIN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from commonplace.learn.gathering import Found
    from commonplace.recall.consultation import Consultation
    from commonplace.recall.hits import Hit
    from commonplace.recaller import Recaller
    from commonplace.settings import Settings


TOKENS = 1500
TOKENS_MAX = 20_000
GOAL_CHARS_MAX = 2000
MEMORIES_MAX = 5
SUMMARY_TOKENS_MAX = 60
# The share of the remaining tokens that an entry may use, so that one long memory is not all.
SHARE = 0.5
# The number before an entry, and its line end.
NUMBER_TOKENS = 2
HANDOFF_AGE_MAX = timedelta(days=14)
NOTHING = "Nothing is known about this task yet."
UNTRUSTED_NOTE = (
    "the home that came with this repository is not trusted, so the brief leaves it out; "
    "`commonplace trust` changes that"
)
# The parts of the text, in this order, by their names in JSON.
TITLES = {
    "this_task": "This Task",
    "relevant_patterns": "Relevant Memories",
    "avoid_these": "Avoid These",
    "applicable_skills": "Applicable Skills",
    "similar_episodes": "Similar Tasks",
    "open_handoffs": "Open Handoffs",
    "contradictions": "Contradictions",
}
Parts = dict[str, list["Entry"]]


class Entry(NamedTuple):
    """One memory in a brief: what a program needs of it, and the text that an agent reads."""

    hit: Hit
    summary: str
    text: str
    # The record that contradicts it, if that is why it is here.
    other: Hit | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the entry as JSON shows it."""
        found: dict[str, Any] = {
            "id": self.hit.id,
            "kind": self.hit.kind,
            "summary": self.summary,
            "score": self.hit.score,
            "timestamp": self.hit.timestamp,
            "repo": self.hit.repo,
        }
        if self.hit.kind == "episode":
            found["outcome"] = self.hit.record.fields.get("outcome")
        if self.other is not None:
            found["contradicts"] = self.other.id
        return found


@dataclass(frozen=True, slots=True)
class Brief:
    """What is known before a task: its parts, the best of them merged, and the text."""

    goal: str
    task_id: str = ""
    action: str = ""
    parts: Parts = field(default_factory=dict)
    # The best of patterns, episodes and skills, each score multiplied by the weight of its part.
    memories: list[Entry] = field(default_factory=list)
    text: str = NOTHING
    tokens: int = 0
    notes: list[str] = field(default_factory=list)

    def hits(self) -> list[Hit]:
        """Return the memories in the text, in its order."""
        return [entry.hit for part in self.parts.values() for entry in part]

    def as_dict(self) -> dict[str, Any]:
        """Return the brief as JSON shows it."""
        return {
            "goal": self.goal,
            "task_id": self.task_id,
            "action": self.action,
            **{name: [one.as_dict() for one in self.parts.get(name, [])] for name in TITLES},
            "memories": [entry.as_dict() for entry in self.memories],
            "text": self.text,
            "tokens": self.tokens,
            "notes": self.notes,
        }


def before_task(
    memory: Recaller,
    goal: str,
    task_id: str | None = None,
    action: str | None = None,
    files: Iterable[str] | None = None,
    tokens: int = TOKENS,
) -> Brief:
    """Return what is known about *goal*, best first, in at most *tokens*."""
    since = micros(to_utc(memory._clock() - HANDOFF_AGE_MAX))  # noqa: SLF001 (see Recaller)
    task = Task(task_id or "", action or "", handoffs_since_micros=since)
    return brief(memory, goal, task, files=files, tokens=tokens)


def brief(
    memory: Recaller,
    goal: str,
    task: Task,
    *,
    files: Iterable[str] | None = None,
    tokens: int = TOKENS,
    without: Iterable[str] = (),
    relevance_min: float = 0.0,
    fits: Callable[[str], bool] = lambda _text: True,
) -> Brief:
    """Return the brief of *task*, leaving out the records *without*. Hooks call it, too.

    *fits* may refuse a text that has few enough *tokens*.
    """
    check(goal, tokens)
    query = memory.query(
        goal.strip()[:GOAL_CHARS_MAX],
        files=files or (),
        automatic=True,  # From trusted homes only.
        without=without,
        relevance_min=relevance_min,
    )

    def ask(consultation: Consultation) -> Brief:
        found = gather(consultation, query, task)
        blank = Brief(goal.strip(), task.task_id, task.action)
        merged = merge(found, memory.settings)
        limits = Limits(tokens, fits)
        return _compose(blank, found, merged, Wanted(*consultation.terms(query)), limits)

    made, remarks = memory.engine().consult(query, ask, Brief.hits)
    if query.untrusted:
        remarks.append(UNTRUSTED_NOTE)
    return replace(made, notes=remarks)


def check(goal: str, tokens: int) -> None:
    """Raise `UsageError` for an empty goal, or too few or too many tokens."""
    if not goal.strip():
        raise UsageError("the goal is empty", "say in a few words what the task is")
    if not TOKENS_MIN <= tokens <= TOKENS_MAX:
        raise UsageError(
            f"a brief of {tokens:,} tokens is not between {TOKENS_MIN} and {TOKENS_MAX:,}"
        )


def merge(found: Found, settings: Settings) -> list[Hit]:
    """Return the best patterns, episodes and skills together, by their weighted scores."""
    weighted = [
        hit._replace(score=round(hit.score * settings[f"brief.weights.{name}"], 6))
        for name, hits in (
            ("semantic", found.patterns),
            ("episodic", [*_episodes(found.this_task), *found.episodes]),
            ("skills", found.skills),
        )
        for hit in hits
    ]
    return sorted(weighted, key=lambda hit: -hit.score)[:MEMORIES_MAX]


def _episodes(hits: list[Hit]) -> list[Hit]:
    return [hit for hit in hits if hit.kind == "episode"]


# --- Text -----------------------------------------------------------------------------------------


class Limits(NamedTuple):
    """How long the text may be."""

    tokens_max: int
    fits: Callable[[str], bool]


def _compose(blank: Brief, found: Found, merged: list[Hit], asked: Wanted, limits: Limits) -> Brief:
    """Return the brief with as many of its entries as fit, the most useful first."""
    tokens_max = limits.tokens_max
    wanted = _by_use(found, merged)
    # An open handoff says nothing about the goal.
    is_known = any((found.this_task, found.patterns, found.avoid, found.skills, found.episodes))
    opening = "" if is_known else f"{NOTHING}\n\n"
    limit = tokens_max - token_count.count(opening)
    parts: Parts = {name: [] for name in TITLES}
    # An entry may be as long as it leaves the others a line each, or else use half of the room.
    lines = [token_count.count(_line(hit, other)) + NUMBER_TOKENS for _name, hit, other in wanted]
    titles = sum(token_count.count(_title(name, 99)) for name in {name for name, *_ in wanted})
    for index, (name, hit, other) in enumerate(wanted):
        left = limit - token_count.count(_text(parts)) - token_count.count(_title(name, 99))
        room = max(int(left * SHARE), left - titles - sum(lines[index + 1 :]))
        entry = _entry(hit, other, asked, room, left)
        fuller = {**parts, name: [*parts[name], entry]}
        text = _text(fuller)
        if entry.text and token_count.count(text) <= limit and limits.fits(text):
            parts = fuller
    text = _text(parts)
    if text:
        text = opening + text
    elif wanted:
        need = "1 memory needs" if len(wanted) == 1 else f"{len(wanted)} memories need"
        text = f"{need} more than {tokens_max} tokens."
    shown = {one.hit.id: one for part in parts.values() for one in part if one.other is None}
    return replace(
        blank,
        parts=parts,
        memories=[shown[hit.id]._replace(hit=hit) for hit in merged if hit.id in shown],
        text=text or NOTHING,
        tokens=token_count.count(text or NOTHING),
    )


def _by_use(found: Found, merged: list[Hit]) -> list[tuple[str, Hit, Hit | None]]:
    """Return every entry with the name of its part; those that must fit come first."""
    best = {hit.id for hit in merged}
    parts = {
        "relevant_patterns": found.patterns,
        "applicable_skills": found.skills,
        "similar_episodes": found.episodes,
    }
    name_of = {hit.id: (name, hit) for name, hits in parts.items() for hit in hits}
    of_merged = [name_of[hit.id] for hit in merged if hit.id in name_of]
    about_action = [hit for hit in found.avoid if hit.id in found.about_action]
    return [
        *(("this_task", hit, None) for hit in found.this_task),
        *(("avoid_these", hit, None) for hit in about_action),
        *((name, hit, None) for name, hit in of_merged if name != "similar_episodes"),
        *(("avoid_these", hit, None) for hit in found.avoid if hit not in about_action),
        *((name, hit, None) for name, hit in of_merged if name == "similar_episodes"),
        *(("contradictions", *pair) for pair in found.contradictions),
        *(("open_handoffs", hit, None) for hit in found.handoffs),
        *((*entry, None) for ident, entry in name_of.items() if ident not in best),
    ]


def _entry(hit: Hit, other: Hit | None, asked: Wanted, room: int, tokens_max: int) -> Entry:
    """Return the entry in *room*, or else in one line, if that has at most *tokens_max*."""
    line = _line(hit, other)
    is_long = other is None and hit.kind not in ("handoff", "skill")
    text = entry_text(hit, asked, room) if is_long else ""
    fits = token_count.count(line) + NUMBER_TOKENS <= tokens_max
    return Entry(hit, summary_of(hit), text or (line if fits else ""), other)


def _line(hit: Hit, other: Hit | None = None) -> str:
    """Return an entry in one line, or in two if it contradicts the *other*."""
    if other is not None:
        return f"{_line(hit)}\n   contradicts {_line(other)}"
    date, ident = one_line(hit.timestamp[:10]), one_line(hit.id)
    marks = "".join(
        f" ({one_line(mark)})" for mark in (origin(hit.record.meta, short=True), *hit.marks) if mark
    )
    return f"[{date}] {summary_of(hit)}{marks} [{ident}]"


def summary_of(hit: Hit) -> str:
    """Return a memory in one short line."""
    record = hit.record
    is_skill = record.kind == "skill"
    text = one_line(purpose(hit)) if is_skill else summary_line(record, short=True)
    return token_count.cut(text, SUMMARY_TOKENS_MAX)


def _title(name: str, count: int) -> str:
    return f"**{TITLES[name]} ({count}):**"


def _text(parts: Parts) -> str:
    """Return the parts that have entries as text; the first line says what memories are."""
    blocks: list[str] = []
    for name, entries in parts.items():
        if entries:
            frame = "" if blocks else f" {FRAME}"
            lines = (f"{number}. {entry.text}" for number, entry in enumerate(entries, 1))
            blocks.append(f"{_title(name, len(entries))}{frame}\n\n" + "\n".join(lines))
    return render("\n\n".join(blocks))
