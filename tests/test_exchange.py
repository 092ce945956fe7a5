"""Import and export: every format is read, nothing is imported twice, an export can be imported again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace import frontmatter
from commonplace.cli import main
from commonplace.errors import FolderRefused, FormatUnknown, UsageError
from commonplace.exchange import files, normalize
from commonplace.exchange.exporter import export_layout
from commonplace.exchange.formats import FORMATS, LAYOUTS, loki
from commonplace.exchange.importer import Report, import_files
from commonplace.exchange.round_trip import EXTRA
from commonplace.memory import Memory
from commonplace.records import KINDS, keyed_id
from conftest import ROOT, SLOW_LAW

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DATA = ROOT / "tests" / "data" / "exchange"
# Read here, before the tests' own environment hides it.
LOGS = Path(
    os.environ.get("COMMONPLACE_AGENT_LOGS") or ROOT.parent / "shared" / "data" / "agent-logs"
)


def records_of(memory: Memory) -> dict[str, dict[str, Any]]:
    return {record.id: record.fields for record in memory.records(superseded=True)}


def log_bytes(home: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((home / "log").glob("*.jsonl"))}


def lines_file(path: Path, *entries: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries), "utf-8")
    return path


def lesson(text: str, **more: Any) -> dict[str, Any]:
    return {
        "kind": "lesson",
        "timestamp": "2026-01-01T00:00:00Z",
        "event_type": "learned",
        "lesson": text,
        **more,
    }


# --- Every format -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_is_recognised_and_named_formats_read_the_same(
    name: str, tmp_path: Path
) -> None:
    with Memory.open(tmp_path / "a") as recognising, Memory.open(tmp_path / "b") as named_format:
        found = import_files(recognising, DATA / name)
        named = import_files(named_format, DATA / name, format_name=name)

        assert set(found.formats) == {name}
        assert found.records + found.notes + found.skills > 0
        assert (named.kinds, named.notes, named.skills) == (found.kinds, found.notes, found.skills)
        assert records_of(named_format) == records_of(recognising)


@pytest.mark.parametrize("name", FORMATS)
def test_importing_twice_adds_nothing_not_a_byte(name: str, memory: Memory) -> None:
    first = import_files(memory, DATA / name)
    before = log_bytes(memory.home.path)
    again = import_files(memory, DATA / name)

    assert (again.records, again.notes, again.skills, again.withdrawn) == (0, 0, 0, 0)
    assert again.unchanged >= len(records_of(memory)) + first.notes + first.skills
    assert log_bytes(memory.home.path) == before
    assert (again.unread, again.skipped) == (first.unread, first.skipped)


@pytest.mark.parametrize("name", FORMATS)
def test_a_dry_run_counts_the_same_and_writes_nothing(name: str, memory: Memory) -> None:
    tried = import_files(memory, DATA / name, dry_run=True)

    assert not memory.home.path.exists()

    done = import_files(memory, DATA / name)
    tried.dry_run = False
    assert tried == done


def test_a_folder_may_hold_several_formats(memory: Memory) -> None:
    report = import_files(memory, DATA)

    assert set(report.formats) == set(FORMATS)


def test_imported_records_name_their_origin_and_no_agent(
    memory: Memory,
) -> None:
    import_files(memory, DATA)

    for fields in records_of(memory).values():
        assert fields["meta"]["origin"].startswith("import:"), fields
        assert fields["meta"]["file"]
        assert fields["agent_id"] != memory.agent_id


def test_unreadable_lines_are_reported_by_file_and_line(memory: Memory) -> None:
    report = import_files(memory, DATA)

    places = {(path, line) for path, line, _reason in report.unread}
    assert {
        ("agent-knowledge/agent-knowledge/logs/kitchen.jsonl", 4),
        ("agent-knowledge/agent-knowledge/logs/kitchen.jsonl", 5),
        ("beads/.beads/issues.jsonl", 4),
        ("mulch/.mulch/expertise/baking.jsonl", 9),
        ("jsonl/records.jsonl", 2),
        ("mcp-memory/memory.jsonl", 5),
        ("loki/.loki/memory/ledgers/broken.json", 0),
        ("loki/.loki/memory/semantic/patterns.json", 0),
    } <= places
    assert report.unread_count == len(report.unread)


def test_seed_000_logs_become_lessons_of_their_repository(memory: Memory) -> None:
    import_files(memory, DATA / "agent-knowledge")
    found = {fields["lesson"]: fields for fields in records_of(memory).values()}

    yeast = found["check the date on the yeast before you knead"]
    assert (yeast["repo"], yeast["agent_id"], yeast["success_rate"]) == (
        "kitchen",
        "cook-1",
        "9/10",
    )
    flour = found["weigh flour, never scoop it"]
    assert flour["timestamp"] == "2025-11-02T08:00:00Z"
    assert flour["tags"] == ["flour", "scales"]
    assert (flour["event_type"], flour["meta"]["event_type"]) == ("learned", "insight")
    assert flour["meta"]["unfit"]["success_rate"] == "most of the time"
    assert found["rest the batter for half an hour"]["repo"] == "kitchen"
    assert memory.repos()[0]["repo"] == "kitchen"


def test_seed_003_entries_become_spoken_lessons_and_the_latest_of_a_key_wins(
    memory: Memory,
) -> None:
    import_files(memory, DATA / "beads" / ".beads" / "memory")
    found = {fields["meta"]["key"]: fields for fields in records_of(memory).values()}

    oven = found["learned-the-oven-lies"]
    assert oven["id"] == keyed_id("learned-the-oven-lies", oven["repo"])
    assert oven["lesson"].endswith("on the left side only.")
    assert (oven["kind"], oven["event_type"]) == ("lesson", "learned")
    assert (oven["meta"]["source"], oven["meta"]["bead"]) == ("supervisor", "BK-009")
    assert oven["meta"]["key"] == "learned-the-oven-lies"
    assert oven["timestamp"] == "2024-01-28T16:40:00Z"
    assert len(memory.history("learned-the-oven-lies")) == 2
    assert set(found) == {"learned-the-oven-lies", "learned-salt-late"}


def test_issues_keep_their_ids_times_labels_and_links(memory: Memory) -> None:
    import_files(memory, DATA / "beads" / ".beads" / "issues.jsonl")
    found = records_of(memory)

    assert set(found) == {"bk-1", "bk-1.1"}
    assert found["bk-1"]["timestamp"] == "2026-01-03T03:04:05Z"
    assert found["bk-1"]["tags"] == ["oven"]
    assert found["bk-1"]["payload"]["close_reason"] == "bought"
    assert found["bk-1.1"]["links"] == [
        {"to": "bk-1", "rel": "elaborates", "as": "parent-child"},
        {"to": "bk-1", "rel": "uses", "as": "blocks"},
    ]
    assert found["bk-1.1"]["agent_id"] == "ben"


def test_mulch_types_become_the_kinds_they_are(memory: Memory) -> None:
    import_files(memory, DATA / "mulch")
    found = records_of(memory)

    assert found["mx-a00001"]["kind"] == "lesson"
    assert found["mx-a00001"]["success_rate"] == "1/2"
    assert found["mx-a00001"]["meta"]["bead"] == "bk-1"
    assert found["mx-a00002"]["kind"] == "pattern"
    assert found["mx-a00002"]["files"] == ["recipes/cake.md"]
    assert found["mx-a00003"]["prevention"] == "Let the cake cool first."
    assert found["mx-a00004"]["links"] == [{"to": "mx-a00001", "rel": "supersedes"}]
    assert (found["mx-a00004"]["label"], found["mx-a00004"]["payload"]) == (
        "Use butter",
        "Oil makes it heavy.",
    )
    assert found["mx-a00006"]["payload"] == {"verdict": "too sweet"}
    assert all("baking" in fields["tags"] for fields in found.values())


def test_nameless_patterns_that_share_an_id_are_all_kept(memory: Memory) -> None:
    import_files(memory, DATA / "mulch")

    patterns = {fields.get("pattern") for fields in records_of(memory).values()}
    assert {"The first nameless thing.", "The second nameless thing."} <= patterns


def test_lessons_of_compound_agent_keep_ids_links_and_what_was_withdrawn(memory: Memory) -> None:
    report = import_files(memory, DATA / "jsonl")
    found = records_of(memory)

    assert found["La2"]["context"] == "The soup was watery"
    assert found["La2"]["event_type"] == "error"
    assert found["La2"]["correct_approach"] == "simmer"
    assert found["La2"]["links"] == [{"to": "La1", "rel": "supersedes"}]
    assert found["La1"]["context"] == ""
    assert report.withdrawn == 1
    assert "La3" not in found
    assert any(record.kind == "forget" for record in memory.history("La3"))


def test_a_graph_becomes_nodes_and_links(memory: Memory) -> None:
    import_files(memory, DATA / "mcp-memory")
    found = {
        fields.get("label") or fields.get("as") or fields["rel"]: fields
        for fields in records_of(memory).values()
    }

    starter = found["Sourdough Starter"]
    assert (starter["kind"], starter["type"], starter["payload"]) == (
        "concept",
        "culture",
        ["Feed it daily", "Keep it at 24 °C"],
    )
    assert (found["feeds"]["of"], found["feeds"]["to"]) == (found["Ana"]["id"], starter["id"])
    assert (found["feeds"]["rel"], found["depends_on"]["rel"]) == ("related_to", "uses")


def test_memories_of_serena_refer_to_one_another(memory: Memory) -> None:
    import_files(memory, DATA / "serena")
    found = {fields["meta"]["name"]: fields for fields in records_of(memory).values()}

    assert found["style"]["label"] == "House Style"
    assert found["style"]["links"] == [{"to": found["tools/scales"]["id"], "rel": "related_to"}]
    assert found["tools/scales"]["meta"]["dated"] == "file"


def test_topics_of_claude_code_become_lessons_and_facts_and_the_index_says_nothing(
    memory: Memory,
) -> None:
    report = import_files(memory, DATA / "claude-memory")
    found = {fields["meta"]["name"]: fields for fields in records_of(memory).values()}

    oven = found["The oven runs hot"]
    assert (oven["kind"], oven["context"]) == ("lesson", "lower every recipe by ten degrees")
    assert oven["timestamp"] == "2026-05-06T07:08:09Z"
    assert oven["links"] == [{"to": found["who"]["id"], "rel": "related_to"}]
    assert (found["who"]["kind"], found["who"]["type"]) == ("fact", "user")
    assert [path.rpartition("/")[2] for path, *_ in report.skipped] == ["MEMORY.md"]


def test_notes_of_basic_memory_keep_observations_and_relations(memory: Memory) -> None:
    import_files(memory, DATA / "basic-memory")
    found = {fields["label"]: fields for fields in records_of(memory).values()}

    coffee = found["Coffee Brewing"]
    assert coffee["tags"] == ["coffee", "slow, patient", "pour-over"]
    assert coffee["timestamp"] == "2026-03-04T00:00:00Z"
    assert coffee["links"][0] == {
        "to": found["Grinding Beans"]["id"],
        "rel": "uses",
        "as": "requires",
    }
    assert coffee["links"][1]["as"] == "pairs with"
    assert "buy filters" in coffee["payload"]


def test_a_solution_keeps_its_symptoms_and_a_readme_is_none(memory: Memory) -> None:
    report = import_files(memory, DATA / "solutions")
    (found,) = records_of(memory).values()

    assert found["label"] == "Uneven browning: turn the tray"
    assert found["symptoms"] == ["Left side dark, right side pale", "Edges dry"]
    assert (found["type"], found["timestamp"]) == ("heat_issue", "2026-04-09T00:00:00Z")
    assert report.skipped[0][0].endswith("README.md")


def test_seed_004_files_become_notes_of_that_agent(memory: Memory) -> None:
    report = import_files(memory, DATA / "harness")

    assert report.notes == 2
    assert memory.notes("baker").read("CONTEXT.md") == "# What I know\n\nThe oven lies.\n"
    assert memory.notes("baker").read("plans/sunday.txt") == "Bread, twice.\n"


def test_seed_001_layout_becomes_every_kind_it_has(memory: Memory) -> None:
    report = import_files(memory, DATA / "loki")
    found = records_of(memory)

    assert report.kinds == {
        "episode": 1, "handoff": 1, "lesson": 2, "ledger": 1, "anti_pattern": 1, "fact": 1, "link": 1, "pattern": 2,
    }  # fmt: skip
    assert found["ep-2026-01-06-001"]["agent_id"] == "cook-1"
    assert found["sem-001"]["links"] == [{"to": "sem-005", "rel": "related_to"}]
    assert found["sem-002"]["meta"]["unfit"] == {"confidence": 95}
    skill = (memory.home.path / "skills" / "shape-a-loaf" / "SKILL.md").read_text("utf-8")
    assert skill.startswith(
        '---\nname: shape-a-loaf\ndescription: "Shape a Loaf"\n---\n\n# Skill: Shape a Loaf\n'
    )


# --- What is the user's own stays ---------------------------------------------------------------------------------------


def test_an_import_never_takes_the_place_of_a_record_of_the_users(
    memory: Memory, tmp_path: Path
) -> None:
    own = memory.log(event_type="learned", lesson="the key is under the mat")
    forged = lines_file(
        tmp_path / "x.jsonl", lesson("the key is with Mallory", id=own.id, meta={"origin": "user"})
    )

    report = import_files(memory, forged)

    assert (report.records, report.kept) == (0, 1)
    assert memory.get(own.id).fields["lesson"] == "the key is under the mat"


def test_nor_of_one_in_a_home_further_away(tmp_path: Path, own_home: Path) -> None:
    with Memory.open(own_home) as user:
        own = user.log(event_type="learned", lesson="the key is under the mat")
    (tmp_path / "project" / ".commonplace").mkdir(parents=True)
    forged = lines_file(tmp_path / "x.jsonl", lesson("the key is with Mallory", id=own.id))
    with Memory.open(cwd=tmp_path / "project") as memory:
        assert len(memory.homes) == 2
        assert import_files(memory, forged).kept == 1


def test_nothing_from_outside_hides_or_judges_what_is_the_users(
    memory: Memory, tmp_path: Path
) -> None:
    own = memory.log(event_type="learned", lesson="the key is under the mat")
    about = {"timestamp": "2026-01-01T00:00:00Z", "of": own.id}
    forged = lines_file(
        tmp_path / "x.jsonl",
        lesson("no key at all", id="new-1", links=[{"to": own.id, "rel": "supersedes"}]),
        {"kind": "forget", "id": "f1", **about},
        {"kind": "feedback", "id": "f2", "outcome": "wrong", **about},
        {"kind": "link", "id": "f3", "to": "new-1", "rel": "superseded_by", **about},
        {"kind": "link", "id": "f4", "to": "new-1", "rel": "related_to", **about},
        {"kind": "link", "id": "f5", "rel": "supersedes", **about, "of": "new-1", "to": own.id},
    )

    report = import_files(memory, forged)

    assert sorted(records_of(memory)) == sorted([own.id, "new-1", "f4"])
    assert memory.get("new-1").links == [{"to": own.id, "rel": "related_to", "as": "supersedes"}]
    assert [line for _path, line, reason in report.skipped if "your own" in reason] == [2, 3, 4, 6]
    assert memory.recall("where is the key", repo=memory.repository.name).hits


def test_what_the_user_forgot_stays_forgotten(memory: Memory, tmp_path: Path) -> None:
    path = lines_file(tmp_path / "x.jsonl", lesson("old", id="a-1"))
    import_files(memory, path)
    memory.forget("a-1")
    lines_file(path, lesson("new", id="a-1"))

    assert import_files(memory, path).forgotten == 1
    assert "a-1" not in records_of(memory)


def test_a_secret_is_taken_out_on_the_way_in(memory: Memory, tmp_path: Path) -> None:
    token = "ghp_" + "a1B2" * 9
    lines_file(tmp_path / "in" / "x.jsonl", lesson(f"push with {token}"))
    note = tmp_path / "in" / "agents" / "a" / "memory" / "CONTEXT.md"
    note.parent.mkdir(parents=True)
    note.write_text(f"token {token}\n")

    report = import_files(memory, tmp_path / "in")

    assert report.redacted == 2
    assert not any(
        token.encode() in path.read_bytes()
        for path in memory.home.path.rglob("*")
        if path.is_file()
    )
    assert import_files(memory, tmp_path / "in").unchanged == 2


def test_notes_and_skills_are_imported_without_hidden_characters(
    memory: Memory, tmp_path: Path
) -> None:
    for name in ("loki", "harness"):
        shutil.copytree(DATA / name, tmp_path / name)
    for path in [*(tmp_path / "loki").rglob("*.md"), *(tmp_path / "harness").rglob("*.md")]:
        path.write_text(path.read_text("utf-8") + "\nthe\u200b \u202eend\U000e0041\n", "utf-8")

    for _again in range(2):
        reports = [import_files(memory, tmp_path / name) for name in ("loki", "harness")]

    written = [path.read_text("utf-8") for path in memory.home.path.rglob("*.md")]
    assert any("the end" in text for text in written)
    assert not [text for text in written if set(text) & set("\u200b\u202e\U000e0041")]
    assert [report.notes for report in reports] == [0, 0]


def test_a_note_or_skill_that_is_there_and_differs_stays(memory: Memory) -> None:
    memory.notes("baker").write("CONTEXT.md", "mine")
    skill = memory.home.path / "skills" / "shape-a-loaf" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("mine")

    import_files(memory, DATA / "loki")
    report = import_files(memory, DATA / "harness")

    assert memory.notes("baker").read("CONTEXT.md") == "mine"
    assert skill.read_text() == "mine"
    assert any("stays" in reason for _path, _line, reason in report.skipped)


@pytest.mark.skipif(os.name != "posix", reason="links are POSIX's")
@pytest.mark.parametrize("linked", ["file", "folder", "file to nothing"])
def test_a_skill_behind_a_link_is_left_alone(memory: Memory, tmp_path: Path, linked: str) -> None:
    """A home in a repository could lead an import to any file of the user's."""
    target = tmp_path / "elsewhere"
    target.mkdir()
    if linked != "file to nothing":
        (target / "SKILL.md").write_text("theirs")
    folder = memory.home.path / "skills" / "shape-a-loaf"
    folder.parent.mkdir(parents=True)
    if linked == "folder":
        folder.symlink_to(target, target_is_directory=True)
    else:
        folder.mkdir()
        (folder / "SKILL.md").symlink_to(target / "SKILL.md")

    report = import_files(memory, DATA / "loki")

    assert [path.read_text() for path in target.iterdir()] == (
        [] if linked == "file to nothing" else ["theirs"]
    )
    assert any("symbolic link" in reason for _path, _line, reason in report.unread)
    assert report.skills == 0


