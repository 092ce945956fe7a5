"""A repository keeps its memory when its remote or its folder changes, and never gets another's."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.memory import Memory
from commonplace.records import decode
from commonplace.where import aliases, homes, identity, repository
from commonplace.where.home import Home
from conftest import SLOW_LAW, git, make_repository

if TYPE_CHECKING:
    from pathlib import Path


def learn(folder: Path, lesson: str = "run the emulator before the checkout tests") -> str:
    """Log a lesson in *folder* and return the name of its log."""
    with Memory.open(cwd=folder) as memory:
        return memory.log(event_type="error", lesson=lesson).repo


def log_of(folder: Path) -> str:
    with Memory.open(cwd=folder) as memory:
        return memory.repository.name


SHOP = "https://example.com/acme/shop.git"
STORE = "https://example.com/acme/store.git"


def test_adding_a_remote_moving_the_folder_and_renaming_the_remote_keep_the_log(
    tmp_path: Path,
) -> None:
    shop = make_repository(tmp_path / "shop")
    log = learn(shop)

    git("remote", "add", "origin", SHOP, cwd=shop)
    assert log_of(shop) == log
    moved = shop.rename(tmp_path / "elsewhere")
    assert log_of(moved) == log
    git("remote", "set-url", "origin", STORE, cwd=moved)
    assert log_of(moved) == log
    assert learn(moved, "another") == log
    # The address is known now: a clone has the same memory.
    assert log_of(make_repository(tmp_path / "clone", STORE)) == log


def test_a_moved_folder_keeps_its_log_without_a_remote_and_through_several_moves(
    tmp_path: Path,
) -> None:
    folder = make_repository(tmp_path / "a")
    log = learn(folder)
    for name in ("b", "c/d", "a"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        folder = folder.rename(tmp_path / name)
        assert learn(folder, f"in {name}") == log


def test_reading_writes_nothing_into_git(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "a")
    learn(make_repository(tmp_path / "other"))
    before = sorted((folder / ".git").rglob("*"))
    with Memory.open(cwd=folder, settings={"embedder.kind": "none"}) as memory:
        memory.recall("checkout tests")
        memory.repos()

    assert sorted((folder / ".git").rglob("*")) == before


@pytest.mark.parametrize("remote", ["", SHOP])
def test_a_log_written_before_there_were_ids_is_found_after_a_remote_was_added(
    tmp_path: Path, own_home: Path, remote: str
) -> None:
    folder = make_repository(tmp_path / "shop")
    log = learn(folder)
    (own_home / "repos.jsonl").unlink()
    (folder / ".git" / identity.FILE).unlink()
    if remote:
        git("remote", "add", "origin", remote, cwd=folder)

    assert log_of(folder) == log
    assert learn(folder, "another") == log
    assert log_of(folder.rename(tmp_path / "moved")) == log


def test_another_repository_at_the_path_of_one_that_moved_gets_a_log_of_its_own(
    tmp_path: Path,
) -> None:
    log = learn(make_repository(tmp_path / "app"))
    (tmp_path / "app").rename(tmp_path / "old")
    another = make_repository(tmp_path / "app")

    assert log_of(another) != log
    assert learn(another) == log_of(another) != log
    assert log_of(tmp_path / "old") == log


def test_another_clone_at_the_path_of_a_deleted_one_gets_a_log_of_its_own(tmp_path: Path) -> None:
    log = learn(make_repository(tmp_path / "app"))
    shutil.rmtree(tmp_path / "app")

    assert log_of(make_repository(tmp_path / "app", SHOP)) != log


def test_a_repository_in_which_git_is_set_up_again_keeps_its_log(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "app")
    log = learn(folder)
    shutil.rmtree(folder / ".git")
    git("init", "-q", cwd=folder)

    assert log_of(folder) == log


def test_a_copy_of_a_folder_is_another_repository(tmp_path: Path) -> None:
    template = make_repository(tmp_path / "template")
    log = learn(template)
    copy = tmp_path / "copy"
    shutil.copytree(template, copy)

    assert log_of(copy) != log
    assert learn(copy) != log
    assert log_of(template) == log
    # The copy has an id of its own now, and keeps its log when both are moved.
    own = log_of(copy)
    template.rename(tmp_path / "gone")
    assert log_of(copy.rename(tmp_path / "moved")) == own


def test_a_copy_whose_remote_is_known_has_the_log_of_the_remote(tmp_path: Path) -> None:
    template = make_repository(tmp_path / "template")
    log = learn(template)
    shop = learn(make_repository(tmp_path / "shop", SHOP))
    copy = template.rename(tmp_path / "copy")
    git("remote", "add", "origin", SHOP, cwd=copy)

    assert learn(copy) == log_of(copy) == shop != log


def test_a_fork_in_a_fresh_clone_is_another_repository(tmp_path: Path) -> None:
    log = learn(make_repository(tmp_path / "shop", SHOP))

    assert log_of(make_repository(tmp_path / "fork", "https://example.com/zeta/shop.git")) != log


def test_a_clone_of_a_folder_shares_its_log_also_after_that_folder_was_moved(
    tmp_path: Path,
) -> None:
    log = learn(make_repository(tmp_path / "origin"))
    git("clone", "-q", str(tmp_path / "origin"), str(tmp_path / "a"), cwd=tmp_path)
    assert learn(tmp_path / "a", "in the clone") == log
    (tmp_path / "origin").rename(tmp_path / "moved")

    assert log_of(tmp_path / "a") == log_of(tmp_path / "moved") == log


def test_a_folder_of_git_that_cannot_be_written_costs_no_record(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "app")
    (folder / ".git" / identity.FILE).mkdir()

    assert learn(folder) == log_of(folder)


def test_the_home_holds_only_the_hash_of_an_id(tmp_path: Path, own_home: Path) -> None:
    folder = make_repository(tmp_path / "app")
    learn(folder)
    word = (folder / ".git" / identity.FILE).read_text().split("\n")[0]

    assert len(word) == 32
    assert word not in (own_home / "repos.jsonl").read_text()
    assert (folder / ".git" / identity.FILE).stat().st_mode & 0o077 == 0


def test_the_aliases_of_a_home_that_is_not_trusted_direct_nothing(
    tmp_path: Path, own_home: Path
) -> None:
    secret = learn(make_repository(tmp_path / "secret"))
    clone = make_repository(tmp_path / "clone", SHOP)
    address = repository.find(clone).address_name
    theirs = clone / ".commonplace"
    (theirs / "log").mkdir(parents=True)
    (theirs / "repos.jsonl").write_text(json.dumps({"alias": address, "repo": secret}) + "\n")
    before = (theirs / "repos.jsonl").read_bytes()

    assert log_of(clone) == address
    assert learn(clone) == address
    assert (theirs / "repos.jsonl").read_bytes() == before
    assert not (clone / ".git" / identity.FILE).exists()
    with Memory.open(cwd=clone) as memory:
        assert secret not in memory.scope().here()


@pytest.mark.parametrize(
    "line", ["", "{", "[]", '{"alias": 1, "repo": "x"}', '{"alias": "a", "repo": "../x"}', "\xff"]
)
def test_a_line_that_is_no_alias_is_passed_over(own_home: Path, line: str) -> None:
    home = Home(own_home)
    homes.make(home)
    aliases.add(home, {"a": "b"})
    with (own_home / "repos.jsonl").open("a", encoding="latin-1") as stream:
        stream.write(line)  # Torn: without its end.
    aliases.add(home, {"c": "b"})

    found = aliases.Aliases([home])
    assert (found.log_of("a"), found.log_of("c")) == ("b", "b")
    assert found.of_log("b") == ["a", "c"]


def test_names_that_were_given_and_taken_back_end(own_home: Path) -> None:
    home = Home(own_home)
    homes.make(home)
    for pair in ({"a": "b"}, {"b": "a"}):
        aliases.add(home, pair)

    assert aliases.Aliases([home]).log_of("a") in ("a", "b")
    assert isinstance(aliases.Aliases([home]).of_log("a"), list)


NAMES = st.sampled_from(["a", "b", "c", "d", "id-1", "id-2"])


@SLOW_LAW
@given(pairs=st.lists(st.tuples(NAMES, NAMES), max_size=12))
def test_the_aliases_of_a_log_are_the_names_that_stand_for_it(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]]
) -> None:
    home = Home(tmp_path_factory.mktemp("aliases"))
    for alias, log in pairs:
        aliases.add(home, {alias: log})
    known = aliases.Aliases([home])
    last = dict(pairs)

    for name in ("a", "b", "c", "d", "id-1", "id-2"):
        log, passed = name, set[str]()
        while log in last and log not in passed:
            passed.add(log)
            log = last[log]
        assert known.log_of(name) == (log if name in last else "")
        if last.get(log, log) == log:  # Two machines may give two logs each other's names.
            assert name == log or name in known.of_log(log)
    for log in set(last.values()):
        of_log = known.of_log(log)
        assert len(of_log) == len(set(of_log))
        assert log not in of_log
        if last.get(log, log) == log:
            assert {known.log_of(alias) for alias in of_log} <= {log}


def test_a_line_is_decoded_once_however_many_aliases_are_looked_up(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(own_home)
    homes.make(home)
    aliases.add(home, {f"id-{number:016x}": "shop" for number in range(500)})
    decoded: list[bytes] = []

    def counted(raw: bytes) -> dict[str, Any]:
        decoded.append(raw)
        return decode(raw)

    monkeypatch.setattr("commonplace.where.aliases.decode", counted)
    known = aliases.Aliases([home])

    assert len(known.of_log("shop")) == 500
    assert known.names_of("shop") == ["shop"]
    assert known.log_of("id-0000000000000001") == "shop"
    assert len(decoded) == 500


def test_a_hook_and_its_server_and_the_command_agree_about_the_log(
    tmp_path: Path, commonplace: Any, own_home: Path
) -> None:
    from commonplace.hooks import offline

    folder = make_repository(tmp_path / "shop")
    log = learn(folder)
    git("remote", "add", "origin", SHOP, cwd=folder)
    moved = folder.rename(tmp_path / "moved")
    command = 'bd comment SH-1 "LEARNED: the hook writes to the same log"'
    event = {
        "session_id": "s-1",
        "hook_event_name": "PostToolUse",
        "cwd": str(moved),
        "tool_name": "Bash",
        "tool_input": {"command": command},
        "tool_response": {"stdout": "ok"},
    }
    offline.answer("claude-code", json.dumps(event).encode(), str(moved), [])

    found = commonplace("recall", "--recent", "5", cwd=moved).stdout
    assert "same log" in found
    assert "emulator" in found
    assert [path.stem for path in (own_home / "log").glob("*.jsonl")] == [log]
