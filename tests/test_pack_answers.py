"""With a shipped pack installed, questions in a user's words find the right node, and tasks get a concept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commonplace.packs import shipped
from knowledge_packs import asked_of

if TYPE_CHECKING:
    from commonplace.memory import Memory

FOUND_MAX = 3
# Of an answer: enough for whole nodes, so that only their order matters.
TOKENS_MAX = 20_000
# Which share of the questions must find a right node. One that misses stays in the file: it says
# where a node could be worded better for all readers.
SHARES = {"cpp-core": 1.0, "git-core": 0.9, "python-core": 0.9, "shell-core": 0.9, "sql-core": 0.9}


@pytest.mark.slow
@pytest.mark.parametrize("pack", SHARES)
def test_questions_and_tasks_find_what_helps(memory: Memory, pack: str) -> None:
    shipped.add(memory, pack)
    memory.engine().vectors.embed_all()
    asked = asked_of(pack)
    missed = {}
    for one in asked["questions"]:
        answer = memory.recall(one["ask"], limit=FOUND_MAX, tokens_max=TOKENS_MAX)
        found = [hit.record.id for hit in answer.hits]
        if not set(found) & set(one["nodes"]):
            missed[one["ask"]] = found
    assert len(missed) <= len(asked["questions"]) * (1 - SHARES[pack]), missed
    domain = pack.removesuffix("-core")
    without = {}
    for one in asked.get("tasks", []):
        shown = memory.build_context(one["query"], tags=one["tags"], save=False).shown
        if not any(ident.startswith(f"concept.{domain}.") for ident in shown):
            without[one["query"]] = shown
    assert without == {}


def test_there_are_tasks_for_cpp() -> None:
    assert len({one["query"] for one in asked_of("cpp-core")["tasks"]}) >= 20
