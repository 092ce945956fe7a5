"""A `.commonplace` folder that came with a clone can be anything: every command, hook and route meets it.

Nothing outside the repository may change, nothing may hang, and nobody may see a traceback.
"""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from commonplace import served
from commonplace.errors import HomeUnusable, SettingsInvalid
from commonplace.memory import Memory
from commonplace.settings import Settings
from commonplace.where import git as run_git
from commonplace.where import homes, repository, trust
from commonplace.where.head import git_head
from conftest import git

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links, pipes and owners are POSIX's")

LINE = {
    "id": "theirs",
    "kind": "lesson",
    "timestamp": "2026-01-01T00:00:00Z",
    "event_type": "learned",
    "lesson": "the kettle boils at noon",
    "repo": "app",
}
SECONDS_MAX = 60
# Another one than in the corpus: a process that has trusted an owner goes on to do so.
TRUSTED_OWNER = 12346
MEMORY_MAX = 4 << 30


# The arguments of a command, or the name of an agent; and what is on its standard input.
Call = tuple[list[str], str]

CALLER = """
import io, json, sys, traceback
from commonplace import hooks
from commonplace.cli import main
from commonplace.maintenance import due

due.start_if_due = lambda memory: None  # The commands are tried one by one.
for arguments, text in json.load(sys.stdin):
    sys.argv = arguments
    sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode()))
    try:
        if arguments[0] == "commonplace-hook":
            sys.argv = arguments
            hooks.main()
        else:
            main(arguments[1:])
    except BaseException:
        print(arguments, file=sys.stderr)
        traceback.print_exc()
"""


class Victim:
    """A user with files that must not change, and a clone with a home that is not theirs."""

    def __init__(self, folder: Path) -> None:
        self.user = folder / "user"
        self.home = self.user / "app" / ".commonplace"
        self.clone = self.user / "app"
        self.outside = self.user / "outside"
        self.outside.mkdir(parents=True)
        (self.user / ".bashrc").write_text("# mine\n")
        (self.outside / "precious.txt").write_text("precious\n")
        self.clone.mkdir()
        git("init", "-q", cwd=self.clone)
        self.home.mkdir()

    @property
    def log(self) -> Path:
        return self.home / "log" / f"{repository.find(self.clone).name}.jsonl"

    def put(self, name: str, content: str | bytes = "") -> Path:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def link(self, name: str, target: Path | str) -> None:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)

    def pipe(self, name: str) -> None:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(path)

    def run(self, calls: Sequence[Call], environment: Mapping[str, str] = {}) -> str:
        """Make *calls* one after the other in a process of its own; return what went wrong."""
        inherited = {name: text for name, text in os.environ.items() if "COMMONPLACE" not in name}
        done = subprocess.run(
            [sys.executable, "-c", CALLER],
            input=json.dumps(calls).encode(),
            capture_output=True,
            cwd=self.clone,
            env={**inherited, "HOME": str(self.user), **environment},
            timeout=SECONDS_MAX,
            check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX)),
        )
        text = done.stderr.decode("utf-8", "replace")
        if done.returncode or "Traceback" in text:
            return f"exit code {done.returncode}: {text[-3000:]}"
        return ""

    def seen_outside(self) -> dict[str, object]:
        """Return what there is outside the clone and the user's own home."""
        found: dict[str, object] = {}
        for path in sorted(self.user.rglob("*")):
            inside = (self.clone, self.user / ".commonplace")
            if not any(path == one or one in path.parents for one in inside):
                status = path.lstat()
                content = path.read_bytes() if path.is_file() else None
                found[str(path)] = (status.st_mode, status.st_mtime_ns, content)
        return found


@pytest.fixture
def victim(tmp_path: Path) -> Victim:
    return Victim(tmp_path)


def _line(**changes: object) -> str:
    return json.dumps(LINE | changes) + "\n"


def _deep(victim: Victim, name: str, depth: int) -> None:
    path = victim.home / name
    for _step in range(depth):
        path /= "d"
    path.mkdir(parents=True)
    (path / "note.md").write_text("deep")


