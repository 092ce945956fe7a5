"""What the tests of the packs share: their form, their questions, and their nodes as given."""

from __future__ import annotations

import tomllib
from typing import Any

from tools import pack_sources

from commonplace.vocabulary import INVERSES, SYMMETRIC

NODES = 65
QUESTIONS = 15
# Recall hides what is superseded, and marks what contradicts: an antipattern must be found as well.
RELATIONS = ("elaborates", "example_of", "is_a", "related_to", "uses")


def questions_of(pack: str) -> list[dict[str, Any]]:
    text = (pack_sources.PACKS / pack / "questions.toml").read_text("utf-8")
    return list(tomllib.loads(text)["questions"])


def check_form(pack: str, domain: str) -> None:
    """Check what `pack.toml` says, the nodes, their links, and that each node has its own words."""
    about = pack_sources.about(pack)
    assert (about["name"], about["domain_tags"]) == (pack, [domain])
    nodes = pack_sources.read(pack)
    assert len(nodes) >= NODES
    assert {node.type for node in nodes} == {"concept", "fact", "pattern", "snippet", "tool"}
    assert {node.id.split(".")[1] for node in nodes} == {domain}
    assert all(node.text.count("Asked as: ") == 1 for node in nodes)
    stated = [_stated(node.id, link) for node in nodes for link in node.links]
    assert {rel for rel, _one, _other in stated} <= set(RELATIONS)
    assert sorted(stated) == sorted(set(stated))


def _stated(ident: str, link: pack_sources.Link) -> tuple[str, str, str]:
    """Return the one form of a link that can be written in two ways."""
    if link.rel in SYMMETRIC:
        one, other = sorted((ident, link.to))
        return link.rel, one, other
    if link.rel in INVERSES:
        return INVERSES[link.rel], link.to, ident
    return link.rel, ident, link.to


def check_questions(pack: str) -> None:
    ids = {node.id for node in pack_sources.read(pack)}
    questions = questions_of(pack)
    assert len({one["ask"] for one in questions}) >= QUESTIONS
    assert all(one["nodes"] and set(one["nodes"]) <= ids for one in questions)


def as_nodes(pack: str) -> list[dict[str, Any]]:
    """Return the nodes of a pack as the library takes them."""
    return [_as_given(node) for node in pack_sources.read(pack)]


def _as_given(node: pack_sources.SourceNode) -> dict[str, Any]:
    payload = {"definition": node.text}
    if node.codes:
        payload["code"] = "\n".join(code.text for code in node.codes)
        payload["language"] = node.codes[0].language
    return {
        "id": node.id,
        "type": node.type,
        "label": node.label,
        "payload": payload,
        "links": [{"to": link.to, "rel": link.rel, "w": link.w} for link in node.links],
        "tags": node.tags,
    }
