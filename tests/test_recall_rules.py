"""The rules of recall one by one: priors, duplicates, relevance, narrowing, verdicts, several homes."""

from __future__ import annotations

import math
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.embed.embedder import Encoded
from commonplace.errors import UsageError
from commonplace.index.bm25 import Statistics
from commonplace.index.ports import Card, Filter
from commonplace.index.terms import query_terms, term_hash, term_set
from commonplace.recall import dedupe, overview, priors, search
from commonplace.recall.candidates import Candidate, Candidates, Proposal
from commonplace.recall.dates import parse_moment
from commonplace.recall.dedupe import SUPERSEDED, Entry
from commonplace.recall.hits import Explanation, Hit
from commonplace.recall.matching import PAGE, Matching
from commonplace.recall.priors import NO_PRIORS, Priors, Weights
from commonplace.recall.query import Query
from commonplace.recall.scoring import Scale
from commonplace.recall.search import SURE, Fusion, Search
from commonplace.recall.visibility import shown_cards
from commonplace.records import Rate, from_line, micros
from commonplace.rules import Standing, Tally
from commonplace.vocabulary import LIMIT_MAX
from commonplace.where.home import Home
from histories import append, feedback, forget, lesson, link, pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from commonplace.index.ports import Index, Reader

    Engine = Callable[[Home], Index]

NOW = datetime(2026, 6, 15, 12, tzinfo=UTC)
DAY = 86_400_000_000
NEWEST = micros("2026-06-01T00:00:00Z")
WEIGHTS = Weights()


def card(ident: str = "a", **more: Any) -> Card:
    timestamp = more.get("timestamp", "2026-06-01T00:00:00Z")
    values: dict[str, Any] = {
        "key": 1, "id": ident, "log": "app", "repo": "app", "kind": "lesson", "timestamp": timestamp,
        "micros": micros(timestamp), "agent": "", "event_type": "error", "tags": (), "archived": False,
        "standing": Standing.CURRENT,
    }  # fmt: skip
    if "rate" in more:
        more["stated"] = more.pop("rate")
    return Card(**values | more)


# --- Priors -------------------------------------------------------------------------------------------


def factors(one: Card, text: str = "x", uses: int = 0, said: str = "", **query: Any) -> Any:
    asked = Query(text=text, **query)
    return Priors(asked, NEWEST, WEIGHTS).factors(one, uses, lambda: said)


@pytest.mark.parametrize(
    ("more", "asked", "expected"),
    [
        ({}, {}, {}),
        ({"micros": NEWEST - 180 * DAY}, {}, {"recency": 0.925}),
        ({"micros": NEWEST - 360 * DAY}, {}, {"recency": 0.8875}),
        ({"micros": NEWEST + DAY}, {}, {}),
        ({"rate": Rate(0, 0)}, {}, {}),
        ({"rate": Rate(9, 10)}, {}, {"success": 1.18}),
        ({"rate": Rate(0, 4)}, {}, {"success": 0.8}),
        ({"feedback": Tally(wrong=1)}, {}, {"doubt": 0.5}),
        ({"feedback": Tally(stale=1)}, {}, {"doubt": 0.5}),
        ({"feedback": Tally(wrong=1, stale=1)}, {}, {"doubt": 0.25}),
        ({"feedback": Tally(wrong=3)}, {}, {"doubt": 0.125}),
        ({"feedback": Tally(wrong=9, stale=9)}, {}, {"doubt": 0.125}),
        ({"feedback": Tally(worked=9, failed=9)}, {}, {"success": 0.99}),
        ({}, {"uses": 1}, {"use": 1.005}),
        ({}, {"uses": 63}, {"use": 1.03}),
        ({}, {"uses": 10**6}, {"use": 1.03}),
        ({"kind": "episode"}, {}, {"kind": 0.96}),
        ({"kind": "handoff"}, {}, {"kind": 0.96}),
        ({"kind": "skill"}, {}, {"kind": 0.94}),
        ({"kind": "pattern"}, {}, {}),
        ({"kind": "pattern", "confidence": 0.9}, {}, {"evidence": 1.045}),
        ({"kind": "pattern", "used": 63}, {}, {"evidence": 1.05}),
        ({"kind": "pattern", "confidence": 1.0, "used": 10**6}, {}, {"evidence": 1.1}),
        ({}, {"here": "app"}, {"repo": 1.08}),
        ({}, {"here": "lib"}, {}),
        ({"repo": ""}, {"here": ""}, {}),
        ({"agent": "ana"}, {"reader": "ana"}, {"agent": 1.02}),
        ({"agent": "ana"}, {"reader": "ben"}, {}),
        ({"agent": ""}, {"reader": ""}, {}),
        ({"tags": ("cache",)}, {"text": "the Cache is cold"}, {"tags": 1.05}),
        ({"tags": ("cache",)}, {"text": "the disk is cold"}, {}),
        ({"tags": ("c",)}, {"text": "the cache is cold"}, {}),
        ({"tags": ("ci",)}, {"text": "ci is cold"}, {"tags": 1.05}),
        ({}, {"files": ("a/b.py",), "said": "see b.py"}, {"files": 1.25}),
        ({}, {"files": ("a/b.py",), "said": "see c.py"}, {}),
        ({}, {"files": (), "said": "see b.py"}, {}),
    ],
)
def test_each_prior_is_a_factor_with_its_weight(
    more: dict[str, Any], asked: dict[str, Any], expected: dict[str, float]
) -> None:
    assert factors(card(**more), **asked) == pytest.approx(expected, abs=0.006)


def test_without_priors_only_doubt_counts() -> None:
    asked = Query(text="cache", here="app", reader="ana", files=("b.py",))
    one = card(
        agent="ana",
        tags=("cache",),
        kind="episode",
        micros=0,
        stated=Rate(9, 9),
        feedback=Tally(wrong=1),
    )

    assert Priors(asked, NEWEST, NO_PRIORS).factors(one, 9, lambda: "b.py") == {"doubt": 0.5}


@pytest.mark.parametrize(
    ("rate", "bound"),
    [
        (Rate(1, 1), 0.5),
        (Rate(9, 10), 0.7661),
        (Rate(0, 5), 0.0),
        (Rate(1, 2), 0.2113),
        (Rate(50, 100), 0.4502),
        (Rate(100, 100), 0.9901),
    ],
)
def test_the_lower_bound_of_a_rate(rate: Rate, bound: float) -> None:
    assert priors.wilson(rate) == pytest.approx(bound, abs=2e-4)


@pytest.mark.parametrize(
    ("rate", "factor"),
    [(None, 1.0), (Rate(0, 0), 1.0), (Rate(1, 1), 1.05), (Rate(0, 1), 0.8), (Rate(99, 99), 1.295)],
)
def test_success_moves_a_score_around_that_of_the_untried(rate: Rate, factor: float) -> None:
    assert priors.success(rate, WEIGHTS) == pytest.approx(factor, abs=0.001)


def test_a_kind_is_weighed_against_the_best_one() -> None:
    weights = Weights(semantic=0.2, episodic=0.4, skills=0.1)

    assert priors.kind("episode", weights) == 1.0
    assert priors.kind("lesson", weights) == pytest.approx(0.95)
    assert priors.kind("skill", weights) == pytest.approx(0.925)
    assert priors.kind("lesson", Weights(semantic=0, episodic=0, skills=0)) == pytest.approx(0.9)


@pytest.mark.parametrize("kind", ["episode", "handoff", "ledger", "context", "task"])
def test_what_happened_weighs_less_than_what_holds(kind: str) -> None:
    assert priors.kind(kind, WEIGHTS) < priors.kind("lesson", WEIGHTS)