def _socket(victim: Victim, name: str) -> None:
    path = victim.home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    here = Path.cwd()
    os.chdir(path.parent)  # The name of a socket may have about a hundred bytes.
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path.name)
    finally:
        os.chdir(here)


def _foreign_owner(victim: Victim, name: str) -> None:
    path = victim.put(name, _line())
    if os.geteuid() == 0:
        os.chown(path, 12345, 12345)


FOLDERS = ("log", "log/archive", "log/damaged", "agents", "agents/default", "skills", ".state")
STATE_FILES = ("server.log", "server.json", "server.lock", "usage.sqlite", "tokens.json")
HOME_FILES = ("config.toml", ".gitignore", ".gitattributes", "agents/default/CONTEXT.md")

SHAPES: dict[str, Callable[[Victim], object]] = {}


def _linked(name: str, target: str) -> Callable[[Victim], object]:
    return lambda victim: victim.link(name, victim.user / target)


def _piped(name: str) -> Callable[[Victim], object]:
    return lambda victim: victim.pipe(name)


def _filled(name: str, content: str | bytes) -> Callable[[Victim], object]:
    return lambda victim: victim.put(name, content)


def _damaged_lines_linked(victim: Victim) -> None:
    victim.link(f"log/damaged/{victim.log.name}", victim.user / ".bashrc")
    victim.put(f"log/{victim.log.name}", "no record\n")


def _home_as_link(victim: Victim) -> None:
    victim.home.rmdir()
    victim.home.symlink_to(victim.outside)


def _home_as_pipe(victim: Victim) -> None:
    victim.home.rmdir()
    os.mkfifo(victim.home)


def _home_as_file(victim: Victim) -> None:
    victim.home.rmdir()
    victim.home.write_text("x")


for _name in FOLDERS:
    SHAPES[f"{_name} is a link to a folder"] = _linked(_name, "outside")
    SHAPES[f"{_name} is a file"] = _filled(_name, "x")
for _name in STATE_FILES:
    SHAPES[f"state {_name} is a link"] = _linked(f".state/{_name}", "outside/precious.txt")
for _name in HOME_FILES:
    SHAPES[f"{_name} is a link"] = _linked(_name, "outside/precious.txt")
    SHAPES[f"{_name} is a pipe"] = _piped(_name)
    SHAPES[f"{_name} is endless"] = _linked(_name, "/dev/zero")
