"""The logs of packs: read like any log, and never written by anything that changes records."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from commonplace.errors import PackRefused
from commonplace.log import pack_logs
from commonplace.log.logs import list_repos
from commonplace.log.pack_logs import Description
from commonplace.maintenance.runner import run
from commonplace.memory import Memory
from commonplace.records import encode
from commonplace.where.repository import ALL_REPOSITORIES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

RAII: dict[str, Any] = {
    "id": "concept.cpp.raii",
    "kind": "node",
    "type": "concept",
    "label": "RAII",
    "payload": {"definition": "A destructor releases what its constructor acquired."},
    "repo": ALL_REPOSITORIES,
    "agent_id": "",
    "timestamp": "2026-01-01T00:00:00Z",
    "meta": {"origin": "pack:cpp-core"},
}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "home", settings={"embedder.kind": "none"}) as opened:
        yield opened


def install(memory: Memory, *records: Mapping[str, Any], name: str = "cpp-core") -> None:
    described = Description(name, {"id": name, "version": "1.0.0"})
    lines = (encode(fields).encode() + b"\n" for fields in records)
    pack_logs.write(memory.home, lambda: described, lines)


def test_the_records_of_a_pack_are_found_from_every_repository(memory: Memory) -> None:
    install(memory, RAII)
    hits = memory.recall("what does a destructor release").hits
    assert [hit.id for hit in hits] == ["concept.cpp.raii"]
    assert memory.get("concept.cpp.raii").meta["origin"] == "pack:cpp-core"


def test_a_pack_is_no_repository(memory: Memory) -> None:
    memory.log(lesson="the staging host is slow", repo="shop")
    install(memory, RAII)
    assert list_repos(memory.home) == ["shop"]
    assert [row["repo"] for row in memory.repos()] == ["shop", ALL_REPOSITORIES]


@pytest.mark.parametrize("change", ["edit", "forget", "feedback", "link", "upsert"])
def test_what_is_said_about_a_record_of_a_pack_goes_to_another_log(
    memory: Memory, change: str
) -> None:
    own = memory.log(lesson="we release files by hand", repo="shop")
    install(memory, RAII)
    before = memory.home.pack_log("cpp-core").read_bytes()
    if change == "edit":
        memory.edit("concept.cpp.raii", label="Scope-bound resources")
        assert memory.get("concept.cpp.raii").fields["label"] == "Scope-bound resources"
    elif change == "forget":
        memory.forget("concept.cpp.raii")
        hits = memory.recall("what does a destructor release").hits
        assert RAII["id"] not in {hit.id for hit in hits}
        memory.restore("concept.cpp.raii")
        assert memory.recall("what does a destructor release").hits
    elif change == "feedback":
        memory.feedback("concept.cpp.raii", "worked")
    elif change == "link":
        memory.link("concept.cpp.raii", "contradicts", own.id)
    else:
        memory.upsert_nodes([{"id": "concept.cpp.raii", "type": "concept", "label": "Ours"}])
        assert memory.get("concept.cpp.raii").fields["label"] == "Ours"
    assert memory.home.pack_log("cpp-core").read_bytes() == before
    assert memory.home.log(ALL_REPOSITORIES).is_file()


def test_maintenance_leaves_packs_alone(memory: Memory) -> None:
    episodes = [
        {
            "id": f"ep-{number}",
            "kind": "episode",
            "task_id": f"task-{number}",
            "context": {"goal": "release a file"},
            "outcome": "success",
            "action_log": [{"action": "write_file", "target": "a.cpp"}],
            "repo": ALL_REPOSITORIES,
            "timestamp": "2020-01-01T00:00:00Z",
            "meta": {"origin": "pack:cpp-core"},
        }
        for number in range(5)
    ]
    install(memory, RAII, *episodes)
    before = memory.home.pack_log("cpp-core").read_bytes()
    memory.settings.override({"rotation.lines_max": 2, "rotation.move": 2})
    run(memory)
    assert memory.home.pack_log("cpp-core").read_bytes() == before


def test_a_snapshot_takes_no_packs_along(memory: Memory) -> None:
    memory.log(lesson="the staging host is slow", repo="shop")
    install(memory, RAII)
    made = memory.create_snapshot("with a pack")
    assert (made.snapshot.logs, made.snapshot.lines) == (1, 1)


def test_a_pack_of_which_no_line_was_replaced_stays_as_it_was(memory: Memory) -> None:
    def broken() -> Iterator[bytes]:
        yield encode(RAII).encode() + b"\n"
        raise KeyboardInterrupt

    install(memory, RAII)
    before = pack_logs.describe(memory.home, "cpp-core")
    described = Description("cpp-core", {"id": "cpp-core", "version": "2.0.0"})
    with pytest.raises(KeyboardInterrupt):
        pack_logs.write(memory.home, lambda: described, broken())
    assert json.loads(memory.home.pack_log("cpp-core").read_bytes())["id"] == "concept.cpp.raii"
    assert pack_logs.describe(memory.home, "cpp-core") == before
    assert not list(memory.home.pack_logs_folder.glob("*.rewriting"))


def test_a_pack_that_was_half_written_has_a_signer_and_no_version(memory: Memory) -> None:
    asked = 0

    def described() -> Description:
        nonlocal asked
        asked += 1
        if asked == 3:
            raise KeyboardInterrupt
        return Description("cpp-core", {"id": "cpp-core", "version": "2.0.0"}, "ed25519:a")

    with pytest.raises(KeyboardInterrupt):
        pack_logs.write(memory.home, described, [encode(RAII).encode() + b"\n"])
    found = pack_logs.describe(memory.home, "cpp-core")
    assert found is not None
    assert (found.version, found.signer) == ("", "ed25519:a")
    stranger = Description("cpp-core", {"id": "cpp-core", "version": "3.0.0"}, "ed25519:b")
    pack_logs.write(memory.home.quarantine, lambda: stranger, [])
    with pytest.raises(PackRefused, match="another key has signed"):
        pack_logs.release(memory.home, "cpp-core")
    assert pack_logs.count(memory.home, "cpp-core") == 1


def test_the_quarantine_is_not_read(memory: Memory) -> None:
    described = Description("cpp-core", {"id": "cpp-core", "version": "1.0.0"})
    quarantine = memory.home.quarantine
    pack_logs.write(quarantine, lambda: described, [encode(RAII).encode() + b"\n"])
    assert not memory.trusts(quarantine)
    assert not memory.recall("what does a destructor release").hits
    memory.log(id="note-1", lesson="an own lesson", repo="shop")
    assert pack_logs.release(memory.home, "cpp-core") == ("cpp-core", 1, 0)
    assert memory.recall("what does a destructor release").hits
    assert pack_logs.names(quarantine) == []


def test_what_the_user_wrote_comes_before_many_nodes_of_a_pack(memory: Memory) -> None:
    text = "a destructor releases what its constructor acquired"
    many = [
        {**RAII, "id": f"concept.cpp.raii-{number}", "label": f"RAII {number}",
         "payload": {"definition": f"{text}, case {number}"}, "timestamp": "2026-10-01T00:00:00Z"}
        for number in range(40)
    ]  # fmt: skip
    memory.log(id="les-own", lesson=text, timestamp="2026-01-01T00:00:00Z")
    install(memory, *many)
    hits = memory.recall(text, limit=3).hits
    assert hits[0].id == "les-own"


def test_the_code_of_a_snippet_is_a_block_in_its_language(memory: Memory) -> None:
    code = "auto guard = lock(m);\nwork();\n"
    payload = {"definition": "Hold a mutex while you work", "code": code, "language": "cpp"}
    install(memory, {**RAII, "payload": payload})
    text = memory.recall("hold a mutex while you work").text
    assert "```cpp\n" in text.replace("   ", "")
    assert "\ncpp" not in text.replace("   ", "")
