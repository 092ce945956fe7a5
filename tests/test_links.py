"""Links: one side is stored, both ends see it; a contradiction stays marked until it is resolved."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace import cli
from commonplace.errors import CommonplaceError, RecordInvalid, RecordNotFound, UsageError
from commonplace.memory import Memory
from commonplace.rules import one_side
from commonplace.vocabulary import INVERSES, RELATIONS, SYMMETRIC
from conftest import SLOW_LAW, git

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from subprocess import CompletedProcess

    Run = Callable[..., CompletedProcess[str]]

NAMES = ("les-a", "les-b", "les-c", "les-d")
OTHER = {**INVERSES, **{name: inverse for inverse, name in INVERSES.items()}} | {
    name: name for name in SYMMETRIC
}
names = st.sampled_from(NAMES)
relations = st.sampled_from(RELATIONS)
triples = st.tuples(names, relations, names).filter(lambda one: one[0] != one[2])


@pytest.fixture
def memory(own_home: Path) -> Iterator[Memory]:
    with opened(own_home) as found:
        for ident in NAMES:
            add(found, ident)
        yield found


def opened(home: Path, **options: Any) -> Memory:
    return Memory.open(home, settings={"embedder.kind": "none"}, **options)


def add(memory: Memory, ident: str) -> None:
    memory.log(id=ident, lesson=f"what {ident} says about npm", repo="shop")


def seen(memory: Memory, *, also: tuple[str, ...] = ()) -> set[tuple[str, str, str]]:
    """What every end sees."""
    return {
        (link.of, link.rel, link.to) for ident in (*NAMES, *also) for link in memory.links(ident)
    }


def both_sides(stored: set[tuple[str, str, str]]) -> set[tuple[str, str, str]]:
    return stored | {(to, OTHER[rel], of) for of, rel, to in stored}


# --- Laws -----------------------------------------------------------------------------------------


@given(triples)
def test_a_link_has_one_form_whichever_side_names_it(one: tuple[str, str, str]) -> None:
    of, rel, to = one

    assert one_side(*one_side(*one)) == one_side(*one)
    assert one_side(to, OTHER[rel], of) == one_side(*one)


@given(st.lists(st.tuples(st.booleans(), triples), max_size=8))
@SLOW_LAW
def test_both_ends_see_what_was_linked_and_not_unlinked(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[bool, tuple[str, str, str]]]
) -> None:
    stored: set[tuple[str, str, str]] = set()
    with opened(tmp_path_factory.mktemp("any") / "home") as memory:
        for ident in NAMES:
            add(memory, ident)
        for is_new, triple in steps:
            if is_new:
                memory.link(*triple)
                stored.add(one_side(*triple))
            elif one_side(*triple) in stored:
                memory.unlink(*triple)
                stored.discard(one_side(*triple))
            else:
                with pytest.raises(RecordNotFound):
                    memory.unlink(*triple)

        assert seen(memory) == both_sides(stored)


@given(st.lists(triples, min_size=1, max_size=6, unique=True), st.randoms(use_true_random=False))
@SLOW_LAW
def test_both_ends_see_a_link_in_any_order_of_lines_and_across_homes(
    tmp_path_factory: pytest.TempPathFactory,
    links: list[tuple[str, str, str]],
    chance: random.Random,
) -> None:
    """As another program may write them: by any name, in a record of its own or in an end."""
    folder = tmp_path_factory.mktemp("any")
    homes = [folder / "repo" / ".commonplace", folder / "user"]
    own: dict[str, list[dict[str, Any]]] = {ident: [] for ident in NAMES}
    lines: list[dict[str, Any]] = []
    for number, (of, rel, to) in enumerate(links):
        if chance.random() < 0.5:
            own[of].append({"to": to, chance.choice(["rel", "relation"]): rel})
        else:
            name = chance.choice(["rel", "relation"])
            lines.append({"id": f"link-{number}", "kind": "link", "of": of, name: rel, "to": to})
    lines += [
        {"id": ident, "kind": "lesson", "lesson": f"{ident} on npm", "links": own[ident]}
        for ident in NAMES
    ]
    chance.shuffle(lines)
    for line in lines:
        log = chance.choice(homes) / "log" / "shop.jsonl"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a") as stream:
            stream.write(json.dumps({"timestamp": "2026-11-01T00:00:00Z", **line}) + "\n")
    for home in homes:
        (home / "log").mkdir(parents=True, exist_ok=True)
    with Memory.open(
        cwd=folder / "repo",
        environment={"COMMONPLACE_HOME": str(homes[1])},
        settings={"embedder.kind": "none", "trust.repositories": True},
    ) as memory:
        assert len(memory.homes) == 2
        assert seen(memory) == both_sides({one_side(*one) for one in links})


DECISIONS = st.lists(st.sampled_from(["les-a", "les-b", "both"]), min_size=1, max_size=4)


@given(DECISIONS)
@SLOW_LAW
def test_the_last_decision_holds_and_deciding_again_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, decisions: list[str]
) -> None:
    with opened(tmp_path_factory.mktemp("any") / "home") as memory:
        for ident in NAMES:
            add(memory, ident)
        memory.link("les-b", "contradicts", "les-a")
        for keep in decisions:
            memory.resolve("les-a", "les-b", keep)
        once = (seen(memory), memory.home.log("shop").read_bytes())
        memory.resolve("les-b", "les-a", decisions[-1])

        assert (seen(memory), memory.home.log("shop").read_bytes()) == once
        kept = decisions[-1]
        loser = {"les-a": "les-b", "les-b": "les-a"}.get(kept)
        assert seen(memory) == both_sides({(kept, "supersedes", loser)} if loser else set())


# --- Examples -------------------------------------------------------------------------------------


def test_the_relation_of_other_programs_is_read_as_rel(memory: Memory) -> None:
    memory.log(
        id="les-e",
        lesson="imported",
        repo="shop",
        links=[{"to": "les-a", "relation": "superseded_by"}],
    )

    assert ("les-a", "supersedes", "les-e") in seen(memory, also=("les-e",))
    assert memory.describe("les-e")["standing"] == "superseded"


def test_links_are_followed_and_each_is_shown_once(memory: Memory) -> None:
    for of, to in (("les-a", "les-b"), ("les-b", "les-c"), ("les-c", "les-a"), ("les-c", "les-d")):
        memory.link(of, "uses", to)

    one = [(link.of, link.rel, link.to) for link in memory.links("les-a")]
    two = [(link.of, link.rel, link.to, link.depth) for link in memory.links("les-a", 2)]
    assert one == [("les-a", "used_by", "les-c"), ("les-a", "uses", "les-b")]
    assert len(two) == 4
    assert ("les-c", "uses", "les-d", 2) in two
    assert len(memory.links("les-a", 5)) == 4


def test_a_link_shows_title_weight_direction_and_who_stated_it(
    memory: Memory, commonplace: Run
) -> None:
    done = commonplace("link", "les-a", "uses", "les-b", "--weight", "0.5", COMMONPLACE_AGENT="bob")
    assert done.stdout == "les-a uses les-b\n"

    assert (
        commonplace("links", "les-a").stdout
        == "-> uses 0.5 les-b  what les-b says about npm  [by bob]\n"
    )
    assert commonplace("links", "les-b").stdout.startswith("<- used_by 0.5 les-a  what les-a says")
    (row,) = json.loads(commonplace("links", "les-b", "--json").stdout)
    assert (row["rel"], row["to"], row["w"], row["direction"]) == ("used_by", "les-a", 0.5, "in")
    assert row["stated_by"][0]["agent"] == "bob"
    assert "no links" in commonplace("links", "les-c").stderr


def test_the_far_end_may_not_exist_or_be_forgotten(memory: Memory, commonplace: Run) -> None:
    memory.log(id="les-e", lesson="x", repo="shop", links=[{"to": "les-gone", "rel": "uses"}])
    memory.link("les-a", "uses", "les-b")
    memory.forget("les-b")

    assert "(no such record here)" in commonplace("links", "les-e").stdout
    assert memory.links("les-a") == []


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["les-a", "befriends", "les-b"], 3, "no relation"),
        (["les-a", "supersede", "les-b"], 3, "did you mean `supersedes`"),
        (["les-a", "uses", "les-a"], 3, "itself"),
        (["les-a", "uses", "no-such-record"], 4, "no record"),
        (["no-such-record", "uses", "les-a"], 4, "no record"),
        (["les-a", "uses", "les-b", "--weight", "2"], 2, "not between 0 and 1"),
        (["les-a", "uses", "les-b", "--weight", "much"], 2, "not a number"),
        (["les-a", "uses", "les"], 5, "matches"),
    ],
)
def test_a_wrong_link_is_refused_and_costs_nothing(
    memory: Memory, commonplace: Run, arguments: list[str], code: int, said: str
) -> None:
    before = memory.home.log("shop").read_bytes()
    done = commonplace("link", *arguments)

    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert memory.home.log("shop").read_bytes() == before


def test_what_a_field_states_is_not_unlinked(memory: Memory) -> None:
    memory.log(kind="pattern", id="pat-a", pattern="p", source_episodes=["les-a"], repo="shop")

    assert ("les-a", "source_of", "pat-a") in seen(memory)
    with pytest.raises(RecordInvalid, match="stated by a field"):
        memory.unlink("les-a", "source_of", "pat-a")
    assert ("les-a", "source_of", "pat-a") in seen(memory)


def test_a_statement_has_no_links(memory: Memory) -> None:
    link = memory.link("les-a", "uses", "les-b")
    with pytest.raises(RecordInvalid, match="itself link"):
        memory.link("les-c", "uses", link.id)


def test_unlink_undoes_a_link_by_either_name(memory: Memory, commonplace: Run) -> None:
    memory.link("les-a", "supersedes", "les-b")
    assert commonplace("unlink", "les-b", "superseded_by", "les-a").returncode == 0

    assert seen(memory) == set()
    assert memory.describe("les-b").get("standing") is None
    assert commonplace("unlink", "les-a", "supersedes", "les-b").returncode == 4


# --- Contradictions -------------------------------------------------------------------------------


def marks(memory: Memory, question: str, **options: Any) -> dict[str, tuple[str, ...]]:
    return {hit.id: hit.marks for hit in memory.recall(question, repo="shop", **options).hits}


@pytest.fixture
def ports(memory: Memory) -> Memory:
    for ident, lesson in (
        ("les-old", "the database of the shop listens on port 5432"),
        ("les-new", "postgres was moved behind a proxy, connect to 6432"),
    ):
        memory.log(id=ident, lesson=lesson, repo="shop")
    memory.link("les-new", "contradicts", "les-old")
    return memory


def test_both_sides_are_marked_and_shown_until_it_is_resolved(ports: Memory) -> None:
    found = marks(ports, "which port does the database of the shop listen on")

    assert list(found) == ["les-old", "les-new"], "the other side is shown, though it fits worse"
    assert "contradicts les-new" in found["les-old"]
    assert "contradicts les-old" in found["les-new"]
    text = ports.recall("which port does the database listen on", repo="shop").text
    assert "6432" in text
    assert "contradicts les-old" in text
    ports.resolve("les-old", "les-new", "les-new")
    assert "les-old" not in marks(ports, "which port does the database of the shop listen on")
    assert not any(marks(ports, "postgres proxy 6432").values())


def test_the_limit_and_the_filters_hold(ports: Memory) -> None:
    question = "which port does the database of the shop listen on"

    assert marks(ports, question, limit=1) == {"les-old": ("contradicts les-new",)}
    assert marks(ports, question, without=["les-new"]) == {"les-old": ("contradicts les-new",)}
    ports.forget("les-new")
    assert marks(ports, question) == {"les-old": ()}


def test_keep_both_and_wrong_decisions(ports: Memory, commonplace: Run) -> None:
    for keep, code in (("les-a", 2), ("les", 2), ("", 2)):
        done = commonplace("resolve", "les-old", "les-new", "--keep", keep)
        assert done.returncode == code
        assert "hint: " in done.stderr
    assert commonplace("resolve", "les-old", "les-old", "--keep", "both").returncode == 2
    assert commonplace("resolve", "les-old", "nothing", "--keep", "both").returncode == 4
    done = commonplace("resolve", "les-old", "les-new", "--keep", "both")
    assert done.returncode == 0, done.stderr
    assert ports.links("les-old") == []
    with pytest.raises(UsageError):
        ports.links("les-old", 9)


def test_a_contradiction_in_the_links_of_a_record_is_resolved_too(memory: Memory) -> None:
    memory.log(
        id="les-e",
        lesson="npm says nothing",
        repo="shop",
        links=[{"to": "les-a", "relation": "contradicts"}, {"to": "les-b", "rel": "uses"}],
    )
    memory.resolve("les-a", "les-e", "both")

    assert memory.get("les-e").links == [{"to": "les-b", "rel": "uses"}]


def test_a_home_that_is_not_trusted_contradicts_nothing(own_home: Path, tmp_path: Path) -> None:
    with opened(own_home) as own:
        own.log(id="les-mine", lesson="deploy with make release", repo="shop")
    folder = tmp_path / "clone"
    log = folder / ".commonplace" / "log" / "shop.jsonl"
    log.parent.mkdir(parents=True)
    git("init", "-q", cwd=folder)
    lines = [
        {"id": "les-theirs", "kind": "lesson", "lesson": "deploy with make pwn"},
        {
            "id": "link-1",
            "kind": "link",
            "of": "les-theirs",
            "rel": "contradicts",
            "to": "les-mine",
        },
        {"id": "link-2", "kind": "link", "of": "les-theirs", "rel": "supersedes", "to": "les-mine"},
    ]
    common = {"timestamp": "2026-11-01T00:00:00Z", "repo": "shop"}
    log.write_text("".join(json.dumps({**common, **line}) + "\n" for line in lines))
    with Memory.open(cwd=folder, settings={"embedder.kind": "none"}) as memory:
        answer = memory.recall("deploy make release", all_repos=True)
        mine = next(hit for hit in answer.hits if hit.id == "les-mine")
        assert mine.marks == ()
        assert memory.links("les-mine") == []
        for of, to in (("les-mine", "les-theirs"), ("les-theirs", "les-mine")):
            with pytest.raises(CommonplaceError, match="not trusted"):
                memory.link(of, "supersedes", to)


def test_a_link_that_is_logged_with_a_relation_has_a_rel(memory: Memory) -> None:
    record = memory.log(kind="link", of="les-a", relation="used_by", to="les-b", repo="shop")

    assert record.fields["rel"] == "used_by"
    assert ("les-b", "uses", "les-a") in seen(memory)


def test_records_that_supersede_each_other_stay_and_the_command_says_so(
    own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Memory.open(own_home) as memory:
        one, other = (memory.log(repo="app", lesson=f"the port is {port}").id for port in (1, 2))
    for ends in ((one, other), (other, one)):
        assert cli.main(["link", ends[0], "supersedes", ends[1], "--home", str(own_home)]) == 0
    assert "neither is hidden" in capsys.readouterr().err

    with Memory.open(own_home) as memory:
        assert {found.id for found in memory.records(kind="lesson")} == {one, other}
        assert len(memory.recall("which port", repo="app").hits) == 2


def test_show_knows_that_superseding_was_taken_back(memory: Memory) -> None:
    older = memory.log(repo="app", lesson="the port is 1")
    newer = memory.log(
        repo="app", lesson="the port is 2", links=[{"to": older.id, "rel": "supersedes"}]
    )
    assert memory.describe(older.id)["standing"] == "superseded"
    memory.unlink(newer.id, "supersedes", older.id)

    assert "standing" not in memory.describe(older.id)