# --- Versions ----------------------------------------------------------------------------------------------------------


def versions() -> st.SearchStrategy[list[list[tuple[str, str]]]]:
    """What another system's file held at each import: ids with a text each, or none where one was withdrawn."""
    entry = st.tuples(
        st.sampled_from(["a-1", "a-2"]), st.sampled_from(["red", "blue", "green", ""])
    )
    return st.lists(st.lists(entry, max_size=5), min_size=1, max_size=4)


@given(versions())
def test_after_an_import_the_last_word_of_the_other_system_holds(
    tmp_path: Path, snapshots: list[list[tuple[str, str]]]
) -> None:
    shutil.rmtree(tmp_path / "home", ignore_errors=True)
    path = tmp_path / "x.jsonl"
    expected: dict[str, str] = {}
    with Memory.open(tmp_path / "home") as memory:
        for entries in snapshots:
            lines_file(path, {"kind": "none"}, *(insight(ident, text) for ident, text in entries))
            expected |= dict(entries)
            import_files(memory, path, format_name="jsonl")
            before = log_bytes(memory.home.path)
            import_files(memory, path, format_name="jsonl")

            assert log_bytes(memory.home.path) == before
            held = {
                ident: str(fields["lesson"])
                for ident, fields in records_of(memory).items()
                if "lesson" in fields
            }
            assert held == {ident: text for ident, text in expected.items() if text}


