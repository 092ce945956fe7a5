"""`commonplace repos`, repositories by their names, and what a question searches by default."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace import repos
from commonplace.errors import RecordInvalid, RepoAmbiguous, RepoUnknown, UsageError
from commonplace.log import move, names
from commonplace.memory import Memory
from commonplace.where.repository import plain_name
from conftest import SLOW_LAW, git

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

WORDS_ONLY = {"embedder.kind": "none"}
ONE, TWO = "shop-00000001", "shop-00000002"


@pytest.fixture
def words(own_home: Path, tmp_path: Path) -> Iterator[Memory]:
    """A memory by words only, in a folder called `app`."""
    with Memory.open(own_home, cwd=tmp_path / "app", settings=WORDS_ONLY) as memory:
        yield memory


def learn(memory: Memory, repo: str, lesson: str, **more: Any) -> str:
    fields = {"kind": "lesson", "event_type": "error", "repo": repo, "lesson": lesson, **more}
    return memory.append([fields])[0].id


def texts(memory: Memory, repo: str | None = None) -> list[str]:
    return sorted(record.fields["lesson"] for record in memory.records(repo, "lesson"))


# --- By name ----------------------------------------------------------------------------------------


def test_a_plain_name_finds_the_log_whatever_its_digits(words: Memory) -> None:
    learn(words, "gptcoach2-1a2b3c4d", "the emulator must run first")

    assert words.recall("emulator", repo="gptcoach2").hits
    assert words.recent(3, repo="GPTcoach2")
    assert words.stats("gptcoach2")["records"] == 1
    assert texts(words, "gptcoach2") == ["the emulator must run first"]
    assert words.log(repo="gptcoach2", event_type="error", lesson="x").repo == "gptcoach2-1a2b3c4d"


def test_an_unknown_name_is_an_error_with_a_suggestion(words: Memory, commonplace: Any) -> None:
    learn(words, ONE, "the emulator must run first")
    asks: list[Callable[[], object]] = [
        lambda: words.recall("emulator", repo="shpo"),
        lambda: words.recent(3, repo="shpo"),
        lambda: words.stats("shpo"),
        lambda: list(words.records("shpo")),
        lambda: words.why("emulator", "les", repo="shpo"),
        lambda: words.log(repo="shpo", event_type="error", lesson="x"),
    ]
    for ask in asks:
        with pytest.raises(RepoUnknown) as caught:
            ask()
        assert "did you mean `shop`?" in caught.value.hint
    with pytest.raises(RepoUnknown):
        words.recall("emulator", repo="nothing-like-it")

    told = commonplace("recall", "emulator", "--repo", "shpo")
    assert (told.returncode, told.stdout) == (30, "")
    assert "error: there is no repository `shpo`" in told.stderr
    assert "did you mean `shop`?" in told.stderr
    assert commonplace("export", "--repo", "shpo").returncode == 30
    assert commonplace("stats", "--repo", "shpo").returncode == 30
    assert texts(words) == ["the emulator must run first"], "an error stores nothing"


def test_two_repositories_of_one_plain_name_are_both_read_and_none_is_written(
    words: Memory, commonplace: Any
) -> None:
    learn(words, ONE, "the emulator must run first")
    learn(words, TWO, "the emulator needs a licence")

    found = words.recall("emulator", repo="shop")
    assert {hit.repo for hit in found.hits} == {ONE, TWO}
    assert any(ONE in note and TWO in note for note in found.notes)
    with pytest.raises(RepoAmbiguous) as caught:
        words.log(repo="shop", event_type="error", lesson="x")
    assert ONE in caught.value.hint
    assert TWO in caught.value.hint
    assert words.recall("emulator", repo=ONE).notes == []
    told = commonplace("log", "--repo", "shop", "--type", "error", "--lesson", "x")
    assert told.returncode == 31


def test_a_name_nobody_has_starts_a_log(words: Memory) -> None:
    learn(words, ONE, "the emulator must run first")

    for name in ("billing", "shop2", "Übung"):
        assert words.log(repo=name, event_type="error", lesson="x").repo == name


@pytest.mark.parametrize(
    ("name", "is_typo"),
    [
        *((name, True) for name in ("shpo", "shopp", "hshop", "Shpo")),
        *((name, False) for name in ("shop", "shop2", "ship", "sho", "shopping", "ops")),
    ],
)
def test_a_typing_mistake_is_a_letter_too_many_too_few_or_two_swapped(
    name: str, is_typo: bool
) -> None:
    assert names._is_typo(name, "shop") is is_typo


@given(st.text(min_size=1, max_size=20))
def test_the_plain_name_of_a_plain_name_is_itself_or_shorter(name: str) -> None:
    assert plain_name(f"{name}-0123abcd") == name
    assert len(plain_name(name)) <= len(name)


def test_new_starts_a_log_that_looks_like_a_typing_mistake(words: Memory) -> None:
    learn(words, ONE, "the emulator must run first")
    repos.new(words, "shops")

    assert words.log(repo="shops", event_type="error", lesson="x").repo == "shops"
    with pytest.raises(UsageError):
        repos.new(words, "shops")
    with pytest.raises(RecordInvalid):
        repos.new(words, "../shops")


# --- Rename, merge, archive, delete -------------------------------------------------------------------


def test_a_renamed_log_is_found_by_all_its_names(words: Memory) -> None:
    ident = learn(words, ONE, "the emulator must run first")
    words.feedback(ident, "worked")

    assert repos.rename(words, "shop", "store") == (ONE, "store", 2)
    for name in ("store", "shop", ONE):
        assert texts(words, name) == ["the emulator must run first"]
        assert [hit.repo for hit in words.recall("emulator", repo=name).hits] == ["store"]
    assert str(words.recall("emulator", repo="store").hits[0].rate) == "1/1"
    assert learn(words, ONE, "written by the old name")
    assert [row["repo"] for row in words.repos()] == ["store"]
    # And back, twice.
    for target in ("shop", "store", ONE):
        repos.rename(words, words.repos()[0]["repo"], target)
        assert words.log(repo="shop", event_type="error", lesson="x").repo == target


def test_a_rename_refuses_names_that_are_taken_invalid_or_secret(words: Memory) -> None:
    learn(words, ONE, "a")
    learn(words, "billing", "b")

    for name, error in (
        ("billing", UsageError),
        ("All-Repositories", UsageError),
        ("../x", RecordInvalid),
        ("ghp_" + "a1B2" * 9, RecordInvalid),
    ):
        with pytest.raises(error):
            repos.rename(words, ONE, name)
    with pytest.raises(RepoUnknown):
        repos.rename(words, "nobody", "x")
    with pytest.raises(UsageError):
        repos.merge(words, "billing", "billing")
    assert [row["repo"] for row in words.repos()] == ["billing", ONE]


def test_a_repository_goes_on_writing_to_its_log_after_that_was_renamed(
    own_home: Path, tmp_path: Path, words: Memory
) -> None:
    words.log(event_type="error", lesson="the emulator must run first")
    repos.rename(words, "app", "product")

    with Memory.open(own_home, cwd=tmp_path / "app", settings=WORDS_ONLY) as later:
        assert later.log(event_type="error", lesson="after").repo == "product"
        assert later.recall("emulator").hits[0].marks == ()


@pytest.mark.parametrize("leftover", [False, True])
def test_a_record_with_an_older_name_of_its_log_is_found_by_both_names(
    words: Memory, *, leftover: bool
) -> None:
    learn(words, "demo", "the emulator must run first")
    line = words.home.log("demo").read_bytes()
    learn(words, "other", "the emulator elsewhere")
    repos.rename(words, "demo", "shop")
    # Another machine wrote by the older name, and git put its lines into the renamed file, or not.
    late = line.replace(b"must run first", b"needs a licence").replace(b'{"id":"', b'{"id":"late-')
    with words.home.log("demo" if leftover else "shop").open("ab") as stream:
        stream.write(late)

    for name in ("shop", "demo"):
        found = words.recall("emulator", repo=name).hits
        assert {hit.repo for hit in found} == {"shop", "demo"}
        assert len(texts(words, name)) == len(words.recent(9, repo=name)) == 2


def test_a_new_log_with_an_older_name_of_another_is_a_log_of_its_own(words: Memory) -> None:
    learn(words, "demo", "the emulator must run first")
    repos.rename(words, "demo", "shop")
    repos.new(words, "demo")
    learn(words, "demo", "the licence is in the safe")

    assert texts(words, "shop") == ["the emulator must run first"]
    assert texts(words, "demo") == ["the licence is in the safe"]
    repos.delete(words, "shop")
    assert texts(words) == ["the licence is in the safe"]


STEPS = st.lists(
    st.tuples(
        st.sampled_from([ONE, "billing"]),
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["log", "forget", "worked"]),
    ),
    max_size=12,
)


def current(memory: Memory) -> set[tuple[str, str]]:
    return {
        (record.id, str(record.fields.get("success_rate")) + record.fields.get("lesson", ""))
        for record in memory.records()
        if record.kind == "lesson"
    }


@SLOW_LAW
@given(steps=STEPS)
def test_a_merge_keeps_what_is_current(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, str]]
) -> None:
    home = tmp_path_factory.mktemp("merge") / "home"
    with Memory.open(home, settings=WORDS_ONLY) as memory:
        for repo in (ONE, "billing"):
            learn(memory, repo, f"first of {repo}", timestamp="2026-01-01T00:00:00Z")
        for number, (repo, name, what) in enumerate(steps):
            stamp = {"timestamp": f"2026-02-01T00:00:{number:02}Z", "repo": repo}
            if what == "log":
                learn(memory, id=f"les-{name}", lesson=f"version {number}", **stamp)
            elif what == "forget":
                memory.append([{"kind": "forget", "of": f"les-{name}", **stamp}])
            else:
                rating = {"kind": "feedback", "of": f"les-{name}", "outcome": what, **stamp}
                memory.append([rating])
        before = current(memory)
        repos.merge(memory, ONE, "billing")

        assert current(memory) == before
        assert {row["repo"] for row in memory.repos()} == {"billing"}
        assert {record.repo for record in memory.records()} == {"billing"}


def test_a_move_that_was_killed_can_be_run_again(
    words: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    ident = learn(words, ONE, "moved", timestamp="2026-01-01T00:00:00Z")
    learn(words, ONE, "moved too", timestamp="2026-01-02T00:00:00Z")
    learn(words, "billing", "here before")

    class Killed(BaseException):
        pass

    def kill(_path: Path) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(move, "_unlink", kill)
        with pytest.raises(Killed):
            repos.merge(words, ONE, "billing")
    words.append([{"kind": "forget", "of": ident, "repo": "billing"}])
    assert texts(words) == ["here before", "moved too"]
    repos.merge(words, ONE, "billing")

    assert texts(words) == ["here before", "moved too"], "what was forgotten stays forgotten"
    lines = words.home.log("billing").read_bytes().splitlines()
    assert len(lines) == len(set(lines)) == 4
    assert not words.home.log(ONE).exists()


KILLED_AT = """
import os, sys
from commonplace.cli import main
home, last = sys.argv[1], int(sys.argv[2])
changes = 0

