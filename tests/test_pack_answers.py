"""With the nodes of python-core and sql-core in one home, questions find the right ones."""

from __future__ import annotations

import pytest

from commonplace.memory import Memory
from knowledge_packs import as_nodes, questions_of

PACKS = ("python-core", "sql-core")
FOUND_MAX = 3
# Enough for whole nodes, so that only their order matters.
TOKENS_MAX = 20_000
# A question that misses stays: it says where a node could be worded better for all readers.
SHARE_MIN = 0.85


@pytest.mark.slow
def test_questions_find_their_nodes(memory: Memory) -> None:
    asked = [one for pack in PACKS for one in questions_of(pack)]
    for pack in PACKS:
        memory.upsert_nodes(as_nodes(pack))
    memory.engine().vectors.embed_all()
    missed = {}
    for one in asked:
        answer = memory.recall(one["ask"], limit=FOUND_MAX, tokens_max=TOKENS_MAX)
        found = [hit.record.id for hit in answer.hits]
        if not set(found) & set(one["nodes"]):
            missed[one["ask"]] = found
    assert len(missed) <= len(asked) * (1 - SHARE_MIN), missed
