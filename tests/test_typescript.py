"""The clients of the TypeScript SDK, the current one and the one before, call all seven tools."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import npm
from commonplace.server.access_tokens import Tokens
from commonplace.where.home import Home
from serving import WORDS_ONLY, served

SOURCE = Path(__file__).parent / "typescript"
SDKS = ("@modelcontextprotocol/client", "@modelcontextprotocol/sdk")
SEVEN = {
    "search_memory": "kom.memory.v1.search_memory",
    "upsert_memory": "kom.memory.v1.upsert_memory",
    "recall_context": "kom.memory.v1.recall_context",
    "save_context": "kom.memory.v1.save_context",
    "project_snapshot": "kom.meta.v1.project_snapshot",
    "export_encrypted": "kom.local.v1.backup.export_encrypted",
    "import_encrypted": "kom.local.v1.backup.import_encrypted",
}
# As §6 of the client architecture calls them.
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("upsert_memory", {
        "nodes": [
            {"id": "skill.cpp.templates.sfinae", "type": "concept", "label": "SFINAE",
             "payload": {"definition": "Substitution failure is not an error."},
             "links": [{"to": "pattern.cpp.enable_if", "rel": "uses", "w": 0.7}]},
            {"id": "pattern.cpp.enable_if", "type": "pattern", "label": "Enable-if idiom"},
        ],
        "merge": True,
    }),
    ("search_memory", {
        "query": "C++ template substitution failure handling SFINAE",
        "k": 32, "filters": {"types": ["concept", "skill", "pattern"]},
    }),
    ("save_context", {
        "task_id": "task-7",
        "frames": [
            {"kind": "knowledge", "format": "hdod.json", "data": {"skill": {"cpp": {}}}},
            {"kind": "episodic", "format": "markdown", "data": "# Steps\n- Compiled\n- Tests failed"},
        ],
    }),
    ("recall_context", {"scope": "task", "id": "task-7", "k": 32}),
    ("project_snapshot", {"include_memory": True}),
    ("export_encrypted", {"selection": "domain:cpp", "out": "packs/cpp-core.kpack"}),
    ("import_encrypted", {"pack": "packs/cpp-core.kpack"}),
]  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home that answers by words alone, and encrypts for a key: a passphrase takes seconds."""
    import pyrage

    identity = pyrage.x25519.Identity.generate()
    (tmp_path / "key").write_text(str(identity))
    home = tmp_path / "home"
    home.mkdir()
    keys = f"recipients = ['{identity.to_public()}']\nidentity_file = '{tmp_path / 'key'}'\n"
    (home / "config.toml").write_text(f"{WORDS_ONLY}[packs]\n{keys}[tools]\nsets = ['kom']\n")
    return home


def run(plan: dict[str, Any], home: Path) -> dict[str, Any]:
    folder = npm.locked(SOURCE)
    script = folder / f"call_tools-{os.getpid()}.mjs"  # It finds packages beside itself.
    shutil.copyfile(SOURCE / "call_tools.mjs", script)
    try:
        done = subprocess.run(
            ["node", str(script), json.dumps(plan)],
            capture_output=True,
            text=True,
            encoding="utf-8",
            env={**os.environ, "COMMONPLACE_HOME": str(home)},
            timeout=120,
            check=False,
        )
    finally:
        script.unlink()
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def check(answer: dict[str, Any], home: Path) -> None:
    tools = {tool["name"]: tool for tool in answer["tools"]}
    assert {name: next(iter(tool["_meta"].values())) for name, tool in tools.items()} == SEVEN
    for result in answer["results"]:
        assert not result.get("isError"), result["content"]
        assert result["content"][0]["text"]
    results = [result["structuredContent"] for result in answer["results"]]
    upserted, found, saved, recalled, project, exported, imported = results
    assert upserted["created"] == ["skill.cpp.templates.sfinae", "pattern.cpp.enable_if"]
    assert found["nodes"][0]["id"] == "skill.cpp.templates.sfinae"
    assert found["nodes"][0]["score"] > 0
    assert saved["task_id"] == "task-7"
    assert [frame["kind"] for frame in recalled["contexts"][0]["frames"]] == [
        "knowledge",
        "episodic",
    ]
    assert project["snapshot"]["lines"] == 3
    assert exported["pack"]["domain_tags"] == ["cpp"]
    assert (home / "packs" / "cpp-core.kpack").is_file()
    assert (imported["added"], imported["pack"]["counts"]["records"]) == (0, 2)


@pytest.mark.parametrize("dotted", [False, True], ids=["short", "dotted"])
@pytest.mark.parametrize("sdk", SDKS)
def test_over_stdio(home: Path, sdk: str, *, dotted: bool) -> None:
    calls = [(SEVEN[name] if dotted else name, arguments) for name, arguments in CALLS]
    plan = {
        "sdk": sdk,
        "command": sys.executable,
        "args": ["-m", "commonplace", "mcp"],
        "calls": calls,
    }
    check(run(plan, home), home)


@pytest.mark.parametrize("sdk", SDKS)
def test_over_http(home: Path, sdk: str) -> None:
    _token, text = Tokens(Home(home)).add("ada", ["admin"], "2026-11-16T00:00:00Z")
    with served(home) as server:
        plan = {"sdk": sdk, "url": f"{server.address}/mcp", "token": text, "calls": CALLS}
        check(run(plan, home), home)