def count(event, arguments):
    global changes
    is_open = event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    if (is_open or event in ("os.rename", "os.remove")) and not isinstance(arguments[0], int):
        path = os.fspath(arguments[0])
        # Files of the home are opened by their names in an open folder.
        changes += path.startswith(home) or not os.path.isabs(path)
        if changes == last:
            os._exit(99)

sys.addaudithook(count)
sys.exit(main(["repos", "rename", "demo", "shop"]))
"""


def test_a_rename_that_was_killed_at_any_step_can_be_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commonplace: Any
) -> None:
    prepared = tmp_path / "prepared"
    with Memory.open(prepared, settings=WORDS_ONLY) as memory:
        learn(memory, "oldest", "archived")
        repos.rename(memory, "oldest", "demo")
        repos.archive(memory, "demo")
        forgotten = learn(memory, "demo", "forgotten")
        memory.forget(forgotten)
        learn(memory, "demo", "the emulator must run first")
        memory.home.damaged("demo").parent.mkdir(exist_ok=True)
        memory.home.damaged("demo").write_bytes(b"{damaged\n")
        # Written by a process that did not know of the first rename.
        moved = memory.home.log("demo").read_bytes()
        memory.home.log("oldest").write_bytes(moved.splitlines(keepends=True)[-1])
    for step in itertools.count(1):
        home = tmp_path / f"home-{step}"
        shutil.copytree(prepared, home)
        monkeypatch.setenv("COMMONPLACE_HOME", str(home))
        command = [sys.executable, "-c", KILLED_AT, str(home), str(step)]
        killed = subprocess.run(command, capture_output=True, text=True, check=False)
        assert killed.returncode in (0, 99), killed.stderr
        again = commonplace("repos", "rename", "demo", "shop")

        assert again.returncode == 0, (step, again.stderr)
        with Memory.open(home, settings=WORDS_ONLY) as memory:
            assert texts(memory, "shop") == ["archived", "the emulator must run first"]
            stored = memory.home
            assert {path.stem for path in stored.log_folder.rglob("*.jsonl")} == {"shop"}
            lines = stored.log("shop").read_bytes().splitlines()
            assert len(lines) == len(set(lines)) == 3
            assert stored.damaged("shop").read_bytes() == b"{damaged\n"
        if killed.returncode == 0:
            break
    assert step > 20, "every change of a file was a step"


def test_a_hand_written_lesson_that_was_forgotten_stays_forgotten_after_a_rename(
    words: Memory,
) -> None:
    learn(words, "demo", "here before")
    line = {"timestamp": "2026-01-01T00:00:00Z", "repo": "demo", "event_type": "error"}
    with words.home.log("demo").open("a") as stream:
        stream.write(json.dumps({**line, "lesson": "by hand"}) + "\n")
    ident = next(one.id for one in words.records("demo") if one.fields["lesson"] == "by hand")
    words.forget(ident)
    repos.rename(words, "demo", "shop")

    assert texts(words) == ["here before"]
    assert words.history(ident)[0].id == ident


def leave_a_log_behind(words: Memory, own_home: Path, tmp_path: Path) -> None:
    """Rename the log of `app` while a process has it open, which then writes by the old name."""
    with Memory.open(own_home, cwd=tmp_path / "app", settings=WORDS_ONLY) as other:
        other.log(event_type="error", lesson="one emulator")
        repos.rename(words, "app", "shop")
        other.log(event_type="error", lesson="another emulator")
    assert words.home.log("app").exists()


@pytest.mark.parametrize("command", ["delete", "archive", "rename", "merge"])
def test_a_command_reaches_the_logs_of_older_names(
    words: Memory, own_home: Path, tmp_path: Path, command: str
) -> None:
    leave_a_log_behind(words, own_home, tmp_path)
    learn(words, "billing", "stays")
    done = {
        "delete": lambda: repos.delete(words, "shop"),
        "archive": lambda: repos.archive(words, "shop"),
        "rename": lambda: repos.rename(words, "shop", "store"),
        "merge": lambda: repos.merge(words, "shop", "billing"),
    }[command]()

    assert done.lines == 2
    assert not words.home.log("app").exists()
    assert not words.home.log("shop").exists()
    assert len(texts(words)) == (1 if command == "delete" else 3)
    if command == "archive":
        assert words.home.archive("shop").read_bytes().count(b"\n") == 2
    if command == "delete":
        assert words.home.repos_file.read_bytes() == b""
        assert words.recall("emulator", all_repos=True).hits == []


def test_the_later_edit_applies_in_whichever_log_it_is(words: Memory) -> None:
    ident = learn(words, "demo", "the port is 8080", timestamp="2026-01-01T00:00:00Z")
    words.edit(ident, lesson="the port is 9090")
    edited = words.home.log("demo").read_bytes()
    repos.rename(words, "demo", "shop")
    older = edited.splitlines(keepends=True)[0].replace(b'"demo"', b'"shop"')
    words.home.log("shop").write_bytes(older)
    words.home.log("demo").write_bytes(edited)  # Another machine wrote by the old name.

    # The same before and after the merge, in the logs and in the index.
    assert texts(words) == ["the port is 9090"]
    assert "9090" in words.recall("port", repo="shop").text
    repos.merge(words, "demo", "shop")

    assert texts(words) == ["the port is 9090"]
    assert "9090" in words.recall("port", repo="shop").text


def test_a_writer_that_has_the_log_open_loses_nothing_while_it_is_renamed(
    words: Memory, own_home: Path, tmp_path: Path
) -> None:
    with Memory.open(own_home, cwd=tmp_path / "app", settings=WORDS_ONLY) as other:
        other.log(event_type="error", lesson="the first emulator")
        repos.rename(words, "app", "product")
        other.log(event_type="error", lesson="the second emulator")

    with Memory.open(own_home, cwd=tmp_path / "app", settings=WORDS_ONLY) as later:
        assert len(later.recall("emulator", repo="product").hits) == 2
        assert len(later.recall("emulator").hits) == 2
        repos.merge(later, "app", "product")
        assert [row["repo"] for row in later.repos()] == ["product"]


def test_archive_moves_the_whole_log(words: Memory) -> None:
    learn(words, ONE, "the emulator must run first")
    repos.archive(words, "shop")

    assert not words.home.log(ONE).exists()
    assert words.home.archive(ONE).read_bytes().count(b"\n") == 1
    assert words.recall("emulator", repo="shop").hits == []
    assert words.recall("emulator", repo="shop", archived=True).hits
    assert repos.archive(words, "shop").lines == 0
    assert words.log(repo="shop", event_type="error", lesson="again").repo == ONE


def test_delete_removes_log_archive_and_aliases(words: Memory, commonplace: Any) -> None:
    learn(words, ONE, "the emulator must run first")
    repos.archive(words, ONE)
    learn(words, ONE, "the emulator needs a licence")
    repos.rename(words, ONE, "store")
    learn(words, "billing", "stays")

    refused = commonplace("repos", "delete", "store")
    assert refused.returncode == 2
    assert "--yes" in refused.stderr
    assert len(texts(words)) == 3
    done = commonplace("repos", "delete", "store", "--yes", "--json")
    assert json.loads(done.stdout) == {"repo": "store", "lines": 2}
    assert texts(words) == ["stays"]
    assert words.home.repos_file.read_bytes() == b""
    assert [path.stem for path in words.home.log_folder.rglob("*.jsonl")] == ["billing"]
    assert words.recall("emulator", all_repos=True).hits == []


@pytest.mark.skipif(os.name != "posix", reason="needs a terminal")
@pytest.mark.parametrize(("answer", "stays"), [("n\n", True), ("y\n", False)])
def test_delete_asks_on_a_terminal(words: Memory, answer: str, *, stays: bool) -> None:
    import pty

    learn(words, "demo", "the emulator must run first")
    line = words.home.log("demo").read_bytes()
    repos.rename(words, "demo", "shop")
    # Another machine wrote by the older name.
    words.home.log("demo").write_bytes(line.replace(b'{"id":"', b'{"id":"late-'))
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "commonplace", "repos", "delete", "shop"]
    with subprocess.Popen(command, stdin=theirs, stderr=subprocess.PIPE, text=True) as process:
        os.write(ours, answer.encode())
        _out, told = process.communicate(timeout=60)
    os.close(ours)
    os.close(theirs)

    assert "Delete 2 records of shop for good?" in told
    assert words.home.log("demo").exists() is words.home.log("shop").exists() is stays
    assert process.returncode == (2 if stays else 0)


def test_every_command_has_json(words: Memory, commonplace: Any) -> None:
    learn(words, ONE, "the emulator must run first")
    words.flush()

    def run(*arguments: str) -> Any:
        return json.loads(commonplace("repos", *arguments, "--json").stdout)

    assert run("new", "fresh") == {"repo": "fresh"}
    assert run("rename", "shop", "store") == {"repo": ONE, "now": "store", "lines": 1}
    assert run("merge", "store", "fresh") == {"repo": "store", "now": "fresh", "lines": 1}
    (row,) = run()
    assert (row["repo"], row["records"]) == ("fresh", 1)
    assert row["aliases"] == [ONE, "store"]
    assert run("list") == [row]
    assert run("archive", "fresh") == {"repo": "fresh", "now": "fresh", "lines": 1}


# --- The default scope ----------------------------------------------------------------------------------


def test_this_repository_is_searched_and_another_one_only_if_nothing_here_is_relevant(
    words: Memory,
) -> None:
    learn(words, ONE, "the emulator must run first")
    learn(words, ONE, "the emulator needs a licence")

    (hit,) = words.recall("emulator").hits
    assert hit.marks == (f"from the repository {ONE}",)
    assert f"from the repository {ONE}" in words.recall("emulator").text
    assert words.recall("emulator", repo="shop").hits[0].marks == ()
    here = words.log(event_type="error", lesson="our emulator is slow").id
    assert [hit.id for hit in words.recall("emulator").hits] == [here]
    assert len(words.recall("emulator", all_repos=True).hits) == 3
    assert words.recall("walrus").hits == []
    assert [hit.id for hit in words.recent(9)] == [here]
    with pytest.raises(UsageError):
        words.recall("emulator", repo="shop", all_repos=True)


def test_the_filters_hold_for_another_repository_too(words: Memory) -> None:
    learn(words, ONE, "the emulator must run first", tags=["a"], timestamp="2026-01-01T00:00:00Z")

    assert words.recall("emulator", tags=["a"]).hits
    assert not words.recall("emulator", tags=["b"]).hits
    assert words.recall("emulator", until="2026-01-01").hits
    assert not words.recall("emulator", until="2025-12-31").hits
    assert not words.recall("emulator", since="2026-01-02").hits


@given(moment=st.integers(1, 28), bound=st.integers(1, 28))
def test_until_keeps_what_is_not_newer(moment: int, bound: int) -> None:
    from commonplace.recall.query import Query
    from commonplace.records import micros
    from commonplace.writing import now_utc

    query = Query.build("x", now=now_utc(), until=f"2026-03-{bound:02}")
    assert query.until_micros is not None
    is_kept = micros(f"2026-03-{moment:02}T23:59:59Z") <= query.until_micros
    assert is_kept is (moment <= bound)


def test_why_agrees_with_recall_about_another_repository(words: Memory) -> None:
    ident = learn(words, ONE, "the emulator must run first")

    assert words.why("emulator", ident).in_answer
    words.log(event_type="error", lesson="our emulator is slow")
    assert not words.why("emulator", ident).in_answer


def test_an_older_name_does_not_delete_what_it_was_merged_with(commonplace: Any) -> None:
    for name in ("one", "two"):
        commonplace("log", f"lesson of {name}", "--repo", name)
    commonplace("repos", "merge", "two", "one")

    done = commonplace("repos", "delete", "two", "--yes")

    assert done.returncode == 2
    assert "older name of `one`" in done.stderr
    assert "lesson of one" in commonplace("list", "--repo", "one").stdout


def test_in_a_repository_its_plain_name_is_its_own(commonplace: Any, tmp_path: Path) -> None:
    folders = [tmp_path / place / "coach" for place in "ab"]
    for folder in folders:
        folder.mkdir(parents=True)
        git("init", "-q", cwd=folder)
        name = folder.parent.name
        assert commonplace("log", f"of {name}", "--repo", "coach", cwd=folder).returncode == 0

    for folder in folders:
        shown = commonplace("list", cwd=folder).stdout
        assert f"of {folder.parent.name}" in shown
        assert shown.count("\n") == 1


def test_no_repository_is_merged_into_what_is_true_everywhere(words: Memory) -> None:
    learn(words, "shop", "Deploy with make ship")
    learn(words, "all-repositories", "Pin the versions")
    with pytest.raises(UsageError):
        repos.merge(words, "shop", "all-repositories")
    assert texts(words, "shop") == ["Deploy with make ship"]


def test_what_answers_elsewhere_is_shown_instead_of_what_hardly_answers_here(
    words: Memory,
) -> None:
    exact = learn(
        words, ONE, "kubectl drain hangs on pods with a disruption budget: raise the budget"
    )
    for number in range(60):
        learn(words, ONE, f"the emulator of device {number} must run before the upload")
    words.log(event_type="error", lesson="the login pods of the session restart when they drain")

    (hit,) = words.recall("kubectl drain hangs on pods disruption budget").hits
    assert hit.id == exact
    assert hit.marks == (f"from the repository {ONE}",)
    own = words.recall("login pods restart").hits
    assert [one.marks for one in own] == [()]
