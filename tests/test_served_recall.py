"""`commonplace recall` through the home's server: the same output, or the command answers itself."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import commonplace as package
from commonplace import Memory
from commonplace import served as asking
from commonplace.where.home import Home
from commonplace.where.state import SOCKET
from serving import WORDS_ONLY, Served, command, served

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from subprocess import CompletedProcess

LESSONS = [
    ("error", "npm install fails with EACCES: verify ownership of node_modules", ["npm"], "web"),
    ("success", "npm ci is quicker than npm install in CI", ["npm", "ci"], "web"),
    ("pattern", "run database migrations before the deploy, never after", ["db"], "api"),
    ("learned", "the staging database is reset every night", ["db"], "api"),
]
# Every flag at least once, what finds nothing, and what is a mistake.
FLAGS = [
    ["npm install fails", "--all-repos"],
    ["npm install fails", "--repo", "web", "--limit", "1"],
    ["npm install fails", "--repo", "web", "--json"],
    ["npm install fails", "--all-repos", "--explain"],
    ["npm", "--all-repos", "--type", "success", "--tag", "ci", "--tokens", "60"],
    ["database", "--all-repos", "--since", "2026-01-02", "--kind", "lesson", "--no-cutoff"],
    ["database", "--all-repos", "--as-of", "2026-01-03", "--all", "--superseded"],
    ["database", "--all-repos", "--agent", "alice", "--files", "src/db.py"],
    ["quantum chromodynamics"],
    ["--recent", "3", "--all-repos"],
    ["--recent", "3", "--repo", "api", "--json"],
    ["--recent", "2"],
    ["--stats", "--all-repos"],
    ["--stats", "--all-repos", "--type", "success", "--json"],
    ["--stats", "--all-repos", "--as-of", "2020-01-01"],
    ["--stats", "--repo", "web", "--json"],
    ["npm", "--since", "no date"],
    ["npm", "--kind", "sonnet"],
    ["npm", "--repo", "web", "--all-repos"],
    ["   "],
    [],
    ["npm", "--recent", "3"],
    ["npm", "--limit", "0"],
]


@pytest.fixture
def filled(own_home: Path) -> Path:
    with Memory.open(own_home, agent_id="alice") as memory:
        memory.append(
            {
                "event_type": kind,
                "lesson": text,
                "tags": tags,
                "repo": repo,
                "timestamp": f"2026-01-0{number + 1}T12:00:00Z",
            }
            for number, (kind, text, tags, repo) in enumerate(LESSONS)
        )
        memory.notes().write("CONTEXT.md", "alice deploys on Fridays")
    return own_home


@pytest.fixture
def server(filled: Path) -> Iterator[Served]:
    with served(filled) as running:
        yield running


def requests(server: Served) -> int:
    """How many questions of the command the server has answered."""
    page = server.ask("GET", "/metrics", token=server.key).body.decode()
    found = [
        float(line.rpartition(" ")[2])
        for line in page.splitlines()
        if "requests" in line and 'operation="ask"' in line and 'status="200"' in line
    ]
    return int(sum(found))


def recall(*flags: str, home: Path) -> tuple[int, str, str]:
    done = command("recall", *flags, home=home)
    return done.returncode, done.stdout, done.stderr


def test_every_flag_gives_the_same_output_through_the_server_as_without(filled: Path) -> None:
    # Each answer raises the counts of use, which would raise the scores of the next.
    (filled / "config.toml").write_text(f"{WORDS_ONLY}[recall]\npriors = false\n", "utf-8")
    alone = [recall(*flags, home=filled) for flags in FLAGS]
    with served(filled):
        through_server = [recall(*flags, home=filled) for flags in FLAGS]

    assert [without_uses(found) for found in through_server] == [
        without_uses(found) for found in alone
    ]


def without_uses(found: tuple[int, str, str]) -> tuple[int, object, str]:
    code, printed, remarks = found
    try:
        fields = json.loads(printed)
    except ValueError:
        return code, printed, remarks
    hits = fields if isinstance(fields, list) else fields.get("hits", [])
    for hit in hits:
        hit["record"].pop("usage_count")
    return code, fields, remarks


def test_the_command_starts_no_index_of_its_own_when_a_server_answers(
    server: Served, commonplace: Callable[..., CompletedProcess[str]]
) -> None:
    shown = commonplace("recall", "npm", "--all-repos", PYTHONPROFILEIMPORTTIME="1").stderr

    assert "commonplace.served" in shown
    for heavy in ("commonplace.memory", "sqlite3", "tantivy", "numpy", "pathlib"):
        assert heavy not in shown, heavy


def test_a_private_note_is_shown_to_its_agent_alone(
    server: Served, commonplace: Callable[..., CompletedProcess[str]]
) -> None:
    for agent, is_shown in (("alice", True), ("bob", False), ("", False)):
        done = commonplace(
            "recall", "who deploys on Fridays", "--all-repos", COMMONPLACE_AGENT=agent
        )
        assert ("Fridays" in done.stdout) is is_shown, agent


def request(own: Path, **changes: object) -> dict[str, object]:
    return {
        "want": "recent",
        "text": None,
        "count": 3,
        "repo": None,
        "all_repos": True,
        "narrowing": {},
        "version": package.__version__,
        "agent": None,
        "home": None,
        "cwd": str(own.parent),
        "environment": {"HOME": str(own.parent), "COMMONPLACE_HOME": str(own)},
        **changes,
    }


def ask(server: Served, **changes: object) -> int:
    given = request(server.home, **changes)
    return server.ask("POST", "/api/v1/ask", given, server.key).status


def test_the_server_refuses_what_the_command_would_answer_differently(
    server: Served, tmp_path: Path
) -> None:
    nearer = tmp_path / "project" / ".commonplace"
    nearer.mkdir(parents=True)

    assert ask(server) == 200
    assert ask(server, version="0.0.9") == 409
    assert ask(server, home=str(tmp_path / "another")) == 409
    assert ask(server, cwd=str(nearer.parent)) == 409
    assert ask(server, home=str(server.home)) == 200, "the same home alone"
    (server.home / "config.toml").write_text(WORDS_ONLY + "[recall]\nrelevance_min = 0.9\n")
    os.utime(server.home / "config.toml", (1, 1))
    assert ask(server) == 409


def test_only_the_holder_of_the_servers_own_key_may_name_the_agent_that_asks(filled: Path) -> None:
    (filled / "config.toml").write_text(WORDS_ONLY)
    with served(filled) as running:
        assert running.ask("POST", "/api/v1/ask", request(filled)).status == 403
    added = command("token", "add", "bob", "--scopes", "read,write,admin", "--json", home=filled)
    token = json.loads(added.stdout)["token"]
    with served(filled) as running:
        assert running.ask("POST", "/api/v1/ask", request(filled), token).status == 403


def test_without_an_answer_in_time_the_command_answers_itself(
    filled: Path, commonplace: Callable[..., CompletedProcess[str]]
) -> None:
    """A server that ended just now leaves the file; nothing is asked, or nothing comes back."""
    (filled / "config.toml").write_text(WORDS_ONLY)
    state = filled / ".state"
    state.mkdir(exist_ok=True)
    (state / "server.json").write_text(
        json.dumps({"host": "127.0.0.1", "port": 9, "pid": 1, "key": "k", "version": "0"})
    )
    (state / "server.lock").touch()

    assert "EACCES" in commonplace("recall", "npm install", "--all-repos").stdout


def test_the_client_knows_where_the_servers_files_are(tmp_path: Path) -> None:
    """It may not import what knows: that would take longer than the question."""
    home = Home(tmp_path)
    text = Path(asking.__file__).read_text("utf-8")

    assert f"{{state}}/{home.server_file.name}" in text
    assert home.server_file.parent == home.server_socket.parent == home.state_folder
    assert home.server_socket.name == SOCKET
