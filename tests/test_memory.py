"""Memory: the library's face."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import commonplace
from commonplace.errors import DiskFull, IdAmbiguous, RecordInvalid, RecordNotFound
from commonplace.log.append import Appender
from commonplace.memory import Memory
from commonplace.where.home import Home
from conftest import git

if TYPE_CHECKING:
    from pathlib import Path


def logged(memory: Memory, lesson: str = "check ownership first", **more: Any) -> str:
    return memory.log(repo="app", event_type="error", lesson=lesson, **more).id


def test_the_public_face_is_complete() -> None:
    assert commonplace.__all__ == sorted(commonplace.__all__)
    assert all(getattr(commonplace, name) for name in commonplace.__all__)
    with pytest.raises(AttributeError):
        commonplace.Memoir  # noqa: B018


def test_importing_the_package_loads_nothing_a_hook_does_not_need() -> None:
    code = "import sys, commonplace.hooks; print(sorted(n for n in sys.modules if n.startswith('commonplace')))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == str(
        [
            "commonplace",
            "commonplace.hooks",
            "commonplace.served",
            "commonplace.where",
            "commonplace.where.state",
        ]
    )


def test_the_write_path_needs_the_standard_library_only() -> None:
    code = (
        "import sys; before = set(sys.modules); import commonplace.cli.log;"
        "print(sorted({n.partition('.')[0] for n in set(sys.modules) - before} - set(sys.stdlib_module_names)))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "['commonplace']"


def test_a_lesson_is_stored_and_read_back(memory: Memory, own_home: Path) -> None:
    ident = logged(memory, tags=["npm"])

    assert memory.get(ident).tags == ["npm"]
    assert (own_home / "log" / "app.jsonl").is_file()


def test_an_unknown_repo_defaults_to_the_one_here(tmp_path: Path) -> None:
    root = tmp_path / "app"
    root.mkdir()
    git("init", "-q", cwd=root)

    with Memory.open(tmp_path / "home", cwd=root) as memory:
        record = memory.log(event_type="error", lesson="x")

    assert record.repo == memory.repository.name


def test_a_folder_may_be_given_from_where_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "app"
    (root / "src").mkdir(parents=True)
    git("init", "-q", cwd=root)
    monkeypatch.chdir(root / "src")

    assert {Memory.open(cwd=given).repository.root for given in (".", "..", root)} == {root}


def test_the_same_lesson_twice_is_one_record_with_two_versions(memory: Memory) -> None:
    ident = logged(memory, success_rate="1/1")
    assert logged(memory, success_rate="2/2") == ident

    assert [record.id for record in memory.records()] == [ident]
    assert memory.get(ident).fields["success_rate"] == "2/2"
    assert [record.fields["success_rate"] for record in memory.history(ident)] == ["1/1", "2/2"]


def test_a_refused_record_costs_nothing_of_the_others(memory: Memory, own_home: Path) -> None:
    logged(memory)
    before = (own_home / "log" / "app.jsonl").read_bytes()
    good = {"repo": "app", "event_type": "error", "lesson": "good"}

    with pytest.raises(RecordInvalid):
        memory.append([good, {**good, "lesson": ""}])

    assert (own_home / "log" / "app.jsonl").read_bytes() == before


def test_records_read_elsewhere_can_be_appended(memory: Memory, tmp_path: Path) -> None:
    ident = logged(memory, x_custom={"kept": True})

    with Memory.open(tmp_path / "other") as other:
        other.append(memory.records())
        assert other.get(ident) == memory.get(ident)


def test_an_id_may_be_given_by_any_unique_prefix(memory: Memory) -> None:
    first, second = logged(memory, "alpha rule"), logged(memory, "alpha law")

    assert memory.get(first[:-2]).id == first
    with pytest.raises(IdAmbiguous, match="2 records"):
        memory.get("les-alpha")
    with pytest.raises(RecordNotFound):
        memory.get("les-beta")
    assert memory.get(second).id == second


def test_an_id_that_is_a_prefix_of_another_is_still_found(memory: Memory) -> None:
    logged(memory, "one", id="x")
    logged(memory, "two", id="xy")

    assert memory.get("x").fields["lesson"] == "one"


def test_feedback_is_counted_into_the_rate(memory: Memory) -> None:
    ident = logged(memory, success_rate="9/10")
    for outcome in ("worked", "worked", "worked", "failed", "wrong", "stale"):
        memory.feedback(ident, outcome)

    described = memory.describe(ident)

    assert described["success_rate"] == "12/14"
    assert described["feedback"] == {"worked": 3, "failed": 1, "wrong": 1, "stale": 1}


def test_a_superseded_record_says_so_and_its_history_has_the_link(memory: Memory) -> None:
    old, new = logged(memory, "use the old way"), logged(memory, "use the new way")
    link = memory.log(kind="link", of=new, rel="supersedes", to=old, repo="app")

    assert memory.describe(old)["standing"] == "superseded"
    assert "standing" not in memory.describe(new)
    assert [record.id for record in memory.history(old)] == [old, link.id]


def test_feedback_in_a_nearer_home_counts_and_is_in_the_history(tmp_path: Path) -> None:
    root, user = tmp_path / "app", tmp_path / "me"
    (root / ".commonplace").mkdir(parents=True)
    git("init", "-q", cwd=root)
    with Memory.open(user) as mine:
        ident = logged(mine, "the kettle leaks")
    with Memory.open(cwd=root, environment={"COMMONPLACE_HOME": str(user)}) as both:
        given = both.log(kind="feedback", of=ident, outcome="wrong", repo="app")
        (hit,) = both.recall("the kettle leaks", repo=None).hits

        assert (hit.id, hit.rate, both.describe(ident).get("success_rate")) == (ident, None, None)
        assert [record.id for record in both.history(ident)] == [ident, given.id]


def test_the_index_counts_records_as_stats_does(memory: Memory) -> None:
    one, two = logged(memory, "one"), logged(memory, "two")
    memory.feedback(one, "worked")
    memory.forget(two)

    (status,) = memory.engine().status()

    assert status.records == memory.stats()["records"] == 1


def test_counts_pass_the_filters_of_a_query(memory: Memory) -> None:
    logged(memory, "one")
    memory.log(repo="app", event_type="success", lesson="two")

    assert memory.stats(query=memory.query(repo="app", types=["success"]))["records"] == 1


def test_what_is_forgotten_is_gone_from_view_and_kept_in_history(memory: Memory) -> None:
    ident = logged(memory)
    memory.forget(ident[:12], "outdated")

    assert list(memory.records()) == []
    with pytest.raises(RecordNotFound, match="outdated"):
        memory.get(ident)
    assert [record.kind for record in memory.history(ident)] == ["lesson", "forget"]
    logged(memory)
    assert memory.get(ident).id == ident


def test_what_derives_from_the_forgotten_is_hidden_too(memory: Memory) -> None:
    ident = logged(memory)
    derived = memory.log(kind="pattern", pattern="a rule", source_episodes=[ident], repo="app").id
    memory.forget(ident)

    with pytest.raises(RecordNotFound):
        memory.get(derived)


def test_both_homes_are_read_and_the_nearest_is_written(tmp_path: Path) -> None:
    root, user = tmp_path / "app", tmp_path / "me"
    (root / ".commonplace").mkdir(parents=True)
    git("init", "-q", cwd=root)
    with Memory.open(user) as mine:
        old = logged(mine, "a lesson of the user's")

    with Memory.open(
        cwd=root, environment={"COMMONPLACE_HOME": str(user), "HOME": str(tmp_path)}
    ) as memory:
        assert memory.get(old).id == old
        new = logged(memory, "a lesson of the repository's")
        memory.feedback(old, "worked")

    assert new in (root / ".commonplace" / "log" / "app.jsonl").read_text()
    assert "feedback" in (user / "log" / "app.jsonl").read_text()


def test_secrets_never_land_and_the_caller_is_told(memory: Memory, own_home: Path) -> None:
    secret = "ghp_" + "a1B2" * 9

    record = memory.log(
        repo="app", event_type="error", lesson="push failed", command=f"git push https://{secret}@example.org/x",
        meta={"env": [f"GITHUB_TOKEN={secret}"]},
    )  # fmt: skip

    stored = (own_home / "log" / "app.jsonl").read_text()
    assert secret not in stored
    assert "[redacted:" in stored
    assert {redaction.field for redaction in record.redactions} == {"command", "meta.env[0]"}


def test_an_id_owes_nothing_to_what_was_redacted(memory: Memory) -> None:
    secret = "AKIA" + "Q3XZ" * 4

    ident = logged(memory, f"{secret} was in the way")

    assert secret.lower() not in ident


def test_private_text_is_never_stored_and_a_lesson_of_nothing_else_is_refused(
    memory: Memory, own_home: Path
) -> None:
    logged(memory, "keep <private>zebra-42</private> this")
    assert "zebra-42" not in (own_home / "log" / "app.jsonl").read_text()

    with pytest.raises(RecordInvalid, match="lesson"):
        logged(memory, "<private>only this</private>")


@pytest.mark.parametrize(
    ("lesson", "reason"),
    [
        ("nul \x00 byte", "U+0000"),
        ("lone \ud800 surrogate", "UTF-8"),
        ("x" * (1 << 20), "over the limit"),
    ],
)
def test_text_that_only_comes_from_a_mistake_is_refused(
    memory: Memory, own_home: Path, lesson: str, reason: str
) -> None:
    with pytest.raises(RecordInvalid, match=reason.replace("+", r"\+")) as refused:
        logged(memory, lesson)

    assert refused.value.field == "lesson"
    assert not own_home.exists()


def test_control_characters_are_taken_out_and_told(memory: Memory) -> None:
    record = memory.log(
        repo="app", event_type="error", lesson="a \x1b[31mred\x1b[0m bell\x07 and delete\x7f"
    )

    assert record.fields["lesson"] == "a red bell and delete"
    assert [(redaction.kind, redaction.field) for redaction in record.redactions] == [
        ("control-character", "lesson")
    ]


def test_no_value_is_lost_when_two_keys_become_one(memory: Memory) -> None:
    record = memory.log(event_type="error", lesson="x", repo="app", meta={"k": 1, "k\u200b": 2})

    assert record.meta == {"k": 1, "k~": 2}


def test_a_secret_cannot_hide_behind_a_control_character(memory: Memory, own_home: Path) -> None:
    secret = "AKIA" + "QWER" * 4

    logged(memory, f"use {secret[:8]}\x07{secret[8:]} today")

    assert secret not in (own_home / "log" / "app.jsonl").read_text()


@pytest.mark.parametrize("levels", [100, 600, 100_000])
def test_a_record_nested_too_deeply_to_walk_is_refused(memory: Memory, levels: int) -> None:
    deep: Any = "x"
    for _ in range(levels):
        deep = [deep]

    for fields in (
        {"kind": "fact", "label": "x", "payload": deep},
        {"event_type": "error", "lesson": "x", "deep": deep},
    ):
        with pytest.raises(RecordInvalid):
            memory.log(**fields)


def test_line_breaks_tabs_and_backslashes_are_text(memory: Memory) -> None:
    lesson = "one\n\ttwo\r\nC:\\build\\u0000 \\b"

    assert memory.get(logged(memory, lesson)).fields["lesson"] == lesson


def test_bulk_lines_are_taken_or_told_one_by_one(memory: Memory) -> None:
    rows = [
        b'{"event_type":"error","lesson":"one","repo":"app"}',
        b"not json",
        b"",
        b'{"event_type":"banana","lesson":"x"}',
        b'"just text"',
        b'{"event_type":"error","lesson":"two","repo":"app"}',
    ]

    bulk = memory.append_lines(rows)

    assert bulk.taken == 2
    assert [refusal.line for refusal in bulk.refused] == [2, 4, 5]


def test_a_disk_that_fills_up_in_a_bulk_says_how_many_were_stored(
    memory: Memory, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("commonplace.writing.BULK_LINES", 4)
    rows = [
        f'{{"event_type":"error","lesson":"row {n}","repo":"{"ab"[n % 2]}"}}'.encode()
        for n in range(9)
    ]
    real = Appender.append_many

    def filling(appender: Appender, lines: list[bytes]) -> None:
        if appender.path.name == "b.jsonl" and appender.path.exists():
            raise DiskFull(appender.path)
        real(appender, lines)

    monkeypatch.setattr(Appender, "append_many", filling)

    with pytest.raises(DiskFull, match="6 records were stored") as full:
        memory.append_lines(rows)

    assert full.value.stored == len(list(memory.records()))


def test_two_clones_append_and_git_merges_without_a_conflict(tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    origin.mkdir()
    git("init", "-q", "-b", "main", cwd=origin)
    from commonplace.where import homes

    homes.make(Home(origin / ".commonplace"))
    with Memory.open(cwd=origin) as memory:
        logged(memory, "the common ancestor")
    git("add", "-A", cwd=origin)
    git("commit", "-qm", "memory", cwd=origin)
    for name in ("a", "b"):
        git("clone", "-q", str(origin), str(tmp_path / name), cwd=tmp_path)
        with Memory.open(cwd=tmp_path / name) as memory:
            logged(memory, f"lesson of clone {name}")
        git("add", "-A", cwd=tmp_path / name)
        git("commit", "-qm", name, cwd=tmp_path / name)
    git("pull", "-q", "--no-rebase", str(tmp_path / "b"), "main", cwd=tmp_path / "a")
    git("pull", "-q", str(tmp_path / "a"), "main", cwd=tmp_path / "b")

    for name in ("a", "b"):
        with Memory.open(cwd=tmp_path / name) as memory:
            said = {record.fields["lesson"] for record in memory.records()}
        assert said == {"the common ancestor", "lesson of clone a", "lesson of clone b"}


def test_a_line_of_the_log_shows_the_seeds_example_field_for_field(
    memory: Memory, own_home: Path
) -> None:
    example = {
        "timestamp": "2025-10-31T04:58:01Z",
        "agent_id": "agent-a",
        "repo": "gptcoach2",
        "event_type": "error",
        "context": "npm install failed with EACCES",
        "command": "sudo chown -R $USER . && npm ci",
        "lesson": "always verify ownership before npm operations",
        "success_rate": "9/10",
        "tags": ["npm", "permissions", "node_modules"],
    }

    memory.log(**example)

    stored = json.loads((own_home / "log" / "gptcoach2.jsonl").read_text())
    assert {name: stored[name] for name in example} == example
    assert set(stored) - set(example) == {"id", "kind"}


def test_a_memory_beside_another_shares_what_is_open_and_is_another_agent(
    memory: Memory, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    beside = memory.beside(agent_id="analyst", cwd=tmp_path / "elsewhere")

    record = beside.log(event_type="learned", lesson="the staging database resets every night")
    assert (record.agent_id, record.repo) == ("analyst", "elsewhere")
    assert beside.engine() is memory.engine()
    beside.close()
    assert memory.recall("staging database reset").hits
    assert memory.agent_id == "default"


def test_a_lesson_needs_no_type_and_its_hit_has_its_fields(own_home: Path) -> None:
    with Memory.open(own_home) as memory:
        record = memory.log(lesson="flush the redis cache", context="stale keys", command="FLUSHDB")
        (hit,) = memory.recall("redis cache", all_repos=True).hits

    assert record.fields["event_type"] == "learned"
    assert (hit.lesson, hit.context, hit.command) == (
        "flush the redis cache",
        "stale keys",
        "FLUSHDB",
    )
    assert hit.success_rate is None