@pytest.mark.parametrize(
    ("text", "files", "named"),
    [
        ("see src/app.py", ("src/app.py",), True),
        ("see app.py", ("src/app.py",), True),
        ("see app.py", ("src\\app.py",), True),
        ("see app.py.", ("src/app.py",), True),
        ("see (app.py)", ("src/app.py",), True),
        ("see lib/app.py", ("src/app.py",), True),
        ("see myapp.py", ("src/app.py",), False),
        ("see my-app.py", ("src/app.py",), False),
        ("see x.app.py", ("src/app.py",), False),
        ("see app.pyc", ("src/app.py",), False),
        ("see app.py-old", ("src/app.py",), False),
        ("see appxpy", ("src/app.py",), False),
        ("see app.py", ("src/", ""), False),
        ("see b.py", ("a.py", "b.py"), True),
    ],
)
def test_a_text_names_a_file_by_its_path_or_last_part(
    text: str, files: tuple[str, ...], named: bool
) -> None:
    assert priors.names_any(text, files) is named


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("edit src/gone.py", ["src/gone.py"]),
        ("edit src/here.py", []),
        ("edit src/z.py and src/a.py", ["src/a.py", "src/z.py"]),
        ("edit lib/gone.py", []),
        ("see https://src/gone.py", []),
        ("see ~/src/gone.py and /src/gone.py and $src/gone.py", []),
        ("see src/gone.py/more", []),
        ("edit src/gone", []),
        ("edit src/deep/gone.json twice src/deep/gone.json", ["src/deep/gone.json"]),
        ("edit src/v1.2345", []),
    ],
)
def test_files_that_a_text_names_and_the_repository_lacks(
    tmp_path: Path, text: str, missing: list[str]
) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "here.py").touch()

    assert priors.missing_files(text, tmp_path) == missing


# --- What says the same -------------------------------------------------------------------------------


def entry(
    ident: str,
    terms: Collection[int],
    score: float = 1.0,
    *,
    day: int = 1,
    vector: Sequence[float] | None = None,
    text: str = "",
    **more: Any,
) -> Entry:
    one = card(ident, timestamp=more.pop("timestamp", f"2026-06-{day:02}T00:00:00Z"), **more)
    candidate = Candidate((0, 1), one, 1.0, None, 1.0, {}, score)
    turned = None if vector is None else np.asarray(vector, np.float32)
    return Entry(candidate, score, frozenset(terms), lambda: text, 1.0, turned)


def ids(entries: Sequence[Entry]) -> list[str]:
    return [one.candidate.card.id for one in entries]


def superseded(entries: Sequence[Entry]) -> list[str]:
    return [one.candidate.card.id for one in entries if SUPERSEDED in one.marks]


@pytest.mark.parametrize(
    ("one", "other", "are_twins"),
    [
        (range(10), range(10), True),
        (range(10), range(9), True),
        (range(20), range(17), False),
        (range(20), range(18), True),
        (range(10), range(1, 11), False),
        ((), (), False),
        ((1,), (), False),
    ],
)
def test_twins_share_nine_tenths_of_their_terms(
    one: Collection[int], other: Collection[int], are_twins: bool
) -> None:
    for pair in ((one, other), (other, one)):
        found = dedupe.fold_twins([entry("a", pair[0], 0.9), entry("b", pair[1], 0.5)])
        assert ids(found) == (["a"] if are_twins else ["a", "b"])


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        (None, None, "a"),
        (None, Rate(9, 10), "b"),
        (None, Rate(0, 0), "a"),
        (None, Rate(0, 3), "a"),
        (Rate(0, 3), None, "b"),
        (Rate(9, 10), Rate(9, 10), "a"),
        (Rate(9, 10), Rate(1, 1), "a"),
        (Rate(1, 1), Rate(9, 10), "b"),
    ],
)
def test_of_twins_the_best_proven_stays_in_the_better_place(
    first: Rate | None, second: Rate | None, kept: str
) -> None:
    terms = range(10)
    others = [entry("c", range(50, 60), 0.8), entry("d", range(70, 80), 0.4)]

    found = dedupe.fold_twins(
        [
            entry("a", terms, 0.9, rate=first),
            others[0],
            entry("b", terms, 0.5, rate=second),
            others[1],
        ]
    )

    assert ids(found) == [kept, "c", "d"]
    assert [one.score for one in found] == [0.9, 0.8, 0.4]


RULE = range(20)
# Common terms of `RULE` with `shifted(n)`: (20 - n) / (20 + n).


def shifted(places: int) -> range:
    return range(places, 20 + places)


@pytest.mark.parametrize(
    ("newer", "leads"),
    [
        (entry("new", shifted(5), 0.8, day=2), True),
        (entry("new", shifted(5), 0.8, day=1), False),
        (entry("new", shifted(5), 0.8, timestamp="2026-06-01T00:00:59Z"), False),
        (entry("new", shifted(5), 0.8, timestamp="2026-06-01T00:01:00Z"), True),
        (entry("new", shifted(5), 0.8, timestamp="2026-05-31T00:00:00Z"), False),
        (entry("new", shifted(5), 0.8, day=2, repo="lib"), False),
        (entry("new", shifted(5), 0.8, day=2, kind="pattern"), False),
        # How alike: a quarter of the terms, or a cosine of 0.42.
        (entry("new", shifted(12), 0.8, day=2), True),
        (entry("new", shifted(13), 0.8, day=2), False),
        (entry("new", shifted(13), 0.8, day=2, vector=[0.421, 0.907]), True),
        (entry("new", shifted(13), 0.8, day=2, vector=[0.41, 0.912]), False),
        # How well it fits the question: three tenths as well as the older one.
        (entry("new", shifted(5), 0.31, day=2), True),
        (entry("new", shifted(5), 0.29, day=2), False),
        # One that was tried and failed stays behind.
        (entry("new", shifted(5), 0.8, day=2, rate=Rate(0, 9)), False),
        (entry("new", shifted(5), 0.8, day=2, rate=Rate(0, 0)), True),
        (entry("new", shifted(5), 0.8, day=2, rate=Rate(2, 2)), True),
    ],
)
def test_the_newer_of_two_rules_goes_first(newer: Entry, leads: bool) -> None:
    older = entry("old", RULE, 1.0, vector=[1.0, 0.0], rate=Rate(9, 10))

    found = dedupe.newest_first([older, newer])

    assert ids(found) == (["new", "old"] if leads else ["old", "new"])
    if leads:
        assert found[0].score == 1.0


@pytest.mark.parametrize(
    ("older_rate", "newer_rate", "leads"),
    [
        (Rate(9, 10), Rate(1, 1), True),
        (Rate(9, 10), Rate(1, 2), False),
        (None, Rate(1, 2), True),
        (None, Rate(0, 1), False),
    ],
)
def test_a_newer_rule_may_be_a_little_less_proven(
    older_rate: Rate | None, newer_rate: Rate, leads: bool
) -> None:
    found = dedupe.newest_first(
        [entry("old", RULE, rate=older_rate), entry("new", shifted(3), 0.8, day=2, rate=newer_rate)]
    )

    assert ids(found) == (["new", "old"] if leads else ["old", "new"])


def test_a_better_score_of_the_newer_rule_stays() -> None:
    found = dedupe.newest_first(
        [
            entry("x", range(90, 99), 3.0),
            entry("old", RULE, 1.0),
            entry("new", shifted(5), 2.0, day=2),
        ]
    )

    assert [(one.candidate.card.id, one.score) for one in found] == [
        ("x", 3.0),
        ("new", 2.0),
        ("old", 1.0),
    ]


