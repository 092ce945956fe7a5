"""Old episodes get a summary, then leave the log. Nothing of them is lost, wherever it is killed."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.cli import main
from commonplace.errors import RecordNotFound
from commonplace.learn import batches, consolidation
from commonplace.learn.metrics import retries_of
from commonplace.learn.observations import observe
from commonplace.learn.pruning import prune
from commonplace.log import retire as retiring
from commonplace.log.retire import Change, digest, retire
from commonplace.maintenance import runner
from commonplace.memory import Memory
from commonplace.records import encode, from_line, to_utc
from commonplace.transfer.merge import merge_logs
from commonplace.where import repository
from commonplace.where.home import Home
from conftest import SLOW_LAW, run_until_killed
from histories import forget, pattern

if TYPE_CHECKING:
    from collections.abc import Iterable

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def open_memory(path: Path, **settings: Any) -> Memory:
    # Most of these tests are about episodes from which everything was learned.
    given = {"embedder.kind": "none", "learn.background": False, **settings}
    return Memory.open(path, settings=given, background=False, clock=lambda: NOW)


def episode(ident: str, days: float, **more: Any) -> dict[str, Any]:
    """An episode that is *days* old."""
    return {
        "id": ident,
        "kind": "episode",
        "task_id": f"task of {ident}",
        "timestamp": (NOW - timedelta(days=days)).isoformat().replace("+00:00", "Z"),
        "agent_id": "",
        "context": {"goal": f"mend the zeppelin {ident}"},
        "action_log": [{"t": 0, "action": "run", "target": f"command of {ident}"}],
        "outcome": "success",
        "errors_encountered": [{"type": "T", "message": "torn", "resolution": "sewn"}],
        **more,
    }


def put(home: Path, rows: Iterable[dict[str, Any]], log: str = "app") -> None:
    (home / "log").mkdir(parents=True, exist_ok=True)
    with (home / "log" / f"{log}.jsonl").open("ab") as stream:
        for row in rows:
            fields = {"timestamp": to_utc(NOW), "agent_id": "", "repo": log, **row}
            stream.write(encode(fields).encode() + b"\n")


def run(memory: Memory) -> dict[str, Any]:
    return prune(memory, dry_run=False, is_over=lambda: False)


def lines(home: Path) -> Counter[bytes]:
    return Counter(
        line for path in (home / "log").rglob("*.jsonl") for line in path.read_bytes().splitlines()
    )


def files(home: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in (home / "log").rglob("*.jsonl")}


# --- What becomes of an episode -------------------------------------------------------------------


def test_after_a_week_recall_finds_the_summary_and_the_whole_one_stays(
    own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(own_home, [episode("ep-old", 8), episode("ep-young", 6)])
    whole = from_line((own_home / "log/app.jsonl").read_bytes().splitlines()[0]).fields
    with open_memory(own_home) as memory:
        done = run(memory)
        assert (done["summarized"], done["archived"]) == (1, 0)
        found = {hit.id: hit for hit in memory.recall("zeppelin", all_repos=True).hits}
        assert {"ep-old", "ep-young"} == set(found)
        assert "command" not in found["ep-old"].text
        summary = memory.get("ep-old")
        assert "action_log" not in summary.fields
        assert summary.meta["actions"] == 1
        assert summary.meta["batch"] == done["batch"]
        assert summary.timestamp == whole["timestamp"]
        assert memory.whole("ep-old").fields == whole
        assert [one.fields for one in memory.history("ep-old")] == [whole, summary.fields]
        assert memory.get("ep-young").fields["action_log"]
        assert [one.fields for one in memory.records(kind="episode")] == [
            whole,
            memory.get("ep-young").fields,
        ]
    assert main(["show", "ep-old"]) == 0
    assert "`commonplace show --whole` prints it" in capsys.readouterr().out
    assert main(["show", "ep-old", "--whole", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["action_log"] == whole["action_log"]
    assert main(["history", "ep-old", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0] == whole
    assert main(["export"]) == 0
    assert encode(whole) in capsys.readouterr().out.splitlines()


def busy(ident: str, days: int, count: int) -> dict[str, Any]:
    """Return an episode with a routine in it, an error, and *count* further actions."""
    routine = [
        {"t": 1, "action": "run", "target": "npm ci", "result": "fail", "error": "EACCES: denied"},
        *({"t": n, "action": "run", "target": line, "result": "pass"} for n, line in enumerate(["npm ci", "npm version patch", "npm publish"])),
    ]  # fmt: skip
    more = [{"t": 9, "action": "read_file", "target": f"{n}.py"} for n in range(count)]
    return {
        **episode(ident, days),
        "outcome": "success",
        "action_log": [*more, *routine],
        "errors_encountered": [{"type": "npm install", "message": "EACCES: denied", "resolution": "sudo chown"}],
    }  # fmt: skip


@pytest.mark.parametrize("count", [0, 10, 500])
def test_what_later_steps_need_of_the_actions_stays_in_the_summary(
    own_home: Path, count: int
) -> None:
    with open_memory(own_home) as memory:
        for number in range(1, 4):
            memory.log(**busy(f"ep-{number}", 8 * number, count))
        before = {one.id: one for one in memory.select_everywhere(kinds=["episode"])}
        assert run(memory)["summarized"] == 3
        for ident, whole in before.items():
            summary = memory.get(ident)
            assert "action_log" not in summary.fields
            assert len(summary.meta["actions_kept"]) <= 60
            assert retries_of(summary) == retries_of(whole) == 1
            assert list(observe(summary, 0, "app")) == list(observe(whole, 0, "app"))
            assert [one.tried for one in observe(summary, 0, "app")] == ["npm ci"]
        # A procedure that is done every eight days is proposed.
        assert runner.run(memory, ["skills"]).steps["skills"] == {"proposed": 1}
        # What was learned in an episode with the planned action comes first.
        memory.log(id="anti-b", kind="anti_pattern", what_fails="mend the zeppelin")
        memory.log(
            id="anti-a",
            kind="anti_pattern",
            what_fails="to mend a zeppelin by hand, outside and in winter",
            source="ep-1",
        )
        for action, first in (("npm publish", "anti-a"), ("npm fly", "anti-b")):
            found = memory.before_task("mend the zeppelin", action=action)
            assert found.as_dict()["avoid_these"][0]["id"] == first


@pytest.mark.parametrize(
    "record",
    [
        pattern("p", source_episodes=["ep-old"]),
        {"id": "a", "kind": "anti_pattern", "what_fails": "x", "source": "ep-old"},
        {
            "id": "l",
            "kind": "lesson",
            "lesson": "x",
            "links": [{"to": "ep-old", "rel": "derived_from"}],
        },
        {"id": "k", "kind": "link", "of": "les", "rel": "derived_from", "to": "ep-old"},
        {"id": "k", "kind": "link", "of": "ep-old", "rel": "source_of", "to": "les"},
    ],
)
def test_after_a_month_it_is_archived_unless_a_current_record_rests_on_it(
    own_home: Path, record: dict[str, Any]
) -> None:
    les = {"id": "les", "kind": "lesson", "lesson": "zeppelins tear"}
    put(own_home, [episode("ep-old", 40), episode("ep-alone", 40), les, record])
    with open_memory(own_home) as memory:
        done = run(memory)
        assert (done["summarized"], done["archived"]) == (1, 1)
        hits = memory.recall("zeppelin", kinds=["episode"], all_repos=True).hits
        assert [hit.id for hit in hits] == ["ep-old"]
        assert memory.archived_ids() == {"ep-alone"}
        # What was forgotten holds nothing back.
        memory.forget(record["id"])
        assert run(memory)["archived"] == 1
        assert memory.archived_ids() == {"ep-alone", "ep-old"}
        archived = memory.recall("zeppelin", kinds=["episode"], all_repos=True, archived=True).hits
        assert {hit.id for hit in archived} == {"ep-old", "ep-alone"}
        assert memory.whole("ep-alone").fields["action_log"]


def test_ages_are_settings_and_zero_means_never(own_home: Path) -> None:
    put(own_home, [episode("ep-a", 3), episode("ep-b", 300)])
    days = {"learn.episodes_whole_days": 0, "learn.episodes_kept_days": 0}
    with open_memory(own_home, **days) as memory:
        assert run(memory) == {"summarized": 0, "archived": 0}
    days = {"learn.episodes_whole_days": 2, "learn.episodes_kept_days": 10**6}
    with open_memory(own_home, **days) as memory:
        assert run(memory)["summarized"] == 2
    with open_memory(own_home, **{"learn.episodes_kept_days": 1}) as memory:
        assert run(memory)["archived"] == 2


def test_what_was_forgotten_stays_forgotten(own_home: Path) -> None:
    put(own_home, [episode("ep-a", 50), forget("ep-a"), episode("ep-b", 10), forget("ep-b")])
    before = files(own_home)
    with open_memory(own_home) as memory:
        assert run(memory) == {"summarized": 0, "archived": 0}
        with pytest.raises(RecordNotFound):
            memory.get("ep-a")
    assert files(own_home) == before


def test_what_was_taken_back_stays_as_it_is(own_home: Path) -> None:
    put(own_home, [episode("ep-a", 10), episode("ep-b", 50)])
    with open_memory(own_home) as memory:
        run(memory)
        # As undoing a batch does: the version from before it is written again.
        memory.append([memory.whole("ep-a"), memory.whole("ep-b")])
        assert run(memory) == {"summarized": 0, "archived": 0}
        assert memory.get("ep-a").fields["action_log"]
        assert memory.archived_ids() == set()


def test_an_edit_of_a_summary_is_in_the_whole_one(own_home: Path) -> None:
    put(own_home, [episode("ep-a", 10)])
    with open_memory(own_home) as memory:
        run(memory)
        memory.edit("ep-a", tags=["balloon"])
        whole = memory.whole("ep-a").fields
        assert whole["tags"] == ["balloon"]
        assert whole["action_log"]


def test_a_dry_run_counts_the_same_and_writes_nothing(
    own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(
        own_home,
        [episode("ep-a", 10_000), episode("ep-b", 10_000), pattern("p", source_episodes=["ep-b"])],
    )
    assert main(["config", "set", "learn.background", "false"]) == 0
    capsys.readouterr()
    before = files(own_home)
    assert main(["maintain", "--step", "episodes", "--dry-run"]) == 0
    assert "1 summarized, 1 archived" in capsys.readouterr().out
    assert main(["maintain", "--step", "episodes", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"]["episodes"] == {
        "summarized": 1,
        "archived": 1,
        "summarized_ids": ["ep-b"],
        "archived_ids": ["ep-a"],
    }
    assert files(own_home) == before
    assert main(["maintain", "--step", "episodes"]) == 0
    assert "1 summarized, 1 archived; batch-" in capsys.readouterr().out


def test_a_home_that_is_not_trusted_is_left_as_it_is(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    home = clone / ".commonplace"
    (clone / ".git").mkdir(parents=True)
    put(home, [episode("ep-a", 50)])
    before = files(home)
    homes = [Home(home, of_user=False), Home(tmp_path / "user")]

    memory = Memory(
        homes,
        repository.find(clone),
        settings={"embedder.kind": "none"},
        background=False,
        clock=lambda: NOW,
    )
    with memory:
        assert not memory.trusts(memory.home)
        assert run(memory) == {"summarized": 0, "archived": 0}
        assert runner.run(memory, ["merging"]).steps["merging"]["patterns"] == 0
    assert files(home) == before


def test_a_record_that_changed_meanwhile_is_left_as_it_is(own_home: Path) -> None:
    put(own_home, [episode("ep-a", 10), episode("ep-b", 10), forget("ep-b"), episode("ep-c", 10)])
    first, second, _forget, third = (own_home / "log/app.jsonl").read_bytes().splitlines()
    changes = {
        "ep-a": Change(digest(b"another line"), b"{}\n"),
        "ep-b": Change(digest(second), b"{}\n"),
        "ep-c": Change(digest(third)),
    }
    assert retire(Home(own_home), "app", changes) == {"ep-c"}
    assert (own_home / "log/app.jsonl").read_bytes().splitlines()[0] == first
    assert (own_home / "log/archive/app.jsonl").read_bytes() == third + b"\n"


def test_a_batch_of_summaries_can_be_undone(own_home: Path) -> None:
    put(own_home, [episode("ep-a", 10), episode("ep-b", 50)])
    with open_memory(own_home) as memory:
        before = {record.id: record.fields for record in memory.records()}
        undone = batches.undo(memory, run(memory)["batch"])
        assert set(undone.changed) == {"ep-a", "ep-b"}
        assert {record.id: record.fields for record in memory.records()} == before
        assert all(memory.get(ident).fields["action_log"] for ident in undone.changed)
        assert memory.archived_ids() == set()
        assert run(memory) == {"summarized": 0, "archived": 0}


def test_a_pattern_of_another_home_holds_an_episode_back(tmp_path: Path) -> None:
    put(tmp_path / "near", [episode("ep-a", 50), episode("ep-b", 50)])
    put(tmp_path / "user", [pattern("p", source_episodes=["ep-a"])])
    homes = [Home(tmp_path / "near", trusted=True), Home(tmp_path / "user")]
    memory = Memory(
        homes,
        repository.find(tmp_path),
        settings={"embedder.kind": "none", "learn.background": False},
        background=False,
        clock=lambda: NOW,
    )
    with memory:
        run(memory)
        assert memory.archived_ids() == {"ep-b"}


def test_erasing_a_summarized_episode_leaves_nothing_of_it(own_home: Path) -> None:
    put(own_home, [episode("ep-xylophone", 10), episode("ep-b", 10)])
    with open_memory(own_home) as memory:
        run(memory)
        memory.erase("ep-xylophone")
    assert not any(b"xylophone" in content for content in files(own_home).values())


def test_two_machines_that_both_summarized_keep_everything(own_home: Path, tmp_path: Path) -> None:
    """Sync merges the logs: of one whole line, with two summaries of it and a later edit."""
    put(own_home, [episode("ep-a", 10), episode("ep-b", 10)])
    other = tmp_path / "other"
    shutil.copytree(own_home, other)

    def logs(home: Path) -> dict[str, list[bytes]]:
        return {
            path.relative_to(home).as_posix(): path.read_bytes().splitlines()
            for path in (home / "log").rglob("*.jsonl")
        }

    base = logs(own_home)
    for home in (own_home, other):
        with open_memory(home) as memory:
            run(memory)
    later = {"edited": "2026-03-02T00:00:00Z"}
    put(other, [episode("ep-b", 10, outcome="failure", meta=later)])
    for path, content in merge_logs(base, logs(own_home), logs(other), {}).items():
        (own_home / path).write_bytes(b"".join(raw + b"\n" for raw in content))
    assert set(base["log/app.jsonl"]) <= set(lines(own_home))
    with open_memory(own_home) as memory:
        assert "action_log" not in memory.get("ep-a").fields
        assert memory.get("ep-b").fields["outcome"] == "failure"
        assert memory.whole("ep-a").fields["action_log"]
        assert run(memory) == {"summarized": 0, "archived": 0}


def test_lines_of_other_programs_keep_what_they_say(own_home: Path) -> None:
    mine = {**episode("ep-a", 10), "agent": "eng", "mood": "calm"}
    bare = {name: value for name, value in mine.items() if name != "agent_id"}
    odd = {**bare, "id": "ep-odd", "duration_seconds": "long"}
    (own_home / "log").mkdir(parents=True)
    raws = [json.dumps(bare), json.dumps(odd), "{damaged", '{"id":"ep-b"']
    (own_home / "log/app.jsonl").write_text("\n".join(raws), "utf-8")
    with open_memory(own_home) as memory:
        assert run(memory)["summarized"] == 1
        assert memory.get("ep-a").repo == "app"
        assert memory.get("ep-a").agent_id == ""
        assert memory.whole("ep-a").fields == bare
    kept = (own_home / "log/app.jsonl").read_text("utf-8").splitlines()
    assert kept[1:] == raws[1:]


@given(share=st.floats(0, 1))
@SLOW_LAW
def test_a_half_written_archive_is_written_again(share: float) -> None:
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        home = Path(folder) / "home"
        put(home, [episode(f"ep-{number}", 10 + number * 8) for number in range(5)])
        written = lines(home)
        whole = (home / "log/app.jsonl").read_bytes()
        with open_memory(home) as memory:
            exported = sorted(memory.export_lines())
        (home / "log/archive").mkdir()
        (home / "log/archive/app.jsonl").write_bytes(whole[: int(len(whole) * share)])
        with open_memory(home) as memory:
            run(memory)
            assert sorted(memory.export_lines()) == exported
            assert not written - lines(home)
            assert run(memory) == {"summarized": 0, "archived": 0}


# --- Laws -----------------------------------------------------------------------------------------

IDS = st.sampled_from([f"ep-{letter}" for letter in "abcd"])
EPISODES = st.builds(
    episode, IDS, st.integers(0, 60), outcome=st.sampled_from(["success", "failure"])
)
ROWS = st.lists(
    EPISODES
    | st.builds(forget, IDS)
    | st.builds(
        lambda ident, of: pattern(ident, source_episodes=of),
        st.sampled_from(["p", "q"]),
        st.lists(IDS, max_size=2, unique=True),
    ),
    max_size=10,
)


@given(ROWS, ROWS)
@SLOW_LAW
def test_pruning_loses_nothing_and_twice_is_once(
    rows: list[dict[str, Any]], others: list[dict[str, Any]]
) -> None:
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        home = Path(folder) / "home"
        put(home, rows)
        put(home, others, "other")
        written = lines(home)
        with open_memory(home) as memory:
            exported = sorted(memory.export_lines())
            done = run(memory)
            assert sorted(memory.export_lines()) == exported
            assert not written - lines(home)
            # Each that was put away has one line more.
            assert lines(home).total() == written.total() + done["summarized"] + done["archived"]
            once = files(home)
            assert run(memory) == {"summarized": 0, "archived": 0}
            assert files(home) == once
            current = {
                record.id: memory.get(record.id) for record in memory.records(kind="episode")
            }
            for ident, record in current.items():
                age = (NOW - datetime.fromisoformat(record.timestamp)).days
                assert bool(record.fields.get("action_log")) is (age <= 7)
                assert memory.whole(ident).fields["action_log"]
            evidence = {one for record in memory.records(kind="pattern") for one in record.sources}
            archived = memory.archived_ids()
            for ident, record in current.items():
                age = (NOW - datetime.fromisoformat(record.timestamp)).days
                assert (ident in archived) is (age > 30 and ident not in evidence)
        # The index that caught up equals one that is built anew.
        with open_memory(home) as memory:
            before = memory.stats()
        # Moved, not deleted: a thread of Tantivy may still write a lock file into it.
        (home / ".index").rename(Path(folder) / "old-index")
        with open_memory(home) as memory:
            assert memory.stats() == before


# --- Learned from before it is put away -----------------------------------------------------------


def test_maintenance_learns_from_episodes_of_any_age_before_it_puts_them_away(
    own_home: Path,
) -> None:
    put(own_home, [episode(f"ep-{number}", 100 + number) for number in range(3)])
    put(own_home, [episode("ep-alone", 100, errors_encountered=[])])
    with open_memory(own_home, **{"learn.background": True}) as memory:
        assert run(memory) == {"summarized": 0, "archived": 0, "not_learned_from_yet": 4}
        assert memory.consolidate().looked_at == 4  # By hand, at the first time: the last 24h.
        assert run(memory)["not_learned_from_yet"] == 4
        steps = runner.run(memory).steps
        assert steps["learning"]["made"] == 2
        assert steps["episodes"]["archived_ids"] == ["ep-alone"]
        assert steps["episodes"]["summarized_ids"] == ["ep-0", "ep-1", "ep-2"]
        (made,) = memory.records(kind="pattern")
        assert sorted(made.fields["source_episodes"]) == ["ep-0", "ep-1", "ep-2"]
        again = runner.run(memory).steps
        assert again["learning"] == {"made": 0, "changed": 0, "held_back": 0}
        assert again["episodes"] == {"summarized": 0, "archived": 0}


@pytest.mark.parametrize("days", [10, 100])
def test_what_was_put_away_before_is_learned_from_by_hand_and_counted_once(
    own_home: Path, days: int
) -> None:
    put(own_home, [episode(f"ep-{number}", days + number) for number in range(3)])
    with open_memory(own_home) as memory:
        done = run(memory)
        assert done["summarized"] + done["archived"] == 3
        assert not memory.consolidate().made
        report = memory.consolidate("1000d")
        assert sorted(one.kind for one in report.made) == ["anti_pattern", "pattern"]
        (made,) = memory.records(kind="pattern")
        assert sorted(made.fields["source_episodes"]) == ["ep-0", "ep-1", "ep-2"]
        assert not memory.consolidate("2000d").changed
        assert memory.get(made.id).fields == made.fields


def test_a_summary_is_read_as_new_only_if_the_whole_one_was_not(own_home: Path) -> None:
    with open_memory(own_home) as memory:
        put(own_home, [episode("ep-a", 8)])
        assert [memory.consolidate("30d").looked_at, memory.consolidate().looked_at] == [1, 0]
        put(own_home, [episode("ep-b", 9)])
        assert run(memory)["summarized_ids"] == ["ep-a", "ep-b"]
        report = memory.consolidate()
        assert sorted(one.kind for one in report.made) == ["anti_pattern", "pattern"]


def test_what_a_run_of_learning_did_not_come_to_is_not_put_away(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("commonplace.learn.pool.LINES_FIRST", 2)
    put(own_home, [episode(f"ep-{number}", 50, errors_encountered=[]) for number in range(5)])
    turns = iter([False, True])
    with open_memory(own_home, **{"learn.background": True}) as memory:
        consolidation.consolidate(memory, everything=True, is_over=lambda: next(turns))
        done = run(memory)
        assert done["archived_ids"] == ["ep-0", "ep-1"]
        assert done["not_learned_from_yet"] == 3
        steps = runner.run(memory).steps
        assert steps["episodes"]["archived_ids"] == ["ep-2", "ep-3", "ep-4"]


# --- Killed anywhere ------------------------------------------------------------------------------


def maintain_until_killed(home: Path, change: int, steps: list[str]) -> bool:
    """Run steps in a child that dies before its n-th change to the disk; return whether it died."""

    def open_indexed() -> Memory:
        memory = open_memory(home)
        memory.engine().catch_up()
        return memory

    def maintain(memory: Memory) -> None:
        report = runner.run(memory, steps)
        assert not any("error" in done for done in report.steps.values())

    return run_until_killed(change, open_indexed, maintain)


def view(home: Path) -> tuple[list[str], dict[str, list[Any]], list[str]]:
    """What a home says: its export, the history of each record without times and batches, and
    which records its logs hold, their archives aside.
    """
    with open_memory(home) as memory:
        exported = sorted(_without_batch(json.loads(line)) for line in memory.export_lines())
        ids = sorted({json.loads(line)["id"] for line in memory.export_lines(superseded=True)})
        told = {
            ident: [_without_batch(one.fields) for one in memory.history(ident)] for ident in ids
        }
        assert not memory.damages
        logs = (home / "log").glob("*.jsonl")
        kept = {from_line(raw).id for path in logs for raw in path.read_bytes().splitlines()}
        return exported, told, sorted(kept)


def _without_batch(fields: dict[str, Any]) -> str:
    meta = {name: value for name, value in fields.get("meta", {}).items() if name != "batch"}
    return encode({**fields, "meta": meta})


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the child is a fork")
def test_killed_at_any_change_it_is_readable_and_the_next_run_finishes(tmp_path: Path) -> None:
    full = tmp_path / "full"
    put(full, [episode(f"ep-{number}", 3 * number) for number in range(15)])
    put(full, [episode("ep-4", 12, outcome="failure"), pattern("p", source_episodes=["ep-14"])])
    put(full, [episode("ep-other", 20), episode("ep-far", 90)], "other")
    said = "mend the zeppelin with a needle and strong thread, look at every seam, fill the cells again"
    for number, word in enumerate(["", " carefully", " again"]):
        put(
            full,
            [
                {
                    "id": f"les-{number}",
                    "kind": "lesson",
                    "event_type": "error",
                    "lesson": said + word,
                }
            ],
        )
        put(full, [pattern(f"pat-{number}", pattern=said + word, usage_count=number + 1)])
    with open_memory(full) as memory:
        memory.engine().catch_up()
    written = lines(full)
    steps = ["episodes", "merging"]
    whole = tmp_path / "whole"
    shutil.copytree(full, whole)
    with open_memory(whole) as memory:
        report = runner.run(memory, steps).steps
    assert all(report["episodes"].values())
    assert report["merging"]["lessons"] == report["merging"]["patterns"] == 2
    expected = view(whole)
    change, is_killed = 0, True
    while is_killed:
        change += 1
        home = tmp_path / "home"
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(full, home)
        is_killed = maintain_until_killed(home, change, steps)
        assert not written - lines(home)
        view(home)
        with open_memory(home) as memory:
            assert not any("error" in done for done in runner.run(memory, steps).steps.values())
        assert not written - lines(home)
        assert view(home) == expected
    assert change > 10


def test_a_log_is_not_read_into_memory_to_see_whether_it_was_moved_before(own_home: Path) -> None:
    """What a killed run has moved is recognized, also where the archive is longer."""
    put(own_home, [episode("ep-a", 10), episode("ep-b", 10)])
    home = Home(own_home)
    raws = home.log("app").read_bytes().splitlines()
    changes = {f"ep-{name}": Change(digest(raw)) for name, raw in zip("ab", raws, strict=True)}
    home.archive("app").parent.mkdir(parents=True)
    home.archive("app").write_bytes(b'{"id":"x"}\n' + b"\n".join(raws) + b"\n")
    before = home.archive("app").read_bytes()
    assert retiring.retire(home, "app", changes) == {"ep-a", "ep-b"}
    assert home.archive("app").read_bytes() == before
