"""The inbox by kind: what is proposed, by whom and how often; what a decision does."""

from __future__ import annotations

import json
import os
import stat
from itertools import pairwise, permutations
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace import inbox
from commonplace.errors import CandidateNotFound, RecordInvalid
from commonplace.inbox import Proposal
from commonplace.memory import Memory
from conftest import SLOW_LAW, git

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from subprocess import CompletedProcess

    from commonplace.where.home import Home

    Run = Callable[..., CompletedProcess[str]]


@pytest.fixture
def memory(own_home: Path) -> Iterator[Memory]:
    with Memory.open(own_home, settings={"embedder.kind": "none"}) as opened:
        yield opened


def pattern(text: str = "retry with a backoff", **more: Any) -> Proposal:
    fields = {"pattern": text, "confidence": 0.9, **more.pop("fields", {})}
    return Proposal(**{"kind": "pattern", "title": text, "fields": fields, "evidence": (), **more})


def two_lessons(memory: Memory) -> tuple[str, str]:
    first = memory.log(lesson="use npm ci in CI", repo="shop")
    second = memory.log(lesson="use npm install in CI", repo="shop")
    return first.id, second.id


def proposals(memory: Memory) -> dict[str, Proposal]:
    """A proposal of each kind."""
    a, b = two_lessons(memory)
    texts = {"of_text": "use npm ci in CI", "to_text": "use npm install in CI"}
    fields: dict[str, dict[str, Any]] = {
        "lesson": {"lesson": "pin the image", "event_type": "learned"},
        "pattern": {"pattern": "pin what CI downloads", "source_episodes": [a]},
        "anti_pattern": {"what_fails": "npm install in CI", "why": "it changes the lock file"},
        "link": {"of": a, "rel": "related_to", "to": b, "w": 0.5},
        "contradiction": {"of": a, "to": b, **texts},
        "supersession": {"of": a, "to": b, **texts},
    }
    return {
        kind: Proposal(
            kind, f"about {kind}", given, (a, b), reason="both are about CI", repo="shop"
        )
        for kind, given in fields.items()
    }


# --- Proposing ------------------------------------------------------------------------------------

SESSIONS = st.lists(st.sampled_from(["s-1", "s-2", "s-3"]), min_size=1, max_size=5)
EVIDENCE = st.lists(st.sampled_from(["ep-1", "ep-2", "ep-3", "ep-4"]), max_size=4)


@given(st.lists(st.tuples(SESSIONS, EVIDENCE), min_size=1, max_size=4))
@SLOW_LAW
def test_the_same_content_is_one_candidate(
    tmp_path_factory: pytest.TempPathFactory, given: list[tuple[list[str], list[str]]]
) -> None:
    flat = [(session, evidence) for sessions, evidence in given for session in sessions]
    with Memory.open(tmp_path_factory.mktemp("any") / "home") as memory:
        for session, evidence in flat:
            memory.propose(pattern(session=session, evidence=tuple(evidence)))
        (one,) = memory.candidates()

    assert set(one.evidence) == {ident for _session, evidence in flat for ident in evidence}
    changes = sum(a[0] != b[0] for a, b in pairwise(flat))
    assert one.seen == 1 + changes


def test_what_is_counted_anew_replaces_what_was_proposed(memory: Memory) -> None:
    memory.propose(pattern(fields={"confidence": 0.8}))
    memory.propose(pattern(fields={"confidence": 0.95}))

    (one,) = memory.candidates()
    assert one.record["confidence"] == 0.95


def test_another_repository_is_another_candidate(memory: Memory) -> None:
    for repo in ("shop", "bank"):
        memory.propose(pattern(repo=repo))

    assert len(memory.candidates()) == 2


@pytest.mark.parametrize("rel", ["related_to", "contradicts"])
def test_both_sides_of_a_link_are_one_candidate(memory: Memory, rel: str) -> None:
    for of, to in permutations(("les-a", "les-b")):
        memory.propose(Proposal("link", "x", {"of": of, "rel": rel, "to": to, "w": 1.0}, ()))
        memory.propose(Proposal("contradiction", "x", {"of": of, "to": to}, ()))
    memory.propose(Proposal("link", "x", {"of": "les-a", "rel": "uses", "to": "les-b"}, ()))
    memory.propose(Proposal("link", "x", {"of": "les-b", "rel": "used_by", "to": "les-a"}, ()))

    assert inbox.counts(memory.candidates()) == {"link": 2, "contradiction": 1}


