"""Consolidation: what several tasks have in common becomes a pattern or an anti-pattern.

Raw episodes stay. Every record made here names its evidence, passes the gate, and belongs to a
batch that can be undone. What is not sure enough, or was seen once, waits in the inbox.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace import inbox
from commonplace.errors import LogBusy, RecordNotFound
from commonplace.files.lock import hold
from commonplace.learn import batches, candidates, existing, gate, pool
from commonplace.learn.clusters import clusters
from commonplace.learn.confidence import CONFIDENCE_MIN
from commonplace.learn.meaning import Meaning
from commonplace.recall.dates import parse_moment
from commonplace.records import micros

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from commonplace.learn.candidates import Candidate
    from commonplace.log.prepare import PreparedLine
    from commonplace.recaller import Recaller
    from commonplace.records import Record

FIRST_SINCE = "24h"
SEVERAL_FIXES = "the same problem was solved in different ways"
STEP = "consolidation"
WAIT_S_MAX = 60.0
FORGOTTEN = "it was made before, and forgotten"
# A run puts at most so many candidates into the inbox.
PROPOSED_MAX = 20
# Lessons that say the same are proposed as a pattern from so many sessions on.
SAID_MIN = 3
TAGS_COMPARED_MAX = 300
# So many records are judged, and written, together.
GATED_MAX = 100


class HeldBack(NamedTuple):
    """A candidate that was not written, and why."""

    candidate: Candidate
    reason: str

    @property
    def fields(self) -> Mapping[str, Any]:
        return self.candidate.fields

    @property
    def is_for_inbox(self) -> bool:
        """Whether somebody may want to decide.

        So with a pattern, an error that was told of once, or one whose tasks failed with a fix.
        """
        one = self.candidate
        if one.doubt:
            return one.doubt == candidates.ALL_FAILED
        if self.reason == FORGOTTEN or (one.is_said and one.sessions < SAID_MIN):
            return False
        is_pattern = one.sessions >= candidates.SESSIONS_MIN
        return one.kind == "pattern" if is_pattern else not one.by_hook

    def as_dict(self) -> dict[str, Any]:
        one = self.candidate
        evidence = {"evidence": list(one.sources), "against": list(one.others)}
        return {**self.fields, **evidence, "reason": self.reason}


@dataclass
class Report:
    """The result of a consolidation."""

    batch: str = ""
    dry_run: bool = False
    # Another process was consolidating, so nothing was done.
    busy: bool = False
    looked_at: int = 0
    clusters: int = 0
    made: list[Record] = field(default_factory=list)
    changed: list[Record] = field(default_factory=list)
    held_back: list[HeldBack] = field(default_factory=list)
    # How many of those wait in the inbox now.
    proposed: int = 0
    # Questions of the gate, and for how many the fix was found before and after.
    asked: int = 0
    found_before: int = 0
    found_after: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return the report as `consolidate --json` prints it."""
        return {
            "batch": self.batch,
            "dry_run": self.dry_run,
            "busy": self.busy,
            "looked_at": self.looked_at,
            "clusters": self.clusters,
            "patterns": [one.fields for one in self.made if one.kind == "pattern"],
            "anti_patterns": [one.fields for one in self.made if one.kind == "anti_pattern"],
            "gained_evidence": [one.fields for one in self.changed],
            "held_back": [one.as_dict() for one in self.held_back],
            "proposed": self.proposed,
            "gate": {
                "asked": self.asked,
                "found_before": self.found_before,
                "found_after": self.found_after,
            },
        }


def consolidate(
    memory: Recaller,
    since: str | None = None,
    *,
    everything: bool = False,
    dry_run: bool = False,
    is_over: Callable[[], bool] = lambda: False,
    wait_s_max: float = WAIT_S_MAX,
) -> Report:
    """Learn from the episodes and lessons that are new and not older than *since*.

    Without that, from all that are new; at the first time, from those of the last day; with
    *everything*, whatever their age. If another process consolidates, wait for it up to
    *wait_s_max*.
    """
    now = memory.now()
    first_micros = micros(parse_moment(FIRST_SINCE, now))
    since_micros = pool.EVER if everything else None
    if since is not None:
        since_micros = micros(parse_moment(since, now, "since"))
    report = Report(dry_run=dry_run)
    if not memory.home.path.is_dir():
        return report  # Nothing was ever written.
    try:
        with hold_learning(memory, wait_s_max):
            batch = batches.new_name(now)
            if not dry_run:
                inbox.withdraw_hidden(memory)
            has_more = True
            # Maintenance may have little time, so its first rounds are short. Longer ones see more
            # of a cluster at once, and ask the gate less often.
            is_short = everything and not dry_run
            lines_max = pool.LINES_FIRST if is_short else pool.LINES_MAX
            while has_more and not is_over():
                found = pool.read(memory, since_micros, first_micros, lines_max)
                report.looked_at += found.records
                if found.new:
                    try:
                        _learn(memory, found, report, batch, now, is_over)
                    except gate.OutOfTime:
                        break  # The next run reads these again, and finds that some are known.
                if not dry_run:
                    pool.save_marks(memory, found.marks)
                has_more = found.has_more and not dry_run
                lines_max = min(2 * lines_max, pool.LINES_MAX)
            if not dry_run:
                _propose(memory, report, batch)
    except LogBusy:
        report.busy = True
    return report


