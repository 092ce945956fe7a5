"""Constraints of a task: the rules in force about style, versions and tests, and the files in hand.

Rules are facts, lessons and patterns of this repository, or of all of them. The index notes which
records state one, so they are found whatever the question is: they apply to all work here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from commonplace.compose import tokens
from commonplace.compose.answer import summary_line
from commonplace.compose.lines import inside
from commonplace.foreign import one_line, origin
from commonplace.graph import fetch
from commonplace.graph.context_logs import logs_named
from commonplace.index import topics
from commonplace.where.repository import ALL_REPOSITORIES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from commonplace.graph.files_in_hand import FileInHand
    from commonplace.recall.consultation import Consultation
    from commonplace.recall.hits import Address, Hit
    from commonplace.recall.query import Query
    from commonplace.recaller import Recaller
    from commonplace.records.nodes import GraphNode

RULES_MAX = 12
# Of these, the first come before what the files in hand declare, the rest after it.
RULES_FIRST = 6
# So many of the newest rules are looked at, and of those so many are compared with the question.
LOOKED_AT = 100
COMPARED = 40
RULE_TOKENS_MAX = 50


class Rule(NamedTuple):
    """A rule in force, and the line that says it."""

    id: str
    line: str


def rules(
    consultation: Consultation,
    query: Query,
    tags: Collection[str],
    without: Collection[str] = (),
    likeness: Callable[[Collection[Address]], Mapping[Address, float]] | None = None,
) -> list[Rule]:
    """Return the rules of the logs that *query* names: those about *tags* of the task first.

    Then those most like the question, by *likeness*, and the newest.
    """
    asked = query.with_(kinds=topics.RULE_KINDS, node_types=topics.RULE_NODE_TYPES, elsewhere=False)
    repos = asked.repos
    names = [topics.RULE] if repos is None else [topics.rules_in(one) for one in sorted(repos)]
    wanted = {tag.lower() for tag in tags}
    found = [
        (wanted.isdisjoint(tag.lower() for tag in hit.record.tags), place, hit)
        for place, hit in enumerate(consultation.of_topics(names, LOOKED_AT, asked))
        if hit.id not in without
    ]
    best = sorted(found, key=lambda one: one[:2])[:COMPARED]
    if likeness is not None and len(best) > RULES_FIRST:
        alike = likeness([hit.address for _tagged, _place, hit in best])
        best.sort(key=lambda one: (one[0], -alike[one[2].address], one[1]))
    return [_rule(hit) for _tagged, _place, hit in best[:RULES_MAX]]


def rule_nodes(
    memory: Recaller, query: str, tags: Collection[str] = (), repo: str = ""
) -> list[GraphNode]:
    """Return the rules in force as nodes, those with *tags* first, then those most like *query*.

    Those of *repo*, else of this repository, and of all of them.
    """
    logs: frozenset[str] | None = None
    if repo:
        logs = frozenset([*logs_named(memory, repo), ALL_REPOSITORIES])
    elif memory.repository.known:
        logs = frozenset(memory.scope().here())
    asked = memory.query(query, automatic=True, all_repos=True, cutoff=False, limit=RULES_MAX)

    def find(consultation: Consultation) -> list[Rule]:
        alike = consultation.search(asked).matching.likenesses
        return rules(consultation, asked.with_(repos=logs), tags, likeness=alike)

    found, _notes = memory.engine().consult(asked, find, lambda _found: [])
    return list(fetch.nodes(memory, [rule.id for rule in found]).values())


def _rule(hit: Hit) -> Rule:
    source = origin(hit.record.meta, short=True)
    line = tokens.cut(summary_line(hit.record, short=True), RULE_TOKENS_MAX)
    return Rule(hit.id, inside(f"- ({source}) {line}" if source else f"- {line}"))


def file_lines(files: Collection[FileInHand]) -> list[str]:
    """Return what files in hand declare, a line for each file, and for each file of tests."""
    tested: dict[str, list[str]] = {}
    for one in files:
        for path in one.tests:
            tested.setdefault(path, []).append(one.path)
    lines: list[str] = []
    for one in files:
        if one.signatures:
            lines.append(f"- {one_line(one.path)} declares: {'; '.join(one.signatures)}")
        for path, names in one.tests.items():
            # A header and its source have the same tests, which are named once.
            if path in tested:
                about = ", ".join(file for file in tested.pop(path) if file != path)
                what = f"tests {one_line(about)}" if about else "has the tests"
                lines.append(f"- {one_line(path)} {what}: {', '.join(names)}")
    return lines
