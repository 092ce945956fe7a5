"""Snapshots: immutable, named by what they hold, cheap to make; restoring one appends and deletes nothing."""

from __future__ import annotations

import json
import subprocess
import sys
import zlib
from contextlib import contextmanager, suppress
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.cli import main
from commonplace.errors import (
    CommonplaceError,
    NothingTrusted,
    SnapshotDamaged,
    SnapshotNotFound,
    UsageError,
)
from commonplace.log import rotate
from commonplace.memory import Memory
from commonplace.snapshots import removal, states, store
from commonplace.snapshots.objects import Objects
from commonplace.transfer import backup
from commonplace.where.home import Home
from conftest import run_until_killed
from fake_secrets import some
from histories import append, lesson

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import ModuleType

    from commonplace.snapshots.store import Snapshot

LINES = st.lists(st.binary(max_size=400).filter(lambda line: b"\n" not in line))
# What may be done to the record of a number from 0 to 3.
ACTIONS = st.lists(
    st.tuples(st.sampled_from(["log", "edit", "forget", "undo", "rate", "link"]), st.integers(0, 3))
)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def memory(home: Home) -> Iterator[Memory]:
    with open_memory(home) as opened:
        yield opened


def open_memory(home: Home) -> Memory:
    return Memory.open(home.path, settings={"embedder.kind": "none"}, background=False)


def stored_bytes(home: Home) -> int:
    return sum(path.stat().st_size for path in home.snapshots_folder.rglob("*") if path.is_file())


def texts(home: Home, snapshot: Snapshot) -> bytes:
    """All that the snapshot holds, and all other objects there are."""
    found = [path.read_bytes() for path in home.snapshot_objects.rglob("*") if path.is_file()]
    return (
        b"".join(map(zlib.decompress, found)) + repr(states.of(home, snapshot).visible()).encode()
    )


# --- Objects --------------------------------------------------------------------------------------


@given(lines=LINES)
def test_lines_come_back_as_they_were_and_are_stored_once(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]
) -> None:
    objects = Objects(tmp_path_factory.mktemp("objects"))

    root = objects.put_lines(lines)
    size = objects.bytes_written

    assert list(objects.lines(root)) == lines
    assert (objects.put_lines(iter(lines)), objects.bytes_written) == (root, size)


@given(at=st.integers(0, 20_000), line=st.binary(max_size=100).filter(lambda raw: b"\n" not in raw))
def test_one_line_more_costs_a_few_kilobytes_wherever_it_is(
    many_lines: tuple[Objects, list[bytes]], at: int, line: bytes
) -> None:
    objects, lines = many_lines
    before = objects.bytes_written

    objects.put_lines([*lines[:at], line, *lines[at:]])

    # Two objects of at most 64 KiB of lines, which are compressed, and the lists that name them.
    assert objects.bytes_written - before < 64 << 10


@pytest.fixture(scope="module")
def many_lines(tmp_path_factory: pytest.TempPathFactory) -> tuple[Objects, list[bytes]]:
    objects = Objects(tmp_path_factory.mktemp("objects"))
    lines = [
        f'{{"id":"les-{number}","lesson":"{number * 7919}"}}'.encode() for number in range(20_000)
    ]
    objects.put_lines(lines)
    return objects, lines


def test_objects_that_were_changed_or_are_missing_are_named(tmp_path: Path) -> None:
    objects = Objects(tmp_path)
    root = objects.put_lines([b"a", b"b"])
    path = tmp_path / root[:2] / root

    path.write_bytes(zlib.compress(b"lines\nother\n"))
    with pytest.raises(SnapshotDamaged, match="not what was stored"):
        list(objects.lines(root))
    path.write_bytes(b"no zlib")
    with pytest.raises(SnapshotDamaged):
        list(objects.lines(root))
    path.unlink()
    with pytest.raises(SnapshotDamaged, match="missing"):
        list(objects.lines(root))
    with pytest.raises(SnapshotDamaged):
        list(objects.lines("../../../etc/passwd"))


# --- Making them ----------------------------------------------------------------------------------