@contextmanager
def hold_learning(memory: Recaller, wait_s_max: float = WAIT_S_MAX) -> Iterator[None]:
    """Hold the locks for learning of all homes that may be written, in one order for everybody."""
    homes = [home for home in memory.homes if memory.trusts(home) and home.path.is_dir()]
    with ExitStack() as stack:
        for home in sorted(homes, key=lambda one: str(one.path)):
            stack.enter_context(hold(home.learning_lock, wait_s_max))
        yield


def _learn(
    memory: Recaller,
    found: pool.Pool,
    report: Report,
    batch: str,
    now: datetime,
    is_over: Callable[[], bool],
) -> None:
    """Write what the records of *found* teach.

    Raises `OutOfTime` if there was no time for all of it.
    """
    sure = _split_off_doubtful(_candidates(memory, found, report), report)
    new, known = _compare(memory, sure)
    entries = _prepare(memory, new, batch, report)
    for start in range(0, len(entries), GATED_MAX):
        part = dict(islice(entries.items(), start, start + GATED_MAX))
        passed = _pass_gate(memory, part, report, is_over)
        report.batch = batch if passed else report.batch
        for home in sorted({home for home, _entry in passed}) if not report.dry_run else ():
            memory.store([entry for number, entry in passed if number == home], home)
    if report.dry_run:
        report.changed += _would_change(memory, known, now)
        report.batch = batch if report.changed else report.batch
        return
    for ident, given in known.items():
        if is_over():
            raise gate.OutOfTime
        if (changed := _change(memory, ident, given, batch, now)) is not None:
            report.changed.append(changed)
            report.batch = batch
    if report.batch:
        _withdraw_known(memory, [*report.made, *report.changed])


def _withdraw_known(memory: Recaller, written: Sequence[Record]) -> None:
    """Remove from the inbox what the records *written* say by now with the same evidence."""

    def is_known(one: inbox.Candidate) -> bool:
        if one.kind not in ("pattern", "anti_pattern"):
            return False
        candidate = candidates.of_fields({**one.record, "kind": one.kind}, one.repo)
        return any(existing.covers(record, candidate) for record in written)

    inbox.withdraw(memory, is_known)


def _change(
    memory: Recaller, ident: str, given: Sequence[Candidate], batch: str, now: datetime
) -> Record | None:
    """Give a known record the evidence of some candidates, as it is at this moment."""
    taken_back = batches.sources_taken_back(memory, ident, STEP)

    def next_fields(record: Record) -> dict[str, Any] | None:
        fields = existing.add_evidence(record, given, now, taken_back)
        return None if fields is None else batches.mark(fields, batch, STEP)

    try:
        return memory.change(ident, next_fields)
    except RecordNotFound:
        return None  # Somebody has forgotten it meanwhile.


def _would_change(
    memory: Recaller, known: Mapping[str, Sequence[Candidate]], now: datetime
) -> Iterator[Record]:
    for ident, given in known.items():
        record = memory.get(ident)
        taken_back = batches.sources_taken_back(memory, ident, STEP)
        if (fields := existing.add_evidence(record, given, now, taken_back)) is not None:
            yield type(record)(fields)


def _split_off_doubtful(given: Sequence[Candidate], report: Report) -> list[Candidate]:
    """Return the candidates that are sure enough; the others are held back."""
    sure: list[Candidate] = []
    for candidate in given:
        if reason := _doubt(candidate):
            report.held_back.append(HeldBack(candidate, reason))
        else:
            sure.append(candidate)
    return sure