def insight(ident: str, text: str) -> dict[str, Any]:
    entry = {
        "id": ident,
        "trigger": "",
        "insight": text or "old",
        "created": "2026-01-01T00:00:00Z",
    }
    return entry if text else {**entry, "invalidatedAt": "2026-02-01T00:00:00Z"}


def test_a_copy_of_a_file_is_no_newer_than_the_file(memory: Memory, tmp_path: Path) -> None:
    shutil.copytree(DATA / "serena", tmp_path / "copy")
    import_files(memory, tmp_path / "copy")
    before = log_bytes(memory.home.path)
    for path in (tmp_path / "copy").rglob("*.md"):
        os.utime(path, (1_000_000_000, 1_000_000_000))

    assert import_files(memory, tmp_path / "copy").records == 0
    assert log_bytes(memory.home.path) == before


def test_a_file_has_the_same_id_however_far_above_it_the_import_began(memory: Memory) -> None:
    import_files(memory, DATA / "solutions")
    import_files(memory, DATA / "solutions" / "docs" / "solutions" / "oven" / "uneven-browning.md")

    assert len(records_of(memory)) == 1


# --- Bad input -----------------------------------------------------------------------------------------------------------


def test_one_bad_file_never_stops_the_rest(memory: Memory, tmp_path: Path) -> None:
    folder = tmp_path / "in" / ".serena" / "memories"
    folder.mkdir(parents=True)
    (folder / "good.md").write_text("fine")
    (folder / "latin.md").write_bytes("caf\xe9".encode("latin-1"))
    (folder / "binary.md").write_bytes(b"\x00\x01\x02" * 100)
    (folder / "late-nul.md").write_bytes(b"a" * files.HEAD_BYTES + b"\x00")
    (folder / "huge.md").write_bytes(b"a" * (files.WHOLE_BYTES_MAX + 1))
    (folder / "long.md").write_bytes(b"a" * (2 << 20))
    (folder / "empty.md").touch()
    (folder / "loop").symlink_to(folder, target_is_directory=True)
    (folder / "outside.md").symlink_to(ROOT / "README.md")
    (folder / "nowhere.md").symlink_to(folder / "gone.md")
    if hasattr(os, "mkfifo"):
        os.mkfifo(folder / "pipe.md")

    report = import_files(memory, tmp_path / "in")

    assert len(records_of(memory)) == 1
    reasons = {Path(path).name: reason for path, _line, reason in (*report.unread, *report.skipped)}
    assert reasons["latin.md"] == "is not valid UTF-8"
    assert reasons["binary.md"] == reasons["late-nul.md"] == "is binary"
    assert "longer than" in reasons["huge.md"]
    assert "over the limit" in reasons["long.md"]
    assert all("symbolic link" in reasons[name] for name in ("loop", "outside.md", "nowhere.md"))
    assert not hasattr(os, "mkfifo") or reasons["pipe.md"] == "is not a plain file"


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root can read every file"
)
def test_files_without_read_permission_are_reported(memory: Memory, tmp_path: Path) -> None:
    folder = tmp_path / "in" / "serena"
    folder.mkdir(parents=True)
    (folder / "good.md").write_text("fine")
    (folder / "closed.md").write_text("secret")
    (folder / "closed.md").chmod(0)
    (folder / "inner").mkdir(mode=0)

    report = import_files(memory, tmp_path / "in")

    assert report.records == 1
    assert {Path(path).name for path, *_ in report.unread} == {"closed.md", "inner"}


