"""`commonplace-hook` as agents run it: real processes, with a server and without, and everything that can go wrong."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace import hooks, inbox
from commonplace.files.lock import hold
from commonplace.memory import Memory
from commonplace.served import nearest_home
from commonplace.server import own_socket, presence
from commonplace.server.presence import Presence
from commonplace.sessions import spool
from commonplace.where import homes, repository
from commonplace.where.home import Home
from conftest import SLOW_LAW, git
from serving import command, served
from test_events import PAYLOADS, agent_of, payload

if TYPE_CHECKING:
    from collections.abc import Iterator

HOOK = [sys.executable, "-c", "import sys; from commonplace.hooks import main; sys.exit(main())"]
DIALECTS = sorted({path.parent.name for path in PAYLOADS})
SAID = "node_modules must belong to the user before npm ci"
POSIX_ONLY = pytest.mark.skipif(os.name != "posix", reason="signals and modes")


def hook(raw: bytes, *arguments: str, cwd: Path | None = None, **environment: str) -> str:
    """Run the hook on *raw*; whatever happens it exits 0 and prints no traceback."""
    done = subprocess.run(
        [*HOOK, *(arguments or ("claude-code",))],
        input=raw,
        capture_output=True,
        cwd=cwd,
        env={**os.environ, **environment},
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    assert done.stderr == b""
    return done.stdout.decode()


def event(cwd: Path, called: str, **fields: Any) -> bytes:
    return json.dumps(
        {"session_id": "s-1", "cwd": str(cwd), "hook_event_name": called, **fields}
    ).encode()


def said(cwd: Path, lesson: str, call: str = "t-1") -> bytes:
    given_command = {"command": f'bd comment BD-1 "LEARNED: {lesson}"'}
    return event(
        cwd,
        "PostToolUse",
        tool_name="Bash",
        tool_input=given_command,
        tool_response={"stdout": "ok"},
        tool_use_id=call,
    )


def exported(home: Path) -> list[dict[str, Any]]:
    done = command("export", home=home)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


# --- A whole session, in every dialect ------------------------------------------------------------------------------


def play(dialect: str, project: Path) -> dict[str, str]:
    """A session as its agent tells it; what was printed, by the number of the event."""
    paths = [path for path in PAYLOADS if path.parent.name == dialect]
    return {
        path.stem[:2]: hook(payload(path, project), agent_of(path), cwd=project) for path in paths
    }


def check_session(dialect: str, home: Path, printed: dict[str, str], again: str) -> None:
    records = exported(home)
    (lesson,) = [record for record in records if record.get("event_type") == "learned"]
    assert lesson["lesson"] == SAID
    (episode,) = [record for record in records if record["kind"] == "episode"]
    assert episode["context"]["goal"].startswith("npm install fails")
    assert [action.get("result") for action in episode["action_log"]][:2] == ["fail", "pass"]
    assert "src/server.ts" in episode["artifacts_produced"]
    (candidate,) = inbox.candidates(Home(home))
    assert "EACCES" in candidate.error
    assert candidate.worked.endswith("npm ci")
    assert printed["01"] == "", "there was nothing to say at the first start"
    assert all(printed[number] == "" for number in printed if number not in ("01", "02", "08"))
    if "08" in printed:
        assert SAID in printed["08"], "after compaction it is said again"
    assert f"[LEARN] {SAID} (orchestrator)" in again


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_session_without_a_server(dialect: str, own_home: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    printed = play(dialect, project)
    first = next(path for path in PAYLOADS if path.parent.name == dialect)
    again = hook(
        payload(first, project).replace(b'"source": "startup"', b'"source": "resume"'),
        agent_of(first),
        cwd=project,
    )

    check_session(dialect, own_home, printed, again)
    assert (own_home / ".state" / "hooks" / agent_of(first)).exists()


def test_a_session_with_a_server_in_every_dialect(own_home: Path, tmp_path: Path) -> None:
    with served(own_home):
        for dialect in DIALECTS:
            project = tmp_path / f"project-{dialect}"
            project.mkdir()
            printed = play(dialect, project)
            first = next(path for path in PAYLOADS if path.parent.name == dialect)
            raw = payload(first, project).replace(b'"source": "startup"', b'"source": "resume"')
            again = hook(raw, agent_of(first), cwd=project)
            assert f"[LEARN] {SAID} (orchestrator)" in again
            assert printed["01"] == ""
        assert not spool.list_names(Home(own_home).spool_folder), "the server took everything in"
    found = {(record["repo"], record["kind"]) for record in exported(own_home)}
    assert found == {
        (f"project-{dialect}", kind) for dialect in DIALECTS for kind in ("lesson", "episode")
    }


# --- With a server --------------------------------------------------------------------------------------------------


def test_a_prompt_is_answered_by_the_server_and_only_once(own_home: Path, tmp_path: Path) -> None:
    with Memory.open(own_home) as memory:
        memory.log(
            event_type="error",
            lesson="the signature check needs the raw body",
            context="stripe webhook fails",
            repo=tmp_path.name,
        )
    prompt = event(
        tmp_path,
        "UserPromptSubmit",
        prompt="the stripe webhook signature check fails, please fix it",
    )
    assert hook(prompt) == "", "without a server a prompt gets nothing"
    with served(own_home):
        first, again = hook(prompt), hook(prompt)

    assert "raw body" in first
    assert "raw body" not in again


def test_with_a_server_a_hook_loads_next_to_nothing(own_home: Path, tmp_path: Path) -> None:
    code = (
        "import sys; before = set(sys.modules); import commonplace.hooks as h; code = h.main();"
        "print(sorted(set(sys.modules) - before), file=sys.stderr)"
    )
    with served(own_home):
        done = subprocess.run(
            [sys.executable, "-c", code, "claude-code"],
            input=event(tmp_path, "Stop"),
            capture_output=True,
            check=True,
        )

    loaded = set(eval(done.stderr))
    ours = {"served", "hooks", "where", "where.state"}
    assert loaded <= {"commonplace", *(f"commonplace.{name}" for name in ours), "_socket"}


@pytest.mark.parametrize("behaviour", ["hangs", "closes", "says nonsense", "says half", "refuses"])
def test_a_server_that_does_not_answer_costs_a_quarter_of_a_second_and_no_event(
    behaviour: str, own_home: Path, tmp_path: Path
) -> None:
    replies = {
        "closes": b"",
        "says nonsense": b"hello\r\n\r\nworld",
        "says half": b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{",
        "refuses": b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\n{}",
    }
    over = threading.Event()
    with standing(own_home) as listening:

        def serve() -> None:
            link, _address = listening.accept()
            with link:
                link.recv(65536)
                if behaviour == "hangs":
                    over.wait(30)
                else:
                    link.sendall(replies[behaviour])

        thread = threading.Thread(target=serve)
        thread.start()
        hook(said(tmp_path, "kept all the same"))
        over.set()
        thread.join()

    assert [record["lesson"] for record in exported(own_home)] == ["kept all the same"]


@contextmanager
def standing(home: Path) -> Iterator[socket.socket]:
    """Listen where hooks ask the server of *home*, and hold what it holds."""
    (home / ".state").mkdir(parents=True, exist_ok=True)
    bound = own_socket.bind(Home(home))
    listening = bound or socket.create_server(("127.0.0.1", 0))
    listening.listen()
    listening.setblocking(True)
    port = 0 if bound else listening.getsockname()[1]
    path = bound.getsockname() if bound else ""
    presence.write(Home(home), Presence("127.0.0.1", port, 1, "the-key", "0", path))
    with listening, hold(home / ".state" / "server.lock"):
        yield listening


def ask_hook(home: Path, cwd: Path) -> bytes | None:
    return hooks.ask_server(str(home / ".state"), "claude-code", b"{}", str(cwd), [])


@POSIX_ONLY
def test_nothing_is_sent_to_a_port(own_home: Path, tmp_path: Path) -> None:
    """Whoever listens there, even while a server runs: anybody may."""
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        port = stranger.getsockname()[1]
        presence.write(Home(own_home), Presence("127.0.0.1", port, 1, "k", "0"))
        with hold(Home(own_home).server_lock):
            assert ask_hook(own_home, tmp_path) is None
        stranger.setblocking(False)
        with pytest.raises(BlockingIOError):
            stranger.accept()


@POSIX_ONLY
@pytest.mark.parametrize("trick", ["link to a socket", "linked file", "open folder", "no socket"])
def test_nothing_is_sent_to_a_socket_that_proves_nothing(
    trick: str, own_home: Path, tmp_path: Path
) -> None:
    """A server's file may say where the socket is, but not make a stranger's one trusted."""
    folder = Path(tempfile.mkdtemp(prefix="cp-", dir="/tmp"))
    state = own_home / ".state"
    state.mkdir(parents=True)
    path = folder / "s.sock"
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.bind(str(path))
        stranger.listen()
        there = Presence("127.0.0.1", 1, 1, "k", "0", str(path))
        if trick == "link to a socket":
            (state / "server.sock").symlink_to(path)
        elif trick == "linked file":
            presence.write(Home(tmp_path / "other"), there)
            (state / "server.json").symlink_to(Home(tmp_path / "other").server_file)
        else:
            if trick == "open folder":
                folder.chmod(0o770)
            else:
                path.rename(folder / "moved")
                path.write_text("a plain file")
            presence.write(Home(own_home), there)
        assert ask_hook(own_home, tmp_path) is None
        stranger.setblocking(False)
        with pytest.raises(BlockingIOError):
            stranger.accept()
    shutil.rmtree(folder)


@POSIX_ONLY
def test_nothing_is_sent_to_the_socket_of_another_user(
    own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with standing(own_home) as stranger:
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        assert ask_hook(own_home, tmp_path) is None
        stranger.setblocking(False)
        with pytest.raises(BlockingIOError):
            stranger.accept()


def test_what_is_sent_to_the_server_is_the_event_as_it_came(own_home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "a folder with späces & more"
    folder.mkdir()
    received: list[bytes] = []
    with standing(own_home) as listening:

        def serve() -> None:
            link, _address = listening.accept()
            with link:
                received.append(link.recv(65536))
                link.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")

        thread = threading.Thread(target=serve)
        thread.start()
        raw = event(folder, "SessionStart")
        answer = hook(raw, "codex", CURSOR_VERSION="3.1", COMMONPLACE_AGENT="researcher")
        thread.join()

    head, _, body = received[0].partition(b"\r\n\r\n")
    assert answer == "hello"
    assert body == raw
    assert head.startswith(b"POST /api/v1/hook?agent=codex:researcher&cwd=")
    target = head.split(b" ")[1].decode()
    assert "a%20folder%20with%20sp%C3%A4ces%20%26%20more&environment=" in target
    variables = target.partition("&environment=")[2].split(",")
    assert "CURSOR_VERSION" in variables
    assert "3.1" not in target, "names are sent, never values"
    if os.name != "posix":
        assert b"Authorization: Bearer the-key" in head


@POSIX_ONLY
def test_ensure_starts_a_server_and_nothing_else_does(own_home: Path, tmp_path: Path) -> None:
    hook(said(tmp_path, "so that there is a home"))
    (own_home / "config.toml").write_text("[embedder]\nkind = 'none'\n[server]\nport = 0\n")
    hook(event(tmp_path, "SessionStart"))
    assert not (own_home / ".state" / "server.lock").exists()
    try:
        hook(event(tmp_path, "SessionStart"), "claude-code", "--ensure")
        deadline = time.monotonic() + 60
        while not (own_home / ".state" / "server.json").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert (own_home / ".state" / "server.json").exists()
    finally:
        command("serve", "--stop", home=own_home)


@pytest.mark.parametrize("server", [False, True])
def test_the_agent_that_called_claude_codes_hook_is_known_by_its_variables(
    server: bool, own_home: Path, tmp_path: Path
) -> None:
    with served(own_home) if server else nullcontext():
        hook(said(tmp_path, "told by cursor"), "claude-code", CURSOR_VERSION="3.1")
        hook(said(tmp_path, "told by codex", "t-2"), "codex", CURSOR_VERSION="3.1")

    found = {record["lesson"]: record["agent_id"] for record in exported(own_home)}
    assert found == {"told by cursor": "cursor", "told by codex": "codex"}


# --- Everything that can go wrong -----------------------------------------------------------------------------------


def test_bad_input_is_met_with_silence(own_home: Path, tmp_path: Path) -> None:
    whole = said(tmp_path, "x y z")
    bad = [b"", b"{", b"null", b"[]", b'"x"', b"\xff\xfe\x00", b"{}" * 1000, whole[: len(whole) // 2], b"[" * 100_000,
           event(tmp_path, "SomethingNew", field={"deep": [1]}),
           event(tmp_path, "PostToolUse", tool_name="Bash", tool_input=None, tool_response="x" * 2_000_000),
           event(tmp_path / "gone", "SessionStart"), event(Path("/"), "Stop", session_id=None),
           event(tmp_path, "PostToolUse", tool_name=3, tool_input=[1], tool_response={"stdout": {"a": 1}})]  # fmt: skip
    for raw in bad:
        for agent in ("claude-code", "cursor"):
            assert hook(raw, agent) == ""
    assert hook(whole, "an-agent-nobody-knows") == ""
    assert hook(whole, "--ensure") == "", "no agent was named"


def test_twenty_megabytes_and_binary_output_are_cut_to_size(own_home: Path, tmp_path: Path) -> None:
    given_command = {"command": 'cat dump; echo "LEARNED: dumps are large"'}
    fields = {"tool_name": "Bash", "tool_input": given_command, "tool_use_id": "t"}
    hook(
        event(
            tmp_path,
            "PostToolUse",
            **fields,
            tool_response={"stdout": "\x00\x1b[31m\ufffd\ud800" * 700_000},
        )
    )

    assert [record["lesson"] for record in exported(own_home)] == ["dumps are large"]
    assert sum(path.stat().st_size for path in own_home.rglob("*") if path.is_file()) < 100_000


def test_a_transcript_that_is_being_written_is_not_touched(own_home: Path, tmp_path: Path) -> None:
    transcript = tmp_path / "t.jsonl"
    transcript.write_text('{"type": "user", "mess')
    hook(event(tmp_path, "Stop", transcript_path=str(transcript)))

    assert transcript.read_text() == '{"type": "user", "mess'


def test_with_no_home_nothing_is_said_and_a_start_leaves_nothing(
    own_home: Path, tmp_path: Path
) -> None:
    assert hook(event(tmp_path, "SessionStart", source="startup"), "claude-code", "--ensure") == ""
    assert not own_home.exists()
    own_home.write_text("not a folder")
    assert hook(event(tmp_path, "SessionStart", source="startup")) == ""
    assert hook(said(tmp_path, "x y z")) == ""
    assert own_home.read_text() == "not a folder"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_home_that_may_not_be_written_is_read(own_home: Path, tmp_path: Path) -> None:
    hook(said(tmp_path, "known from before"))
    for folder in (own_home, own_home / ".state", own_home / ".state" / "spool"):
        folder.chmod(0o500)
    try:
        assert "known from before" in hook(event(tmp_path, "SessionStart", source="startup"))
        assert hook(said(tmp_path, "not to be kept", "t-2")) == ""
    finally:
        for folder in (own_home, own_home / ".state", own_home / ".state" / "spool"):
            folder.chmod(0o700)


def test_a_damaged_home_and_damaged_settings_break_nothing(own_home: Path, tmp_path: Path) -> None:
    hook(said(tmp_path, "known from before"))
    for path in (own_home / "log").glob("*.jsonl"):
        path.write_bytes(b"\xff\xfe{{{\n" + path.read_bytes() + b'{"torn')
    assert "known from before" in hook(event(tmp_path, "SessionStart", source="startup"))
    (own_home / ".state" / "server.json").write_text('{"port": "x"')
    (own_home / "config.toml").write_text("hooks = 3 [")
    assert hook(event(tmp_path, "SessionStart", source="startup")) == ""
    hook(said(tmp_path, "while the settings were damaged", "t-2"))
    (own_home / "config.toml").unlink()
    assert "while the settings were damaged" in [record["lesson"] for record in exported(own_home)]


@POSIX_ONLY
def test_a_hook_killed_half_way_leaves_nothing_that_matters(own_home: Path, tmp_path: Path) -> None:
    raw = said(tmp_path, "never finished")
    for cut in (0, len(raw) // 2, len(raw)):
        process = subprocess.Popen(
            [*HOOK, "claude-code"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdin is not None
        process.stdin.write(raw[:cut])
        process.stdin.flush()
        process.send_signal(signal.SIGKILL)
        process.communicate()
    hook(said(tmp_path, "finished", "t-2"))

    assert [record["lesson"] for record in exported(own_home)] == ["finished"]


@pytest.mark.slow
def test_two_hundred_hooks_at_once_lose_nothing(own_home: Path, tmp_path: Path) -> None:
    running = []
    for number in range(200):
        process = subprocess.Popen(
            [*HOOK, "claude-code"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        assert process.stdin is not None
        process.stdin.write(said(tmp_path, f"fact number {number} of the storm", f"t-{number}"))
        process.stdin.close()
        running.append(process)
    for process in running:
        assert process.wait(300) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""
        process.stderr.close()

    lessons = [record["lesson"] for record in exported(own_home)]
    assert sorted(lessons) == sorted(f"fact number {number} of the storm" for number in range(200))
    assert not spool.list_names(Home(own_home).spool_folder)


# --- Which home -----------------------------------------------------------------------------------------------------


@SLOW_LAW
@given(
    kind=st.sampled_from(["plain", "git", "worktree", "bare"]),
    homes_in=st.sets(st.sampled_from(["root", "inner", "user", "above"])),
    named=st.booleans(),
    where=st.sampled_from(["root", "inner"]),
)
def test_the_nearest_home_is_the_one_that_counts(
    kind: str, homes_in: set[str], named: bool, where: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    above = tmp_path_factory.mktemp("place").resolve()
    root = above / "user" / "project"
    root.parent.mkdir()
    if kind == "bare":
        git("init", "-q", "--bare", str(root), cwd=above)
    else:
        root.mkdir()
    if kind in ("git", "worktree"):
        git("init", "-q", cwd=root)
    if kind == "worktree":
        git("commit", "-q", "--allow-empty", "-m", "x", cwd=root)
        git("worktree", "add", "-q", str(above / "user" / "tree"), cwd=root)
        root = above / "user" / "tree"
    inner = root / "src" / "deep"
    inner.mkdir(parents=True)
    places = {"root": root, "inner": inner, "user": above / "user", "above": above}
    for place in homes_in:
        (places[place] / ".commonplace").mkdir()
    environment = {
        "HOME": str(above / "user"),
        **({"COMMONPLACE_HOME": str(above / "named")} if named else {}),
    }
    cwd = places[where]

    wanted = homes.find(None, cwd, repository.find(cwd), environment)[0].path

    assert Path(nearest_home(str(cwd), environment)).resolve() == wanted.resolve()


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        ('{{"cwd": {0}}}', True),
        ('{{"session_id":"s","cwd":{0},"tool_input":{{"cwd":"/nowhere"}}}}', True),
        ('{{"workspace_roots": [{0}, "/other"]}}', True),
        ('{{"cwd": 3}}', False),
        ('{{"cwd": "relative"}}', False),
        ("{{", False),
    ],
)
def test_the_folder_of_an_event_is_read_off_its_beginning(
    raw: str, found: bool, tmp_path: Path
) -> None:
    assert hooks.folder_of(raw.format(json.dumps(str(tmp_path))).encode()) == (
        str(tmp_path) if found else ""
    )


# --- The completion check -------------------------------------------------------------------------------------------


@pytest.fixture
def unfinished(tmp_path: Path) -> Path:
    origin, work = tmp_path / "origin.git", tmp_path / "work"
    git("init", "-q", "--bare", "-b", "main", str(origin), cwd=tmp_path)
    git("clone", "-q", str(origin), str(work), cwd=tmp_path)
    git("checkout", "-q", "-b", "bd-BD-7", cwd=work)
    git("commit", "-q", "--allow-empty", "-m", "x", cwd=work)
    (work / ".beads").mkdir()
    (work / ".beads" / "issues.jsonl").write_text(
        '{"id": "BD-7", "status": "in_progress"}\n{"id": "BD-70", "status": "open"}\n'
    )
    (work / "left.py").write_text("x")
    return work


def completion(
    work: Path, wanted: str, home: Path, agent: str = "claude-code", **fields: Any
) -> dict[str, Any]:
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(f'[hooks]\ncompletion = "{wanted}"\n')
    printed = hook(
        event(work, "SubagentStop", agent_type="builder", **fields), agent, "check-completion"
    )
    found: dict[str, Any] = json.loads(printed) if printed else {}
    return found


def test_what_is_left_to_do_is_reported_or_keeps_the_agent_at_work(
    unfinished: Path, own_home: Path
) -> None:
    assert completion(unfinished, "off", own_home) == {}
    told = completion(unfinished, "report", own_home)["systemMessage"]
    assert "uncommitted files" in told
    assert "left.py" in told
    assert "never pushed" in told
    assert "bead BD-7 is in_progress" in told
    assert "BD-70" not in told
    assert completion(unfinished, "block", own_home)["decision"] == "block"
    assert "decision" not in completion(unfinished, "block", own_home, stop_hook_active=True), (
        "told once"
    )
    assert completion(unfinished, "block", own_home, agent="gemini")["decision"] == "deny"
    assert "followup_message" in completion(unfinished, "block", own_home, agent="cursor")
    assert completion(unfinished, "report", own_home, agent="cursor") == {}


def test_the_bead_is_seen_from_a_worktree(unfinished: Path, own_home: Path, tmp_path: Path) -> None:
    git("worktree", "add", "-q", "-b", "bd-BD-70-fix", str(tmp_path / "tree"), cwd=unfinished)

    told = completion(tmp_path / "tree", "report", own_home)["systemMessage"]

    assert "bead BD-70 is open" in told
    # What is checked out there may be older than what `bd` wrote in the main worktree.
    (tmp_path / "tree" / ".beads").mkdir()
    older = tmp_path / "tree" / ".beads" / "issues.jsonl"
    older.write_text('{"id": "BD-70", "status": "open"}\n')
    with (unfinished / ".beads" / "issues.jsonl").open("a") as stream:
        stream.write('{"id": "BD-70", "status": "closed"}\n')
    told = completion(tmp_path / "tree", "report", own_home)["systemMessage"]
    assert "BD-70 is" not in told


def test_finished_work_and_exempt_agents_are_let_go(unfinished: Path, own_home: Path) -> None:
    (unfinished / ".beads" / "issues.jsonl").write_text('{"id": "BD-7", "status": "closed"}\n')
    git("add", ".", cwd=unfinished)
    git("commit", "-q", "-m", "done", cwd=unfinished)
    git("push", "-q", "-u", "origin", "HEAD", cwd=unfinished)
    assert completion(unfinished, "block", own_home) == {}
    (unfinished / "left.py").write_text("y")
    assert completion(unfinished, "block", own_home)
    raw = event(unfinished, "SubagentStop", agent_type="worker-supervisor")
    assert hook(raw, "claude-code", "check-completion") == ""