SHAPES |= {
    "the log is a link": lambda v: v.link(f"log/{v.log.name}", v.user / ".bashrc"),
    "the log is a link to nothing": lambda v: v.link(f"log/{v.log.name}", v.user / "new.txt"),
    "the log is a link to itself": lambda v: v.link(f"log/{v.log.name}", v.log.name),
    "the log is a pipe": lambda v: v.pipe(f"log/{v.log.name}"),
    "the log is a folder": lambda v: (v.home / "log" / v.log.name).mkdir(parents=True),
    "the log is a device": lambda v: v.link(f"log/{v.log.name}", "/dev/zero"),
    "the log is a socket": lambda v: _socket(v, f"log/{v.log.name}"),
    "another log is a link": lambda v: v.link("log/other.jsonl", v.user / ".bashrc"),
    "another log is a pipe": lambda v: v.pipe("log/other.jsonl"),
    "another log is another user's": lambda v: _foreign_owner(v, "log/other.jsonl"),
    "the log is another user's": lambda v: _foreign_owner(v, f"log/{v.log.name}"),
    "the archive is a link": lambda v: v.link(f"log/archive/{v.log.name}", v.user / ".bashrc"),
    "damaged lines are a link": _damaged_lines_linked,
    "the lock beside the log is a link": lambda v: v.link(
        f"log/.{v.log.name}.lock", v.user / ".bashrc"
    ),
    "the index is a link": lambda v: v.link(".index", v.outside),
    "the index holds a link": lambda v: v.link(".index/tables.sqlite", v.outside / "new.sqlite"),
    "the index is a pipe": lambda v: v.pipe(".index"),
    "the spool is a link": lambda v: v.link(".state/spool", v.outside),
    "the sessions are a link": lambda v: v.link(".state/sessions", v.outside),
    "the inbox is a link": lambda v: v.link(".state/inbox", v.outside),
    "the drafts are a link": lambda v: v.link(".state/drafts", v.outside),
    "the hooks' marks are a link": lambda v: v.link(".state/hooks", v.outside),
    "a server is announced": lambda v: v.put(
        ".state/server.json",
        '{"host": "127.0.0.1", "port": 9, "pid": 1, "key": "k", "version": "0"}',
    ),
    "a skill is a link": lambda v: v.link("skills/x/SKILL.md", v.user / ".bashrc"),
    "a skill's folder is a link": lambda v: v.link("skills/x", v.outside),
    "an agent's folder is a link": lambda v: v.link("agents/claude-code", v.outside),
    "a note is a folder": lambda v: _deep(v, "agents/default/CONTEXT.md", 2),
    "a note is huge": lambda v: v.put("agents/default/CONTEXT.md", "x" * (20 << 20)),
    "the settings are huge": lambda v: v.put("config.toml", "x = 1\n" * 300_000),
    "the settings are no TOML": lambda v: v.put("config.toml", b"\xff\xfe\0[[["),
    "the settings are deep": lambda v: v.put("config.toml", "a = " + "[" * 50_000),
    "the settings name an embedder": lambda v: v.put(
        "config.toml", '[embedder]\nkind = "http"\nurl = "http://127.0.0.1:9/"\n'
    ),
    "a line is huge": lambda v: v.put(f"log/{v.log.name}", _line(lesson="x" * (70 << 20))),
    "a line is deep": lambda v: v.put(f"log/{v.log.name}", "[" * 100_000 + "\n"),
    "a line without an end": lambda v: v.put(f"log/{v.log.name}", b"\0" * (20 << 20)),
    "the log is no text": lambda v: v.put(f"log/{v.log.name}", os.urandom(1 << 20)),
    "many logs": lambda v: ([v.put(f"log/l{n}.jsonl", _line(id=f"i{n}")) for n in range(1500)]),
    "odd names": lambda v: (
        [
            v.put(f"log/{name}.jsonl", _line())
            for name in (
                "a\nb",
                "-rf",
                "\x1b[31m",
                "\u202egnp",
                " ",
                "con",
                "x" * 200,
                "..x",
                "$(id)",
            )
        ]
    ),
    "deep folders in notes": lambda v: _deep(v, "agents/default", 300),
    "deep folders in the log": lambda v: _deep(v, "log", 300),
    "deep folders in the home": lambda v: _deep(v, "x", 300),
    "a loop of links": lambda v: v.link("agents/default/loop", ".."),
    "hidden temporary files": lambda v: v.link(
        f"log/.{v.log.name}.0011223344556677.1.rewriting", v.user / ".bashrc"
    ),
    "a home in the home": lambda v: v.put(".commonplace/log/x.jsonl", _line()),
    "its own git": lambda v: v.link(".git", v.outside),
    "the home is a link": _home_as_link,
    "the home is a pipe": _home_as_pipe,
    "the home is a file": _home_as_file,
}

EVENTS = ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd")
COMMANDS = (
    "log --type error --lesson run",
    "recall the-kettle",
    "where --json",
    "repos",
    "stats",
    "show theirs",
    "history theirs",
    "export",
    "inbox list",
    "episode start --goal tea",
    "episode end --outcome success",
    "preamble",
    "token list",
    "index rebuild",
    "forget theirs --erase",
    "scan --fix",
    "doctor --fix",
    "maintain",
    "init",
)


def calls_of(victim: Victim) -> list[Call]:
    events = [(["commonplace-hook", "claude-code"], _event(victim, name)) for name in EVENTS]
    return [*((["commonplace", *text.split()], "") for text in COMMANDS), *events]


