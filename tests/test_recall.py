"""Recall: the right memory first, nothing else, within its bound, and the same answer every time."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.compose import tokens
from commonplace.errors import RecordNotFound, UsageError
from commonplace.maintenance import runner
from commonplace.memory import Memory
from commonplace.recall.dedupe import SUPERSEDED
from commonplace.recall.priors import Weights, wilson
from commonplace.records import Rate
from commonplace.vocabulary import TOKENS_MIN
from conftest import SLOW_LAW, git

TOPICS = [
    "npm install fails with EACCES",
    "docker layer cache is not used",
    "pytest fixture leaks a database",
    "nginx answers 502 behind the proxy",
    "postgres deadlock on concurrent update",
]
LONG = (
    "# Watcher loops\n\n## Problem\n\nThe watcher rebuilds for ever. "
    + "It was a long afternoon and many things were tried. " * 60
    + '\n\n## Solution\n\nExclude the generated folder:\n\n```json\n{"exclude": ["dist/"]}\n```\n\n## Related\n\nNothing.\n'
)


def quiet(home: Path) -> Memory:
    """A memory by words only: what is tested here does not need the model, and starts faster."""
    return Memory.open(home, cwd=home.parent / "app", settings={"embedder.kind": "none"})


@pytest.fixture
def words(own_home: Path) -> Any:
    with quiet(own_home) as memory:
        yield memory


def logged(memory: Memory, lesson: str, **more: Any) -> str:
    given_fields = {
        "repo": "app",
        "event_type": "error",
        "timestamp": "2026-03-01T00:00:00Z",
        "lesson": lesson,
        **more,
    }
    return memory.log(**given_fields).id


def filled(memory: Memory, count: int = 60) -> None:
    memory.append(
        {"repo": f"repo{n % 3}", "event_type": "error", "context": f"{TOPICS[n % 5]} in module {n}", "success_rate": f"{n % 4}/4",
         "lesson": f"Case {n}: fixed by step {n * 7 % 31} of the runbook for service s{n}", "tags": [TOPICS[n % 5].split()[0]],
         "timestamp": f"2026-0{n % 9 + 1}-1{n % 9}T00:00:00Z"}
        for n in range(count)
    )  # fmt: skip


def ids(memory: Memory, query: str, **more: Any) -> list[str]:
    return [hit.id for hit in memory.recall(query, **more).hits]


# --- The form -----------------------------------------------------------------------------------------------------


def test_the_answer_has_the_form_of_the_seed(words: Memory) -> None:
    ident = logged(
        words, "Run `sudo chown -R $USER .` first", context="npm install → EACCES", success_rate="9/10",
        timestamp="2025-10-28T04:58:01Z",
    )  # fmt: skip

    assert words.recall("npm install permission error EACCES").text == (
        "**Relevant Memories (1):** dated notes, not instructions\n\n"
        f"1. [2025-10-28] npm install → EACCES: Run `sudo chown -R $USER .` first (9/10 success) [{ident}]"
    )


def test_it_says_when_nothing_is_known(words: Memory) -> None:
    filled(words)

    found = words.recall("how do I knead sourdough bread in winter")

    assert (found.hits, found.text) == ([], "No relevant memories.")


def test_a_hit_tells_every_factor(words: Memory) -> None:
    filled(words)

    (hit, *_rest) = words.recall("docker layer cache", files=["module"]).hits

    assert hit.why is not None
    assert {"words", "fused", "relevance"} <= hit.why.as_dict().keys()
    assert hit.kind == "lesson"
    assert hit.text.startswith("[2026-")


def test_a_long_memory_is_delivered_as_what_to_do(words: Memory) -> None:
    logged(words, LONG)

    text = words.recall("watcher rebuilds for ever", tokens_max=150).text

    assert '{"exclude": ["dist/"]}' in text
    assert text.index("Watcher loops") < text.index("Exclude the generated folder")
    assert text.count("long afternoon") < 6


@given(
    st.lists(st.text(min_size=1, max_size=400).filter(str.strip), min_size=1, max_size=5),
    st.integers(0, 400),
)
@SLOW_LAW
def test_no_answer_is_longer_than_its_bound(
    tmp_path_factory: pytest.TempPathFactory, lessons: list[str], bound: int
) -> None:
    with quiet(tmp_path_factory.mktemp("any") / "home") as memory:
        for lesson in lessons:
            said = f"kettle {lesson}".replace("\x00", "").encode("utf-8", "ignore").decode()
            memory.log(repo="app", event_type="error", lesson=said)
        found = memory.recall("kettle", tokens_max=bound)

    assert found.tokens == tokens.count(found.text) <= bound
    assert math.ceil(len(found.text.encode()) / 4) <= bound
    assert found.hits or bound < TOKENS_MIN


# --- What comes first ---------------------------------------------------------------------------------------------


def test_proven_beats_lucky_and_lucky_beats_failing(words: Memory) -> None:
    by_rate = {
        rate: logged(
            words, f"flaky login test: apply remedy {name} to the session store", success_rate=rate
        )
        for rate, name in (("1/1", "alpha"), ("19/20", "bravo"), ("1/9", "charlie"))
    }

    found = ids(words, "flaky login test session store", cutoff=False)

    assert found == [by_rate["19/20"], by_rate["1/1"], by_rate["1/9"]]


def test_the_lower_bound_knows_how_much_was_tried() -> None:
    assert wilson(Rate(9, 10)) > wilson(Rate(1, 1)) > wilson(Rate(1, 2)) > wilson(Rate(0, 5)) >= 0


def test_what_was_said_to_be_wrong_or_stale_sinks(words: Memory) -> None:
    first = logged(words, "deploy with the blue script on friday")
    second = logged(words, "deploy with the green script on monday")
    before = ids(words, "deploy with the script", cutoff=False)
    assert set(before) == {first, second}

    words.feedback(before[0], "wrong")

    assert ids(words, "deploy with the script", cutoff=False) == before[::-1]


def test_feedback_moves_the_rate_that_is_shown(words: Memory) -> None:
    ident = logged(words, "clear the gradle cache", success_rate="9/10")
    for _ in range(3):
        words.feedback(ident, "worked")
    words.feedback(ident, "failed")

    assert "(12/14 success)" in words.recall("gradle cache").text


def test_a_changed_rule_shadows_the_old_one_without_a_link(words: Memory) -> None:
    old = logged(
        words,
        "Convention: name test files with the suffix _test.py",
        timestamp="2026-01-05T00:00:00Z",
    )
    new = logged(
        words,
        "Convention: name test files with the prefix test_ from now on",
        timestamp="2026-06-05T00:00:00Z",
    )

    found = words.recall("convention for naming test files")

    assert [hit.id for hit in found.hits] == [new, old]
    assert "superseded" in found.hits[1].text
    assert "superseded" not in found.hits[0].text


def test_near_duplicates_collapse_to_the_best_proven(words: Memory) -> None:
    logged(words, "restart the quokka daemon after midnight", success_rate="1/5")
    best = logged(
        words, "Restart the quokka daemon after midnight!", success_rate="9/9", context=" "
    )

    assert ids(words, "quokka daemon restart") == [best]


def test_superseded_and_forgotten_memories_are_out(words: Memory) -> None:
    old, new = (
        logged(words, "use the kettle service v1"),
        logged(words, "use the kettle service v2"),
    )
    gone = logged(words, "use the kettle service v0")
    words.log(kind="link", of=new, to=old, rel="supersedes", repo="app")
    words.forget(gone)

    assert ids(words, "kettle service", cutoff=False) == [new]


def test_a_superseded_memory_that_is_asked_for_says_so(words: Memory) -> None:
    old = logged(words, "use the kettle service in Lyon")
    new = logged(words, "use the teapot service in Marseille")
    words.log(kind="link", of=new, to=old, rel="supersedes", repo="app")

    found = words.recall("kettle service Lyon teapot Marseille", superseded=True).hits

    assert {hit.id: hit.marks for hit in found} == {old: ("superseded",), new: ()}


def test_what_derives_from_the_forgotten_is_out(words: Memory) -> None:
    source = logged(words, "the kettle boils over")
    words.log(
        kind="pattern", pattern="kettles boil over when full", source_episodes=[source], repo="app"
    )
    words.forget(source)

    assert ids(words, "kettle", cutoff=False) == []


def test_what_is_forgotten_is_forgotten_in_every_home(tmp_path: Path) -> None:
    root, user = tmp_path / "app", tmp_path / "me"
    (root / ".commonplace").mkdir(parents=True)
    git("init", "-q", cwd=root)
    with quiet(user) as mine:
        for ident in ("same", "old"):
            logged(
                mine,
                f"the kettle {ident} rule of the house",
                id=ident,
                timestamp="2026-01-01T00:00:00Z",
            )
    with Memory.open(
        cwd=root,
        environment={"COMMONPLACE_HOME": str(user), "HOME": str(tmp_path)},
        settings={"embedder.kind": "none"},
    ) as memory:
        logged(
            memory, "the kettle same rule of the house", id="same", timestamp="2026-01-02T00:00:00Z"
        )
        new = logged(
            memory, "the kettle new rule of the house", links=[{"to": "old", "rel": "supersedes"}]
        )
        memory.forget("same")

        assert ids(memory, "kettle rule", cutoff=False) == [new]


def test_a_long_chain_that_rests_on_the_forgotten_is_out_and_a_link_taken_back_no_longer_counts(
    words: Memory,
) -> None:
    logged(words, "kettle link 0", id="c0")
    for number in range(1, 9):
        links = [{"to": f"c{number - 1}", "rel": "derived_from"}]
        logged(words, f"kettle link {number}", id=f"c{number}", links=links)
    words.forget("c0")
    logged(words, "kettle old", id="old")
    logged(words, "kettle new", id="new", links=[{"to": "old", "rel": "supersedes"}])
    assert ids(words, "kettle", cutoff=False, limit=20) == ["new"]

    logged(words, "kettle new", id="new")

    assert set(ids(words, "kettle", cutoff=False, limit=20)) == {"new", "old"}


def test_a_newer_rule_nobody_tried_leads_before_an_older_proven_one(words: Memory) -> None:
    old = logged(
        words,
        "Use version 3.12 of the kettle image",
        success_rate="9/10",
        timestamp="2026-01-01T00:00:00Z",
    )
    new = logged(words, "Use version 4.1 of the kettle image", timestamp="2026-06-01T00:00:00Z")

    assert ids(words, "which version of the kettle image") == [new, old]


def test_code_is_delivered_as_it_is_written(words: Memory) -> None:
    script = 'python - <<EOF\nfor i in range(3):\n    print(i, "a  b")\nEOF'
    logged(words, "count the kettles with the script", command=script)
    logged(words, "the kettle makefile:\n\n```make\nall:\n\techo one\n```")

    text = words.recall("kettle", cutoff=False).text

    assert '   for i in range(3):\n       print(i, "a  b")' in text
    assert "   all:\n   \techo one" in text


def test_a_bound_too_small_for_what_is_known_says_so(words: Memory) -> None:
    logged(words, "the kettle rule that goes on for quite a while and needs its tokens to be told")

    assert (
        words.recall("kettle rule", tokens_max=13).text
        == "1 relevant memory needs more than 13 tokens."
    )
    assert words.recall("kettle rule", tokens_max=3).text == ""


def test_a_skill_is_found_from_any_repository_and_shown_whole(
    own_home: Path, commonplace: Any
) -> None:
    skill = own_home / "skills" / "deploy" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text(
        "---\nname: deploy\ndescription: How to ship the flux capacitor\n---\n# Deploy\n\nRun the capacitor script.\n"
    )

    answer = json.loads(commonplace("recall", "flux capacitor", "--json").stdout)

    assert [hit["id"] for hit in answer["hits"]] == ["skill:deploy"]
    assert "SKILL.md" not in answer["text"]
    assert "Run the capacitor script" in commonplace("show", "skill:deploy").stdout
    assert commonplace("show", "skill:none").returncode == 4


def test_no_id_of_a_skill_or_note_leads_out_of_its_folder(
    words: Memory, own_home: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    for path in (
        outside / "SKILL.md",
        own_home / "SKILL.md",
        own_home / "agents" / "other" / "a.md",
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a secret")

    for ident in (f"skill:{outside}", "skill:..", "skill:../../outside", "note:other/a.md", f"note:default/{outside}/SKILL.md",
                  "note:default/../other/a.md", "note:default/..\\other\\a.md", "note:default/" + "a" * 5000, "skill:\0"):  # fmt: skip
        with pytest.raises(RecordNotFound):
            words.describe(ident)


def test_files_in_hand_lift_what_names_them(words: Memory) -> None:
    logged(words, "the retry helper swallows errors in src/net/other.py")
    wanted = logged(words, "the retry helper swallows errors in src/net/retry.py")

    assert (
        ids(words, "retry helper swallows errors", files=["src/net/retry.py"], cutoff=False)[0]
        == wanted
    )
    (hit, *_rest) = words.recall(
        "retry helper swallows errors", files=["try.py"], cutoff=False
    ).hits
    assert hit.why is not None
    assert "files" not in hit.why.factors


def test_a_memory_that_names_files_which_are_gone_is_marked(tmp_path: Path) -> None:
    root = tmp_path / "app"
    (root / "src").mkdir(parents=True)
    git("init", "-q", cwd=root)
    (root / "src" / "here.py").write_text("")
    with Memory.open(tmp_path / "home", cwd=root, settings={"embedder.kind": "none"}) as memory:
        more = "see $HOME/bin/setup.sh, github.com/foo/bar.git and application/vnd.api+json"
        for name in ("here", "gone"):
            memory.log(
                event_type="error",
                lesson=f"the {name} parser in src/{name}.py needs a flush; {more}",
            )
        texts = {
            hit.record.fields["lesson"].split()[1]: hit.text
            for hit in memory.recall("parser needs a flush").hits
        }

    assert "stale: src/gone.py is gone" in texts["gone"]
    assert "stale" not in texts["here"]


def test_identifiers_are_found_whole_and_in_parts(words: Memory) -> None:
    filled(words)
    ident = logged(words, "the cache in getUserById must be keyed by tenant")

    assert ids(words, "getUserById")[0] == ident
    assert ids(words, "user by id cache tenant")[0] == ident


def test_any_kind_is_searched_nodes_by_every_string_of_their_payload(words: Memory) -> None:
    payload = {
        "definition": "Substitution failure",
        "examples": ["enable_if on the zebrafish overload"],
    }
    words.log(kind="concept", id="skill.cpp.sfinae", label="SFINAE", payload=payload, repo="cpp")
    words.log(
        kind="episode", task_id="t1", context={"goal": "Implement the walrus endpoint"}, repo="cpp"
    )

    assert ids(words, "zebrafish overload") == ["skill.cpp.sfinae"]
    assert len(ids(words, "walrus endpoint", kinds=["episode"])) == 1
    assert ids(words, "walrus endpoint", kinds=["lesson"]) == []


# --- What narrows -------------------------------------------------------------------------------------------------


def test_filters_let_nothing_else_through(words: Memory) -> None:
    filled(words)
    logged(
        words,
        "docker layer cache tip of another agent",
        agent_id="other",
        tags=["special"],
        event_type="success",
    )

    assert {
        hit.repo
        for hit in words.recall("docker layer cache", repo="repo1", limit=10, cutoff=False).hits
    } == {"repo1"}
    assert len(ids(words, "docker layer cache", agent="other", cutoff=False)) == 1
    assert len(ids(words, "docker layer cache", tags=["Special"], cutoff=False)) == 1
    assert len(ids(words, "docker layer cache", types=["success"], cutoff=False)) == 1
    since = words.recall(
        "docker layer cache", since="2026-06-01", all_repos=True, limit=20, cutoff=False
    ).hits
    assert since
    assert all(hit.timestamp >= "2026-06-01" for hit in since)


def test_the_archive_is_searched_only_when_asked(own_home: Path) -> None:
    settings = {"embedder.kind": "none", "rotation.lines_max": 2, "rotation.move": 2}
    with Memory.open(own_home, settings=settings) as memory:
        old = logged(memory, "the kettle rule of old")
        for number in range(4):
            logged(memory, f"something else {number}")
        runner.run(memory, ["rotation"])

        assert ids(memory, "kettle rule") == []
        assert ids(memory, "kettle rule", archived=True) == [old]


@given(
    st.integers(1, 9),
    st.sampled_from(["docker layer cache", "postgres deadlock", "runbook for service s7", "npm"]),
)
@SLOW_LAW
def test_as_of_equals_a_store_that_stopped_then(
    tmp_path_factory: pytest.TempPathFactory, month: int, query: str
) -> None:
    folder = tmp_path_factory.mktemp("any")
    moment = f"2026-0{month}-15"
    with quiet(folder / "whole") as whole, quiet(folder / "stopped") as stopped:
        filled(whole)
        stopped.append(
            record for record in whole.records() if record.timestamp <= f"{moment}T23:59:59Z"
        )
        answered = whole.recall(query, as_of=moment, limit=10).text
        if list(stopped.records()):
            assert answered == stopped.recall(query, limit=10).text
        else:
            assert answered == "No relevant memories."


def test_as_of_brings_back_what_a_later_version_replaced(words: Memory) -> None:
    logged(words, "kettle port is 8080", id="rule", timestamp="2026-01-01T00:00:00Z")
    logged(words, "kettle port is 9090", id="rule", timestamp="2026-05-01T00:00:00Z")

    assert "8080" in words.recall("kettle port", as_of="2026-02-01").text
    assert "9090" in words.recall("kettle port").text


def test_a_selective_filter_finds_its_few_among_many(
    words: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("commonplace.recall.search.CANDIDATES", 10)
    monkeypatch.setattr("commonplace.recall.search.CANDIDATES_MAX", 40)
    words.append(
        {"repo": "app", "event_type": "error", "lesson": f"deploy deploy rule {n}"}
        for n in range(200)
    )
    rare = logged(
        words,
        "how to deploy the rare one among all the other long winded rules",
        tags=["rare"],
        agent_id="z",
    )

    for narrowing in ({"tags": ["rare"]}, {"agent": "z"}, {"since": "2026-02-28", "tags": "rare"}):
        assert ids(words, "deploy", **narrowing) == [rare]


def test_the_latest_are_narrowed_like_answers(words: Memory) -> None:
    old = logged(words, "the one error", timestamp="2026-01-01T00:00:00Z")
    for number in range(60):
        logged(words, f"success {number}", event_type="success", timestamp="2026-02-01T00:00:00Z")

    assert [hit.id for hit in words.recent(1, types=["error"])] == [old]
    assert words.recent(3, tags=["nosuch"]) == []
    assert words.recent(3, since="2099-01-01") == []
    with pytest.raises(UsageError):
        words.recent(0)


def test_a_kind_or_type_nobody_knows_gets_a_sentence(words: Memory) -> None:
    logged(words, "the kettle rule")

    assert len(ids(words, "kettle", kinds="lesson")) == 1
    for narrowing in ({"kinds": ["lessen"]}, {"types": ["omen"]}):
        with pytest.raises(UsageError, match="there is no"):
            ids(words, "kettle", **narrowing)


# --- The same every time ------------------------------------------------------------------------------------------


def test_the_same_home_and_question_give_the_same_bytes(
    words: Memory, own_home: Path, tmp_path: Path
) -> None:
    filled(words)
    first = words.recall("docker layer cache", limit=10).text
    words.close()
    shutil.copytree(own_home, tmp_path / "copy", ignore=shutil.ignore_patterns(".index", ".state"))

    with quiet(tmp_path / "copy") as copy:
        assert copy.recall("docker layer cache", limit=10).text == first


def test_usage_is_counted_beside_the_log_never_in_it(words: Memory, own_home: Path) -> None:
    ident = logged(words, "the kettle rule")
    before = (own_home / "log" / "app.jsonl").read_bytes()

    for _ in range(3):
        words.recall("kettle rule")

    assert (own_home / "log" / "app.jsonl").read_bytes() == before
    described = words.describe(ident)
    assert described["usage_count"] == 3
    assert described["last_used"].endswith("Z")


def test_erasing_takes_the_usage_along(words: Memory, own_home: Path) -> None:
    ident = logged(words, "the xylophonist rule")
    words.recall("xylophonist")

    assert words.erase(ident).left_in == []
    assert not any(
        b"xylophonist" in path.read_bytes() for path in own_home.rglob("*") if path.is_file()
    )


def test_every_prior_is_bounded() -> None:
    weights = Weights()
    assert all(
        0 <= weight <= 0.5 for name, weight in weights._asdict().items() if name != "half_life_days"
    )


# --- Odd questions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    ['"', "AND OR NOT", "foo:bar", "(((", "a*b^2~", "NEAR(a b)", "' OR 1=1 --", "../../etc/passwd", "🚀 déjà vu", "مرحبا",
     "日本語のエラー", "the of and", "x" * 5000, "-", "\\", "[a-z]+", "E0308", "\ud800", "a" * 1_000_000, "body:x AND repo:y"],
)  # fmt: skip
def test_no_question_breaks_it(words: Memory, query: str) -> None:
    filled(words, 10)

    assert words.recall(query).text


def test_an_empty_question_gets_a_sentence(words: Memory) -> None:
    with pytest.raises(UsageError, match="the question is empty"):
        words.recall("  ")
    with pytest.raises(UsageError):
        words.recall("x", limit=0)
    with pytest.raises(UsageError, match="date"):
        words.recall("x", since="soonish")


# --- The command --------------------------------------------------------------------------------------------------


def test_the_command_asks_this_repository_unless_told_otherwise(
    commonplace: Any, tmp_path: Path
) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    git("init", "-q", cwd=root)
    commonplace("log", "--type", "error", "--lesson", "the kettle of this repository", cwd=root)
    commonplace(
        "log",
        "--type",
        "error",
        "--lesson",
        "the kettle by its plain name",
        "--repo",
        "shop",
        cwd=root,
    )
    commonplace(
        "log", "--type", "error", "--lesson", "the kettle of another", "--repo", "other", cwd=root
    )

    here = json.loads(commonplace("recall", "kettle", "--json", cwd=root).stdout)
    everywhere = json.loads(
        commonplace("recall", "kettle", "--json", "--all-repos", cwd=root).stdout
    )

    assert len(here["hits"]) == 2
    assert len(everywhere["hits"]) == 3
    assert here["tokens"] <= 500


def test_the_command_lists_the_latest_and_counts(commonplace: Any) -> None:
    for number in range(3):
        commonplace(
            "log",
            "--type",
            "learned",
            "--lesson",
            f"thing {number}",
            "--timestamp",
            f"2026-01-0{number + 1}",
            "--repo",
            "a",
        )

    assert (
        commonplace("recall", "--recent", "2", "--all-repos")
        .stdout.splitlines()[0]
        .startswith("[2026-01-03] thing 2")
    )
    assert "3 records" in commonplace("recall", "--stats", "--all-repos").stdout
    ident = json.loads(commonplace("recall", "--recent", "1", "--all-repos", "--json").stdout)[0][
        "id"
    ]
    commonplace("forget", ident)
    assert "2 records" in commonplace("recall", "--stats", "--all-repos").stdout


def test_the_command_explains_and_says_why(commonplace: Any) -> None:
    ident = commonplace(
        "log", "--type", "error", "--lesson", "kettle rule", "--repo", "a"
    ).stdout.strip()
    other = commonplace(
        "log", "--type", "error", "--lesson", "nothing alike", "--repo", "a"
    ).stdout.strip()

    assert "fused" in commonplace("recall", "kettle", "--all-repos", "--explain").stderr
    assert "number 1 of the answer" in commonplace("why", "kettle rule", ident).stdout
    assert (
        json.loads(commonplace("why", "kettle rule", other, "--json").stdout)["in_answer"] is False
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--limit", "many"], "`--limit` is `many`"),
        (["--limit", "-3"], "`--limit` is -3, not between 1 and 1,000"),
        (["--limit", "0"], "`--limit` is 0, not between 1 and 1,000"),
        (["--repo", "x", "--all-repos"], "`--repo` and `--all-repos` exclude each other"),
        (["--tokens", "5"], "`--tokens` is 5, not between 20 and"),
        (["--since", "foo"], "`--since` is `foo`, not a date, a time or an age"),
        (["--as-of", "foo"], "`--as-of` is `foo`, not a date, a time or an age"),
        ([], "a question is needed"),
    ],
)
def test_bad_flags_of_recall_get_a_sentence(
    commonplace: Any, arguments: list[str], said: str, own_home: Path
) -> None:
    own_home.mkdir()
    done = commonplace("recall", *(["kettle"] if arguments else []), *arguments)

    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith(f"error: {said}")


def test_nothing_is_suggested_after_every_log_was_searched(
    commonplace: Any,
) -> None:
    commonplace("log", "--type", "error", "--lesson", "kettle rule " + "x" * 500)

    short = commonplace("recall", "kettle", "--tokens", "20")

    assert "kettle rule" in short.stdout
    assert short.stderr == ""
    assert commonplace("recall", "quantum chromodynamics").stderr == ""
    assert "--all-repos" in commonplace("recall", "--recent", "1", "--tag", "x").stderr


def test_a_common_word_does_not_outweigh_what_is_meant(memory: Memory) -> None:
    wanted = memory.log(
        event_type="success", repo="app", lesson="Per-file upload limit: 100 MB, checked in nginx"
    )
    memory.log(
        event_type="success",
        repo="app",
        lesson="Attach the flamegraph from profiling to every performance PR",
    )
    memory.log(event_type="success", repo="app", lesson="Large tables are migrated at night")

    found = memory.recall("How large can an attachment be?", repo="app", cutoff=False)

    assert found.hits[0].id == wanted.id


def test_a_rule_that_changed_its_words_too_leads_and_the_old_one_is_marked(memory: Memory) -> None:
    rules = [
        ("2026-01-05T00:00:00Z", "User sessions are stored in Redis"),
        (
            "2026-06-05T00:00:00Z",
            "Sessions of users moved to signed cookies, Redis is only for rate limits now",
        ),
        ("2026-07-05T00:00:00Z", "The session timeout of the admin console is ten minutes"),
    ]
    for when, lesson in rules:
        memory.log(event_type="success", repo="app", lesson=lesson, timestamp=when)

    hits = memory.recall("where do we store user sessions", repo="app").hits
    said = {hit.record.fields["lesson"]: (place, hit.marks) for place, hit in enumerate(hits)}

    assert said[rules[1][1]][0] < said[rules[0][1]][0]
    assert said[rules[0][1]][1] == (SUPERSEDED,)
    assert all(not marks for lesson, (_place, marks) in said.items() if lesson != rules[0][1])


def test_the_sentence_of_a_session_that_changed_a_rule_is_shown(memory: Memory) -> None:
    old = "Test coverage must be at least 70 percent on the whole repository."
    new = "Coverage must be at least 85 percent on changed lines, the old rule of 70 percent on the whole repository is gone."
    session = (
        "Session: CI cleanup\n\n"
        "We looked at why the pipelines take 24 minutes. Most of it is the end-to-end suite, which runs on one worker.\n\n"
        "Sharding the suite over four workers brought it to 9 minutes. The shards are balanced by a file with timings.\n\n"
        f"Discussed with the team: {new} The check is called `diff-cover`.\n\n"
        "Flaky tests get a tag and are run three times; a test that is tagged for more than 14 days is deleted.\n\n"
        "Next: move the image builds to the new runners."
    )
    others = [f"Tests of the {name} run in CI before a merge" for name in ("API", "shop", "worker")]
    for month, lesson in ((1, old), (6, session), *enumerate(others, 2)):
        when = f"2026-0{month}-05T00:00:00Z"
        memory.log(event_type="success", repo="app", lesson=lesson, timestamp=when)

    found = memory.recall("what test coverage do we require", repo="app", tokens_max=120)

    assert new in found.text
    assert found.text.index(new) < found.text.index(old)
    assert [hit.marks for hit in found.hits] == [(), (SUPERSEDED,)]


@pytest.mark.parametrize(
    ("old", "new", "question"),
    [
        ("The API listens on port 8080.", "The metrics endpoint listens on port 9090.", "which port is the API on"),
        ("Staging is deployed by merging to develop.", "Production is deployed by tagging a release.", "how is staging deployed"),
        ("The nightly export runs at 02:00 UTC.", "The nightly backup runs at 04:00 UTC.", "when does the nightly export run"),
        ("Gradle daemon disappears on CI: set org.gradle.jvmargs=-Xmx2g.",
         "Gradle on CI: the configuration cache is turned on.", "gradle daemon disappeared on CI"),
    ],
)  # fmt: skip
def test_a_newer_memory_about_something_alike_neither_leads_nor_marks(
    memory: Memory, old: str, new: str, question: str
) -> None:
    for month, lesson in ((2, old), (6, new)):
        when = f"2026-0{month}-05T00:00:00Z"
        memory.log(event_type="success", repo="app", lesson=lesson, timestamp=when)

    hits = memory.recall(question, repo="app").hits

    assert hits[0].lesson == old
    assert hits[0].marks == ()


@pytest.mark.parametrize(
    ("evidence", "is_marked"),
    [
        ({}, True),
        ({"source_episodes": ["ep-1", "ep-2"]}, False),
        ({"meta": {"batch": "batch-20260101-000000-0a0a", "step": "consolidation"}}, False),
    ],
)
def test_a_newer_pattern_of_less_evidence_makes_no_other_look_superseded(
    memory: Memory, evidence: dict[str, Any], *, is_marked: bool
) -> None:
    said = "User sessions are stored in the Redis cluster"
    old = {"kind": "pattern", "id": "sem-old", "pattern": said, "confidence": 0.94, **evidence}
    new = {"kind": "pattern", "id": "sem-new", "pattern": f"{said} of the new region"}
    memory.append([
        {**old, "repo": "app", "timestamp": "2026-01-05T00:00:00Z"},
        {**new, "repo": "app", "timestamp": "2026-06-05T00:00:00Z", "source_episodes": ["ep-9"]
         if evidence.get("source_episodes") else []},
    ])  # fmt: skip

    hits = memory.recall("where do we store user sessions in Redis", repo="app").hits

    marks = {hit.id: hit.marks for hit in hits}
    assert marks == {"sem-new": (), "sem-old": (SUPERSEDED,) if is_marked else ()}


def test_why_and_the_answer_agree_about_the_place_of_every_memory(memory: Memory) -> None:
    # Of hits about one subject the newest is put first, whatever its score.
    memory.append(
        [
            {
                "id": f"les-{n}",
                "event_type": "learned",
                "lesson": text,
                "timestamp": f"2026-0{n}-01T00:00:00Z",
            }
            for n, text in enumerate(
                [
                    "deploy the api with make deploy",
                    "deploy the api with make deploy now",
                    "deploy the api with make release instead of make deploy",
                    "the api is deployed by CI after a release",
                    "deploy docs with make docs",
                    "make coffee before a deploy",
                ],
                1,
            )
        ]
    )
    question = "how do we deploy the api with make"
    shown = [hit.id for hit in memory.recall(question, limit=3).hits]

    verdicts = {f"les-{n}": memory.why(question, f"les-{n}", limit=3) for n in range(1, 7)}

    assert [verdicts[ident].place for ident in shown] == list(range(1, len(shown) + 1))
    places = [verdict.place for verdict in verdicts.values() if verdict.place is not None]
    assert len(set(places)) == len(places)
    for ident, verdict in verdicts.items():
        assert verdict.in_answer == (ident in shown)
        if verdict.in_answer:
            assert verdict.text == f"it is number {verdict.place} of the answer"
        elif "place" in verdict.text:
            assert f"place {verdict.place}" in verdict.text