def test_what_was_dropped_is_not_proposed_again(memory: Memory) -> None:
    one = memory.propose(pattern(session="s-1"))
    assert one.seen == 1
    memory.drop(one.id)

    assert memory.propose(pattern(session="s-2")).seen == 0
    assert memory.candidates() == []
    assert memory.propose(pattern("another")).seen == 1


def test_the_list_of_what_was_dropped_is_bounded(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox.store, "DROPPED_MAX", 3)
    for number in range(5):
        memory.drop(memory.propose(pattern(f"pattern {number}")).id)

    again = [memory.propose(pattern(f"pattern {number}")).seen for number in range(5)]
    assert again == [1, 1, 0, 0, 0]


def limit(monkeypatch: pytest.MonkeyPatch, kind: str, most: int) -> None:
    monkeypatch.setitem(inbox.KINDS, kind, inbox.KINDS[kind]._replace(waiting_max=most))


def test_the_inbox_keeps_the_highest_ranks(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, "pattern", 3)
    for rank in (1.0, 5.0, 3.0, 4.0, 2.0):
        memory.propose(pattern(f"pattern of rank {rank}", rank=rank))

    assert [one.rank for one in memory.candidates()] == [5.0, 4.0, 3.0]


def test_no_kind_crowds_out_another_nor_what_somebody_has_edited(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, "pattern", 3)
    seen = memory.propose(Proposal("lesson", "x", {"lesson": "a hook saw this"}, ()))
    edited = memory.propose(pattern("a pattern of rank 0"))
    inbox.edit(memory, edited.id, fields={"category": "network"})
    for rank in range(1, 8):
        memory.propose(pattern(f"pattern of rank {rank}", rank=rank))

    found = memory.candidates()
    assert [one.rank for one in found if one.kind == "pattern"] == [7.0, 6.0, 0.0]
    assert {seen.id, edited.id} <= {one.id for one in found}


def test_every_kind_may_wait_and_many_drops_are_remembered() -> None:
    assert {name: kind.waiting_max for name, kind in inbox.KINDS.items()} == {
        **dict.fromkeys(inbox.KINDS, 50),
        "lesson": 100,
        "pattern": 100,
    }
    # A digest and the end of its line are 11 bytes; a longer file would be read as none.
    assert inbox.store.DROPPED_MAX * 11 < inbox.store._DROPPED_BYTES_MAX
    assert inbox.store.DROPPED_MAX >= 20_000


def test_a_proposal_is_redacted_and_private(memory: Memory) -> None:
    secret = "ghp_" + "aB3dE6gH9" * 4
    memory.propose(
        pattern(f"use {secret}", reason=f"saw {secret}", fields={"conditions": [secret]})
    )

    (path,) = memory.home.inbox_folder.glob("cand-*.json")
    assert secret not in path.read_text()
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("kind", "fields", "said"),
    [
        ("opinion", {}, "kind"),
        ("lesson", {}, "lesson"),
        ("pattern", {"pattern": "x", "confidence": 2}, "confidence"),
        ("anti_pattern", {"what_fails": " "}, "what_fails"),
        ("link", {"of": "a", "to": "b"}, "rel"),
        ("contradiction", {"of": "a"}, "to"),
    ],
)
def test_what_could_not_be_accepted_is_not_proposed(
    memory: Memory, kind: str, fields: dict[str, Any], said: str
) -> None:
    with pytest.raises(RecordInvalid, match=f"`{said}`"):
        memory.propose(Proposal(kind, "x", fields, ()))
    assert memory.candidates() == []


# --- Deciding -------------------------------------------------------------------------------------


def test_every_kind_shows_its_evidence_and_its_effect(memory: Memory, commonplace: Run) -> None:
    for kind, proposal in proposals(memory).items():
        one = memory.propose(proposal)
        shown = commonplace("inbox", "show", one.id).stdout

        assert one.effect in shown.replace("\n", " "), kind
        assert all(ident in shown for ident in proposal.evidence)
        assert "use npm install in CI" in shown
        assert "both are about CI" in shown
        assert f"commonplace inbox accept|edit|drop {one.id}" in shown
        listed = json.loads(commonplace("inbox", "list", "--kind", kind, "--json").stdout)
        assert [row["id"] for row in listed] == [one.id]
        assert listed[0]["evidence"] == list(proposal.evidence)
    assert {one.kind for one in memory.candidates()} == set(inbox.KINDS) & set(proposals(memory))


