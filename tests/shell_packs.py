"""What the tests of the packs `git-core` and `shell-core` share."""

from __future__ import annotations

import shutil
import sys
import tomllib
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from tools import pack_sources

from commonplace.rules.statements import one_side
from commonplace.vocabulary import RELATIONS

if TYPE_CHECKING:
    from tools.pack_sources import SourceNode

NODES_MIN = 65
QUESTIONS = 15
WORDS_MAX = 150  # A node is one thought, not a chapter.
# `supersedes` hides the other node, and `contradicts` shows it at every mention: neither is meant
# between nodes of one pack.
RELATIONS_IN_PACKS = set(RELATIONS) - {"supersedes", "superseded_by", "contradicts"}
# Snippets say themselves where they need GNU tools; they are run where these are the usual ones.
needs_linux = pytest.mark.skipif(
    sys.platform != "linux" or not (shutil.which("bash") and shutil.which("git")),
    reason="the snippets are run on Linux, with bash and git",
)


def check_form(pack: str) -> None:
    """Check what holds for every node of a pack."""
    nodes = pack_sources.read(pack)
    about = pack_sources.about(pack)
    domain = pack.partition("-")[0]
    assert about["name"] == pack
    assert about["domain_tags"] == [domain]
    assert len(nodes) >= NODES_MIN
    for node in nodes:
        assert node.id.split(".")[1] == domain, node.where
        assert len(node.text.split()) <= WORDS_MAX, node.where
        assert node.text.count("`") % 2 == 0, node.where
        for link in node.links:
            assert link.rel in RELATIONS_IN_PACKS, f"{node.where}: {link.rel}"
            assert 0 < link.w <= 1, node.where
        if node.type == "snippet":
            assert node.codes, f"{node.where}: a snippet has code"
    # A link is shown at both its ends and written at one of them.
    links = Counter(one_side(node.id, link.rel, link.to) for node in nodes for link in node.links)
    assert [link for link, count in links.items() if count > 1] == []
    types = Counter(node.type for node in nodes)
    assert types.keys() >= {"concept", "pattern", "snippet", "tool"}
    assert any(node.id.startswith(f"pattern.{domain}.anti.") for node in nodes)


def questions_of(pack: str) -> list[dict[str, Any]]:
    text = (pack_sources.PACKS / pack / "questions.toml").read_text("utf-8")
    return list(tomllib.loads(text)["questions"])


def check_questions(pack: str) -> None:
    """Check that the questions name nodes, and are not those nodes' labels in other order."""
    labels = {node.id: node.label for node in pack_sources.read(pack)}
    questions = questions_of(pack)
    assert len(questions) >= QUESTIONS
    for question in questions:
        asked = _long_words(question["ask"])
        assert question["nodes"], question["ask"]
        for ident in question["nodes"]:
            label = _long_words(labels[ident])
            assert len(asked & label) <= len(label) / 2, f"{question['ask']}: as in {ident}"


def _long_words(text: str) -> set[str]:
    return {word for word in text.lower().replace(",", " ").split() if len(word) > 4}


def as_given(node: SourceNode, pack: str) -> dict[str, Any]:
    """Return *node* as a client gives it to the memory."""
    payload = {"definition": node.text}
    if node.codes:
        payload["code"] = "\n".join(code.text for code in node.codes)
    return {
        "id": node.id,
        "type": node.type,
        "label": node.label,
        "payload": payload,
        "links": [{"to": link.to, "rel": link.rel, "w": link.w} for link in node.links],
        "tags": node.tags,
        "meta": {"source": f"seedpack:{pack}"},
    }
