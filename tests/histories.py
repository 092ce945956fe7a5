"""Histories of lines: rows of a log, the cases that decide how records stand, and any history at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from commonplace.records import encode, from_line, micros
from commonplace.rules import Fold, Stamp, Standing

if TYPE_CHECKING:
    from commonplace.where.home import Home


def lesson(ident: str, said: str = "x", **more: Any) -> dict[str, Any]:
    return {"id": ident, "kind": "lesson", "event_type": "error", "lesson": said, **more}


def forget(of: str, **more: Any) -> dict[str, Any]:
    return {"id": f"forget-{of}", "kind": "forget", "of": of, **more}


def feedback(ident: str, of: str, outcome: str = "worked", **more: Any) -> dict[str, Any]:
    return {"id": ident, "kind": "feedback", "of": of, "outcome": outcome, **more}


def link(of: str, rel: str, to: str, **more: Any) -> dict[str, Any]:
    ident = f"link-{of}-{rel}-{to}"
    return {"id": ident, "kind": "link", "of": of, "rel": rel, "to": to, **more}


def pattern(ident: str, **more: Any) -> dict[str, Any]:
    return {"id": ident, "kind": "pattern", "pattern": f"pattern {ident}", **more}


def folded(*logs: list[dict[str, Any]]) -> Fold[bytes]:
    """The fold of some logs, each a list of rows; `at` is a second of one minute."""
    found: Fold[bytes] = Fold()
    for number, rows in enumerate(logs):
        for position, row in enumerate(rows):
            second = row.get("at", 0)
            fields = {name: value for name, value in row.items() if name != "at"}
            raw = encode({"timestamp": f"2026-01-01T00:00:{second:02}Z", **fields}).encode()
            record = from_line(raw)
            found.add(Stamp(micros(record.timestamp), f"log{number}", position), record, raw)
    return found


def append(home: Home, log: str, *rows: dict[str, Any]) -> None:
    """Add *rows* to a log as lines; `at` is a second of one minute."""
    home.log_folder.mkdir(parents=True, exist_ok=True)
    with home.log(log).open("ab") as stream:
        for row in rows:
            fields = {name: value for name, value in row.items() if name != "at"}
            timestamp = f"2026-01-01T00:00:{row.get('at', 0):02}Z"
            whole = {"timestamp": timestamp, "agent_id": "", **fields}
            stream.write(encode(whole).encode() + b"\n")


# --- How records stand ------------------------------------------------------------------------------

FORGOTTEN, DERIVED = Standing.FORGOTTEN, Standing.DERIVED
CURRENT, SUPERSEDED = Standing.CURRENT, Standing.SUPERSEDED
DERIVES: dict[str, Any] = {"links": [{"to": "a", "rel": "derived_from"}]}
CASES: dict[str, tuple[list[list[dict[str, Any]]], dict[str, Standing]]] = {
    "a plain record is current": ([[lesson("a")]], {"a": CURRENT}),
    "forgetting hides": ([[lesson("a"), forget("a")]], {"a": FORGOTTEN}),
    "a line that forgets before the record was written hides nothing": (
        [[forget("a"), lesson("a")]],
        {"a": CURRENT},
    ),
    "what is written again after it was forgotten is back": (
        [[lesson("a"), forget("a"), lesson("a", "again")]],
        {"a": CURRENT},
    ),
    "what is forgotten again is hidden again": (
        [[lesson("a"), forget("a"), lesson("a", "again"), forget("a")]],
        {"a": FORGOTTEN},
    ),
    "in one log the position decides, not the time": (
        [[lesson("a", at=9), forget("a", at=1)]],
        {"a": FORGOTTEN},
    ),
    "in another log a later forgetting hides": (
        [[lesson("a", at=4)], [forget("a", at=5)]],
        {"a": FORGOTTEN},
    ),
    "in another log an earlier forgetting does not": (
        [[lesson("a", at=6)], [forget("a", at=5)]],
        {"a": CURRENT},
    ),
    "in another log one of the same time does not": (
        [[lesson("a", at=5)], [forget("a", at=5)]],
        {"a": CURRENT},
    ),
    "what another log says later brings it back": (
        [[lesson("a", at=1), forget("a", at=5)], [lesson("a", "again", at=7)]],
        {"a": CURRENT},
    ),
    "the forgetting of the current line's own log counts by position": (
        [[lesson("a", at=9), forget("a", at=5)], [lesson("a", "other", at=7)]],
        {"a": FORGOTTEN},
    ),
    "what derives from something forgotten is hidden, at any depth": (
        [
            [
                lesson("a"),
                pattern("p", source_episodes=["a"]),
                lesson("q", links=[{"to": "p", "rel": "derived_from"}]),
                {"id": "anti", "kind": "anti_pattern", "what_fails": "x", "source": "q"},
                forget("a"),
            ]
        ],
        {"a": FORGOTTEN, "p": DERIVED, "q": DERIVED, "anti": DERIVED},
    ),
    "a cycle of derivations is hidden as a whole": (
        [
            [
                lesson("a"),
                lesson("b", links=[{"to": "c", "rel": "derived_from"}]),
                lesson("c", links=[{"to": "b", "rel": "derived_from"}, *DERIVES["links"]]),
                forget("a"),
            ]
        ],
        {"b": DERIVED, "c": DERIVED},
    ),
    "two records that supersede each other are both current": (
        [[lesson("a"), lesson("b"), link("a", "supersedes", "b"), link("b", "supersedes", "a")]],
        {"a": CURRENT, "b": CURRENT},
    ),
    "three that do so in a circle are current, and what else they supersede is not": (
        [
            [lesson("a"), lesson("b"), lesson("c"), lesson("d")],
            [
                link("a", "supersedes", "b"),
                link("b", "supersedes", "c"),
                link("c", "supersedes", "d"),
                link("c", "supersedes", "a"),
            ],
        ],
        {"a": CURRENT, "b": CURRENT, "c": CURRENT, "d": SUPERSEDED},
    ),
    "what supersedes one of a circle from outside hides that one": (
        [
            [
                lesson("a"),
                lesson("b"),
                lesson("c", links=[{"to": "a", "rel": "supersedes"}]),
                link("a", "supersedes", "b"),
                link("b", "supersedes", "a"),
            ]
        ],
        {"a": SUPERSEDED, "b": CURRENT, "c": CURRENT},
    ),
    "a circle that was opened again hides as before": (
        [
            [
                lesson("a"),
                lesson("b"),
                link("a", "supersedes", "b"),
                link("b", "supersedes", "a"),
                forget("link-b-supersedes-a"),
            ]
        ],
        {"a": CURRENT, "b": SUPERSEDED},
    ),
    "what derives from something nobody has is current": (
        [[lesson("b", **DERIVES)]],
        {"b": CURRENT},
    ),
    "what derives from something forgotten that nobody has is hidden": (
        [[lesson("b", **DERIVES), forget("a")]],
        {"b": DERIVED},
    ),
    "a link may state the derivation": (
        [[lesson("a"), lesson("b"), link("b", "derived_from", "a"), forget("a")]],
        {"b": DERIVED},
    ),
    "and so may its inverse": (
        [[lesson("a"), lesson("b"), link("a", "source_of", "b"), forget("a")]],
        {"b": DERIVED},
    ),
    "other relations hide nothing": (
        [
            [
                lesson("a"),
                *(
                    lesson(f"b-{rel}", links=[{"to": "a", "rel": rel}])
                    for rel in ("related_to", "elaborates")
                ),
                lesson("b-uses", links=[{"to": "a", "rel": "uses"}]),
                forget("a"),
            ]
        ],
        {"b-related_to": CURRENT, "b-elaborates": CURRENT, "b-uses": CURRENT},
    ),
    "only the current version's links count": (
        [[lesson("a"), lesson("b", **DERIVES), lesson("b", "on its own"), forget("a")]],
        {"b": CURRENT},
    ),
    "statements about something forgotten are hidden with it": (
        [[lesson("a"), lesson("b"), feedback("f", "a"), link("b", "uses", "a"), forget("a")]],
        {"f": DERIVED, "link-b-uses-a": DERIVED, "b": CURRENT},
    ),
    "superseding hides": (
        [[lesson("a"), lesson("b", links=[{"to": "a", "rel": "supersedes"}])]],
        {"a": SUPERSEDED, "b": CURRENT},
    ),
    "being superseded may be stated by the older one": (
        [[lesson("a", links=[{"to": "b", "rel": "superseded_by"}]), lesson("b")]],
        {"a": SUPERSEDED, "b": CURRENT},
    ),
    "or by a link": (
        [[lesson("a"), lesson("b"), link("b", "supersedes", "a")]],
        {"a": SUPERSEDED, "b": CURRENT},
    ),
    "or by a link of the other name": (
        [[lesson("a"), lesson("b"), link("a", "superseded_by", "b")]],
        {"a": SUPERSEDED, "b": CURRENT},
    ),
    "a forgotten link no longer supersedes": (
        [
            [
                lesson("a"),
                lesson("b"),
                link("b", "supersedes", "a"),
                forget("link-b-supersedes-a"),
            ]
        ],
        {"a": CURRENT},
    ),
    "a forgotten superseder hides nothing": (
        [[lesson("a"), lesson("b", links=[{"to": "a", "rel": "supersedes"}]), forget("b")]],
        {"a": CURRENT, "b": FORGOTTEN},
    ),
    "nor does one that rests on something forgotten": (
        [
            [
                lesson("a"),
                lesson("c"),
                lesson(
                    "b",
                    links=[{"to": "a", "rel": "supersedes"}, {"to": "c", "rel": "derived_from"}],
                ),
                forget("c"),
            ]
        ],
        {"a": CURRENT, "b": DERIVED},
    ),
    "a superseded superseder still hides": (
        [
            [
                lesson("a"),
                lesson("b", links=[{"to": "a", "rel": "supersedes"}]),
                lesson("c", links=[{"to": "b", "rel": "supersedes"}]),
            ]
        ],
        {"a": SUPERSEDED, "b": SUPERSEDED, "c": CURRENT},
    ),
    "a record does not supersede itself": (
        [[lesson("a", links=[{"to": "a", "rel": "supersedes"}])]],
        {"a": CURRENT},
    ),
    "what is forgotten and superseded is forgotten": (
        [[lesson("a"), lesson("b", links=[{"to": "a", "rel": "supersedes"}]), forget("a")]],
        {"a": FORGOTTEN},
    ),
}


# --- Any history ------------------------------------------------------------------------------------

IDS = ("a", "b", "c", "d")
RELATIONS = ("derived_from", "supersedes", "superseded_by", "source_of", "related_to")
rows = st.one_of(
    st.builds(
        lambda ident, said, links, at: lesson(ident, said, links=links, at=at),
        st.sampled_from(IDS),
        st.sampled_from(["x", "y"]),
        st.lists(
            st.builds(
                lambda to, rel: {"to": to, "rel": rel},
                st.sampled_from(IDS),
                st.sampled_from(RELATIONS),
            ),
            max_size=2,
        ),
        st.integers(0, 9),
    ),
    st.builds(
        lambda ident, at, rate: lesson(ident, at=at, success_rate=rate),
        st.sampled_from(IDS),
        st.integers(0, 9),
        st.sampled_from(["1/2", "0/0"]),
    ),
    st.builds(
        lambda of, at: forget(of, at=at),
        st.sampled_from((*IDS, "f1", "link-a-supersedes-b")),
        st.integers(0, 9),
    ),
    st.builds(
        lambda ident, of, outcome, at: feedback(ident, of, outcome, at=at),
        st.sampled_from(["f1", "f2", "a"]),
        st.sampled_from(IDS),
        st.sampled_from(["worked", "failed", "wrong"]),
        st.integers(0, 9),
    ),
    st.builds(
        lambda of, rel, to, at: link(of, rel, to, at=at),
        st.sampled_from(IDS),
        st.sampled_from(RELATIONS),
        st.sampled_from(IDS),
        st.integers(0, 9),
    ),
)
steps = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["one", "two"]), rows),
        st.tuples(st.just("rotate"), st.sampled_from(["one", "two"])),
        st.tuples(st.just("look"), st.none()),
    ),
    max_size=16,
)