def test_of_three_versions_the_newest_leads_and_the_older_ones_are_marked() -> None:
    found = dedupe.newest_first(
        [
            entry("one", shifted(0), 0.9, day=1),
            entry("two", shifted(1), 0.8, day=2),
            entry("three", shifted(2), 0.7, day=3),
        ]
    )

    assert ids(found)[0] == "three"
    assert superseded(found) == [one for one in ids(found) if one != "three"]


@pytest.mark.parametrize(
    ("newer", "marked"),
    [
        # 0.42 of the terms, or a cosine of 0.6.
        (entry("new", shifted(8), 2.0, day=2), True),
        (entry("new", shifted(9), 2.0, day=2), False),
        (entry("new", shifted(9), 2.0, day=2, vector=[0.61, 0.792]), True),
        (entry("new", shifted(9), 2.0, day=2, vector=[0.59, 0.807]), False),
        # Or 0.57, and it speaks of a change.
        (entry("new", shifted(9), 2.0, day=2, vector=[0.58, 0.815], text="use b instead"), True),
        (entry("new", shifted(9), 2.0, day=2, vector=[0.56, 0.828], text="use b instead"), False),
        (entry("new", shifted(9), 2.0, day=2, vector=[0.58, 0.815], text="known use of b"), False),
        (entry("new", shifted(8), 2.0, day=1), False),
        (entry("new", shifted(8), 2.0, day=2, repo="lib"), False),
        (entry("new", shifted(8), 2.0, day=2, kind="pattern"), False),
    ],
)
def test_the_older_of_two_rules_is_marked(newer: Entry, marked: bool) -> None:
    older = entry("old", RULE, 1.0, vector=[1.0, 0.0], text="no longer")

    found = dedupe.newest_first([newer, older])

    assert ids(found) == ["new", "old"]
    assert superseded(found) == (["old"] if marked else [])


@pytest.mark.parametrize(
    "words",
    ["now", "instead", "No longer", "anymore", "any more", "replaces", "replaced", "replace", "moved",
     "switched", "migrated", "deprecated", "removed", "dropped", "took over", "as of", "used to", "formerly",
     "gone", "retired"],
)  # fmt: skip
def test_words_that_speak_of_a_change(words: str) -> None:
    newer = entry("new", shifted(9), 2.0, day=2, vector=[0.63, 0.777], text=f"it is {words} here")

    assert superseded(dedupe.newest_first([newer, entry("old", RULE, vector=[1, 0])])) == ["old"]


@pytest.mark.parametrize(
    ("relevance", "cosine", "leads", "marked"),
    # A fifth of the odds of the older one, which is sure: p / (1 - p).
    [(1.0, 0.7, True, True), (0.91, 0.7, True, True), (0.90, 0.7, False, False), (0.91, 0.5, True, False)],
)  # fmt: skip
def test_a_newer_lesson_about_the_same_tool_leaves_the_older_one_valid(
    relevance: float, cosine: float, leads: bool, marked: bool
) -> None:
    newer = entry(
        "new",
        range(100, 120),
        0.9,
        day=2,
        vector=[cosine, (1 - cosine**2) ** 0.5],
        text="use b instead",
    )._replace(relevance=relevance)

    found = dedupe.newest_first([entry("old", RULE, vector=[1.0, 0.0]), newer])

    assert ids(found) == (["new", "old"] if leads else ["old", "new"])
    assert superseded(found) == (["old"] if marked else [])


def asked(entries: Sequence[Entry], question: str) -> list[Entry]:
    """Return *entries* with that question, whose terms weigh the same."""
    terms = hashed(question)
    return [one._replace(question=dict.fromkeys(terms, 1 / len(terms))) for one in entries]


@pytest.mark.parametrize(
    ("old", "new", "question"),
    [
        ("The API listens on port 8080.", "The metrics endpoint listens on port 9090.", "which port is the API on"),
        ("Logs of the API are in the group /app/api.", "Logs of the worker are in the group /app/worker.", "where are the API logs"),
        ("The nightly export runs at 02:00.", "The nightly backup runs at 04:00.", "when does the nightly export run"),
    ],
)  # fmt: skip
def test_a_newer_rule_without_what_the_question_names_is_about_something_else(
    old: str, new: str, question: str
) -> None:
    pair = [
        entry("old", hashed(old), 1.0, vector=[1.0, 0.0], text=old),
        entry("new", hashed(new), 0.9, day=2, vector=[0.9, 0.43], text=new),
    ]

    found = dedupe.newest_first(asked(pair, question))

    assert ids(found) == ["old", "new"]
    assert superseded(found) == []
    assert ids(dedupe.newest_first(asked(pair, "what runs nightly, listens or logs"))) == ["new", "old"]  # fmt: skip


@pytest.mark.parametrize(
    ("new", "leads"),
    [
        ("date-fns replaced moment in the web app", True),
        ("The web app uses date-fns; moment is gone", True),
        ("The web app formats with date-fns, and moment only in tests now", True),
        ("From now on the web app uses date-fns instead of moment", True),
        ("In the web app we have switched from moment to date-fns", True),
        # What ended is not what the older one answers.
        ("The web app sends a moment of silence, and the pager is gone", False),
        ("The web app shows a moment instead of a date", False),
    ],
)
def test_a_newer_rule_may_say_that_the_answer_of_the_older_one_has_ended(
    new: str, leads: bool
) -> None:
    old = "Use moment for arithmetic in the web app"
    pair = [
        entry("old", hashed(old), 1.0, vector=[1.0, 0.0], text=old),
        entry("new", hashed(new), 0.9, day=2, vector=[0.7, 0.71], text=new),
    ]

    found = dedupe.newest_first(asked(pair, "library for arithmetic in the web app"))

    assert (ids(found)[0] == "new") is leads
    assert superseded(found) == (["old"] if leads else [])


def test_a_newer_rule_that_adds_to_the_older_one_does_not_mark_it() -> None:
    old = "Flaky checkout test: freeze the clock"
    pair = [
        entry("old", hashed(old), 1.0, vector=[1.0, 0.0], text=old),
        entry("new", hashed(old), 0.9, day=2, vector=[0.9, 0.43], text=f"{old}, and set TZ"),
    ]
    adding = pair[1]._replace(text=lambda: "The flaky checkout test also needs TZ=UTC")

    assert superseded(dedupe.newest_first(asked(pair, "flaky checkout test"))) == ["old"]
    assert superseded(dedupe.newest_first(asked([pair[0], adding], "flaky checkout test"))) == []


SESSION = (
    "We looked at the build for a while, and it was slow because of the linker. "
    "Then the cache of the runner was cleared, which helped a little. "
    "{} "
    "After that the docs were put right, and the changelog got an entry for the release. "
    "In the evening the flaky browser tests were marked, and somebody looked at their timeouts. "
    "The nightly job writes its report to the bucket of the platform team again. "
    "Two warnings of the compiler were silenced, since a vendored header causes them."
)


def hashed(text: str) -> frozenset[int]:
    return frozenset(map(term_hash, term_set(text)))


def stated(ident: str, text: str, score: float, day: int, question: str) -> Entry:
    one = entry(ident, hashed(text), score, day=day, text=text)
    return dedupe.with_statement(one, dict(query_terms(question)))