def test_the_same_state_is_one_snapshot_and_a_new_line_costs_little(
    home: Home, memory: Memory
) -> None:
    append(home, "app", *(lesson(f"les-{n}", f"lesson {n} " + some(200)) for n in range(3000)))

    first = memory.create_snapshot()
    size = stored_bytes(home)
    again = memory.create_snapshot()
    assert (again.snapshot, again.is_new, stored_bytes(home)) == (first.snapshot, False, size)

    memory.log(repo="app", lesson="one more")
    second = memory.create_snapshot()
    assert second.snapshot.id != first.snapshot.id
    assert stored_bytes(home) - size == second.bytes_written < 64 << 10
    assert size > 300_000
    assert [one.lines for one in memory.snapshots()] == [3001, 3000]


def test_a_rotation_makes_no_copy_of_the_lines(home: Home, memory: Memory) -> None:
    append(home, "app", *(lesson(f"les-{n}", f"lesson {n} " + some(200)) for n in range(3000)))
    memory.create_snapshot()
    size = stored_bytes(home)

    rotate.rotate(home, "app", lines_max=1000, move=2000)

    made = memory.create_snapshot()
    assert stored_bytes(home) - size < 128 << 10
    assert len(states.of(home, made.snapshot).visible()) == 3000


def test_a_snapshot_stays_as_it_was_whatever_is_written(home: Home, memory: Memory) -> None:
    memory.log(id="les-a", repo="app", lesson="as it was")
    made = memory.create_snapshot(name="first").snapshot

    memory.edit("les-a", lesson="as it is")
    memory.log(id="les-b", repo="other", lesson="new")

    (then,) = states.of(home, made).records(["les-a"]).values()
    assert then.fields["lesson"] == "as it was"
    found = memory.snapshot_difference("first")
    assert (list(found.added), list(found.removed), list(found.changed)) == (
        ["les-b"],
        [],
        ["les-a"],
    )
    assert memory.snapshot_difference("first", "first") == ({}, {}, {})


def test_it_is_found_by_id_start_and_name(memory: Memory) -> None:
    memory.log(repo="app", lesson="x")
    made = memory.create_snapshot("mine").snapshot

    assert {memory.describe_snapshot(given)[0].id for given in (made.id, made.id[:5], "mine")} == {
        made.id
    }
    for unknown in ("", "zz", "../../config"):
        with pytest.raises(SnapshotNotFound):
            memory.describe_snapshot(unknown)
    with pytest.raises(UsageError):
        memory.create_snapshot("two\nlines")


def test_an_empty_home_has_a_snapshot_too(memory: Memory) -> None:
    made = memory.create_snapshot()
    memory.log(id="les-a", repo="app", lesson="x")

    assert list(memory.snapshot_difference(made.snapshot.id).added) == ["les-a"]
    assert memory.restore_snapshot(made.snapshot.id).stayed == 1


# --- Restoring them -------------------------------------------------------------------------------


def act(memory: Memory, what: str, number: int) -> None:
    """Do something to a record, if it can be done."""
    ident = f"les-{number}"
    actions: dict[str, Callable[[], object]] = {
        "log": lambda: memory.log(id=ident, repo=f"app{number % 2}", lesson=f"lesson {number}"),
        "edit": lambda: memory.edit(
            ident, lambda record: {"lesson": f"{record.fields['lesson']}!"}
        ),
        "forget": lambda: memory.forget(ident),
        "undo": lambda: memory.restore(ident),
        "rate": lambda: memory.feedback(ident, "worked"),
        "link": lambda: memory.link(ident, "related_to", f"les-{(number + 1) % 4}"),
    }
    with suppress(CommonplaceError):  # A record may not be there, or be forgotten already.
        actions[what]()


def view(home: Home, memory: Memory) -> dict[str, object]:
    now = states.now(home)
    found = now.records(now.visible(statements=True))
    return {ident: states.content(record) for ident, record in found.items()}


