"""A whole home to another place: backups that are verified, and sync with git."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
import tarfile
from contextlib import suppress
from datetime import UTC, datetime
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.cli import main
from commonplace.errors import CommonplaceError, FindingsLeft, HomeUnusable, UsageError
from commonplace.log import move
from commonplace.memory import Memory
from commonplace.server.access_tokens import Tokens
from commonplace.transfer import backup
from commonplace.transfer.merge import merge_logs
from commonplace.transfer.sync import sync
from commonplace.where.home import Home
from conftest import git

if TYPE_CHECKING:
    from pathlib import Path


def write(home: Path, *lessons: str) -> None:
    with Memory.open(home) as memory:
        for lesson in lessons:
            memory.log(repo="app", event_type="learned", lesson=lesson)
        memory.notes("ana").write("CONTEXT.md", "likes tea\n")


def lessons(home: Path) -> set[str]:
    with Memory.open(home) as memory:
        return {str(record.fields["lesson"]) for record in memory.records()}


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not {".state", ".index", ".git"} & set(path.parts)
    }


# --- Backups ------------------------------------------------------------------------------------------------------


def test_a_backup_restores_everything_but_what_belongs_to_the_machine(
    own_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(own_home, "one", "two")
    assert main(["config", "set", "recall.dense", "0.3"]) == 0
    Tokens(Home(own_home)).add("ana", ["read"], "2026-11-16T00:00:00Z")
    (own_home / ".state" / "inbox").mkdir()
    (own_home / ".state" / "inbox" / "c-1.json").write_text("{}")
    file = tmp_path / "memory.tar.gz"

    assert main(["recall", "one", "--all-repos"]) == 0
    assert main(["backup", "create", str(file)]) == 0
    assert file.stat().st_mode & 0o777 == 0o600
    with tarfile.open(file) as archive:
        names = archive.getnames()
    assert not [name for name in names if "token" in name or ".index" in name]
    assert ".state/inbox/c-1.json" in names
    assert main(["backup", "restore", str(file), "--home", str(tmp_path / "other")]) == 0

    assert contents(tmp_path / "other") == contents(own_home)
    assert lessons(tmp_path / "other") == {"one", "two"}
    assert (tmp_path / "other" / ".state" / "inbox" / "c-1.json").read_text() == "{}"
    assert not list(tmp_path.glob(".*.restoring"))


def test_restoring_needs_an_empty_place_or_replace_which_keeps_the_old_home(
    own_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(own_home, "one")
    file = tmp_path / "memory.tar.gz"
    assert main(["backup", "create", str(file)]) == 0
    assert main(["backup", "create", str(file)]) == UsageError.exit_code
    write(own_home, "two")
    before = contents(own_home)

    assert main(["backup", "restore", str(file)]) == HomeUnusable.exit_code
    assert contents(own_home) == before
    capsys.readouterr()
    assert main(["backup", "restore", str(file), "--replace", "--json"]) == 0
    kept = json.loads(capsys.readouterr().out)["kept"]

    assert lessons(own_home) == {"one"}
    assert contents(type(own_home)(kept)) == before


@given(cut=st.floats(0, 1), flip=st.floats(0, 1), which=st.booleans())
def test_a_damaged_backup_changes_nothing(
    cut: float, flip: float, which: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    write(folder / "home", "one", "two")
    made = backup.create(Home(folder / "home"), folder / "b.tar.gz", "2026", lambda _n: None)
    whole = backup.verify(folder / "b.tar.gz")
    raw = bytearray((folder / "b.tar.gz").read_bytes())
    if which:
        raw = raw[: int(cut * (len(raw) - 1))]
    else:
        raw[int(flip * (len(raw) - 1))] ^= 0x55
    (folder / "b.tar.gz").write_bytes(raw)
    target = Home(folder / "target")
    try:
        backup.restore(target, folder / "b.tar.gz", replace=False, stamp="now")
    except UsageError:
        assert not target.path.exists()
    else:  # The damage was in a byte that says nothing, such as the time in gzip's header.
        assert backup.verify(folder / "b.tar.gz").hashes == whole.hashes
    assert made.files == len(whole.hashes)


@pytest.mark.parametrize(
    "name",
    [
        "../out",
        "/etc/passwd",
        "a/../../out",
        ".git/config",
        ".state/server.json",
        "log/.GIT/x",
        "a\\b",
        ".index/x",
        "C:x",
        "./x",
        ".state/inbox/../../x",
        "a\nb",
        ".state./server.json",
        ".STATE /server.json",
        "log/.git. /config",
        ".. /x",
    ],
)
def test_a_backup_with_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    file = tmp_path / "evil.tar.gz"
    with tarfile.open(file, "w:gz") as archive:
        member = tarfile.TarInfo(name)
        archive.addfile(member, io.BytesIO())
        manifest = json.dumps({"format": 1, "created": "", "sha256": {}}).encode()
        member = tarfile.TarInfo("manifest.json")
        member.size = len(manifest)
        archive.addfile(member, io.BytesIO(manifest))
    with pytest.raises(UsageError, match="may not be in a backup"):
        backup.restore(Home(tmp_path / "new"), file, replace=False, stamp="now")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE]
)
def test_a_backup_with_a_link_is_refused(tmp_path: Path, kind: bytes) -> None:
    with tarfile.open(tmp_path / "evil.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo("log")
        member.type, member.linkname = kind, "/etc"
        archive.addfile(member)
    with pytest.raises(UsageError, match="may not be in a backup"):
        backup.verify(tmp_path / "evil.tar.gz")


def test_a_backup_with_a_large_header_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "large.tar.gz"
    with tarfile.open(file, "w:gz", format=tarfile.PAX_FORMAT) as archive:
        manifest = json.dumps({"format": 1, "created": "", "sha256": {}}).encode()
        member = tarfile.TarInfo("manifest.json")
        member.size, member.pax_headers = len(manifest), {"comment": "a" * (1 << 20)}
        archive.addfile(member, io.BytesIO(manifest))
    with pytest.raises(UsageError, match="a header is too large"):
        backup.verify(file)


def test_a_log_that_is_renamed_during_a_backup_is_in_it(own_home: Path, tmp_path: Path) -> None:
    with Memory.open(own_home) as memory:
        for repo in ("middle", "zeta"):
            memory.log(repo=repo, event_type="learned", lesson=f"of {repo}")
    home = Home(own_home)
    renaming = Thread(target=move.move, args=(home, "zeta", "alpha"))

    def rename_meanwhile(_files: int) -> None:
        if not renaming.ident:
            renaming.start()
            renaming.join(0.5)  # It has to wait for the backup, or it is done by then.

    backup.create(home, tmp_path / "b.tar.gz", "2026", rename_meanwhile)
    renaming.join()

    backup.restore(Home(tmp_path / "new"), tmp_path / "b.tar.gz", replace=False, stamp="now")
    assert lessons(tmp_path / "new") == lessons(own_home) == {"of middle", "of zeta"}
    assert not (own_home / "log" / "zeta.jsonl").exists()


KILLED = """
import os, pathlib, sys
rename = pathlib.Path.rename
def killed(old, new):
    rename(old, new)
    os._exit(137)