def _event(victim: Victim, name: str) -> str:
    fields = {
        "hook_event_name": name,
        "session_id": "s-1",
        "cwd": str(victim.clone),
        "source": "startup",
        "prompt": "how does the kettle boil",
        "reason": "exit",
        "tool_name": "Bash",
        "tool_input": {"command": "make"},
        "tool_response": {"stdout": "", "stderr": "error: no kettle", "interrupted": False},
    }
    return json.dumps(fields)


def test_the_corpus_has_sixty_shapes() -> None:
    assert len(SHAPES) >= 60


@pytest.mark.parametrize("shape", SHAPES)
def test_a_hostile_home_changes_nothing_outside_and_hangs_nobody(
    victim: Victim, shape: str
) -> None:
    SHAPES[shape](victim)
    before = victim.seen_outside()

    assert victim.run(calls_of(victim)) == ""
    assert victim.seen_outside() == before


def test_a_home_that_is_a_link_is_refused_with_a_sentence(victim: Victim) -> None:
    _home_as_link(victim)

    with pytest.raises(HomeUnusable, match="symbolic link"):
        Memory.open(cwd=victim.clone)


def test_the_users_own_home_may_be_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "synced").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "synced")
    monkeypatch.setenv("COMMONPLACE_HOME", str(tmp_path / "link"))

    with Memory.open() as memory:
        memory.log(event_type="learned", lesson="the kettle boils", repo="app")
        assert memory.recall("kettle").hits

    assert (tmp_path / "synced" / "log" / "app.jsonl").is_file()


def test_a_folder_that_becomes_a_link_while_it_is_open_is_not_followed(
    memory: Memory, own_home: Path, tmp_path: Path
) -> None:
    memory.log(event_type="learned", lesson="one", repo="app")
    (own_home / "log").rename(tmp_path / "before")
    (tmp_path / "elsewhere").mkdir()
    (own_home / "log").symlink_to(tmp_path / "elsewhere")

    for repo in ("app", "other"):
        with pytest.raises(HomeUnusable, match="symbolic link"):
            memory.log(event_type="learned", lesson="two", repo=repo)

    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_the_home_of_another_user_is_refused_until_it_is_trusted(victim: Victim) -> None:
    victim.put(f"log/{victim.log.name}", _line())
    for path in (victim.home, victim.home / "log", victim.log):
        os.chown(path, TRUSTED_OWNER, TRUSTED_OWNER)

    with pytest.raises(HomeUnusable, match="another user") as refused:
        Memory.open(cwd=victim.clone)
    assert "commonplace trust" in refused.value.hint

    trust.trust(homes.find(None, victim.clone, repository.find(victim.clone), os.environ)[0])
    with Memory.open(cwd=victim.clone) as memory:
        assert memory.recall("kettle").hits


def test_the_state_of_a_repositorys_home_is_in_the_users_home(
    victim: Victim, own_home: Path
) -> None:
    victim.put(".state/server.json", "theirs")
    with Memory.open(cwd=victim.clone) as memory:
        memory.log(event_type="learned", lesson="the kettle boils")
        assert memory.recall("kettle").hits
        home = memory.home

    assert home.path == victim.home
    assert home.state_folder.parent == own_home / ".state" / "homes"
    assert home.index_folder.is_dir()
    left = {path.name for path in victim.home.iterdir()}
    assert left == {"log", ".state", ".gitignore", ".gitattributes"}
    assert [path.name for path in (victim.home / ".state").iterdir()] == ["server.json"]