@given(before=ACTIONS, after=ACTIONS)
def test_a_restore_brings_back_all_that_was_current_and_only_appends(
    tmp_path_factory: pytest.TempPathFactory,
    before: list[tuple[str, int]],
    after: list[tuple[str, int]],
) -> None:
    home = Home(tmp_path_factory.mktemp("restored") / "home")
    with open_memory(home) as memory:
        for what in before:
            act(memory, *what)
        then = view(home, memory)
        made = memory.create_snapshot().snapshot
        for what in after:
            act(memory, *what)
        written = {path: path.read_bytes() for path in home.log_folder.rglob("*.jsonl")}
        later = view(home, memory)

        planned = memory.restore_snapshot(made.id, dry_run=True)
        assert written == {path: path.read_bytes() for path in home.log_folder.rglob("*.jsonl")}
        done = memory.restore_snapshot(made.id)

        restored = view(home, memory)
        assert {ident: restored.get(ident) for ident in then} == then
        # What was added since stays.
        assert restored.keys() >= later.keys()
        assert (planned.changed, planned.returned) == (done.changed, done.returned)
        for path, content in written.items():
            assert path.read_bytes().startswith(content)
        # Doing it again has nothing left to do, and the state before can be had back.
        assert memory.restore_snapshot(made.id)[1:3] == ([], [])
        if done.before:
            memory.restore_snapshot(done.before)
        back = view(home, memory)
        assert {ident: back.get(ident) for ident in later} == later


def test_a_secret_in_a_snapshot_is_not_restored_and_restoring_ends(
    home: Home, memory: Memory
) -> None:
    token = "ghp_" + some(36)
    append(home, "app", lesson("les-a", f"the token is {token}"))
    made = memory.create_snapshot().snapshot
    memory.edit("les-a", lesson="another text")

    assert memory.restore_snapshot(made.id).changed == ["les-a"]

    assert token not in memory.get("les-a").fields["lesson"]
    assert memory.restore_snapshot(made.id).changed == []


def test_a_backup_has_snapshots_and_packs(home: Home, memory: Memory, tmp_path: Path) -> None:
    memory.log(id="les-a", repo="app", lesson="x")
    made = memory.create_snapshot("mine").snapshot
    home.packs_folder.mkdir()
    (home.packs_folder / "x.kpack").write_bytes(b"age-encryption.org/v1\n")
    backup.create(home, tmp_path / "b.tar.gz", "2026-11-16T00:00:00Z", lambda _count: None)

    backup.restore(Home(tmp_path / "new"), tmp_path / "b.tar.gz", replace=False, stamp="x")

    with open_memory(Home(tmp_path / "new")) as restored:
        assert restored.describe_snapshot("mine") == (made, {"lesson": 1})
    assert (tmp_path / "new" / "packs" / "x.kpack").is_file()


def test_a_snapshot_holds_whole_lines_while_others_write(home: Home, memory: Memory) -> None:
    script = (
        "import sys\nfrom commonplace.memory import Memory\nwith Memory.open(sys.argv[1]) as m:\n"
    )
    script += "    for n in range(400): m.log(id=f'les-{n}', repo=f'app{n % 2}', lesson='x' * (n * 10 + 1))"
    writer = subprocess.Popen([sys.executable, "-c", script, str(home.path)])
    made: list[Snapshot] = []
    while writer.poll() is None:
        made.append(memory.create_snapshot().snapshot)
    made.append(memory.create_snapshot().snapshot)

    assert writer.returncode == 0
    for one in made:
        numbers = sorted(int(ident[4:]) for ident in states.of(home, one).visible())
        assert numbers == list(range(one.lines))  # No line is missing, and none is cut.
    assert made[-1].lines == 400