def test_an_episode_is_shown_as_evidence_in_its_own_sentence(
    memory: Memory, commonplace: Run
) -> None:
    episode = memory.record_episode(
        task_id="t-1",
        context={"phase": "development", "goal": "make the build green"},
        outcome="success",
    )
    one = memory.propose(pattern(evidence=(episode.id,)))
    shown = " ".join(commonplace("inbox", "show", one.id).stdout.split())

    assert f"{episode.id} make the build green (success)." in shown
    assert "{" not in shown


def test_every_kind_is_accepted_as_what_it_says(memory: Memory) -> None:
    for kind, proposal in proposals(memory).items():
        (fields,) = memory.accept(memory.propose(proposal).id)

        expected = kind if kind in ("lesson", "pattern", "anti_pattern") else "link"
        assert fields["kind"] == expected
        assert fields["repo"] == "shop"
        assert memory.candidates() == []
        if expected != "link":
            assert set(memory.get(fields["id"]).sources) == set(proposal.evidence)
    assert "use npm install" not in memory.recall("npm in CI", repo="shop").text


def test_many_are_accepted_or_none(memory: Memory, commonplace: Run) -> None:
    ids = [memory.propose(pattern(f"pattern number {number}")).id for number in range(4)]
    with pytest.raises(CandidateNotFound):
        memory.accept(ids[0], "cand-unknown", ids[1])
    assert commonplace("inbox", "drop", ids[0], "cand-unknown").returncode == 23
    assert len(memory.candidates()) == 4
    assert list(memory.records()) == []

    assert len(commonplace("inbox", "accept", *ids[:2]).stdout.split()) == 2
    memory.propose(Proposal("lesson", "x", {"lesson": "a lesson"}, ()))
    assert (
        len(json.loads(commonplace("inbox", "accept", "--kind", "pattern", "--json").stdout)) == 2
    )
    assert commonplace("inbox", "drop", "--all").returncode == 0
    assert memory.candidates() == []
    assert len(list(memory.records(kind="pattern"))) == 4


def test_ids_or_a_choice_are_needed(memory: Memory, commonplace: Run) -> None:
    one = memory.propose(pattern())
    for arguments in ([], [one.id, "--all"], [one.id, "--kind", "pattern"]):
        assert commonplace("inbox", "accept", *arguments).returncode == 2
    assert commonplace("inbox", "accept", "--all", "--lesson", "x").returncode == 2
    assert len(memory.candidates()) == 1


def test_an_edit_changes_what_is_written_and_survives_the_next_proposal(
    memory: Memory, commonplace: Run
) -> None:
    one = memory.propose(pattern())
    edited = commonplace(
        "inbox", "edit", one.id, "--lesson", "wait, then retry", "--field", "category=network",
        "--field", 'conditions=["the API answers 429"]',
    )  # fmt: skip
    assert edited.returncode == 0, edited.stderr
    memory.propose(pattern(session="s-2"))

    (fields,) = memory.accept(one.id)
    assert fields["pattern"] == "wait, then retry"
    assert (fields["category"], fields["conditions"]) == ("network", ["the API answers 429"])


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--field", "colour=red"], 3),
        (["--field", "confidence=much"], 2),
        (["--field", "confidence=7"], 3),
        (["--field", "pattern"], 2),
        (["--error", "x"], 3),
    ],
)
def test_an_edit_that_cannot_be_written_is_refused(
    memory: Memory, commonplace: Run, arguments: list[str], code: int
) -> None:
    one = memory.propose(pattern())
    done = commonplace("inbox", "edit", one.id, *arguments)

    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert memory.candidates() == [one]


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("anti_pattern", ["--lesson", "hello"]),
        ("anti_pattern", ["--field", "source=ep-9"]),
        ("pattern", ["--field", 'source_episodes=["ep-9"]']),
        ("pattern", ["--field", 'meta={"batch": "x"}']),
        ("contradiction", ["--field", "of_text=zz"]),
        ("contradiction", ["--field", "to=les-z"]),
        ("supersession", ["--lesson", "hello"]),
        ("link", ["--field", "of=les-z"]),
    ],
)
def test_what_is_not_the_candidates_to_change_is_refused(
    memory: Memory, commonplace: Run, kind: str, arguments: list[str]
) -> None:
    one = memory.propose(proposals(memory)[kind])
    done = commonplace("inbox", "edit", one.id, *arguments)

    assert done.returncode == 3, done.stderr
    assert "is no field" in done.stderr
    assert memory.candidates() == [one]


def test_the_words_of_each_kind_can_be_edited_by_their_field(
    memory: Memory, commonplace: Run
) -> None:
    given = {"anti_pattern": "what_fails=npm i in CI", "link": "rel=elaborates"}
    for kind, field in given.items():
        one = memory.propose(proposals(memory)[kind])
        assert commonplace("inbox", "edit", one.id, "--field", field).returncode == 0
        (fields,) = memory.accept(one.id)
        name, _equals, text = field.partition("=")
        assert fields[name] == text