def _prepare(
    memory: Recaller, given: Sequence[Candidate], batch: str, report: Report
) -> dict[str, tuple[Candidate, PreparedLine]]:
    """Return the candidates as lines, by their ids; what was forgotten before is held back."""
    entries: dict[str, tuple[Candidate, PreparedLine]] = {}
    for candidate in given:
        if batches.was_forgotten(memory, candidate.kind, candidate.sources):
            report.held_back.append(HeldBack(candidate, FORGOTTEN))
        else:
            entry = memory.prepare(batches.mark(candidate.fields, batch, STEP))
            entries.setdefault(entry.record.id, (candidate, entry))
    return entries


def _pass_gate(
    memory: Recaller,
    entries: dict[str, tuple[Candidate, PreparedLine]],
    report: Report,
    is_over: Callable[[], bool],
) -> list[tuple[int, PreparedLine]]:
    """Return the lines that the gate lets through, each with the number of its home."""
    verdict = gate.judge(
        memory,
        [entry for _candidate, entry in entries.values()],
        {ident: candidate.questions for ident, (candidate, _entry) in entries.items()},
        is_over,
    )
    report.asked += verdict.asked
    report.found_before += verdict.found_before
    report.found_after += verdict.found_after
    passed: list[tuple[int, PreparedLine]] = []
    for ident, (candidate, entry) in entries.items():
        if reason := verdict.held_back.get(ident, ""):
            report.held_back.append(HeldBack(candidate, reason))
        else:
            report.made.append(entry.record)
            passed.append((candidate.place.home, entry))
    return passed


def _candidates(memory: Recaller, found: pool.Pool, report: Report) -> list[Candidate]:
    meaning = Meaning(memory.engine().embedding.embedder())
    groups = [
        cluster
        for cluster in clusters(found.observations, meaning)
        if any(one.source in found.new for one in cluster.members or cluster.open)
    ]
    report.clusters += len(groups)
    tags = sorted(memory.tags(all_repos=True).items(), key=lambda one: (-one[1], one[0]))
    names = [tag for tag, _count in tags[:TAGS_COMPARED_MAX]]
    now_micros = max(one.micros for one in found.observations)
    user = next((n for n, home in enumerate(memory.homes) if home.of_user), 0)
    return [
        candidate
        for cluster in groups
        for candidate in candidates.of_cluster(cluster, names, now_micros, user)
    ]


def _doubt(candidate: Candidate) -> str:
    """Return why *candidate* is not sure enough to be written; "" if it is."""
    if candidate.doubt:
        return candidate.doubt
    if candidate.sessions < candidates.SESSIONS_MIN:
        return SEVERAL_FIXES if candidate.others else "it was seen in one session"
    if candidate.is_said:
        return "lessons say it already, each by itself"
    if candidate.confidence < CONFIDENCE_MIN:
        return f"its confidence is {candidate.confidence}, under {CONFIDENCE_MIN}"
    return ""


def _compare(
    memory: Recaller, given: Sequence[Candidate]
) -> tuple[list[Candidate], dict[str, list[Candidate]]]:
    """Return the candidates that are new; and those that are known already, by that record's id."""
    new: list[Candidate] = []
    known: dict[str, list[Candidate]] = {}
    with memory.engine().reading() as readers:
        for candidate in given:
            ident = existing.find(memory, readers, candidate)
            if ident:
                known.setdefault(ident, []).append(candidate)
            else:
                new.append(candidate)
    return new, known


def _propose(memory: Recaller, report: Report, batch: str) -> None:
    """Put what was held back into the inbox of the nearest home, the most promising first."""
    given = sorted(
        (one for one in report.held_back if one.is_for_inbox),
        key=lambda one: (-one.candidate.sessions, -one.candidate.confidence, one.candidate.text),
    )
    for held in given[:PROPOSED_MAX]:
        one = held.candidate
        home = memory.homes[one.place.home]
        if not memory.trusts(home) or _has_record(memory, one):
            continue
        candidate = inbox.propose(
            home,
            inbox.Proposal(
                kind=one.kind,
                title=one.text,
                fields=dict(one.fields),
                evidence=one.sources,
                against=one.others,
                reason=held.reason,
                repo=one.place.repo,
                at=memory.now().timestamp(),
                rank=one.sessions + one.confidence,
                batch=batch,
            ),
        )
        report.proposed += bool(candidate.seen)


def _has_record(memory: Recaller, candidate: Candidate) -> bool:
    """Whether a record says it with this evidence: somebody may have accepted it before."""
    with memory.engine().reading() as readers:
        ident = existing.find(memory, readers, candidate)
    return bool(ident) and existing.covers(memory.get(ident), candidate)
