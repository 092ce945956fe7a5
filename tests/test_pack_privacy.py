"""What is private stays here: neither its text nor its id leaves in a pack, by whatever record."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.memory import Memory
from commonplace.packs import container, exporting, keys
from commonplace.packs.transfer import export_encrypted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

NOW = datetime(2026, 11, 1, tzinfo=UTC)
NO_KEYS = keys.Keys(lambda: "", list)
TEXT = "The narwhal salary is 5000 from May"
PUBLIC = {"kind": "lesson", "id": "les-public", "lesson": "a public fact", "event_type": "learned"}


@contextmanager
def opened(home: Path, **more: Any) -> Iterator[Memory]:
    given = {"embedder.kind": "none", **more}
    with Memory.open(home, settings=given, background=False, clock=lambda: NOW) as memory:
        yield memory


def exported(memory: Memory, path: Path) -> tuple[str, dict[str, int]]:
    done = exporting.export_pack(memory, "*", path, None)
    with container.opened(path, NO_KEYS) as pack:
        return b"\n".join(pack.lines()).decode(), done.left_out


def private(memory: Memory, **fields: Any) -> str:
    lesson = {"kind": "lesson", "event_type": "learned", "lesson": TEXT, "tags": ["private"]}
    return memory.append([{**lesson, **fields}])[0].id


def built(memory: Memory, _ident: str) -> None:
    memory.build_context("narwhal salary", "N1")


def saved(memory: Memory, ident: str) -> None:
    frame = {"kind": "knowledge", "format": "json", "data": {ident: {"label": TEXT}}}
    memory.save_context("N1", [frame])


def saved_as_text(memory: Memory, _ident: str) -> None:
    shown = TEXT.replace(" is ", "\n is ").upper()
    memory.save_context("N1", [{"kind": "episodic", "format": "markdown", "data": f"- {shown}."}])


def feedback(memory: Memory, ident: str) -> None:
    memory.feedback(ident, "worked")


def linked(memory: Memory, ident: str) -> None:
    memory.link("les-public", "related_to", ident)


def forgotten(memory: Memory, ident: str) -> None:
    memory.forget(ident)


def ledger(memory: Memory, ident: str) -> None:
    context = {"patterns_learned": [ident]}
    memory.append([{"kind": "ledger", "agent_id": memory.agent_id, "context": context}])


def handoff(memory: Memory, ident: str) -> None:
    context = {"what_was_done": f"applied [{ident}], see there"}
    memory.append(
        [{"kind": "handoff", "agent_id": memory.agent_id, "from_agent": memory.agent_id,
          "to_agent": "any", "context": context}]
    )  # fmt: skip


def pattern(memory: Memory, ident: str) -> None:
    memory.append([{"kind": "pattern", "pattern": "pay a narwhal", "source_episodes": [ident]}])


def anti_pattern(memory: Memory, ident: str) -> None:
    memory.append([{"kind": "anti_pattern", "what_fails": "narwhal", "source": ident}])


def twice_derived(memory: Memory, ident: str) -> None:
    link = {"to": ident, "rel": "derived_from"}
    (first,) = memory.append([{"kind": "pattern", "pattern": "one", "links": [link]}])
    (second,) = memory.append([{"kind": "pattern", "pattern": "narwhal pay"}])
    memory.link(first.id, "source_of", second.id)
    memory.feedback(second.id, "worked")


def merged(memory: Memory, ident: str) -> None:
    link = {"to": ident, "rel": "supersedes"}
    memory.append([{**PUBLIC, "id": "les-other", "lesson": "narwhal pay: 5000", "links": [link]}])


def session(memory: Memory, _ident: str) -> None:
    action = {"t": 1, "action": "Bash", "target": f"commonplace log --lesson '{TEXT}'"}
    memory.append([{"kind": "episode", "task_id": "s-1", "action_log": [action]}])


def child(memory: Memory, ident: str) -> None:
    memory.append(
        [{"kind": "concept", "id": "concept.pay", "label": "pay", "children": {"n": ident}}]
    )


WAYS: list[Callable[[Memory, str], None]] = [
    built, saved, saved_as_text, feedback, linked, forgotten, ledger, handoff, pattern, anti_pattern,
    twice_derived, merged, session, child,
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_no_record_takes_a_private_one_along(
    tmp_path: Path, way: Callable[[Memory, str], None]
) -> None:
    with opened(tmp_path / "home") as memory:
        memory.append([PUBLIC])
        way(memory, private(memory))
        plain, _left_out = exported(memory, tmp_path / "x.kpack")
    assert "les-public" in plain
    assert "narwhal" not in plain.casefold()


@settings(max_examples=20, deadline=None)
@given(
    ways=st.lists(st.sampled_from(WAYS), max_size=4), ident=st.sampled_from(["", "pr.1", "secret"])
)
def test_what_is_left_out_is_counted(
    tmp_path_factory: pytest.TempPathFactory,
    ways: list[Callable[[Memory, str], None]],
    ident: str,
) -> None:
    tmp = tmp_path_factory.mktemp("ways")
    with opened(tmp / "home") as memory:
        memory.append([PUBLIC, {**PUBLIC, "id": "les-b", "lesson": "a secret of cooking is salt"}])
        named = private(memory, **({"id": ident} if ident else {}))
        for way in ways:
            if way is not forgotten:
                way(memory, named)
        everything = {
            one.id
            for one in memory.select_everywhere(all_repos=True, archived=True)
            if one.kind != "link"  # Those between two records that stay are nobody's business.
        }
        plain, left_out = exported(memory, tmp / "x.kpack")
    assert "narwhal" not in plain.casefold()
    missing = {one for one in everything if f'"id":"{one}"' not in plain}
    # One word of a text is no id, and what has nothing to do with a private record is in the pack.
    assert missing.isdisjoint({"les-public", "les-b"})
    assert sum(left_out.values()) - left_out.get("links", 0) == len(missing)


def test_the_tool_of_agents_keeps_the_same_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(keys.VARIABLE, "a passphrase of four words")
    with opened(tmp_path / "home") as memory:
        memory.append([PUBLIC])
        feedback(memory, private(memory))
        done = export_encrypted(memory, "*", "x.kpack")
    assert done.manifest["counts"]["records"] == 1
    assert done.left_out == {"private": 1, "feedback": 1}


def test_notes_of_other_agents_are_counted(tmp_path: Path) -> None:
    with opened(tmp_path / "home") as memory:
        memory.append([PUBLIC])
        memory.notes("other").write("n1.md", "the narwhal is mine")
        memory.notes("third").write("deep/n2.md", "so is the second narwhal")
        plain, left_out = exported(memory, tmp_path / "x.kpack")
        lessons = exporting.export_pack(memory, "kind:lesson", tmp_path / "y.kpack", None)
    assert "narwhal" not in plain
    assert left_out == {"of_other_agents": 2}
    assert lessons.left_out == {}