@pytest.mark.parametrize("named", ["relative", "absolute", "linked", "slash"])
def test_a_repositorys_home_has_one_state_however_it_is_named(
    victim: Victim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    (tmp_path / "alias").symlink_to(victim.clone)
    monkeypatch.chdir(victim.clone)
    names = {
        "relative": ".commonplace",
        "absolute": str(victim.home),
        "linked": str(tmp_path / "alias" / ".commonplace"),
        "slash": f"{victim.home}/",
    }
    with Memory.open(cwd=victim.clone) as found, Memory.open(names[named]) as given:
        assert given.home.state_folder == found.home.state_folder
    state = served.state_folder(os.path.join(victim.clone, names[named]), os.environ)  # noqa: PTH118
    assert state == str(found.home.state_folder)


def test_git_runs_nothing_that_a_repository_names(victim: Victim, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    (victim.clone / ".gitattributes").write_text("*.txt filter=evil\n*.md filter=e=vil\n")
    for name in ("a.txt", "b.md"):
        (victim.clone / name).write_text("one\n")
    git("add", "-A", cwd=victim.clone)
    git("commit", "-qm", "one", cwd=victim.clone)
    for key in (
        "filter.evil.clean",
        "filter.e=vil.clean",
        "filter.evil.process",
        "core.fsmonitor",
        "core.pager",
        "diff.external",
    ):
        git("config", key, f"touch {marks}/{key.replace('=', '-')}; cat", cwd=victim.clone)
    git("config", "filter.evil.required", "true", cwd=victim.clone)
    for name in ("a.txt", "b.md"):
        (victim.clone / name).write_text("two\n")

    listing = run_git.output(victim.clone, "status", "--porcelain", seconds_max=20)

    assert "a.txt" in listing
    assert "b.md" in listing
    assert list(marks.iterdir()) == []


def test_doctor_names_what_is_not_used(victim: Victim) -> None:
    victim.link("log/other.jsonl", victim.user / ".bashrc")
    victim.pipe("log/pipe.jsonl")
    _foreign_owner(victim, "log/theirs.jsonl")

    with Memory.open(cwd=victim.clone) as memory:
        found = {finding.path.name: finding.what for finding in memory.check()}

    assert found["other.jsonl"] == "link"
    assert found["pipe.jsonl"] == "special file"
    if os.geteuid() == 0:
        assert found["theirs.jsonl"] == "owner"


def test_a_filter_whose_name_is_no_text_does_not_run(victim: Victim, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    (victim.clone / "a.txt").write_text("one\n")
    git("add", "-A", cwd=victim.clone)
    git("commit", "-qm", "one", cwd=victim.clone)
    with (victim.clone / ".git" / "config").open("ab") as stream:
        stream.write(b'[filter "ev\xffil"]\n\tclean = "touch ' + bytes(mark) + b'; cat"\n')
    (victim.clone / ".git" / "info").mkdir(exist_ok=True)
    (victim.clone / ".git" / "info" / "attributes").write_bytes(b"* filter=ev\xffil\n")
    (victim.clone / "a.txt").write_text("two\n")

    run_git.output(victim.clone, "status", "--porcelain", seconds_max=20)

    assert not mark.exists()


def test_a_filter_of_a_submodule_does_not_run(victim: Victim, tmp_path: Path) -> None:
    mark, sub = tmp_path / "mark", victim.clone / "sub"
    sub.mkdir()
    git("init", "-q", cwd=sub)
    (sub / "a.txt").write_text("one\n")
    git("add", "-A", cwd=sub)
    git("commit", "-qm", "one", cwd=sub)
    (victim.clone / ".gitmodules").write_text(
        '[submodule "sub"]\n\tpath = sub\n\turl = ./sub\n\tignore = none\n'
    )
    git("add", ".gitmodules", "sub", cwd=victim.clone)
    git("commit", "-qm", "one", cwd=victim.clone)
    git("config", "filter.evil.clean", f"touch {mark}; cat", cwd=sub)
    (sub / ".gitattributes").write_text("* filter=evil\n")
    (sub / "a.txt").write_text("two\n")

    run_git.output(victim.clone, "status", "--porcelain", seconds_max=20)

    assert not mark.exists()


def test_a_folder_that_looks_like_a_bare_repository_is_none_in_a_worktree(victim: Victim) -> None:
    inner = victim.clone / "lib"
    (inner / "objects").mkdir(parents=True)
    (inner / "HEAD").write_text("ref: refs/heads/main\n")
    (inner / "config").symlink_to("/dev/zero")
    (inner / ".commonplace" / "log").mkdir(parents=True)

    assert repository.find(inner).root == victim.clone
    assert served.nearest_home(str(inner), {"HOME": str(victim.user)}) == str(victim.home)


@pytest.mark.parametrize("name", [".git", ".git/config", ".git/HEAD", ".git/commondir"])
@pytest.mark.parametrize("kind", ["pipe", "endless"])
def test_odd_files_of_git_neither_hang_nor_fill_the_memory(
    tmp_path: Path, name: str, kind: str
) -> None:
    victim = Victim(tmp_path)
    path = victim.clone / name
    if path.is_dir():
        path.rename(tmp_path / "aside")
    else:
        path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")

    assert victim.run(calls_of(victim)) == ""


@pytest.mark.parametrize("text", ["a." * 20_000 + "b = 1", "[" + "a." * 20_000 + "b]"])
def test_settings_with_endless_keys_are_refused_at_once(victim: Victim, text: str) -> None:
    victim.put("config.toml", text[:60_000] + "\n")

    with pytest.raises(SettingsInvalid, match="parts"):
        Settings().read(victim.clone / ".commonplace" / "config.toml", of_user=False)


def test_git_cannot_name_a_file_whose_start_is_stored(victim: Victim, tmp_path: Path) -> None:
    (tmp_path / "diary.txt").write_text("bob likes 4812 blue wombats, and this is private")
    head = victim.clone / ".git" / "HEAD"

    for ref in (f"ref: {tmp_path}/diary.txt", "ref: refs/../../../../diary.txt"):
        head.write_text(ref)
        assert git_head(str(victim.clone))[0] == ""


SERVED_SHAPES = (
    "the log is a link",
    "the log is a pipe",
    "the log is a folder",
    "another log is another user's",
    "the archive is a link",
    "a note is huge",
    "a loop of links",
    "an agent's folder is a link",
    "agents/default/CONTEXT.md is endless",
    "agents/default/CONTEXT.md is a pipe",
    "a server is announced",
    "the index is a link",
    "a line is huge",
    "odd names",
)
ROUTES: tuple[tuple[str, str, dict[str, object]], ...] = (
    ("GET", "/health", {}),
    ("GET", "/api/v1/stats", {}),
    ("GET", "/api/v1/context", {}),
    ("GET", "/api/v1/records/theirs", {}),
    ("GET", "/api/v1/openapi.json", {}),
    ("POST", "/api/v1/recall", {"text": "the kettle"}),
    ("POST", "/api/v1/remember", {"event_type": "learned", "lesson": "a teapot"}),
    ("POST", "/api/v1/feedback", {"id": "theirs", "outcome": "worked"}),
    ("POST", "/api/v1/forget", {"id": "theirs"}),
    ("POST", "/api/v1/memory_list", {}),
    ("POST", "/api/v1/memory_read", {"path": "CONTEXT.md"}),
    ("POST", "/api/v1/memory_write", {"path": "new.md", "content": "tea"}),
    ("POST", "/api/v1/memory_insert", {"path": "CONTEXT.md", "line": 0, "text": "tea"}),
    ("POST", "/api/v1/memory_replace", {"path": "CONTEXT.md", "old": "x", "new": "y"}),
)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SERVED_SHAPES)
def test_every_route_of_a_server_stands_a_hostile_home(victim: Victim, shape: str) -> None:
    SHAPES[shape](victim)
    before = victim.seen_outside()
    state = served.state_folder(str(victim.home), {"HOME": str(victim.user)})

    assert victim.run([(["commonplace", "serve", "--ensure"], "")]) == ""
    try:
        server = served.find_server(state)
        assert server is not None
        for method, path, body in ROUTES:
            served.send(server, method, path, json.dumps(body).encode(), 30, 1 << 20)
        for name in EVENTS:
            target = f"/api/v1/hook?agent=claude-code&cwd={served.quote(str(victim.clone))}"
            event = _event(victim, name).encode()
            assert served.send(server, "POST", target, event, 30, 1 << 20) is not None
        assert served.send(server, "GET", "/health", b"", 30, 1 << 20), "it still answers"
    finally:
        assert victim.run([(["commonplace", "serve", "--stop"], "")]) == ""

    assert "Traceback" not in Path(state, "server.log").read_text("utf-8")
    assert victim.seen_outside() == before