def test_a_candidate_of_the_format_before_is_still_read(memory: Memory) -> None:
    before = {
        "id": "cand-pattern-retry-0123456789", "intent": "", "error": "", "tried": [], "worked": "", "attempts": 1,
        "seen": 2, "at": 1.79e9, "agent": "codex", "repo": "shop", "session": "s-1", "edits": [],
        "lesson": "retry with a backoff", "kind": "pattern",
    }  # fmt: skip
    folder = memory.home.inbox_folder
    folder.mkdir(parents=True)
    (folder / f"{before['id']}.json").write_text(json.dumps(before))

    (one,) = memory.candidates()
    assert (one.text, one.rank) == ("retry with a backoff", 6.0)
    (fields,) = memory.accept(one.id)
    assert fields["pattern"] == "retry with a backoff"


# --- Where it is announced ------------------------------------------------------------------------


def test_doctor_says_how_many_wait_by_kind(memory: Memory, commonplace: Run) -> None:
    for proposal in proposals(memory).values():
        memory.propose(proposal)
    memory.propose(pattern())

    said = " ".join(commonplace("doctor").stdout.split())
    assert (
        "inbox 7 candidates to accept or drop (1 lesson, 2 patterns, 1 anti-pattern, 1 link,"
        " 1 contradiction, 1 supersession)"
    ) in said
    assert json.loads(commonplace("doctor", "--json").stdout)["inbox_kinds"]["pattern"] == 2


def test_what_an_untrusted_home_proposes_is_neither_shown_nor_accepted(
    own_home: Path, tmp_path: Path, commonplace: Run
) -> None:
    folder = clone_with_home(tmp_path)
    own_home.mkdir(mode=0o700)
    with Memory.open(cwd=folder) as memory:
        assert not memory.trusts(memory.home)
        one = inbox.propose(memory.home, pattern())
        assert memory.candidates() == []
        with pytest.raises(CandidateNotFound):
            memory.accept(one.id)
    for arguments in (["list"], ["accept", "--all"]):
        assert one.id not in commonplace("inbox", *arguments, cwd=folder).stdout
    assert commonplace("inbox", "show", one.id, cwd=folder).returncode == 23
    assert "inbox" not in commonplace("doctor", cwd=folder).stdout
    assert commonplace("trust", cwd=folder).returncode == 0
    assert one.id in commonplace("inbox", cwd=folder).stdout


def clone_with_home(tmp_path: Path) -> Path:
    """A repository with a home of its own, which the user does not trust yet."""
    folder = tmp_path / "clone"
    (folder / ".commonplace" / "log").mkdir(parents=True)
    git("init", "-q", cwd=folder)
    return folder


def test_a_proposal_goes_to_the_nearest_home_that_is_trusted(
    own_home: Path, tmp_path: Path
) -> None:
    folder = clone_with_home(tmp_path)
    own_home.mkdir(mode=0o700)
    with Memory.open(cwd=folder) as memory:
        one = memory.propose(pattern())
        assert inbox.candidates(memory.home) == []
        assert inbox.candidates(memory.homes[1]) == [one]


def test_a_candidate_is_accepted_in_the_home_that_holds_it(
    own_home: Path, tmp_path: Path, commonplace: Run
) -> None:
    folder = clone_with_home(tmp_path)
    own_home.mkdir(mode=0o700)
    assert commonplace("trust", cwd=folder).returncode == 0
    given = (
        pattern("pin what CI downloads", repo="general"),
        Proposal("lesson", "x", {"lesson": "the private host needs a VPN"}, ()),
        Proposal(
            "skill",
            "x",
            {"name": "deploy", "text": "---\nname: deploy\ndescription: Deploys.\n---\nGo.\n"},
            (),
        ),
    )
    with Memory.open(cwd=folder) as memory:
        team, user = memory.homes
        for proposal in given:
            for home, other in ((user, team), (team, user)):
                before = content(other)
                one = inbox.propose(home, proposal)
                (fields,) = memory.accept(one.id)
                assert content(other) == before
                assert fields["id"].removeprefix("skill:") in content(home)


def content(home: Home) -> str:
    """What the logs and skills of a home hold."""
    paths = [*home.log_folder.rglob("*.jsonl"), *home.path.glob("skills/*/SKILL.md")]
    return "".join(sorted(path.read_text() for path in paths if path.is_file()))
