"""Observations: what one episode or lesson says about a problem and what solved it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.index.terms import term_set
from commonplace.records import Episode, Lesson, micros
from commonplace.records.episodes import actions_of, has_failed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from commonplace.records import Record

KINDS = ("episode", "lesson")
TEXT_CHARS_MAX = 600
# Of one episode, those that were solved first; a hook's episode keeps as many errors.
ERRORS_MAX = 15
# What tells two problems apart that read alike: an error code, an errno, the name of an exception.
CODE = re.compile(
    r"\bE[A-Z]{4,}\b|\b[A-Z]{1,6}-?\d{2,6}\b|\b\w+(?:Error|Exception)\b|\berrno \d+\b"
)
# What differs from one time to the next without being another problem.
_VARIABLE = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{7,40}\b|(?:[\w.@~-]*/)+[\w.@-]+|\b\d+\b")
# Doing the same again is no remedy, whatever came of it: a fix of these words and one more at most.
_RETRY = re.compile(
    r"(?i)\b(?:again|retr(?:y|ied|ying)|re-?(?:run|ran|running)|wait(?:ed)?|flaky|passed|unclear)\b"
)
_RETRY_WORDS = frozenset(
    ["a", "after", "again", "and", "away", "bit", "build", "by", "command", "did", "few",
     "first", "flaky", "for", "in", "is", "it", "itself", "job", "just", "later", "minute",
     "minutes", "more", "of", "on", "once", "only", "passed", "pull", "push", "ran",
     "re-ran", "re-run", "reran", "rerun", "retried", "retry", "run", "second", "seconds",
     "simply", "some", "step", "suite", "test", "tests", "the", "then", "time", "to",
     "tried", "try", "twice", "unclear", "until", "wait", "waited", "was", "went", "while",
     "with", "worked"]
)  # fmt: skip
_ACTIONS = frozenset(
    ["run", "run_test", "run_tests", "test", "build", "edit", "edit_file", "write_file", "write",
     "read_file", "bash", "shell", "command", "error"]
)  # fmt: skip
_NO_FIX = frozenset(["", "-", "none", "n/a", "na", "unknown", "nothing", "unresolved", "todo"])
_PLAIN_WORD = re.compile(r"[a-z][a-z'-]*")
WORKED = "worked"
FAILED = "failed"
OPEN = "open"


class Observation(NamedTuple):
    """One problem in one record: what failed, why, and what was done about it."""

    source: str
    kind: str
    home: int
    repo: str
    micros: int
    # Two observations of one session are one experience.
    session: str
    what: str
    why: str
    fix: str
    # Whether the fix worked, failed, or there is none.
    outcome: str
    # What was done when it failed: a command, where that is known.
    tried: str
    goal: str
    phase: str
    constraints: tuple[str, ...]
    files: tuple[str, ...]
    tags: tuple[str, ...]
    agent: str
    # Whether a hook saw it, rather than somebody who told of it.
    by_hook: bool
    # Where it was imported from; "" if it is the user's own.
    origin: str
    # Whether the task failed, and whether its actions show that the fix was used and passed.
    task_failed: bool = False
    used: bool = False

    @property
    def problem(self) -> str:
        return ": ".join(dict.fromkeys(part for part in (self.what, self.why) if part))

    @property
    def signature(self) -> frozenset[str]:
        """The words of the problem, without what differs from one time to the next."""
        return term_set(_VARIABLE.sub(" ", self.problem)) or term_set(self.problem)

    @property
    def codes(self) -> frozenset[str]:
        return frozenset(code.lower() for code in CODE.findall(self.problem))


def observe(record: Record, home: int, log: str) -> Iterator[Observation]:
    """Yield what *record*, a current episode or lesson, says about problems."""
    if isinstance(record, Episode):
        yield from _of_episode(record, home, log)
    elif isinstance(record, Lesson):
        yield from _of_lesson(record, home, log)


def _of_episode(record: Episode, home: int, log: str) -> Iterator[Observation]:
    context = record.context
    actions = actions_of(record)
    seen: set[tuple[str, str, str]] = set()
    errors = [error for error in record.errors_encountered if isinstance(error, dict)]
    errors.sort(key=lambda error: not _text(error, "resolution"))
    for error in errors[:ERRORS_MAX]:
        what, why, fix = (_text(error, name) for name in ("type", "message", "resolution"))
        if why and what in _ACTIONS:
            what = ""  # That something was run says nothing about the problem.
        if not (what or why) or (what, why, fix) in seen:
            continue
        seen.add((what, why, fix))
        yield Observation(
            source=record.id,
            kind="episode",
            home=home,
            repo=record.repo or log,
            micros=micros(record.timestamp),
            session=record.id,
            what=what,
            why=why,
            fix="" if _is_no_fix(fix) else fix,
            outcome=_outcome(fix, task_failed=has_failed(record)),
            tried=_tried(actions, what, why, fix),
            goal=_text(context, "goal"),
            phase=_text(context, "phase"),
            constraints=_texts(context.get("constraints")),
            files=_texts(context.get("files_involved")),
            tags=tuple(record.tags),
            agent=record.agent_id,
            by_hook=record.meta.get("origin") == "hooks",
            origin=_origin(record),
            task_failed=has_failed(record),
            used=record.meta.get("origin") == "hooks" or _was_used(actions, fix),
        )


def _of_lesson(record: Lesson, home: int, log: str) -> Iterator[Observation]:
    session = record.meta.get("session")
    day = record.timestamp[:10]
    # The command is the fix as it was typed; the lesson says it in words.
    fix = record.lesson if record.command in record.lesson else f"{record.lesson}: {record.command}"
    yield Observation(
        source=record.id,
        kind="lesson",
        home=home,
        repo=record.repo or log,
        micros=micros(record.timestamp),
        session=session if isinstance(session, str) and session else f"{record.agent_id} {day}",
        what="",
        why=_cut(record.context or record.lesson),
        fix=_cut(fix),
        outcome=WORKED,
        tried="",
        goal="",
        phase="",
        constraints=(),
        files=(),
        tags=tuple(record.tags),
        agent=record.agent_id,
        by_hook=record.meta.get("origin") == "hooks",
        origin=_origin(record),
    )


def _origin(record: Record) -> str:
    origin = record.meta.get("origin")
    return origin if isinstance(origin, str) and origin != "hooks" else ""


def _outcome(fix: str, *, task_failed: bool) -> str:
    """Say whether a resolution worked. A hook notes one only when its command passed."""
    if _is_no_fix(fix):
        return OPEN
    return FAILED if task_failed else WORKED


def _is_no_fix(fix: str) -> bool:
    """Whether *fix* says nothing, or only that the same was done again."""
    plain = fix.strip(" .!").lower()
    if plain in _NO_FIX:
        return True
    words = plain.split()
    if not _RETRY.search(plain) or not all(map(_PLAIN_WORD.fullmatch, words)):
        return False
    return sum(word not in _RETRY_WORDS for word in words) <= 1


def _tried(actions: list[dict[str, Any]], what: str, why: str, fix: str) -> str:
    """Return the command that failed like this: the last such action before it was solved."""
    found = ""
    for action in actions:
        if action.get("result") != "fail":
            continue
        target, message = _text(action, "target"), _text(action, "error")
        is_it = (message and (message in why or why in message)) or (what and what in target)
        if is_it and target and target != fix:
            found = target
    return found


def _was_used(actions: list[dict[str, Any]], fix: str) -> bool:
    """Whether an action that did *fix* passed."""
    return bool(fix) and any(
        action.get("result") == "pass" and _text(action, "target") == fix for action in actions
    )


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    return _cut(value) if isinstance(value, str) else ""


def _texts(value: object) -> tuple[str, ...]:
    return (
        tuple(_cut(one) for one in value if isinstance(one, str)) if isinstance(value, list) else ()
    )


def _cut(text: str) -> str:
    return " ".join(text.split())[:TEXT_CHARS_MAX]
