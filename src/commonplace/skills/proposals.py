"""Skills that agents have shown: steps that followed each other in several successful episodes.

Pure functions over episodes. Every word of a proposed text is from the episodes: their goals,
commands, constraints, errors and resolutions.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from commonplace.foreign import one_line
from commonplace.records import slug
from commonplace.records.episodes import actions_of, errors_of, goal_of
from commonplace.records.ids import blake2b
from commonplace.skills.format import SECTIONS, valid_text
from commonplace.skills.wording import (
    EDIT,
    EXAMPLES_MAX,
    cut,
    describe_step,
    join_keys,
    shared_words,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from commonplace.records import Record
    from commonplace.records.episodes import EpisodeError

EPISODES_MIN = 3
STEPS_MIN = 3
# A longer procedure is several; it also bounds the time.
STEPS_MAX = 20
ACTIONS_MAX = 200
FOUND_MAX = 20
RUNS_MAX = 2000
# A long session keeps its first actions and its last ones; between those two is a gap.
GAP_AT = 20
# Two sequences with more of their steps in common than this are one.
ALIKE_MIN = 0.6
SUCCESS = frozenset(["success", "succeeded", "passed", "completed"])
_GOALS_MAX = 3
_ERRORS_MAX = 6
# They look and change nothing.
_READS = frozenset(["read_file", "read", "list_files", "search", "glob", "grep", "dispatch"])
_LOOKS = frozenset(
    [
        f"git {word}"
        for word in ("status", "diff", "log", "show", "branch", "remote", "rev-parse", "blame")
    ]
)
_GAP, _FIRST_LETTER = "\0", 0x10000
_EDITS = frozenset(["edit_file", "write_file", "edit", "write"])
# What all work with code has in common; a sequence of these alone is no skill.
_GENERIC = re.compile(
    r"(?:git (?:add|am|apply|branch|checkout|clone|commit|fetch|init|merge|mv|pull|push|rebase|"
    r"reset|restore|rm|stash|switch|tag|worktree)|git|gh pr|pytest|jest|vitest|ruff|mypy|eslint|"
    r"tsc|rm|mv|cp|chmod|\S+ test)$"
)
_BETWEEN = re.compile(r"&&|\|\||;|\n")
STEPS_JOINT = ", "
NAME_WORDS_CHARS_MAX = 48
# What differs between two errors that are the same: paths, numbers and quoted names.
_VARIES = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\S*[/\\\d]\S*")


class Step(NamedTuple):
    """A normalised action, and the command, or the file, that the episode names for it."""

    key: str
    target: str


class Routine(NamedTuple):
    """Steps that followed each other in each of *episodes*."""

    keys: tuple[str, ...]
    episodes: tuple[Record, ...]
    # For each step, the distinct commands or files of the episodes, most frequent first.
    targets: tuple[tuple[str, ...], ...]

    @property
    def steps(self) -> str:
        """The steps as text: what tells this routine from another, however it is named."""
        return STEPS_JOINT.join(self.keys)

    @property
    def specific(self) -> list[str]:
        """The keys of the steps that other work does not have as well."""
        pairs = zip(self.keys, self.targets, strict=True)
        return list(dict.fromkeys(key for key, targets in pairs if _is_specific(key, targets)))

    @property
    def title(self) -> str:
        """The words that all goals share, or else the commands."""
        return shared_words([goal_of(one) for one in self.episodes]) or join_keys(self.specific)

    @property
    def name(self) -> str:
        """The name of the skill."""
        return slug(self.title, NAME_WORDS_CHARS_MAX) or f"steps-{self.digest}"

    @property
    def digest(self) -> str:
        """Some characters that depend on the steps alone, for a name that is taken."""
        return blake2b(self.steps.encode("utf-8", "replace"), digest_size=3).hexdigest()


def sequences(
    episodes: Iterable[Record], intents_of: Callable[[str], Sequence[str]]
) -> list[Routine]:
    """Return the sequences of at least 3 distinct steps that 3 successful episodes share.

    *intents_of* gives what a command line does, as `npm install`, without its arguments. The
    longest come first, and what is a part of one, or nearly one, is left out. So is what all work
    has in common: edits, tests and commits.
    """
    done = [one for one in episodes if str(one.fields.get("outcome")).lower() in SUCCESS]
    parse = cache(intents_of)  # Agents repeat their commands.
    steps = [list(_steps(one, parse)) for one in done]
    letters: dict[str, str] = {"": _GAP}
    # One letter for each step: a sequence is a text, and Python searches texts fast.
    rows = [
        "".join(letters.setdefault(step.key, chr(_FIRST_LETTER + len(letters))) for step in row)
        for row in steps
    ]
    keys = {letter: key for key, letter in letters.items()}
    found: list[Routine] = []
    for run in _shared(Counter(rows)):
        chosen = tuple(keys[letter] for letter in run)
        if len(set(chosen)) < STEPS_MIN or any(is_alike(chosen, one.keys) for one in found):
            continue
        places = [(number, at) for number, row in enumerate(rows) if (at := row.find(run)) >= 0]
        targets = tuple(
            tuple(dict(Counter(steps[row][at + n].target for row, at in places).most_common()))
            for n in range(len(run))
        )
        routine = Routine(chosen, tuple(done[row] for row, _at in places), targets)
        if not routine.specific:
            continue
        found.append(routine)
        if len(found) >= FOUND_MAX:
            break
    return found


def _shared(rows: Mapping[str, int]) -> list[str]:
    """Return the runs that at least `EPISODES_MIN` of *rows* share, the longest first.

    *rows* are counted: those that are equal are looked at once. Runs grow by one letter a round,
    from those of the round before that enough rows share, so a round looks at each place once.
    """
    flat = _GAP.join([*rows, ""])
    if not flat.strip(_GAP):
        return []
    letters = np.array([0 if letter == _GAP else ord(letter) for letter in flat], np.int64)
    row_of = np.repeat(np.arange(len(rows)), [len(row) + 1 for row in rows])[: len(flat)]
    counts = np.array(list(rows.values()), np.int64)
    found: list[tuple[int, int, int]] = []  # How long, in how many rows, and where.
    # Where the runs of this round begin, and which run is there, by a number from 0.
    places = np.nonzero(letters)[0]
    runs = _numbers(letters[places])
    before: list[tuple[int, int, int]] = []
    previous = np.full(len(flat) + 1, -1)
    for length in range(1, STEPS_MAX + 2):
        in_rows, first = _count(runs, row_of[places], counts)
        is_shared = in_rows[runs] >= EPISODES_MIN
        if length > STEPS_MAX:
            found += before
            break
        if length > 1:
            # What a longer run begins or ends with is no sequence of its own.
            longer = places[is_shared]
            covered = {*previous[longer].tolist(), *previous[longer + 1].tolist()}
            found += [one for run, one in enumerate(before) if run not in covered]
        if not is_shared.any():
            break
        places, runs = places[is_shared], _numbers(runs[is_shared])
        in_rows, first = _count(runs, row_of[places], counts)
        before = [
            (length, rows_with, int(places[at]))
            for rows_with, at in zip(in_rows.tolist(), first.tolist(), strict=True)
        ]
        previous = np.full(len(flat) + 1, -1)
        previous[places] = runs
        goes_on = previous[places + 1] >= 0
        places, runs = places[goes_on], runs[goes_on]
        runs = _numbers(runs * (len(letters) + 0x110000) + letters[places + length])
        if not len(places):
            found += before
            break
    found.sort(key=lambda one: (-one[0], -one[1], one[2]))
    return [flat[at : at + length] for length, _n, at in found if length >= STEPS_MIN][:RUNS_MAX]


def _numbers(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the same values numbered from 0."""
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def _count(
    runs: NDArray[np.int64], rows: NDArray[np.int64], counts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return in how many rows each run is, and the first place of each."""
    pairs = np.unique(runs * len(counts) + rows)
    weights = counts[pairs % len(counts)]
    first = np.unique(runs, return_index=True)[1]
    return np.bincount(pairs // len(counts), weights, len(first)).astype(np.int64), first


def is_alike(keys: Iterable[str], other: Iterable[str]) -> bool:
    """Whether most of their steps are the same: one is a part of the other, or a variant."""
    mine, theirs = set(keys), set(other)
    return mine <= theirs or len(mine & theirs) / len(mine | theirs) > ALIKE_MIN


def _steps(episode: Record, intents_of: Callable[[str], Sequence[str]]) -> Iterator[Step]:
    """Yield what the episode did: without looks, failures and repeats."""
    last = ""
    is_cut = bool(episode.meta.get("actions_left_out"))
    for number, action in enumerate(actions_of(episode)[:ACTIONS_MAX]):
        if is_cut and number == GAP_AT:
            last = ""
            yield Step("", "")
        if action.get("result") == "fail":
            continue
        for step in _steps_of(action, intents_of):
            if step.key != last:
                last = step.key
                yield step


def _steps_of(action: Mapping[str, Any], intents_of: Callable[[str], Sequence[str]]) -> list[Step]:
    name, target = str(action.get("action") or ""), str(action.get("target") or "").strip()
    if not name or name in _READS:
        return []
    if name in _EDITS:
        suffix = target.rpartition("/")[2].rpartition(".")[2] if "." in target else ""
        kind = f"*.{suffix.lower()}" if suffix.isalnum() else "a file"
        return [Step(f"{EDIT} {kind}", target)]
    if not target:
        return [Step(name, name.replace("_", " "))]
    return [step for step in _commands(target, intents_of) if step.key not in _LOOKS]


def _commands(line: str, intents_of: Callable[[str], Sequence[str]]) -> list[Step]:
    """Return the commands of a line, each with its intent."""
    whole = list(intents_of(line))
    parts = [
        Step(intent, part.strip()) for part in _BETWEEN.split(line) for intent in intents_of(part)
    ]
    # A `;` in quotes is no end of a command: then only the first step has the words of the line.
    if [step.key for step in parts] == whole:
        return parts
    return [Step(intent, line if not at else intent) for at, intent in enumerate(whole)]


def _is_specific(key: str, targets: Sequence[str]) -> bool:
    if key.startswith(f"{EDIT} "):
        return len(targets) == 1 and bool(targets[0])
    return not _GENERIC.match(key)


def skill_text(found: Routine, name: str) -> str:
    """Return the text of the skill that *found* shows, in the episodes' own words."""
    goals = list(dict.fromkeys(goal for one in found.episodes if (goal := goal_of(one))))
    steps = [describe_step(*pair) for pair in zip(found.keys, found.targets, strict=True)]
    shared = _shared_constraints(found.episodes)
    errors = _errors(found)[:_ERRORS_MAX]
    count = len(found.episodes)
    is_edit = found.keys[-1].startswith(f"{EDIT} ")
    # The last step is what the episodes ended with; an edit by itself proves nothing.
    end = f"Every step is done, as in {count} episodes that succeeded" if is_edit else ""
    sections = {
        SECTIONS[0]: [f"- {text}" for text in shared] or ["- None is recorded"],
        SECTIONS[1]: [f"{number}. {words}" for number, words in enumerate(steps, 1)],
        SECTIONS[2]: [f"- {text}" for text in errors] or ["- None is recorded"],
        SECTIONS[3]: [f"- {end or f'{steps[-1]} succeeds, as in {count} episodes'}"],
    }
    evidence = ", ".join(one.id for one in found.episodes[-10:])
    parts = [
        f"# Skill: {cut(found.title)}",
        *(f"## {heading}\n" + "\n".join(lines) for heading, lines in sections.items()),
        f"## Evidence\n- Episodes: {evidence}",
    ]
    about = f"{cut(found.title)}. Steps: {found.steps}"
    if goals:
        about += f". Done for: {'; '.join(cut(one_line(goal)) for goal in goals[:_GOALS_MAX])}"
    return valid_text(name, f"---\ndescription: |\n  {about}\n---\n" + "\n\n".join(parts))


def _shared_constraints(episodes: Sequence[Record]) -> list[str]:
    """Return the constraints that all of the episodes name."""
    named: list[list[str]] = []
    for one in episodes:
        context = one.fields.get("context")
        given = context.get("constraints") if isinstance(context, dict) else None
        named.append([one_line(str(c)) for c in given] if isinstance(given, list) else [])
    common = set(named[0]).intersection(*named[1:]) if named else set[str]()
    return [text for text in dict.fromkeys(named[0] if named else []) if text in common]


def _errors(found: Routine) -> list[str]:
    """Return the errors of the episodes with what fixed them, those of the steps first.

    Errors that differ only in paths, numbers and quoted names are one.
    """
    alike: dict[tuple[str, str], list[tuple[str, EpisodeError]]] = {}
    for one in found.episodes:
        for error in errors_of(one):
            alike.setdefault((error.type, _VARIES.sub("…", error.message)), []).append(
                (one.id, error)
            )
    groups = sorted(alike.items(), key=lambda group: group[0][0] not in found.keys)
    return [_describe_error(errors) for _key, errors in groups]


def _describe_error(errors: Sequence[tuple[str, EpisodeError]]) -> str:
    error = errors[0][1]
    fixes = [cut(one_line(fix)) for _id, one in errors if (fix := one.resolution)]
    where = len({ident for ident, _error in errors})
    what = ": ".join(cut(one_line(part)) for part in (error.type, error.message) if part)
    told = f"{what} (in {where} episodes)" if where > 1 else what
    return f"{told}: {' or '.join(dict.fromkeys(fixes[:EXAMPLES_MAX])) or 'no fix is recorded'}"