@pytest.mark.parametrize("is_old_long", [False, True])
def test_the_newest_statement_of_a_rule_leads_even_in_a_long_session(is_old_long: bool) -> None:
    question = "what port does the API have in development"
    old, new = ("The API listens on port 8000 in development.", "The API listens on port 9100 in development.")  # fmt: skip
    older = stated("old", SESSION.format(old) if is_old_long else old, 1.0, 1, question)
    newer = stated("new", SESSION.format(new), 0.2, 2, question)

    assert newer.statement is not None
    assert newer.statement.text == new
    assert dedupe.restates(newer, [older])
    found = dedupe.newest_first([older, newer])
    assert ids(found) == ["new", "old"]
    # Of a long record, more than one sentence may be valid.
    assert superseded(found) == ([] if is_old_long else ["old"])


@pytest.mark.parametrize(
    ("old", "new", "question"),
    [
        ("Secrets of services are stored as sealed-secrets in the repository under k8s/secrets.",
         "From now on secrets are managed by External Secrets Operator from AWS; sealed-secrets is not used any more in any service.",
         "where are secrets managed for services"),
        ("The on-call engineer is paged by PagerDuty.",
         "PagerDuty is cancelled; on-call pages are sent by Grafana OnCall since this week.",
         "how is the on-call engineer paged"),
        ("Feature flags live in the table feature_flags and are edited with SQL.",
         "Feature flags are not edited with SQL any more, use the admin page /admin/flags, which writes an audit log.",
         "how do I change a feature flag"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_old_long", [False, True])
def test_a_longer_sentence_that_says_what_ended_is_the_newer_version(
    old: str, new: str, question: str, is_old_long: bool
) -> None:
    older = stated("old", SESSION.format(old) if is_old_long else old, 1.0, 1, question)
    newer = stated("new", SESSION.format(new), 0.5, 2, question)

    found = dedupe.newest_first(asked([older, newer], question))

    assert ids(found) == ["new", "old"]
    assert superseded(found) == ([] if is_old_long else ["old"])


def test_a_sentence_that_says_the_same_again_changes_nothing() -> None:
    rule = "The API listens on port 8000 in development."
    older = stated("old", rule, 1.0, 1, "port of the API")
    newer = stated("new", SESSION.format(rule), 0.5, 2, "port of the API")

    found = dedupe.newest_first([older, newer])

    assert ids(found) == ["old", "new"]
    assert superseded(found) == []


def test_another_sentence_of_a_long_session_is_no_newer_version() -> None:
    question = "what port does the API have in development"
    older = stated("old", "The API listens on port 8000 in development.", 1.0, 1, question)
    newer = stated("new", SESSION.format("The API docs moved to the wiki."), 0.2, 2, question)

    assert not dedupe.restates(newer, [older])
    assert superseded(dedupe.newest_first([older, newer])) == []


def long(places: int = 0) -> range:
    return range(places, 60 + places)


@pytest.mark.parametrize(
    ("newer", "leads"),
    [
        # Half of the terms, or a cosine of 0.65; fits 0.55 as well.
        (entry("new", long(20), 0.9, day=2), True),
        (entry("new", long(21), 0.9, day=2), False),
        (entry("new", long(21), 0.9, day=2, vector=[0.66, 0.751]), True),
        (entry("new", long(21), 0.9, day=2, vector=[0.64, 0.768]), False),
        (entry("new", long(20), 0.56, day=2), True),
        (entry("new", long(20), 0.54, day=2), False),
    ],
)
def test_long_texts_must_be_more_alike_than_rules(newer: Entry, leads: bool) -> None:
    found = dedupe.newest_first([entry("old", long(), 1.0, vector=[1.0, 0.0]), newer])

    assert ids(found) == (["new", "old"] if leads else ["old", "new"])
    assert superseded(found) == (["old"] if leads else [])


@pytest.mark.parametrize(("terms", "leads"), [(40, True), (41, False)])
def test_a_rule_has_at_most_forty_terms(terms: int, leads: bool) -> None:
    found = dedupe.newest_first(
        [entry("old", range(terms)), entry("new", range(20, 20 + terms), 0.9, day=2)]
    )

    assert (ids(found)[0] == "new") is leads


# --- Questions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "end_of_day", "moment"),
    [
        ("2026-01-31", False, "2026-01-31T00:00:00Z"),
        ("2026-01-31", True, "2026-01-31T23:59:59Z"),
        ("2026-01-31T09:30:00Z", True, "2026-01-31T09:30:00Z"),
        ("2026-01-31T09:30:00+02:00", False, "2026-01-31T07:30:00Z"),
        (" 7d ", False, "2026-06-08T12:00:00Z"),
        ("7D", True, "2026-06-08T12:00:00Z"),
        ("12h", False, "2026-06-15T00:00:00Z"),
        ("2w", False, "2026-06-01T12:00:00Z"),
        ("1m", False, "2026-05-16T12:00:00Z"),
        ("1y", False, "2025-06-15T12:00:00Z"),
        ("0d", False, "2026-06-15T12:00:00Z"),
    ],
)
def test_a_moment_is_a_date_a_time_or_an_age(text: str, end_of_day: bool, moment: str) -> None:
    assert parse_moment(text, NOW, end_of_day=end_of_day) == moment


@pytest.mark.parametrize("text", ["soon", "7", "7x", "9999999d", "999999999999y", "2026-13-01", ""])
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="`since` is `") as refused:
        parse_moment(text, NOW, "since")

    assert "a date such as 2026-01-31, a time such as" in refused.value.hint


def test_a_question_is_built_from_names_alone_or_several() -> None:
    one = Query.build(
        "x", now=NOW, repo="app", kinds="lesson", types="error", tags="Web", files="b"
    )
    two = Query.build(
        "x",
        now=NOW,
        here="app",
        reader="ana",
        repo=["app", "lib"],
        kinds=["skill", "note", "lesson"],
        types=["error", "success"],
        tags=["Web", "DB"],
        files=["b", "a"],
        agent="ben",
        since="2026-01-31",
        as_of="2026-02-01",
        without=["q"],
        limit=7,
    )

    assert one == Query(
        text="x",
        repos=frozenset(["app"]),
        kinds=frozenset(["lesson"]),
        types=frozenset(["error"]),
        tags=frozenset(["web"]),
        files=("b",),
    )
    assert two == Query(
        text="x",
        here="app",
        reader="ana",
        repos=frozenset(["app", "lib"]),
        kinds=frozenset(["skill", "note", "lesson"]),
        node_types=frozenset(["skill"]),
        types=frozenset(["error", "success"]),
        tags=frozenset(["web", "db"]),
        files=("a", "b"),
        agent="ben",
        since_micros=micros("2026-01-31T00:00:00Z"),
        as_of_micros=micros("2026-02-01T23:59:59Z"),
        without=frozenset(["q"]),
        limit=7,
    )
    assert Query.build("x", now=NOW, files=None) == Query(text="x")
    assert two.with_(limit=3) == Query(**{**vars(two), "limit": 3})


@pytest.mark.parametrize("options", [{"kinds": "lessons"}, {"types": ["error", "oops"]}])
def test_an_unknown_kind_or_type_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        Query.build("x", now=NOW, **options)


@pytest.mark.parametrize(
    ("asked", "fits"),
    [
        ({}, True),
        ({"text": " \n"}, False),
        ({"limit": 0}, False),
        ({"limit": 1}, True),
        ({"limit": LIMIT_MAX}, True),
        ({"limit": LIMIT_MAX + 1}, False),
        ({"tokens_max": 0}, True),
        ({"tokens_max": -1}, False),
    ],
)
def test_a_question_is_checked(asked: dict[str, Any], fits: bool) -> None:
    query = Query(**{"text": "x", **asked})
    if fits:
        query.check()
    else:
        with pytest.raises(UsageError):
            query.check()


# --- Relevance ----------------------------------------------------------------------------------------


@pytest.fixture
def readers_of(index_engine: Engine, tmp_path: Path) -> Iterator[Callable[..., list[Reader]]]:
    """Readers of some homes, each given as its rows."""
    with ExitStack() as stack:

        def open_readers(
            *homes: list[dict[str, Any]], log: str = "app", as_of_micros: int | None = None
        ) -> list[Reader]:
            found = []
            for number, rows in enumerate(homes):
                home = Home(tmp_path / f"home{number}")
                home.log_folder.mkdir(parents=True, exist_ok=True)
                append(home, log, *rows)
                index = index_engine(home)
                index.catch_up()
                found.append(stack.enter_context(index.reading(as_of_micros)))
            return found

        yield open_readers


def searched(
    readers: Sequence[Reader],
    text: str,
    fusion: Fusion = Fusion(),  # noqa: B008 (a value)
    vector: Any = None,
    uses: Callable[[str], int] = lambda _ident: 0,
    weights: Weights = WEIGHTS,
    **query: Any,
) -> Search:
    return Search(readers, Query(text=text, **query), vector, uses, weights, fusion)


def found_ids(found: search.Found) -> list[str]:
    return [hit.id for hit in found.hits]


WORDS = [
    lesson("both", "quokka wombat"),
    lesson("one", "quokka numbat bilby dunnart"),
    lesson("none", "possum glider"),
]


def test_a_hit_must_be_relevant_by_itself_and_beside_the_best(
    readers_of: Callable[..., list[Reader]],
) -> None:
    (reader,) = readers_of(WORDS)
    hits, _floor = searched([reader], "quokka wombat").explain()
    both, one = (hit.why.relevance or 0.0 for hit in hits if hit.why)

    def found(least: float, share: float) -> list[str]:
        fusion = Fusion(relevance_min=least, odds_share_min=share)
        return found_ids(searched([reader], "quokka wombat", fusion).run())

    assert 0 < one < both < 1
    assert found(0.0, 0.0) == ["both", "one"]
    assert found(one - 0.01, 0.0) == ["both", "one"]
    assert found(one + 0.01, 0.0) == ["both"], "without a share the minimum is for each hit"
    assert found(both + 0.01, 0.01) == []
    assert found(0.0, one / both + 0.01) == ["both"]
    assert found(0.0, 1.0) == ["both"]


def test_without_the_cut_off_the_plain_ranking_comes_back(
    readers_of: Callable[..., list[Reader]],
) -> None:
    readers = readers_of(WORDS)
    fusion = Fusion(relevance_min=2.0)

    found = searched(readers, "quokka wombat", fusion, cutoff=False).run()

    assert found_ids(found) == ["both", "one"]
    assert found.considered == 2
    assert found_ids(searched(readers, "quokka wombat", cutoff=False, limit=1).run()) == ["both"]
    assert found.statistics[0].documents == 3


def test_the_best_hit_needs_the_minimum_and_the_others_a_share_of_the_best(
    readers_of: Callable[..., list[Reader]],
) -> None:
    asked = searched(readers_of(WORDS), "quokka", Fusion(relevance_min=0.2, odds_share_min=0.5))

    assert asked.relevance_floor(0.0) == 0.2
    assert asked.relevance_floor(0.19) == 0.2
    assert asked.relevance_floor(0.2) == pytest.approx(1 / 9)
    assert asked.relevance_floor(0.5) == pytest.approx(1 / 3)
    assert asked.relevance_floor(1.0) == asked.relevance_floor(SURE) == pytest.approx(49 / 51)


def test_an_explanation_has_the_whole_ranking_and_the_floor(
    readers_of: Callable[..., list[Reader]],
) -> None:
    hits, floor = searched(readers_of(WORDS), "quokka wombat").explain()

    assert [hit.id for hit in hits] == ["both", "one"]
    both, one = (hit.why.relevance or 0.0 for hit in hits if hit.why)
    assert one < both
    odds = Fusion().odds_share_min * both / (1 - both)
    assert floor == pytest.approx(odds / (1 + odds), abs=0.001)


def test_scores_are_shares_of_a_whole_match(readers_of: Callable[..., list[Reader]]) -> None:
    readers = readers_of(WORDS)
    hit = searched(readers, "quokka wombat", weights=NO_PRIORS).run().hits[0]
    assert hit.why is not None

    assert hit.why.fused == pytest.approx(1.0), "it says the whole question"
    assert hit.why.fused == pytest.approx(sum(hit.why.parts.values()), abs=0.001)
    assert hit.score == pytest.approx(hit.why.fused, abs=0.001)
    (rare,) = searched(readers, "wombat thylacine", weights=NO_PRIORS, cutoff=False).run().hits
    assert rare.why is not None
    assert rare.why.fused < 0.6, "half of the question is in no document"


def test_what_only_meaning_proposes_is_judged_by_its_words_as_well(
    readers_of: Callable[..., list[Reader]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "CANDIDATES", 4)
    rows = [lesson(f"l{n}", "quokka quokka") for n in range(8)]
    (reader,) = readers_of([*rows, lesson("far", "a quokka in a text"), lesson("none", "bilby")])
    keys = reader.keys(["far", "none"])

    class Near:
        def __getattr__(self, name: str) -> Any:
            return getattr(reader, name)

        def nearest(self, _vector: Any, _limit: int) -> dict[int, float]:
            return {keys["far"]: 0.8, keys["none"]: 0.8}

        def begin_nearest(self, _question: Any, limit: int) -> Any:
            return lambda: self.nearest(None, limit)

        def similarity(self, _vector: Any, _keys: Any) -> dict[int, float]:
            return {}

    near: Any = Near()
    asked = searched([near], "quokka", vector=lambda: Encoded(np.zeros(1, np.float32)), limit=2)
    why = {hit.id: hit.why for hit in asked.explain()[0]}
    far, none = why["far"], why["none"]

    assert far is not None
    assert none is not None
    assert 0 < far.words <= min(one.words for key, one in why.items() if one and key[0] == "l")
    assert none.words == 0


def test_meaning_is_weighed_with_words_and_a_document_without_vectors_is_judged_by_words(
    readers_of: Callable[..., list[Reader]],
) -> None:
    (reader,) = readers_of(
        [lesson("a", "quokka"), lesson("b", "wombat"), lesson("c", "quokka bilby")]
    )
    keys = reader.keys(["a", "b", "c"])

    class Near:
        """The reader with vectors of our choosing."""

        def __getattr__(self, name: str) -> Any:
            return getattr(reader, name)

        def nearest(self, _vector: Any, _limit: int) -> dict[int, float]:
            return {keys["b"]: 0.8, keys["a"]: 0.4}

        def begin_nearest(self, _question: Any, limit: int) -> Any:
            return lambda: self.nearest(None, limit)

        def similarity(self, _vector: Any, _keys: Any) -> dict[int, float]:
            return {}

    near: Any = Near()
    query = Query(text="quokka", cutoff=False, limit=9)
    encoded = Encoded(np.zeros(1, np.float32))
    found = Search([near], query, lambda: encoded, lambda _: 0, NO_PRIORS, Fusion(dense=0.4))
    hits = {hit.id: hit.why for hit in found.run().hits}
    a, b, c = (hits[ident] for ident in "abc")
    assert a is not None
    assert b is not None
    assert c is not None

    scale = Scale.measure([a.words, c.words], a.words, 0.8, 0.4)
    assert (b.words, b.meaning) == (0.0, 0.8)
    assert b.fused == pytest.approx(sum(scale.parts(0.0, 0.8, 0.0).values()), abs=0.001)
    assert a.meaning == 0.4
    assert a.fused == pytest.approx(sum(scale.parts(a.words, 0.4, 1.0).values()), abs=0.001)
    assert c.meaning is None
    assert c.fused == pytest.approx(sum(scale.parts(c.words, None, 1.0).values()), abs=0.001)


def test_of_two_homes_with_one_id_the_nearest_answers(
    readers_of: Callable[..., list[Reader]],
) -> None:
    readers = readers_of(
        [lesson("a", "quokka near")], [lesson("a", "quokka far", at=9), lesson("b", "quokka too")]
    )

    found = searched(readers, "quokka", cutoff=False).run()

    assert sorted((hit.id, hit.address[0]) for hit in found.hits) == [("a", 0), ("b", 1)]


def test_uses_lift_a_record_and_are_shown(readers_of: Callable[..., list[Reader]]) -> None:
    readers = readers_of([lesson("a", "quokka alpha"), lesson("b", "quokka bravo")])
    uses = {"b": 40}

    found = searched(readers, "quokka", uses=lambda ident: uses.get(ident, 0), cutoff=False).run()

    assert found_ids(found) == ["b", "a"]
    assert [hit.uses for hit in found.hits] == [40, 0]


def test_a_few_among_many_are_found_by_a_filter_on_tags(
    readers_of: Callable[..., list[Reader]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "CANDIDATES", 4)
    monkeypatch.setattr(search, "CANDIDATES_MAX", 16)
    rows = [lesson(f"l{n}", "quokka quokka") for n in range(40)]
    rows.append(lesson("tagged", "a quokka in a long text about other things", tags=["rare"]))
    readers = readers_of(rows)

    found = searched(readers, "quokka", tags=frozenset(["rare"]), limit=1, cutoff=False).run()

    assert found_ids(found) == ["tagged"]
    assert found.hits[0].why is not None
    assert found.hits[0].why.fused == 1.0


def test_terms_of_the_question_that_no_document_has_room_for_do_not_count() -> None:
    statistics = Statistics(10, 2.0, {"a": 1, "b": 1, "c": 1})
    asked = object.__new__(Matching)
    asked.wanted = {"a": 1.0, "b": 1.0, "c": 1.0}

    assert asked._whole_match(statistics) == pytest.approx(2 * statistics.idf("a"))


def test_what_is_read_once_is_not_read_again(readers_of: Callable[..., list[Reader]]) -> None:
    (reader,) = readers_of(WORDS)
    asked: list[str] = []

    class Counting:
        def __getattr__(self, name: str) -> Any:
            asked.append(name)
            return getattr(reader, name)

    counting: Any = Counting()
    candidates = Candidates([counting], Query(text="quokka"), lambda _ident: 0, WEIGHTS)
    addresses = [(0, key) for key in reader.keys(["both", "one"]).values()]
    asked.clear()
    for _ in range(2):
        candidates.weigh(addresses)
        candidates.read_terms(addresses)
        candidates.read(addresses)

    assert asked.count("cards") == asked.count("term_sets") == asked.count("records") == 1
    assert candidates.text(addresses[0]) == "quokka wombat"
    assert term_hash("wombat") in candidates.terms(addresses[0])


# --- Several homes ------------------------------------------------------------------------------------


def shown(readers: Sequence[Reader], home: int, **conditions: Any) -> dict[str, Card]:
    cards = readers[home].select(Filter(superseded=True, archived=True))
    found = shown_cards(readers, home, cards, Filter(**conditions))
    return {one.id: one for one in found}


def test_what_a_nearer_home_has_itself_is_not_shown_from_a_further_one(
    readers_of: Callable[..., list[Reader]],
) -> None:
    readers = readers_of([lesson("a")], [lesson("a"), lesson("b")], [lesson("b"), lesson("c")])

    assert [set(shown(readers, home)) for home in range(3)] == [{"a"}, {"b"}, {"c"}]


@pytest.mark.parametrize("home", [0, 1])
def test_each_home_hides_what_the_other_has(
    readers_of: Callable[..., list[Reader]], home: int
) -> None:
    rows = [lesson("a", at=1), lesson("b", at=1), lesson("c", at=1)]
    hiding = [forget("a", at=5), link("x", "supersedes", "b", at=5)]
    readers = readers_of(*([rows, hiding] if home == 0 else [hiding, rows]))

    assert set(shown(readers, home)) == {"c"}
    assert set(shown(readers, home, superseded=True)) == {"b", "c"}


@pytest.mark.parametrize("past", [False, True])
def test_page_after_page_of_a_hidden_chain_is_read_with_one_walk_along_it(
    readers_of: Callable[..., list[Reader]], monkeypatch: pytest.MonkeyPatch, *, past: bool
) -> None:
    rows = [
        lesson(f"c{n}", "quokka", links=[{"to": f"c{n - 1}", "rel": "derived_from"}])
        for n in range(300)
    ]
    homes = [[*rows, forget("c0")]] if past else [[*rows, forget("c0")], [lesson("far", "quokka")]]
    readers = readers_of(*homes, as_of_micros=micros("2100-01-01T00:00:00Z") if past else None)
    asked: list[str] = []
    for reader in readers:
        supports = reader.supports

        def counted(ids: Collection[str], supports: Any = supports) -> Any:
            asked.extend(ids)
            return supports(ids)

        monkeypatch.setattr(reader, "supports", counted)
    candidates = Candidates(readers, Query(text="quokka"), lambda _ident: 0, WEIGHTS)
    keys = sorted(readers[0].keys([f"c{n}" for n in range(300)]).values())
    for start in range(0, 300, PAGE):
        candidates.weigh((0, key) for key in keys[start : start + PAGE])

    assert candidates.choose([Proposal((0, key), 1.0, None, 1.0) for key in keys]) == []
    assert len(asked) <= len(readers) * (len(rows) + 2)


def test_feedback_of_all_homes_is_counted_and_one_id_once(
    readers_of: Callable[..., list[Reader]],
) -> None:
    readers = readers_of(
        [feedback("f1", "a", "failed"), feedback("f2", "a", "worked")],
        [
            lesson("a", success_rate="3/4"),
            lesson("b"),
            feedback("f1", "a", "worked"),
            feedback("f3", "a", "wrong"),
        ],
    )

    found = shown(readers, 1)

    assert found["a"].feedback == Tally(worked=1, failed=1, wrong=1)
    assert found["a"].rate == Rate(4, 6)
    assert found["b"].rate is None


def test_a_filter_holds_in_every_home(readers_of: Callable[..., list[Reader]]) -> None:
    readers = readers_of([lesson("a")], [lesson("b"), lesson("c", event_type="success")])

    assert set(shown(readers, 1, types=frozenset(["success"]))) == {"c"}


# --- Overview -----------------------------------------------------------------------------------------


def test_the_latest_of_several_homes(readers_of: Callable[..., list[Reader]]) -> None:
    readers = readers_of(
        [
            lesson("a", at=1),
            lesson("d", at=4),
            forget("e", at=9),
            feedback("f", "b", "wrong", at=9),
        ],
        [lesson("b", at=2), lesson("c", at=3), lesson("e", at=5), link("b", "uses", "c", at=9)],
    )

    def latest(count: int, **conditions: Any) -> list[str]:
        return [hit.id for hit in overview.latest(readers, count, Query(**conditions))]

    assert latest(9) == ["d", "c", "b", "a"]
    assert latest(2) == ["d", "c"]
    assert latest(0) == []
    assert latest(9, repos=frozenset(["lib"])) == []
    hits = overview.latest(readers, 9, Query())
    assert {hit.id: hit.is_doubted for hit in hits} == {
        "a": False,
        "b": True,
        "c": False,
        "d": False,
    }
    assert [hit.address[0] for hit in hits] == [0, 1, 1, 0]
    assert all(hit.record.id == hit.id and hit.repo == "app" for hit in hits)


def test_the_latest_are_looked_for_beyond_what_another_home_hides(
    readers_of: Callable[..., list[Reader]],
) -> None:
    hidden = [lesson(f"h{n}", at=50) for n in range(60)]
    readers = readers_of(
        [lesson("old", at=1), *hidden], [forget(f"h{n}", at=55) for n in range(60)]
    )

    assert [hit.id for hit in overview.latest(readers, 1, Query())] == ["old"]


def test_records_are_selected_from_the_nearest_home_in_the_order_of_lines(
    readers_of: Callable[..., list[Reader]],
) -> None:
    readers = readers_of(
        [lesson("b"), lesson("a"), pattern("p"), feedback("f", "a"), lesson("x")],
        [lesson("c"), forget("x", at=9)],
    )

    def selected(wanted: Collection[str] | None = None, **conditions: Any) -> list[str]:
        return [record.id for record in overview.select(readers, Filter(**conditions), wanted)]

    assert selected() == ["b", "a", "p"]
    assert selected(["p", "b", "f", "c", "x"]) == ["b", "p"]
    assert selected(["f", "a"], kinds=frozenset(["feedback"])) == ["f"]
    assert selected(kinds=frozenset(["feedback"])) == ["f"]
    assert selected([]) == []


def test_counts_of_several_homes(readers_of: Callable[..., list[Reader]]) -> None:
    readers = readers_of(
        [lesson("a"), pattern("p"), feedback("f", "a"), lesson("x")],
        [lesson("a", event_type="success"), lesson("c", event_type="success"), forget("x", at=9)],
    )

    assert overview.counts(readers, Filter()) == {
        "records": 3,
        "archived": 0,
        "skills": 0,
        "repos": {"app": 3},
        "kinds": {"lesson": 2, "pattern": 1},
        "types": {"error": 1, "success": 1},
    }
    assert overview.counts(readers[1:], Filter())["records"] == 2
    assert overview.counts(readers[:1], Filter())["kinds"] == {"lesson": 2, "pattern": 1}


def test_counts_tell_skills_and_the_archive_apart_and_notes_are_nobodys_business(
    index_engine: Engine, own_home: Path
) -> None:
    home = Home(own_home)
    append(home, "app", lesson("a"), lesson("b"))
    home.archive_folder.mkdir()
    home.archive("app").write_bytes(home.log("app").read_bytes().splitlines(keepends=True)[0])
    home.log("app").write_bytes(home.log("app").read_bytes().splitlines(keepends=True)[1])
    for path in (home.skill("one"), home.skill("two"), home.notes("ana") / "plan.md"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("# Text\n\nquokka")
    index = index_engine(home)
    index.catch_up()

    with index.reading() as reader:
        found = overview.counts([reader], Filter(reader="ana"))

    assert (found["records"], found["archived"], found["skills"]) == (1, 1, 2)
    assert found["kinds"] == {"lesson": 1}
    assert found["repos"] == {"app": 1}


def hit(ident: str, relevance: float = 0.5, score: float = 0.5) -> Hit:
    record = from_line(
        b'{"id":"%s","kind":"lesson","timestamp":"2026-01-01T00:00:00Z","event_type":"error","lesson":"x"}'
        % ident.encode()
    )
    return Hit(record, "app", score, Explanation(1.0, 0.25, 0.5, {"use": 1.01}, relevance))


def test_a_verdict_says_why_a_record_is_or_is_not_in_the_answer() -> None:
    ranking = [hit("a"), hit("b", 0.1), hit("c"), hit("d")]
    answer = [ranking[0]]
    query = Query(text="quokka", limit=3)

    def verdict(ident: str) -> overview.Verdict | None:
        return overview.judge(query, ident, ranking, answer, 0.3)

    texts = {ident: one.text for ident in "abcd" if (one := verdict(ident))}
    assert texts["a"] == "it is number 1 of the answer"
    assert texts["b"] == "it is not relevant enough: 0.10, and 0.30 is needed"
    assert texts["c"].startswith("a near-duplicate")
    assert texts["d"] == "it is in place 4, after the limit of 3 or after others like it"
    assert verdict("e") is None
    found = verdict("a")
    assert found is not None
    assert found.as_dict() == {
        "id": "a",
        "query": "quokka",
        "in_answer": True,
        "place": 1,
        "why": {"words": 1.0, "meaning": 0.25, "fused": 0.5, "use": 1.01},
        "repo": "app",
        "score": 0.5,
        "relevance": 0.5,
        "relevance_floor": 0.3,
        "verdict": "it is number 1 of the answer",
    }
    other = verdict("c")
    assert other is not None
    assert not other.in_answer
    assert (other.place, other.relevance) == (3, 0.5)
    assert "score" not in overview.Verdict("a", "q", "t", in_answer=False).as_dict()


def test_relevance_at_the_floor_is_enough_for_a_verdict() -> None:
    (one,) = ranking = [hit("a", 0.3)]
    found = overview.judge(Query(text="x", limit=1), one.id, ranking, [], 0.3)

    assert found is not None
    assert found.text.startswith("a near-duplicate")


def test_why_a_record_is_not_even_ranked(readers_of: Callable[..., list[Reader]]) -> None:
    readers = readers_of(
        [
            lesson("plain"),
            lesson("gone"),
            forget("gone"),
            lesson("old"),
            lesson("new", links=[{"to": "old", "rel": "supersedes"}]),
            pattern("resting", source_episodes=["gone"]),
            lesson("far"),
        ],
        [lesson("further"), forget("far", at=9)],
    )

    def why(ident: str, **conditions: Any) -> str:
        return overview.absence(readers, Query(text="x", **conditions), ident).split()[1]

    cases: list[tuple[str, dict[str, Any], str]] = [
        ("plain", {}, "its"),
        ("further", {}, "its"),
        ("nobody", {}, "its"),
        ("gone", {}, "was"),
        ("resting", {}, "was"),
        ("old", {}, "newer"),
        ("old", {"superseded": True}, "its"),
        ("plain", {"kinds": frozenset(["pattern"])}, "filters"),
        ("further", {"repos": frozenset(["lib"])}, "filters"),
        ("far", {}, "filters"),
    ]
    for ident, conditions, second_word in cases:
        assert why(ident, **conditions) == second_word, (ident, conditions)
    said = overview.absence(readers, Query(text="x"), "old")
    assert "`commonplace recall --superseded`" in said


def test_what_is_archived_is_said_to_be(index_engine: Engine, own_home: Path) -> None:
    home = Home(own_home)
    append(home, "app", lesson("a"))
    home.archive_folder.mkdir()
    home.log("app").rename(home.archive("app"))
    index = index_engine(home)
    index.catch_up()

    with index.reading() as reader:
        assert "`commonplace recall --all`" in overview.absence([reader], Query(text="x"), "a")
        assert "meaning" in overview.absence([reader], Query(text="x", archived=True), "a")


# --- Hits ---------------------------------------------------------------------------------------------


def test_a_hit_as_json_shows_it() -> None:
    one = hit("a")._replace(text="the text", rate=Rate(1, 2), marks=("m",), uses=3, score=0.25)

    assert one.as_dict() == {
        "id": "a",
        "kind": "lesson",
        "repo": "app",
        "timestamp": "2026-01-01T00:00:00Z",
        "score": 0.25,
        "text": "the text",
        "lesson": "x",
        "context": None,
        "command": None,
        "success_rate": "1/2",
        "marks": ["m"],
        "record": {**one.record.fields, "usage_count": 3},
        "why": {"words": 1.0, "meaning": 0.25, "fused": 0.5, "use": 1.01, "relevance": 0.5},
    }
    bare = Hit(one.record, "app")
    assert (bare.as_dict()["success_rate"], bare.as_dict()["why"]) == (None, {})
    assert bare.document.text == "x"


def test_an_explanation_leaves_out_what_was_not_compared() -> None:
    assert Explanation(1.0, None, 0.5).as_dict() == {"words": 1.0, "fused": 0.5}
    assert math.isclose(Explanation(1.0, 0.0, 0.5, relevance=0.0).as_dict()["relevance"], 0.0)
    assert Explanation(1.0, 0.0, 0.5).as_dict()["meaning"] == 0.0


# --- Lessons before the episodes that they sum up -----------------------------------------------------


def episode(ident: str, *fixes: Collection[int], score: float = 1.0) -> Entry:
    told = tuple(frozenset(fix) for fix in fixes)
    return entry(ident, range(100, 120), score, kind="episode")._replace(fixes=told)


@pytest.mark.parametrize(
    ("terms", "kind", "leads"),
    [
        (range(6), "lesson", True),
        (range(5), "lesson", False),
        (range(6), "pattern", True),
        (range(6), "anti_pattern", True),
        (range(6), "skill", True),
        (range(6), "episode", False),
        (range(6), "handoff", False),
        ((), "lesson", False),
    ],
)
def test_knowledge_with_most_words_of_a_fix_goes_before_the_episode(
    terms: Collection[int], kind: str, leads: bool
) -> None:
    found = dedupe.lessons_first(
        [episode("ep", range(50, 60), range(10)), entry("les", terms, 0.4, kind=kind)]
    )

    assert ids(found) == (["les", "ep"] if leads else ["ep", "les"])
    assert found[0].score == 1.0


@given(
    st.lists(
        st.tuples(st.booleans(), st.frozensets(st.integers(0, 5), max_size=3), st.floats(0, 1)),
        max_size=8,
    )
)
def test_lessons_first_keeps_all_entries_and_the_order_of_each_kind(
    drawn: list[tuple[bool, frozenset[int], float]],
) -> None:
    ranked = sorted(enumerate(drawn), key=lambda one: -one[1][2])
    given_entries = [
        episode(f"ep-{n}", terms, score=score) if is_episode else entry(f"les-{n}", terms, score)
        for n, (is_episode, terms, score) in ranked
    ]
    found = dedupe.lessons_first(given_entries)

    assert sorted(ids(found)) == sorted(ids(given_entries))
    episodes, before = (
        [one for one in ids(some) if one.startswith("ep")] for some in (found, given_entries)
    )
    assert episodes == before
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    for place, one in enumerate(found):
        for later in found[place + 1 :]:
            held = [fix for fix in one.fixes if fix]
            is_lesson = later.candidate.card.kind == "lesson"
            assert not (is_lesson and any(fix <= later.terms for fix in held))
    assert dedupe.lessons_first(found) == found


def test_no_episode_makes_another_untrue() -> None:
    entries = [
        entry("old", RULE, 1.0, kind="episode"),
        entry("new", RULE, 0.9, day=2, kind="episode"),
    ]

    assert ids(dedupe.newest_first(entries)) == ["old", "new"]
    assert superseded(dedupe.newest_first(entries)) == []


# --- Patterns instead of what they were learned from --------------------------------------------------


SOME_FIXES = st.lists(st.frozensets(st.integers(0, 12), max_size=6), max_size=3)


@given(
    st.lists(
        st.tuples(st.sampled_from(["pattern", "anti_pattern", "episode"]), SOME_FIXES,
                  st.frozensets(st.sampled_from(["ep-0", "ep-1", "ep-2", "ep-3"]), min_size=1)),
        max_size=8,
    )
)  # fmt: skip
def test_no_fix_is_lost_by_folding(
    drawn: list[tuple[str, list[frozenset[int]], frozenset[str]]],
) -> None:
    entries = [
        episode(f"ep-{n}", *fixes)
        if kind == "episode"
        else entry(f"pat-{n}", range(50), kind=kind)._replace(fixes=tuple(fixes), sources=sources)
        for n, (kind, fixes, sources) in enumerate(drawn)
    ]
    kept = dedupe.fold_sources(entries)

    assert ids(kept) == [ident for ident in ids(entries) if ident in ids(kept)]
    told = [fix for one in kept for fix in one.fixes]
    for one in entries:
        if one.candidate.card.id not in ids(kept):
            assert one.fixes
            for fix in one.fixes:
                assert any(len(fix & other) >= dedupe.SAME_FIX * len(fix) for other in told)
    assert dedupe.fold_sources(kept) == kept


def test_what_stands_for_a_relevant_memory_is_no_padding() -> None:
    newer = entry("new", range(10), 0.9, day=2)._replace(relevance=0.3)
    older, other = entry("old", range(1, 10)), entry("other", range(50, 60))
    older, other = older._replace(relevance=0.6), other._replace(relevance=0.3)
    twins = [entry("one", range(10))._replace(relevance=0.3), older]
    learned = entry("pat", range(50), kind="pattern")._replace(
        relevance=0.3, fixes=(frozenset(range(10)),), sources=frozenset(["ep"])
    )
    source = episode("ep", range(10))._replace(relevance=0.9)

    def kept(entries: list[Entry]) -> list[str]:
        return ids(dedupe.without_padding(entries, 0.5))

    assert kept(dedupe.newest_first([older, newer, other])) == ["new", "old"]
    assert kept(dedupe.fold_twins(twins)) == ["one"]
    assert kept(dedupe.fold_sources([learned, source])) == ["pat"]
    assert kept(dedupe.fold_sources([learned])) == []


@pytest.mark.parametrize(
    ("fixes", "is_folded"),
    [
        ([range(10)], True),
        ([range(4, 14)], True),
        ([range(5, 15)], False),
        ([range(10), range(20, 30)], False),
        ([range(10), range(30, 40)], True),
        ([()], False),
        ([], False),
    ],
)
def test_an_episode_is_left_out_only_if_every_fix_of_it_is_stated(
    fixes: list[Collection[int]], is_folded: bool
) -> None:
    patterns = [
        entry(f"pat-{start}", (), kind="pattern")._replace(
            fixes=(frozenset(range(start, start + 10)),), sources=frozenset(["ep"])
        )
        for start in (0, 30)
    ]
    found = ids(dedupe.fold_sources([*patterns, episode("ep", *fixes)]))

    assert ("ep" not in found) is is_folded


@pytest.mark.parametrize(
    ("fix", "is_folded"), [(range(10), True), (range(20, 30), False), (range(8), False)]
)
def test_of_a_pattern_and_an_anti_pattern_with_another_fix_both_are_left(
    fix: Collection[int], is_folded: bool
) -> None:
    same = frozenset(["ep-1", "ep-2"])
    pattern = entry("pat", (), kind="pattern")._replace(fixes=(frozenset(range(10)),), sources=same)
    anti = entry("anti", (), kind="anti_pattern")._replace(fixes=(frozenset(fix),), sources=same)

    assert ids(dedupe.fold_sources([pattern, anti])) == (["pat"] if is_folded else ["pat", "anti"])
