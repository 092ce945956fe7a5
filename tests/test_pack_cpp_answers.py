"""With the nodes of cpp-core in a home, questions find the right one, and tasks get a concept of C++."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

import pytest
from tools import pack_sources

if TYPE_CHECKING:
    from commonplace.memory import Memory

ASKED = tomllib.loads((pack_sources.PACKS / "cpp-core" / "questions.toml").read_text("utf-8"))
FOUND_MAX = 3
# Of an answer: enough for whole nodes, so that only their order matters.
TOKENS_MAX = 20_000


def as_nodes(pack: str) -> list[dict[str, Any]]:
    """Return the nodes of a pack as the library takes them."""
    found = []
    for node in pack_sources.read(pack):
        payload = {"definition": node.text}
        if node.codes:
            payload["code"] = "\n".join(code.text for code in node.codes)
            payload["language"] = node.codes[0].language
        found.append(
            {
                "id": node.id,
                "type": node.type,
                "label": node.label,
                "payload": payload,
                "links": [{"to": link.to, "rel": link.rel, "w": link.w} for link in node.links],
                "children": node.children,
                "tags": node.tags,
            }
        )
    return found


def test_there_are_enough_questions_and_tasks() -> None:
    assert len({one["ask"] for one in ASKED["question"]}) >= 40
    assert len({one["query"] for one in ASKED["task"]}) >= 20


def test_answers_are_nodes_of_the_pack() -> None:
    ids = {node.id for node in pack_sources.read("cpp-core")}
    assert {ident for one in ASKED["question"] for ident in one["nodes"]} <= ids


@pytest.mark.slow
def test_questions_and_tasks_find_what_helps(memory: Memory) -> None:
    """One test, because a home with the vectors of all nodes takes seconds to make."""
    memory.upsert_nodes(as_nodes("cpp-core"))
    memory.engine().vectors.embed_all()
    missed = {}
    for one in ASKED["question"]:
        answer = memory.recall(one["ask"], limit=FOUND_MAX, tokens_max=TOKENS_MAX)
        found = [hit.record.id for hit in answer.hits]
        if not set(found) & set(one["nodes"]):
            missed[one["ask"]] = found
    assert missed == {}
    for one in ASKED["task"]:
        shown = memory.build_context(one["query"], tags=one["tags"], save=False).shown
        if not any(ident.startswith("concept.cpp.") for ident in shown):
            missed[one["query"]] = shown
    assert missed == {}