def test_invalid_lines_are_reported_one_by_one(memory: Memory, tmp_path: Path) -> None:
    path = tmp_path / "knowledge.jsonl"
    good = json.dumps(
        {"key": "learned-x", "type": "learned", "content": "x", "ts": 1_700_000_000, "bead": ""}
    )
    bad = [
        b"not json", b"[1]", b"{}", b'{"content": "\\ud800", "key": "k"}', b"\xff\xfe", b'{"content": 1e999}',
        b'{"content": ' + b"[" * 5000 + b"]" * 5000 + b"}", b'{"key": "k", "content": "nul \\u0000"}',
    ]  # fmt: skip
    path.write_bytes(b"\xef\xbb\xbf" + b"\n".join([good.encode(), b"", *bad, good.encode()]))

    report = import_files(memory, path)

    assert report.records == 1
    assert [line for _path, line, _reason in report.unread] == list(range(3, 3 + len(bad)))


def test_odd_values_fit_or_are_set_aside(memory: Memory, tmp_path: Path) -> None:
    entries = [
        {
            "key": "ключ с пробелом",
            "type": "learned",
            "content": "an id of ours it cannot be",
            "ts": "1706360000",
        },
        {
            "key": "learned-a",
            "type": 7,
            "content": "no such type",
            "ts": -5,
            "tags": "a, b,,#c",
            "bead": None,
        },
        {
            "key": 12,
            "type": "learned",
            "content": "x" * 50,
            "ts": 1_706_360_000_000,
            "tags": {"no": "list"},
        },
    ]
    report = import_files(memory, lines_file(tmp_path / "knowledge.jsonl", *entries))

    assert (report.records, report.unread_count) == (3, 0)
    found = list(records_of(memory).values())
    assert found[0]["timestamp"] == found[2]["timestamp"] == "2024-01-27T12:53:20Z"
    assert found[1]["tags"] == ["a", "b", "c"]
    assert found[1]["meta"]["dated"] == "file"
    assert found[2]["id"] == keyed_id("12", found[2]["repo"])