@pytest.mark.parametrize("module", [store, backup], ids=["snapshot", "backup"])
def test_a_log_that_begins_while_the_others_are_held_waits_for_the_next(
    home: Home,
    memory: Memory,
    tmp_path: Path,
    module: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    memory.log(id="les-a", repo="app", lesson="x")
    hold_logs = module.hold_logs

    @contextmanager
    def hold_and_begin_another(home: Home) -> Iterator[list[Path]]:
        with hold_logs(home) as held:
            memory.log(id="les-late", repo="late", lesson="x")
            yield held

    monkeypatch.setattr(module, "hold_logs", hold_and_begin_another)
    if module is store:
        made = memory.create_snapshot().snapshot
        assert list(states.of(home, made).visible()) == ["les-a"]
    else:
        backup.create(home, tmp_path / "b.tar.gz", "2026-11-16T00:00:00Z", lambda _count: None)
        names = backup.verify(tmp_path / "b.tar.gz").hashes
        assert [name for name in names if name.startswith("log/")] == ["log/app.jsonl"]


def test_a_repository_that_was_deleted_comes_back(
    memory: Memory, home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    memory.log(id="les-a", repo="app", lesson="x")
    made = memory.create_snapshot().snapshot
    assert main(["repos", "delete", "app", "--yes", "--home", str(home.path)]) == 0

    assert memory.restore_snapshot(made.id).returned == ["les-a"]

    assert memory.get("les-a").repo == "app"
    assert capsys.readouterr()


def test_a_restore_that_changes_nothing_keeps_no_state_before(memory: Memory) -> None:
    memory.log(id="les-a", repo="app", lesson="x")
    made = memory.create_snapshot("one").snapshot

    assert memory.restore_snapshot(made.id).before == ""
    assert [one.name for one in memory.snapshots()] == ["one"]


def test_a_damaged_snapshot_is_named_and_the_others_go_on(
    memory: Memory, home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    memory.log(id="les-a", repo="app", lesson="the xylophonist opens the vault")
    whole = memory.create_snapshot("whole").snapshot
    memory.log(id="les-b", repo="app", lesson="y")
    damaged = memory.create_snapshot("damaged").snapshot
    home.snapshot(damaged.id).write_text("{bad")
    memory.forget("les-b")

    assert [one.id for one in memory.snapshots()] == [whole.id]
    assert memory.create_snapshot("next").is_new
    assert memory.restore_snapshot("whole").returned == []
    assert [one.what for one in memory.check()] == ["snapshot"]
    memory.erase("les-a")
    assert b"xylophonist" not in b"".join(
        zlib.decompress(path.read_bytes())
        for path in home.snapshot_objects.rglob("*")
        if path.is_file()
    )
    assert main(["snapshot", "list", "--home", str(home.path)]) == 0
    assert "cannot be read; `commonplace doctor` says why" in capsys.readouterr().err


# --- Removing text from them ----------------------------------------------------------------------


def test_an_erasure_reaches_every_snapshot(home: Home, memory: Memory) -> None:
    secret = "the xylophonist opens the vault at noon"
    memory.log(id="les-gone", repo="app", lesson=secret)
    memory.log(id="les-kept", repo="app", lesson="stays", links=[{"to": "les-gone", "rel": "uses"}])
    first = memory.create_snapshot().snapshot
    memory.edit("les-gone", lesson=f"{secret}, and at night")
    second = memory.create_snapshot("second").snapshot
    assert secret.encode() in texts(home, first)

    receipt = memory.erase("les-gone")

    assert receipt.snapshot_lines > 0
    for made in (first, second):
        found, kinds = memory.describe_snapshot(made.id)
        assert (found.erased, kinds) == (1, {"lesson": 1})
        assert b"les-gone" not in texts(home, found)
        assert secret.encode() not in texts(home, found)
    assert memory.restore_snapshot(first.id)[1:3] == ([], [])
    assert "les-gone" not in states.now(home).fold


def test_an_erasure_that_is_killed_is_finished_in_snapshots_too(tmp_path: Path) -> None:
    change = 0
    was_killed = True
    while was_killed:
        change += 1
        home = Home(tmp_path / f"{change}")
        with open_memory(home) as memory:
            memory.log(
                id="les-gone-1", repo="app", lesson="the xylophonist opens the vault at noon"
            )
            memory.log(id="les-kept-1", repo="app", lesson="stays")
            made = memory.create_snapshot().snapshot
        was_killed = run_until_killed(
            change, partial(open_memory, home), lambda memory: memory.erase("les-gone-1")
        )
        with open_memory(home) as memory:
            memory.mend()
            if "les-gone-1" not in states.now(home).fold:
                assert b"xylophonist" not in texts(home, memory.describe_snapshot(made.id)[0])
            assert "les-kept-1" in states.of(home, store.find(home, made.id)).visible()
    assert change > 10


def test_secrets_in_snapshots_are_found_and_removed(home: Home, memory: Memory) -> None:
    token = "ghp_" + some(36)
    append(home, "app", lesson("les-a", f"the token is {token}"), lesson("les-b", "no secret"))
    made = memory.create_snapshot().snapshot

    assert {secret.path for secret in memory.scan()} == {home.log("app"), home.snapshots_folder}
    memory.scan(fix=True)

    assert memory.scan() == []
    assert token.encode() not in texts(home, memory.describe_snapshot(made.id)[0])
    assert {finding.path for finding in memory.check()} <= {
        home.path,
        *home.log_folder.glob("*"),
        home.log_folder,
    }


def test_what_no_snapshot_names_is_removed_with_the_next_erasure(
    home: Home, memory: Memory
) -> None:
    memory.log(repo="app", lesson="x")
    memory.create_snapshot()
    leftover = Objects(home.snapshot_objects).put_lines([b"left by a process that was killed"])

    removal.rewrite(home, lambda lines: (lines, 0))

    assert not (home.snapshot_objects / leftover[:2] / leftover).exists()
    memory.describe_snapshot(memory.snapshots()[0].id)


# --- Surfaces -------------------------------------------------------------------------------------


def test_the_commands(
    own_home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*arguments: str) -> str:
        assert main(["snapshot", *arguments]) == 0
        return capsys.readouterr().out

    main(["log", "--id", "les-a", "--type", "error", "--lesson", "as it was"])
    capsys.readouterr()
    assert run("list") == ""
    ident = run("create", "--name", "first").strip()
    assert len(ident) == 16
    main(["edit", "les-a", "--set", "lesson=as it is"])
    main(["log", "--id", "les-b", "--type", "error", "--lesson", "new one"])
    capsys.readouterr()

    assert "first" in run("list")
    assert json.loads(run("list", "--json"))[0]["id"] == ident
    assert "lesson 1" in run("show", "first")
    assert json.loads(run("show", ident, "--json"))["records"] == 1
    lines = run("diff", ident).splitlines()
    assert [line[:7] for line in lines] == ["+ les-b", "~ les-a"]
    assert json.loads(run("diff", ident, "--json"))["changed"][0]["after"]["lesson"] == "as it is"
    assert "Would restore" in run("restore", ident, "--dry-run")
    assert json.loads(run("restore", ident, "--json"))["changed"] == ["les-a"]
    assert main(["snapshot", "show", "nothing"]) == 60


def test_a_diff_shows_foreign_text_as_text(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    append(home, "app", lesson("les-a", "new \x1b[31m\u202e one\n+ les-z  lesson  not there"))
    with open_memory(home) as memory:
        made = memory.create_snapshot().snapshot
        memory.forget("les-a")

    assert main(["snapshot", "diff", made.id, "--home", str(home.path)]) == 0

    (line,) = capsys.readouterr().out.splitlines()
    assert "\x1b" not in line
    assert "\u202e" not in line


def test_a_home_that_is_not_trusted_gets_no_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "clone" / ".commonplace")
    append(home, "app", lesson("les-a"))
    home.snapshots_folder.mkdir()
    with Memory.open(home.path) as memory, pytest.raises(NothingTrusted):
        memory.create_snapshot()
    assert list(home.snapshots_folder.iterdir()) == []


def test_git_leaves_snapshots_out(home: Home, memory: Memory) -> None:
    memory.create_snapshot()
    assert (home.snapshots_folder / ".gitignore").read_text() == "*\n"


def test_snapshots_are_listed_newest_first(memory: Memory) -> None:
    for number in range(3):
        memory.log(repo="app", lesson=f"lesson {number}")
        memory.create_snapshot(f"{number}")
    found = memory.snapshots()
    assert all(one.created >= other.created for one, other in pairwise(found))
