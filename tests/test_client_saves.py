"""The orchestrator saves everything once, in order, whatever the server and its own process do."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace import Memory
from commonplace.client import MemoryOrchestrator, state_folder
from commonplace.client.pending import REFUSED_MAX, SPARE_LINES, Pending, PendingSaves
from commonplace.errors import NoAnswer, UsageError
from flaky_server import AFTER, BEFORE, OK, Flaky
from serving import command

if TYPE_CHECKING:
    from other_kom_server import Store

PLANS = st.lists(st.sampled_from([OK, OK, BEFORE, AFTER]), max_size=40)
STEPS = st.lists(
    st.sampled_from(["build", "observe", "learn", "save", "retry", "restart"]),
    min_size=1,
    max_size=8,
)


def saved_problems(store: Store) -> list[str]:
    """The first line of the problem of each saved context, in the order in which they were saved."""
    return [
        str(block["data"]).splitlines()[0]
        for context in store.contexts
        for block in context["frames"]
        if block["kind"] == "problem"
    ]


async def run(flaky: Flaky, steps: list[str], folder: Path | None) -> tuple[list[str], set[str]]:
    """Do *steps*, then let everything work. Returns the contexts and the nodes that were promised."""
    memory = MemoryOrchestrator(flaky.server(), state=folder)
    contexts: list[str] = []
    nodes: set[str] = set()
    for number, step in enumerate(steps):
        if step == "build":
            await memory.build_context(f"question {number}", {"id": "t", "tags": ["cpp"]}, 400)
            contexts.append(f"question {number}")
        elif step == "save":
            block = {"kind": "problem", "format": "markdown", "data": f"summary {number}"}
            await memory.save_context("t", [block])
            contexts.append(f"summary {number}")
        elif step == "observe":
            nodes.add(await memory.observe(f"action {number}", "passed", task="t"))
        elif step == "learn":
            nodes.add(await memory.learn(f"rule {number}", "a definition", tags=["cpp"]))
        elif step == "retry":
            await memory.save_pending()
        elif folder is not None:
            # As if the process had ended here: nothing is closed in order but the lock.
            memory.close()
            memory = MemoryOrchestrator(flaky.server(), state=folder)
    flaky.will()
    assert await memory.save_pending() == 0
    memory.close()
    return contexts, nodes


@given(PLANS, STEPS)
@settings(max_examples=60, deadline=None)
def test_nothing_is_lost_and_nothing_is_saved_twice(plan: list[str], steps: list[str]) -> None:
    flaky = Flaky(plan=plan)
    with tempfile.TemporaryDirectory() as folder:
        contexts, nodes = asyncio.run(run(flaky, steps, Path(folder)))
    assert saved_problems(flaky.store) == contexts
    assert set(flaky.store.nodes) == nodes


@given(PLANS, STEPS)
@settings(max_examples=30, deadline=None)
def test_the_same_holds_without_a_folder_and_over_one_connection(
    plan: list[str], steps: list[str]
) -> None:
    async def over_one_connection() -> tuple[list[str], set[str]]:
        server = flaky.server()
        async with server:
            flaky.server = lambda: server  # type: ignore[method-assign]
            return await run(flaky, steps, None)

    flaky = Flaky(plan=plan)
    contexts, nodes = asyncio.run(over_one_connection())
    assert saved_problems(flaky.store) == contexts
    assert set(flaky.store.nodes) == nodes


def test_a_save_that_arrived_is_not_sent_again() -> None:
    async def talk() -> None:
        memory = MemoryOrchestrator(flaky.server())
        flaky.will(OK, AFTER)
        assert not await memory.save_context("t", [{"kind": "problem", "data": "one"}])
        assert [one.tool for one in memory.pending] == ["save_context"]
        assert await memory.save_pending() == 0

    flaky = Flaky()
    asyncio.run(talk())
    assert flaky.calls.count("save_context") == 1
    assert saved_problems(flaky.store) == ["one"]


def test_what_waits_is_sent_by_the_next_call_in_order() -> None:
    async def talk() -> None:
        memory = MemoryOrchestrator(flaky.server())
        flaky.is_down = True
        for number in range(3):
            frames = await memory.build_context(f"question {number}", "t", 400)
        assert "3 saves wait for the server" in frames.notes
        flaky.is_down = False
        frames = await memory.build_context("question 3", "t", 400)
        assert frames.notes == ()

    flaky = Flaky()
    asyncio.run(talk())
    assert saved_problems(flaky.store) == [f"question {number}" for number in range(4)]


def test_what_the_server_refuses_is_kept_and_said_and_holds_up_nothing() -> None:
    async def talk() -> None:
        memory = MemoryOrchestrator(flaky.server())
        flaky.store.refuses.add("upsert_memory")
        ident = await memory.learn("RAII", "owns a resource", tags=["cpp"])
        frames = await memory.build_context("RAII", "t", 400)
        assert any("upsert_memory is switched off" in note for note in frames.notes)
        assert ident not in frames.knowledgeHDoD, "the server does not have it"
        assert len(flaky.store.contexts) == 1
        flaky.store.refuses.clear()
        assert await memory.save_pending() == 0
        assert ident in flaky.store.nodes

    flaky = Flaky()
    asyncio.run(talk())


@pytest.mark.parametrize("restarts", [False, True])
def test_one_refused_save_is_set_aside_and_the_next_ones_are_saved(
    tmp_path: Path, *, restarts: bool
) -> None:
    def block(text: str) -> list[dict[str, Any]]:
        return [{"kind": "problem", "data": text}]

    async def talk() -> None:
        memory = MemoryOrchestrator(flaky.server(), state=tmp_path)
        flaky.store.refuses.add("save_context")
        assert not await memory.save_context("t", block("refused"))
        flaky.store.refuses.clear()
        sizes = []
        for number in range(200):
            assert await memory.save_context("t", block(f"save {number}"))
            sizes.append((tmp_path / "pending.jsonl").stat().st_size)
            if restarts and number % 50 == 0:
                memory.close()
                memory = MemoryOrchestrator(flaky.server(), state=tmp_path)
        assert max(sizes) == 0
        assert memory.pending == []
        [refused] = memory.refused
        assert "save_context is switched off" in refused.refused
        frames = await memory.build_context("question", "t", 400)
        assert any("1 save was refused" in note for note in frames.notes)
        assert flaky.calls.count("save_context") == 202, "it was not sent again"
        assert await memory.save_pending() == 0
        assert memory.refused == []
        assert (tmp_path / "refused.jsonl").read_bytes() == b""
        memory.close()

    flaky = Flaky()
    asyncio.run(talk())
    assert saved_problems(flaky.store)[-1] == "refused"
    assert len(flaky.store.contexts) == 202


def test_a_server_that_refuses_everything_costs_a_bounded_file(tmp_path: Path) -> None:
    pending = PendingSaves(tmp_path / "pending.jsonl")
    for number in range(REFUSED_MAX * 3):
        pending.add(Pending(f"save-{number}", "save_context", {"task_id": "t"}))
        pending.set_aside(f"save-{number}", "no")
        assert len((tmp_path / "refused.jsonl").read_bytes().splitlines()) <= REFUSED_MAX * 2
        assert (tmp_path / "pending.jsonl").read_bytes() == b""
    ids = [f"save-{number}" for number in range(REFUSED_MAX * 2, REFUSED_MAX * 3)]
    assert [one.id for one in pending.refused] == ids
    assert [one.id for one in PendingSaves(tmp_path / "pending.jsonl").refused] == ids


@given(st.lists(st.sampled_from(["add", "done", "aside", "retry", "reload"]), max_size=60))
@settings(max_examples=60, deadline=None)
def test_the_files_hold_what_waits_and_what_was_refused(steps: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "pending.jsonl"
        pending = PendingSaves(path)
        waiting: list[str] = []
        refused: list[str] = []
        for number, step in enumerate(steps):
            if step == "add":
                pending.add(Pending(f"s{number}", "save_context", {"n": number}, "now"))
                waiting.append(f"s{number}")
            elif step == "done" and waiting:
                pending.done(waiting.pop(0))
            elif step == "aside" and waiting:
                pending.set_aside(waiting[0], "no")
                refused.append(waiting.pop(0))
            elif step == "retry":
                pending.retry_refused()
                waiting, refused = [*waiting, *refused], []
            elif step == "reload":
                pending = PendingSaves(path)
            assert [one.id for one in pending] == waiting
            assert [one.id for one in pending.refused] == refused
        again = PendingSaves(path)
        assert [one.id for one in again] == waiting
        assert [one.id for one in again.refused] == refused


def test_the_file_does_not_grow_while_something_waits(tmp_path: Path) -> None:
    path = tmp_path / "pending.jsonl"
    pending = PendingSaves(path)
    pending.add(Pending("first", "save_context", {}))
    for number in range(1000):
        pending.add(Pending(f"s{number}", "save_context", {}))
        pending.done(f"s{number}")
        assert len(path.read_bytes().splitlines()) <= SPARE_LINES + 3
    assert [one.id for one in PendingSaves(path)] == ["first"]


def test_a_server_whose_tools_take_no_repository_is_not_sent_one() -> None:
    async def talk() -> None:
        memory = MemoryOrchestrator(flaky.server(), repo="shop")
        await memory.build_context("one", {"id": "t", "session": "s"}, 400)
        assert memory.refused == []
        assert "snapshot" in await memory.snapshot()

    flaky = Flaky()
    asyncio.run(talk())
    assert saved_problems(flaky.store) == ["one"]


def test_the_same_frames_are_saved_once() -> None:
    async def talk() -> None:
        memory = MemoryOrchestrator(flaky.server())
        for _turn in range(3):
            await memory.build_context("the same question", "t", 400)

    flaky = Flaky()
    asyncio.run(talk())
    assert len(flaky.store.contexts) == 1


def test_a_snapshot_is_made_after_what_waits_was_saved() -> None:
    async def talk() -> None:
        memory = MemoryOrchestrator(flaky.server())
        flaky.is_down = True
        await memory.learn("RAII", "owns a resource")
        with pytest.raises(NoAnswer):
            await memory.snapshot()
        flaky.is_down = False
        assert (await memory.snapshot())["snapshot"] == "snap-1"

    flaky = Flaky()
    asyncio.run(talk())


# --- The files ---------------------------------------------------------------------------------------


def pend(folder: Path, count: int) -> None:
    async def talk() -> None:
        memory = MemoryOrchestrator(flaky.server(), state=folder)
        for number in range(count):
            await memory.save_context("t", [{"kind": "problem", "data": f"save {number}"}])
        memory.close()

    flaky = Flaky()
    flaky.is_down = True
    asyncio.run(talk())


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such modes")
def test_the_files_are_the_users_own(tmp_path: Path) -> None:
    pend(tmp_path / "state", 2)
    found = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "state").iterdir()}
    assert found == dict.fromkeys(("lock", "pending.jsonl", "working-set.json"), 0o600)
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700


def test_no_secret_is_written_or_sent(tmp_path: Path) -> None:
    async def talk() -> None:
        memory = MemoryOrchestrator(flaky.server(), state=tmp_path)
        await memory.observe("deployed", f"export GITHUB_TOKEN={secret}", details=secret)
        assert secret not in (tmp_path / "pending.jsonl").read_text("utf-8")
        flaky.is_down = False
        await memory.save_pending()

    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    flaky = Flaky()
    flaky.is_down = True
    asyncio.run(talk())
    assert flaky.store.nodes
    assert secret not in json.dumps(flaky.store.nodes)
    for path in tmp_path.iterdir():
        assert secret not in path.read_text("utf-8"), path


@given(st.integers(0, 400))
@settings(max_examples=25, deadline=None)
def test_a_file_that_ends_anywhere_gives_a_beginning_of_what_was_saved(cut: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pend(folder, 3)
        path = folder / "pending.jsonl"
        path.write_bytes(path.read_bytes()[:cut])
        flaky = Flaky()

        async def talk() -> None:
            memory = MemoryOrchestrator(flaky.server(), state=folder)
            await memory.save_context("t", [{"kind": "problem", "data": "after"}])
            assert await memory.save_pending() == 0
            memory.close()

        asyncio.run(talk())
    found = saved_problems(flaky.store)
    assert found == [f"save {number}" for number in range(len(found) - 1)] + ["after"]


def test_two_orchestrators_do_not_share_a_folder(tmp_path: Path) -> None:
    first = MemoryOrchestrator(Flaky().server(), state=tmp_path)
    with pytest.raises(UsageError, match="another orchestrator uses"):
        MemoryOrchestrator(Flaky().server(), state=tmp_path)
    first.close()
    MemoryOrchestrator(Flaky().server(), state=tmp_path).close()


def test_erasing_a_record_removes_it_from_the_state_of_clients(own_home: Path) -> None:
    text = "the launch code of the oven is forty-two plus one"
    with Memory.open(own_home) as memory:
        record = memory.log(event_type="learned", lesson=text)
    folder = state_folder("builder")

    async def talk() -> None:
        memory = MemoryOrchestrator(flaky.server(), state=folder)
        await memory.build_context("oven", "t", 400)
        flaky.is_down = True
        await memory.build_context("launch code", "t", 400)
        await memory.learn("Other", "Something that stays.")
        memory.close()

    flaky = Flaky()
    flaky.store.upsert([{"id": record.id, "type": "fact", "label": text}], merge=False)
    asyncio.run(talk())
    kept = [path for path in folder.iterdir() if text.encode() in path.read_bytes()]
    assert len(kept) == 2
    doctor = command("doctor", home=own_home)
    assert doctor.returncode == 0, doctor.stdout

    done = command("forget", record.id, "--erase", "--yes", home=own_home)

    assert done.returncode == 0, done.stderr
    for path in folder.iterdir():
        assert text.encode() not in path.read_bytes(), path
    flaky.is_down = False
    orchestrator = MemoryOrchestrator(flaky.server(), state=folder)
    assert asyncio.run(orchestrator.save_pending()) == 0
    assert "skill.other" in flaky.store.nodes


def blocks_of(store: Store) -> list[Any]:
    return [block for context in store.contexts for block in context["frames"]]


def test_every_save_says_which_one_it_is() -> None:
    async def talk() -> None:
        memory = MemoryOrchestrator(flaky.server())
        await memory.build_context("one", "t", 400)
        await memory.build_context("two", "t", 400)

    flaky = Flaky()
    asyncio.run(talk())
    ids = [block["data"]["id"] for block in blocks_of(flaky.store) if block["kind"] == "save"]
    assert len(set(ids)) == 2