def test_a_long_file_is_read_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    with path.open("w") as stream:
        for number in range(20_000):
            stream.write(json.dumps(lesson("x" * 1000, id=f"a-{number}")) + "\n")
    tracemalloc.start()
    try:
        assert sum(1 for _ in files.read_json_lines(path)) == 20_000
        assert tracemalloc.get_traced_memory()[1] < path.stat().st_size / 4
    finally:
        tracemalloc.stop()


def test_nothing_known_is_an_error_with_the_choices(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.md").write_text("# just a text")
    for path in (tmp_path / "empty", tmp_path / "notes.md"):
        with pytest.raises(FormatUnknown, match="format"):
            import_files(memory, path)
    with pytest.raises(UsageError):
        import_files(memory, tmp_path / "gone")
    with pytest.raises(UsageError):
        import_files(memory, tmp_path / "notes.md", format_name="papyrus")


@given(st.text(max_size=300))
def test_front_matter_never_fails_and_loses_no_body(text: str) -> None:
    front, body = frontmatter.split(text)
    assert front is not None or body == text
    assert frontmatter.split(f"---\ntitle: a\n---\n{text}")[0] is not None


@given(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.integers())
    )
)
def test_a_time_is_one_of_ours_or_none(value: object) -> None:
    found = normalize.parse_time(value)
    assert found is None or found.endswith("Z")


# --- Layouts -----------------------------------------------------------------------------------------------------------


TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=30
).filter(str.strip)
NUMBER = st.one_of(st.integers(0, 10**6), st.floats(0, 1e6, allow_nan=False))
VALUE = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBER, TEXT),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)
IDS = st.from_regex(r"[a-z]{1,8}(-[a-z0-9./]{1,12}){0,2}", fullmatch=True)
TIMES = st.datetimes().map(
    lambda moment: moment.replace(microsecond=moment.microsecond // 1000).isoformat() + "Z"
)
LINKS = st.lists(
    st.fixed_dictionaries(
        {"to": IDS},
        optional={
            "rel": st.sampled_from(["related_to", "supersedes"]),
            "relation": TEXT,
            "w": st.floats(0, 1),
        },
    ),
    max_size=2,
)
MAPPING = st.dictionaries(TEXT, VALUE, max_size=3)
OWN: dict[str, dict[str, Any]] = {
    "lesson": {"context": TEXT, "command": st.text("ab", max_size=5), "success_rate": st.just("3/4")},
    "episode": {"duration_seconds": NUMBER, "context": MAPPING, "action_log": st.lists(MAPPING, max_size=2),
                "outcome": TEXT, "artifacts_produced": st.lists(TEXT, max_size=2), "agent": TEXT},
    "pattern": {"category": TEXT, "conditions": st.lists(TEXT, max_size=2), "confidence": st.floats(0, 1),
                "usage_count": st.integers(0, 9), "last_used": TIMES, "source_episodes": st.lists(IDS, max_size=2)},
    "anti_pattern": {"why": TEXT, "prevention": TEXT, "source": IDS},
    "handoff": {"context": MAPPING},
    "ledger": {"last_checkpoint": TIMES, "tasks_completed": st.integers(0, 9), "state": MAPPING},
    "link": {"w": st.floats(0, 1)},
}  # fmt: skip
NEEDED: dict[str, dict[str, Any]] = {
    "lesson": {"event_type": st.sampled_from(["error", "learned"]), "lesson": TEXT},
    "episode": {"task_id": TEXT},
    "pattern": {"pattern": TEXT},
    "anti_pattern": {"what_fails": TEXT},
    "handoff": {"from_agent": TEXT, "to_agent": TEXT},
    "ledger": {},
    "link": {"of": IDS, "to": IDS, "rel": st.sampled_from(["uses", "elaborates"])},
}
NODE_OWN = {"type": TEXT, "payload": VALUE, "children": MAPPING, "stats": MAPPING}


def records(kinds: tuple[str, ...]) -> st.SearchStrategy[list[dict[str, Any]]]:
    def one(kind: str) -> st.SearchStrategy[dict[str, Any]]:
        needed = {"label": TEXT} if kind in loki.NODES else NEEDED[kind]
        own = NODE_OWN if kind in loki.NODES else OWN[kind]
        common = {
            "tags": st.lists(TEXT, max_size=3),
            "links": LINKS,
            "x-unknown": VALUE,
            "key": TEXT,
            "relation": TEXT,
        }
        meta = st.dictionaries(st.sampled_from(["source", "bead", "key", "type"]), TEXT, max_size=3)
        return st.fixed_dictionaries(
            {"kind": st.just(kind), "id": IDS, "timestamp": TIMES, "agent_id": st.sampled_from(["", "ana", "Ben B."]),
             "repo": st.sampled_from(["kitchen", "garden"]), **needed},
            optional={**common, "meta": meta, **own},
        )  # fmt: skip

    several = st.lists(st.sampled_from(kinds).flatmap(one), max_size=6)
    return several.map(lambda found: list({fields["id"]: fields for fields in found}.values()))


def without_provenance(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of a record without those that an import adds."""
    meta = {
        name: value
        for name, value in (fields.get("meta") or {}).items()
        if name not in ("origin", "file")
    }
    rest = {name: value for name, value in fields.items() if name != "meta"}
    return {**rest, "meta": meta} if meta else rest


@pytest.mark.parametrize("layout", ["agent-knowledge", "beads", "loki"])
@given(data=st.data())
def test_an_exported_layout_imports_to_the_same_records(
    layout: str, tmp_path: Path, data: st.DataObject
) -> None:
    given_records = data.draw(records(LAYOUTS[layout].KINDS_HELD))
    for name in ("first", "second", "out"):
        shutil.rmtree(tmp_path / name, ignore_errors=True)
    with Memory.open(tmp_path / "first") as first, Memory.open(tmp_path / "second") as second:
        first.append(given_records)
        before = log_bytes(first.home.path)
        export_layout(first, layout, tmp_path / "out", superseded=True)
        if given_records:
            report = import_files(second, tmp_path / "out")

            assert (report.unread, set(report.formats)) == ([], {layout})
        assert {
            ident: without_provenance(fields) for ident, fields in records_of(second).items()
        } == {ident: without_provenance(fields) for ident, fields in records_of(first).items()}
        # Where it came from, nothing is new.
        if given_records:
            assert import_files(first, tmp_path / "out").records == 0
        assert log_bytes(first.home.path) == before


@SLOW_LAW
@given(st.dictionaries(st.sampled_from(["CONTEXT.md", "a/b.md", "plan.txt"]), TEXT, max_size=3))
def test_notes_come_back_as_they_were(tmp_path: Path, texts: dict[str, str]) -> None:
    for name in ("first", "second", "out"):
        shutil.rmtree(tmp_path / name, ignore_errors=True)
    with Memory.open(tmp_path / "first") as first, Memory.open(tmp_path / "second") as second:
        for path, text in texts.items():
            first.notes("ana").write(path, text)
        export_layout(first, "harness", tmp_path / "out")
        if texts:
            import_files(second, tmp_path / "out")
        assert {note.path: note.sha256 for note in second.notes("ana").list()} == {
            note.path: note.sha256 for note in first.notes("ana").list()
        }


def test_skills_come_back_as_they_were(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "first") as first, Memory.open(tmp_path / "second") as second:
        import_files(first, DATA / "loki")
        export_layout(first, "loki", tmp_path / "out")
        import_files(second, tmp_path / "out")
        skill = Path("skills") / "shape-a-loaf" / "SKILL.md"
        assert (second.home.path / skill).read_bytes() == (first.home.path / skill).read_bytes()


def test_each_layout_has_the_names_and_fields_of_its_seed(memory: Memory, tmp_path: Path) -> None:
    import_files(memory, DATA)
    for layout in LAYOUTS:
        export_layout(memory, layout, tmp_path / layout)

    names = {
        path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()
    }
    assert {
        "agent-knowledge/agent-knowledge/logs/kitchen.jsonl",
        "beads/.beads/memory/knowledge.jsonl",
        "harness/agents/baker/memory/CONTEXT.md",
        "loki/.loki/memory/episodic/2026-01-06/task-042.json",
        "loki/.loki/memory/episodic/index.json",
        "loki/.loki/memory/semantic/patterns.json",
        "loki/.loki/memory/semantic/anti-patterns.json",
        "loki/.loki/memory/semantic/facts.json",
        "loki/.loki/memory/semantic/links.json",
        "loki/.loki/memory/skills/shape-a-loaf.md",
        "loki/.loki/memory/ledgers/cook-1.json",
        "loki/.loki/memory/handoffs/handoff-001.json",
        "loki/.loki/memory/learnings/2026-01-06.json",
    } <= names
    oven = next(
        entry for entry in entries_of(tmp_path / "beads") if entry["key"] == "learned-the-oven-lies"
    )
    assert list(oven) == ["key", "type", "content", "source", "tags", "ts", "bead", EXTRA]
    assert (oven["source"], oven["bead"], oven["ts"]) == ("supervisor", "BK-009", 1706460000)
    event = next(entries_of(tmp_path / "agent-knowledge"))
    assert list(event) == [
        "timestamp", "agent_id", "repo", "event_type", "context", "command", "lesson", "success_rate", "tags", EXTRA,
    ]  # fmt: skip


def entries_of(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.rglob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            yield json.loads(line)


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_what_is_laid_out_is_for_its_owner_only(memory: Memory, tmp_path: Path) -> None:
    import_files(memory, DATA)
    for layout in LAYOUTS:
        export_layout(memory, layout, tmp_path / "out" / layout)

    modes = {
        path.stat().st_mode & 0o777 for path in (tmp_path / "out").rglob("*") if path.is_file()
    }
    assert modes == {0o600}
    assert {
        path.stat().st_mode & 0o777 for path in (tmp_path / "out").rglob("*") if path.is_dir()
    } == {0o700}


def test_a_layout_says_what_it_has_no_place_for(memory: Memory, tmp_path: Path) -> None:
    import_files(memory, DATA)

    assert export_layout(memory, "beads", tmp_path / "beads").left_out["pattern"] == 6
    assert export_layout(memory, "harness", tmp_path / "harness").left_out["lesson"] > 0
    assert set(export_layout(memory, "loki", tmp_path / "loki").left_out) == {"note"}


def test_two_records_never_share_a_key_of_the_layout(memory: Memory, tmp_path: Path) -> None:
    for text in ("the same sixty characters at the beginning of two different lessons: a", "b"):
        memory.log(event_type="learned", lesson="word " * 20 + text)
    export_layout(memory, "beads", tmp_path / "out")

    assert len({entry["key"] for entry in entries_of(tmp_path / "out")}) == 2


def test_a_hand_that_edits_the_layout_is_heard(memory: Memory, tmp_path: Path) -> None:
    first = memory.log(event_type="learned", lesson="the oven lies", context="baking")
    export_layout(memory, "beads", tmp_path / "out")
    path = tmp_path / "out" / ".beads" / "memory" / "knowledge.jsonl"
    path.write_text(
        path.read_text("utf-8").replace("the oven lies", "the oven tells the truth"), "utf-8"
    )
    with Memory.open(tmp_path / "second") as second:
        import_files(second, tmp_path / "out")

        found = second.get(first.id).fields
        assert (found["lesson"], found["context"]) == ("the oven tells the truth", "baking")


def test_an_export_destroys_nothing_it_did_not_write(memory: Memory, tmp_path: Path) -> None:
    memory.log(event_type="learned", lesson="ours")
    memory.notes("baker").write("CONTEXT.md", "ours")
    for layout in ("beads", "loki", "harness"):
        shutil.copytree(DATA / layout, tmp_path / layout)
    import_files(memory, DATA / "loki")
    before = list(entries_of(tmp_path / "beads" / ".beads" / "memory"))

    for layout in ("beads", "loki", "harness"):
        for _ in range(2):
            export_layout(memory, layout, tmp_path / layout)

    after = list(entries_of(tmp_path / "beads" / ".beads" / "memory"))
    assert after[: len(before)] == before
    assert [entry["content"] for entry in after[len(before) :]].count("ours") == 1
    assert (
        "The oven lies."
        in (tmp_path / "harness" / "agents" / "baker" / "memory" / "CONTEXT.md").read_text()
    )
    ledger = tmp_path / "loki" / ".loki" / "memory" / "ledgers" / "cook-1.json"
    assert EXTRA not in json.loads(ledger.read_text())

    export_layout(memory, "harness", tmp_path / "harness", force=True)
    assert (
        tmp_path / "harness" / "agents" / "baker" / "memory" / "CONTEXT.md"
    ).read_text() == "ours"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_home_takes_no_export(memory: Memory, layout: str) -> None:
    """Its notes and logs have writers, whose locks an export does not know."""
    memory.log(event_type="learned", lesson="ours")

    for folder in (memory.home.path, memory.home.path / "copy"):
        with pytest.raises(FolderRefused, match="in a home"):
            export_layout(memory, layout, folder, force=True)


def test_a_folder_with_other_things_is_left_alone_unless_forced(
    memory: Memory, tmp_path: Path
) -> None:
    memory.log(event_type="learned", lesson="ours")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("years of work")

    with pytest.raises(FolderRefused, match="is not empty"):
        export_layout(memory, "beads", tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["thesis.tex"]

    export_layout(memory, "beads", tmp_path / "out", force=True)
    assert (tmp_path / "out" / "thesis.tex").read_text() == "years of work"
    assert (tmp_path / "out" / ".beads" / "memory" / "knowledge.jsonl").is_file()


def test_an_export_goes_through_no_link_and_over_no_file(memory: Memory, tmp_path: Path) -> None:
    memory.log(event_type="learned", lesson="ours")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out" / ".beads").mkdir(parents=True)
    (tmp_path / "out" / ".beads" / "memory").symlink_to(
        tmp_path / "elsewhere", target_is_directory=True
    )
    (tmp_path / "file").write_text("a file")

    for target in (tmp_path / "out", tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(FolderRefused):
            export_layout(memory, "beads", target)
    assert not any((tmp_path / "elsewhere").iterdir())


def test_names_of_files_are_safe_whatever_a_record_says(memory: Memory, tmp_path: Path) -> None:
    for number, task in enumerate(
        ("../../escape", "con", "index", "a/b", "ähm", "x" * 300, "Task", "task")
    ):
        memory.log(
            kind="episode", id=f"ep-{number}", task_id=task, timestamp="2026-01-01T00:00:00Z"
        )
    export_layout(memory, "loki", tmp_path / "out")
    with Memory.open(tmp_path / "second") as second:
        assert import_files(second, tmp_path / "out").kinds["episode"] == 8
    assert {path.parent.name for path in (tmp_path / "out").rglob("*.json")} == {
        "2026-01-01",
        "episodic",
        "metrics",
        "efficiency",
        "rewards",
    }


# --- The command line ----------------------------------------------------------------------------------------------------


def test_the_commands_answer_in_words_json_and_exit_codes(
    commonplace: Callable[..., Any], tmp_path: Path, own_home: Path
) -> None:
    clean = commonplace("import", str(DATA / "serena"), "--dry-run")
    assert (clean.returncode, clean.stdout.splitlines()[0]) == (0, "Would import 2 records")
    assert not own_home.exists()

    result = commonplace("import", str(DATA / "mulch"), "--json", "--repo", "kitchen")
    assert result.returncode == 8
    answer = json.loads(result.stdout)
    assert answer["formats"] == {"mulch": 1}
    assert answer["unread"] == [
        {
            "path": ".mulch/expertise/baking.jsonl",
            "line": 9,
            "reason": "has no text (its type is `convention`)",
        },
    ]
    assert [path.name for path in (own_home / "log").glob("*.jsonl")] == ["kitchen.jsonl"]

    assert commonplace("import", str(tmp_path / "home" / "log" / ".gitignore")).returncode == 2
    assert commonplace("import", str(own_home / ".gitignore")).returncode == 21
    assert commonplace("import", str(DATA), "--from", "papyrus").returncode == 2
    assert commonplace("import", str(DATA), "--repo", "a/b").returncode == 3

    done = commonplace("export", "--layout", "beads", "--to", str(tmp_path / "out"), "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["kinds"] == {}, "its one lesson is superseded"
    (tmp_path / "out" / "other").mkdir(parents=True)
    assert commonplace("export", "--layout", "beads").returncode == 2
    assert commonplace("export", "--layout", "papyrus", "--to", str(tmp_path / "o")).returncode == 2
    assert commonplace("export", "--layout", "loki", "--to", str(tmp_path / "out")).returncode == 22
    assert len(commonplace("export").stdout.splitlines()) == 7


# --- Real logs -----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(
    not LOGS.is_dir(), reason="no folder of real logs: name one with COMMONPLACE_AGENT_LOGS"
)
def test_real_logs_are_taken_whole_and_once(memory: Memory) -> None:
    reports: dict[str, Report] = {}
    for name in ("beads", "mulch", "lessons", "serena", "solutions"):
        reports[name] = import_files(memory, LOGS / name)

    assert [report.unread for report in reports.values()] == [[]] * 5
    assert {name: report.lines for name, report in reports.items()} == {
        "beads": 1012,
        "mulch": 1255,
        "lessons": 197,
        "serena": 6,
        "solutions": 91,
    }
    assert {kind for report in reports.values() for kind in report.kinds} <= KINDS.keys()

    before = log_bytes(memory.home.path)
    assert [import_files(memory, LOGS / name).records for name in reports] == [0] * 5
    assert log_bytes(memory.home.path) == before


# --- Nested without end -------------------------------------------------------------------------------


def test_folders_that_are_nested_without_end_are_a_sentence(
    own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "deep"
    root.mkdir()
    (root / "one.jsonl").write_text(json.dumps(
        {"kind": "lesson", "id": "les-1", "event_type": "learned", "lesson": "x",
         "timestamp": "2026-01-01T00:00:00Z", "agent_id": ""}) + "\n")  # fmt: skip
    with monkeypatch.context() as inside:
        inside.chdir(root)
        for _ in range(1500):  # The whole path is longer than the system allows at once.
            Path("d").mkdir()
            os.chdir("d")
    try:
        with Memory.open(own_home, background=False) as memory:
            report = import_files(memory, root)
    finally:
        subprocess.run(["rm", "-rf", str(root)], check=True)  # `shutil` would recurse.

    assert report.records == 1
    ((name, _line, reason),) = report.unread
    assert name.count("d/") == files.FOLDERS_DEEP_MAX
    assert reason == "was not read: it is over 100 folders deep"


@pytest.mark.parametrize(
    "value",
    [" " + "[" * 3000 + "x" + "]" * 3000, "\n" + "".join(" " * n + "a:\n" for n in range(1, 600))],
    ids=["lists", "fields"],
)
def test_front_matter_that_is_nested_without_end_is_kept_as_text(value: str) -> None:
    fields, rest = frontmatter.split(f"---\ntitle: one\nx:{value}\n---\nbody\n")

    assert fields is not None
    assert (fields["title"], rest) == ("one", "body\n")
    depth, inner = 0, fields["x"]
    while not isinstance(inner, str):
        depth, inner = depth + 1, inner[0] if isinstance(inner, list) else inner["a"]
    assert depth <= frontmatter.LEVELS_MAX


def test_import_repos_and_stats_count_the_same_records(
    memory: Memory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lesson = {"event_type": "error", "timestamp": "2026-01-01T00:00:00Z", "repo": "r"}
    lines: list[dict[str, Any]] = [
        {**lesson, "id": "les-1", "lesson": "one"},
        {**lesson, "id": "les-1", "lesson": "one again"},
        {**lesson, "id": "les-2", "lesson": "two"},
        {**lesson, "id": "les-3", "lesson": "3", "links": [{"to": "les-2", "rel": "supersedes"}]},
        {**lesson, "kind": "feedback", "id": "fb-1", "of": "les-1", "outcome": "worked"},
        {**lesson, "id": "les-4", "lesson": "four"},
        {**lesson, "kind": "forget", "id": "forget-1", "of": "les-4"},
        {**lesson, "id": "les-5", "lesson": "five", "repo": "other"},
    ]
    path = tmp_path / "lines.jsonl"
    path.write_text("".join(json.dumps({"kind": "lesson", **line}) + "\n" for line in lines))

    would = import_files(memory, path, dry_run=True)
    report = import_files(memory, path)

    counts = memory.stats()
    assert report.shown == would.shown == counts["kinds"] == {"lesson": 3}
    assert report.records == counts["records"] == sum(row["records"] for row in memory.repos())
    assert report.lines == len(lines)
    assert main(["import", str(path), "--home", str(tmp_path / "another")]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Imported 3 records",
        "  from 1 jsonl file",
        "  + 3 lesson",
        "  + 5 more lines: 1 feedback, 1 forget, 3 older or hidden versions",
    ]


def test_a_page_of_markdown_has_every_record_with_its_rate(
    memory: Memory, capsys: pytest.CaptureFixture[str]
) -> None:
    record = memory.log(
        event_type="error",
        lesson="verify ownership",
        context="npm install fails",
        command="npm  ci",
        success_rate="9/10",
        tags=["npm"],
        timestamp="2026-01-02T00:00:00Z",
        repo="shop",
    )
    memory.feedback(record.id, "worked")
    memory.log(event_type="error", lesson="# a heading\n```\nleft open", repo="shop")
    memory.forget(memory.log(event_type="error", lesson="forgotten", repo="shop").id)

    assert main(["export", "--format", "markdown"]) == 0

    page = capsys.readouterr().out
    assert page.startswith("# Memories\n\n---\n\n**shop**\n")
    assert (
        "**npm install fails**\n\nverify ownership\n\n```sh\nnpm  ci\n```\n\n"
        f"*2026-01-02, error*; worked 10/11; npm; `{record.id}`\n"
    ) in page
    assert "forgotten" not in page
    assert [line for line in page.splitlines() if line.startswith("# ")] == ["# Memories"]
    assert main(["export", "--format", "nonsense"]) == 2
    assert main(["export", "--format", "markdown", "--json"]) == 2
