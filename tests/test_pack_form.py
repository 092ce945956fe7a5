"""The shipped packs: the form of their nodes, links and questions, and that a memory keeps them as they are."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from tools import build_packs, pack_sources

from commonplace.memory import Memory
from commonplace.packs import shipped
from commonplace.rules import one_side
from commonplace.vocabulary import RELATIONS
from knowledge_packs import asked_of

if TYPE_CHECKING:
    from pathlib import Path

PACKS = ("cpp-core", "git-core", "python-core", "shell-core", "sql-core")
NODES_MIN = {"cpp-core": 120}
QUESTIONS_MIN = {"cpp-core": 40}
# Recall hides what is superseded and marks what contradicts, and who forgets a source forgets what
# was derived from it: none of that is meant between the nodes of one pack.
NOT_IN_PACKS = {
    *("supersedes", "superseded_by", "contradicts", "derived_from", "source_of"),
}

every_pack = pytest.mark.parametrize("pack", PACKS)


def test_these_are_all_packs() -> None:
    assert tuple(pack_sources.names()) == PACKS


@every_pack
def test_the_nodes_are_of_their_domain_and_of_every_type(pack: str) -> None:
    nodes, about = pack_sources.read(pack), pack_sources.about(pack)
    domain = pack.removesuffix("-core")

    assert (about["name"], about["domain_tags"]) == (pack, [domain])
    assert len(nodes) >= NODES_MIN.get(pack, 60)
    assert {node.id.split(".")[1] for node in nodes} == {domain}
    assert {"concept", "pattern", "snippet", "tool"} <= {node.type for node in nodes}
    assert any(node.id.startswith(f"pattern.{domain}.anti.") for node in nodes)
    assert [node.where for node in nodes if node.type == "snippet" and not node.codes] == []


@every_pack
def test_each_link_is_written_once(pack: str) -> None:
    links = [(node.id, link) for node in pack_sources.read(pack) for link in node.links]

    assert {link.rel for _id, link in links} <= set(RELATIONS) - NOT_IN_PACKS
    assert all(0 < link.w <= 1 for _id, link in links)
    counts = Counter(one_side(ident, link.rel, link.to) for ident, link in links)
    assert [link for link, count in counts.items() if count > 1] == []


@every_pack
def test_the_questions_name_nodes_of_the_pack(pack: str) -> None:
    ids = {node.id for node in pack_sources.read(pack)}
    questions = asked_of(pack)["questions"]

    assert len({one["ask"] for one in questions}) >= QUESTIONS_MIN.get(pack, 15)
    assert all(one["nodes"] and set(one["nodes"]) <= ids for one in questions)


def test_a_memory_keeps_the_nodes_as_they_are(own_home: Path) -> None:
    """Redaction takes nothing in them for a secret, no link leads nowhere, and each says what checks it."""
    with Memory.open(own_home, settings={"embedder.kind": "none"}) as memory:
        for pack in PACKS:
            shipped.add(memory, pack)
            about = pack_sources.about(pack)
            for source in pack_sources.read(pack):
                record, kept = build_packs.record_of(source, about), memory.node(source.id)
                assert (kept.label, kept.payload) == (record["label"], record["payload"])
                assert bool(source.checks) != ("unchecked" in kept.meta)
        assert memory.dangling_links() == []