pathlib.Path.rename = killed
from commonplace.cli import main
main(["backup", "restore", sys.argv[1], "--replace"])
"""


def test_after_a_restore_that_was_killed_no_empty_home_is_made(
    own_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(own_home, "one")
    file = tmp_path / "memory.tar.gz"
    assert main(["backup", "create", str(file)]) == 0
    write(own_home, "two")
    done = subprocess.run([sys.executable, "-c", KILLED, str(file)], check=False)
    assert done.returncode == 137

    for command in (["log", "three"], ["recall", "one"], ["doctor"]):
        capsys.readouterr()
        assert main(command) == HomeUnusable.exit_code
        assert ".before-" in capsys.readouterr().err
        assert not own_home.exists()
    (own_home / ".state").mkdir(parents=True)  # A hook makes it.
    assert main(["log", "three"]) == HomeUnusable.exit_code
    shutil.rmtree(own_home)

    [new] = tmp_path.glob(".home.*.restoring")
    new.rename(own_home)
    assert main(["doctor"]) == 0
    assert lessons(own_home) == {"one"}


def test_doctor_names_what_an_unfinished_restore_left(
    own_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(own_home, "one")
    (tmp_path / ".home.0a.restoring").mkdir()
    assert main(["doctor"]) == 0
    assert "unfinished restore" in capsys.readouterr().out


def test_doctor_names_a_gitignore_that_lets_git_take_the_state(
    machines: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    (machines[0] / ".gitignore").write_text(".index/\n*.swp\n")
    assert main(["doctor", "--home", str(machines[0])]) == 0
    found = capsys.readouterr().out
    assert ".gitignore" in found
    assert "`.state/`" in found
    assert main(["doctor", "--home", str(machines[1])]) == 0
    assert ".gitignore" not in capsys.readouterr().out


def test_what_is_no_backup_gets_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x").write_text("nothing of ours")
    for name in ("x", "missing"):
        assert main(["backup", "restore", str(tmp_path / name), "--home", str(tmp_path / "n")]) == 2
        assert "Traceback" not in capsys.readouterr().err
    assert not (tmp_path / "n").exists()


# --- Sync ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def machines(tmp_path: Path) -> tuple[Path, Path]:
    """Two homes with the same remote."""
    git("init", "-q", "--bare", "-b", "main", str(tmp_path / "remote"), cwd=tmp_path)
    homes = tmp_path / "a", tmp_path / "b"
    for home in homes:
        write(home, f"from {home.name}")
        git("init", "-q", "-b", "main", cwd=home)
        git("remote", "add", "origin", str(tmp_path / "remote"), cwd=home)
    return homes


def test_two_machines_have_the_same_memory_after_a_sync(machines: tuple[Path, Path]) -> None:
    a, b = machines
    for home in (a, b, a):
        sync(Home(home), "sync", trusted=True)
    for number in range(3):
        write(a, f"a {number}")
        write(b, f"b {number}")
        for home in (a, b, a):
            sync(Home(home), "sync", trusted=True)

    wanted = {f"{x} {n}" for x in "ab" for n in range(3)} | {"from a", "from b"}
    assert lessons(a) == lessons(b) == wanted
    assert all(path.stat().st_mode & 0o077 == 0 for path in (a / "log").iterdir())
    again = sync(Home(a), "sync", trusted=True)
    assert (again.committed, again.received, again.sent) == (False, 0, 0)


def head(home: Path) -> str:
    return git("rev-parse", "HEAD", cwd=home).stdout


def test_a_conflict_outside_the_logs_leaves_the_home_as_it_was(machines: tuple[Path, Path]) -> None:
    a, b = machines
    for home in (a, b):
        sync(Home(home), "sync", trusted=True)
    for home in (a, b):
        (home / "config.toml").write_text(f"# of {home.name}\n")
    sync(Home(a), "sync", trusted=True)
    before, commit = contents(b), head(b)

    with pytest.raises(FindingsLeft, match=r"both sides changed `config\.toml`"):
        sync(Home(b), "sync", trusted=True)

    assert (contents(b), head(b)) == (before, commit)
    assert not (b / ".git" / "MERGE_HEAD").exists()


def test_without_the_remote_nothing_changes(
    machines: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "remote").rename(tmp_path / "gone")
    before = contents(machines[0])
    assert main(["sync", "--home", str(machines[0])]) == FindingsLeft.exit_code
    assert "cannot be reached" in capsys.readouterr().err
    assert contents(machines[0]) == before
    assert "No commits yet" in git("status", cwd=machines[0]).stdout


@pytest.mark.parametrize("kind", ["project", "link", "state"])
def test_what_may_not_be_in_a_home_is_not_merged(
    machines: tuple[Path, Path], tmp_path: Path, kind: str
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git("init", "-q", "-b", "main", cwd=other)
    if kind != "project":
        (other / ".gitattributes").write_bytes((machines[0] / ".gitattributes").read_bytes())
    if kind == "link":
        (other / "log").symlink_to("/etc")
    else:
        path = other / ("src/main.py" if kind == "project" else ".state/server.json")
        path.parent.mkdir()
        path.write_text("{}")
    git("add", "-A", "-f", cwd=other)
    git("commit", "-q", "-m", "theirs", cwd=other)
    git("push", "-q", str(tmp_path / "remote"), "main", cwd=other)
    before = contents(machines[0])
    with pytest.raises(UsageError):
        sync(Home(machines[0]), "sync", trusted=True)
    assert contents(machines[0]) == before


def test_a_home_that_is_no_repository_or_not_trusted_is_not_synced(
    own_home: Path, machines: tuple[Path, Path]
) -> None:
    write(own_home, "one")
    with pytest.raises(UsageError, match="not a git repository"):
        sync(Home(own_home), "sync", trusted=True)
    git("remote", "remove", "origin", cwd=machines[0])
    with pytest.raises(UsageError, match="no remote"):
        sync(Home(machines[0]), "sync", trusted=True)
    with pytest.raises(CommonplaceError, match="do not trust"):
        sync(Home(machines[1], of_user=False, trusted=False), "sync", trusted=False)


def test_hooks_of_the_repository_do_not_run(machines: tuple[Path, Path], tmp_path: Path) -> None:
    for name in ("pre-commit", "post-merge", "pre-push"):
        hook = machines[0] / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
        hook.chmod(0o755)
    sync(Home(machines[0]), "sync", trusted=True)
    assert not (tmp_path / "ran").exists()


def sync_all(*homes: Path) -> None:
    for home in homes:
        sync(Home(home), "sync", trusted=True)


def log(home: Path, lesson: str) -> str:
    with Memory.open(home) as memory:
        return memory.log(repo="app", event_type="learned", lesson=lesson).id


def test_an_erased_record_does_not_come_back(machines: tuple[Path, Path]) -> None:
    a, b = machines
    ident = log(a, "the plan is secret")
    sync_all(a, b, a)
    write(b, "added below it")
    assert main(["edit", ident, "--lesson", "the plan is known", "--home", str(b)]) == 0
    sync_all(b)
    assert main(["forget", ident, "--erase", "--yes", "--home", str(a)]) == 0

    sync_all(a, b, a)

    for home in (a, b):
        assert "the plan" not in (home / "log" / "app.jsonl").read_text()
        assert lessons(home) == {"from a", "from b", "added below it"}


def test_what_was_forgotten_or_edited_later_wins(machines: tuple[Path, Path]) -> None:
    a, b = machines
    forgotten, edited = log(a, "one"), log(a, "two")
    sync_all(a, b, a)

    def at(minute: int, home: Path) -> Memory:
        return Memory.open(home, clock=lambda: datetime(2030, 1, 1, 0, minute, tzinfo=UTC))

    with at(1, b) as memory:
        memory.edit(forgotten, tags=["x"])
        memory.edit(edited, lesson="older")
    sync_all(b)
    with at(2, a) as memory:
        memory.forget(forgotten)
        memory.edit(edited, lesson="newer")
    sync_all(a, b)

    assert lessons(a) == lessons(b) == {"from a", "from b", "newer"}


@pytest.mark.parametrize("change", ["rename", "archive", "delete", "rename twice"])
def test_what_another_machine_adds_to_a_log_that_was_moved_is_found(
    machines: tuple[Path, Path], change: str, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = machines
    sync_all(a, b, a)
    if change == "archive":
        move.archive(Home(a), "app")
    elif change == "delete":
        move.delete(Home(a), "app")
    else:
        move.move(Home(a), "app", "shop")
    if change == "rename twice":
        move.move(Home(b), "app", "store")
    with Memory.open(b) as memory:
        memory.log(repo="app", event_type="learned", lesson="ports are taken")
    sync_all(a, b, a)

    for home in (a, b):
        assert "ports are taken" in lessons(home)
        assert ("from a" in lessons(home)) == (change != "delete")
        capsys.readouterr()
        if change == "archive":
            assert "ports" in (home / "log" / "app.jsonl").read_text()
        for name in ("shop", "app") if change.startswith("rename") else ("app",):
            assert main(["recall", "ports", "--repo", name, "--home", str(home)]) == 0
            assert "ports are taken" in capsys.readouterr().out
    assert contents(a) == contents(b)


def test_state_is_not_pushed_whatever_the_homes_gitignore_says(
    machines: tuple[Path, Path], tmp_path: Path
) -> None:
    a, _b = machines
    (a / ".gitignore").write_text("*.swp\n")
    Tokens(Home(a)).add("ana", ["read"], "2026-11-16T00:00:00Z")
    (a / ".index").mkdir(exist_ok=True)
    (a / ".index" / "x").write_text("x")
    sync_all(a)
    names = git("ls-tree", "-r", "--name-only", "main", cwd=tmp_path / "remote").stdout
    assert "log/app.jsonl" in names
    assert ".state" not in names
    assert ".index" not in names


def test_a_home_that_tracks_its_state_is_not_pushed(
    machines: tuple[Path, Path], tmp_path: Path
) -> None:
    a, _b = machines
    git("add", "-f", ".state", cwd=a)
    git("commit", "-q", "-m", "by hand", cwd=a)
    commit = head(a)
    with pytest.raises(UsageError, match=r"holds `\.state/.* may not be in a home"):
        sync_all(a)
    assert head(a) == commit
    assert not git("branch", cwd=tmp_path / "remote").stdout


def test_a_merge_that_was_killed_is_done_again(machines: tuple[Path, Path]) -> None:
    a, b = machines
    sync_all(a)
    git("add", "-A", cwd=b)
    git("commit", "-q", "-m", "before", cwd=b)
    git("worktree", "add", "-q", "--detach", str(b / ".state" / "merging"), cwd=b)
    sync_all(b, a)
    assert lessons(a) == lessons(b) == {"from a", "from b"}
    assert not (b / ".state" / "merging").exists()


def test_lines_that_are_not_utf8_are_kept(machines: tuple[Path, Path]) -> None:
    a, b = machines
    for home in (a, b):
        with (home / "log" / "app.jsonl").open("ab") as stream:
            stream.write(b"\xff\xfe of " + home.name.encode() + b"\n")
    sync_all(a, b, a)
    assert contents(a) == contents(b)
    for home in (a, b):
        assert (home / "log" / "app.jsonl").read_bytes().count(b"\xff\xfe of ") == 2


def test_a_log_that_is_begun_during_a_sync_is_not_lost(
    machines: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = machines
    sync_all(a, b, a)
    for home in (a, b):
        with Memory.open(home) as memory:
            memory.log(repo="new", event_type="learned", lesson=f"new on {home.name}")
    sync_all(a)
    begun = (b / "log" / "new.jsonl").read_bytes()
    (b / "log" / "new.jsonl").unlink()

    def merge_meanwhile(*versions: Any) -> Any:
        (b / "log" / "new.jsonl").write_bytes(begun)  # Another process logs its first line.
        return merge_logs(*versions)

    with monkeypatch.context() as during, suppress(FindingsLeft):
        during.setattr("commonplace.transfer.sync.merge_logs", merge_meanwhile)
        sync_all(b)
    sync_all(b, a)
    assert lessons(a) == lessons(b) == {"from a", "from b", "new on a", "new on b"}


def test_only_what_belongs_to_a_home_is_sent(machines: tuple[Path, Path]) -> None:
    here, there = machines
    (here / ".env").write_text("TOKEN=1\n")
    (here / "stray.txt").write_text("x")

    sync(Home(here), "sync", trusted=True)
    sync(Home(there), "sync", trusted=True)

    assert (here / ".env").exists()
    assert not (there / ".env").exists()
    assert not (there / "stray.txt").exists()


def test_secrets_are_not_sent(machines: tuple[Path, Path]) -> None:
    here, _there = machines
    secret = "ghp_" + "aB1x7Q9z" * 5
    line = {"id": "a", "kind": "lesson", "timestamp": "2026-01-01T00:00:00Z", "lesson": secret}
    (here / "log" / "app.jsonl").write_text(json.dumps(line) + "\n")

    with pytest.raises(FindingsLeft, match="secret"):
        sync(Home(here), "sync", trusted=True)

    assert git("for-each-ref", cwd=here).stdout == ""  # Nothing was committed.


def test_a_remote_with_another_branch_is_told(machines: tuple[Path, Path]) -> None:
    here, there = machines
    sync(Home(here), "sync", trusted=True)
    git("checkout", "-q", "-b", "another", cwd=there)

    with pytest.raises(UsageError, match="has no branch `another`"):
        sync(Home(there), "sync", trusted=True)
