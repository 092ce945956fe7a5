"""The gate: a new record must not make what it came from harder to find.

The goal of each source is asked as a question, before and after, with 500 tokens for the answer.
Best is an answer that tells the fix of the source; next, one that names the source. If the answer
after is worse than before, the new record that is placed best in it is held back.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from commonplace.index.terms import term_set
from commonplace.where.home import Home
from commonplace.where.repository import ALL_REPOSITORIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from commonplace.engine import Answer, Engine
    from commonplace.log.prepare import PreparedLine
    from commonplace.recaller import Recaller

TOKENS_MAX = 500
# Of each new record, so many sources are asked for, spread over time.
SOURCES_ASKED_MAX = 4
ROUNDS_MAX = 4
# The share of a fix's words that one memory of an answer must say.
FIX_SHARE_MIN = 0.75
TRIAL_PREFIX = "trial-"


class Asked(NamedTuple):
    """A question of the gate: a source's goal, and what must be found."""

    question: str
    source: str
    fix: str
    repo: str
    # The same fix in the words of most.
    usual_fix: str = ""


class Verdict(NamedTuple):
    """Why records are held back, by their ids, and for how many questions a fix is found."""

    held_back: Mapping[str, str]
    asked: int
    found_before: int
    found_after: int


class OutOfTime(Exception):
    """The time of a run is over."""


def judge(
    memory: Recaller,
    entries: Sequence[PreparedLine],
    questions: Mapping[str, Sequence[Asked]],
    is_over: Callable[[], bool] = lambda: False,
) -> Verdict:
    """Judge the records of *entries*; *questions* has those of each, by its id.

    Raises `OutOfTime` if *is_over* gets true before all were asked.
    """
    engine = memory.engine()
    asked = list(dict.fromkeys(one for some in questions.values() for one in some))
    engine.catch_up()
    before = {one: find(found, one) for one, found in _answers(engine, memory, asked, is_over)}
    held_back: dict[str, str] = {}
    after: dict[Asked, int] = {}
    waiting = asked
    for _round in range(ROUNDS_MAX):
        let_through = [entry for entry in entries if entry.record.id not in held_back]
        if not let_through or not waiting:
            break
        harmed: list[Asked] = []
        with _trial_home(memory, let_through) as home, engine.with_home(home) as trial:
            new = [entry.record.id for entry in let_through]
            for one, answer in _answers(trial, memory, waiting, is_over):
                after[one] = find(answer, one)
                if after[one] < before[one]:
                    harmed.append(one)
                    # The best placed of the new ones; the next round tells whether that is enough.
                    shown = [hit.id for hit in answer.hits if hit.id in new]
                    own = [ident for ident in new if one in questions.get(ident, ())]
                    for ident in shown[:1] or own:
                        held_back[ident] = (
                            f"with it, “{one.question}” no longer finds {one.source} or its fix"
                        )
        waiting = harmed
    if waiting:
        # Still harmed after the last round: hold back everything that came from those sources.
        for ident, some in questions.items():
            if not set(some).isdisjoint(waiting):
                held_back.setdefault(ident, "with it, its sources are harder to find")
        after |= {one: before[one] for one in waiting}
    return Verdict(
        held_back, len(asked), *(sum(map(bool, one.values())) for one in (before, after))
    )


def find(answer: Answer, asked: Asked) -> int:
    """Return 2 if *answer* tells the fix of the source, 1 if it only names the source, else 0."""
    if says(answer.text, asked.fix) or says(answer.text, asked.usual_fix):
        return 2
    return int(any(hit.id == asked.source for hit in answer.hits))


def says(text: str, fix: str) -> bool:
    """Whether one memory of an answer's *text* tells of *fix*, in its words or nearly."""
    if not fix:
        return False
    if _plain(fix) in _plain(text):
        return True
    wanted = term_set(fix)
    return bool(wanted) and any(
        len(wanted & term_set(entry)) >= FIX_SHARE_MIN * len(wanted)
        for entry in re.split(r"\n(?=\d+\. )", text)
    )


def _plain(text: str) -> str:
    return " ".join(text.replace("`", "").split()).lower()


def _answers(
    engine: Engine, memory: Recaller, asked: Iterable[Asked], is_over: Callable[[], bool]
) -> Iterator[tuple[Asked, Answer]]:
    """Yield the answer to each; a question that stands for several fixes is asked once."""
    known: dict[tuple[str, str], Answer] = {}
    for one in asked:
        if is_over():
            raise OutOfTime
        key = one.question, one.repo
        if key not in known:
            repos = [one.repo, ALL_REPOSITORIES]
            query = memory.query_in(repos, one.question, tokens_max=TOKENS_MAX)
            known[key] = engine.preview(query.with_(here=one.repo))
        yield one, known[key]


@contextmanager
def _trial_home(memory: Recaller, entries: Sequence[PreparedLine]) -> Iterator[Home]:
    """Make a home that holds *entries*, for as long as the context lasts."""
    state = memory.home.state_folder
    for left in state.glob(f"{TRIAL_PREFIX}*"):
        shutil.rmtree(left, ignore_errors=True)  # Of a process that was killed.
    folder = Path(tempfile.mkdtemp(prefix=TRIAL_PREFIX, dir=state))
    try:
        home = Home(folder)
        home.log_folder.mkdir()
        for repo in {entry.record.repo for entry in entries}:
            lines = [entry.line for entry in entries if entry.record.repo == repo]
            home.log(repo).write_bytes(b"".join(lines))
        yield home
    finally:
        shutil.rmtree(folder, ignore_errors=True)
