"""Constraints of a task: the rules in force about style, versions and tests, and the files in hand.

Rules are facts, lessons and patterns of this repository. They are found by such words and tags
whatever the question is, because they apply to all work here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from commonplace.compose import tokens
from commonplace.compose.answer import summary_line
from commonplace.compose.lines import inside
from commonplace.foreign import one_line
from commonplace.graph.rules import states_rule
from commonplace.graph.scoring import words_of
from commonplace.index.document import document
from commonplace.records.nodes import node_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from commonplace.graph.files_in_hand import FileInHand
    from commonplace.recall.consultation import Consultation
    from commonplace.recall.query import Query
    from commonplace.records import Record

RULES_MAX = 6
LOOKED_AT = 40
RULE_TOKENS_MAX = 50
KINDS = frozenset(["fact", "lesson", "pattern", "anti_pattern"])
# Common words of such rules; the search ranks by them, and `is_rule` decides.
WORDS = "style convention formatting lint version language standard tests testing policy constraint"


class Rule(NamedTuple):
    """A rule in force, and the line that says it."""

    id: str
    line: str


def rules(
    consultation: Consultation, query: Query, tags: Collection[str], without: Collection[str] = ()
) -> list[Rule]:
    """Return the rules of the logs that *query* names, those about *tags* of the task first."""
    asked = query.with_(
        text=" ".join([WORDS, *sorted(tags)]),
        kinds=KINDS,
        node_types=frozenset(["pattern"]),
        limit=LOOKED_AT,
        cutoff=False,
        elsewhere=False,
        extend=False,
    )
    wanted = {tag.lower() for tag in tags}
    found: list[tuple[int, int, Rule]] = []
    for place, hit in enumerate(consultation.hits(asked, by_words=True)):
        if hit.id not in without and is_rule(hit.record):
            line = tokens.cut(summary_line(hit.record, short=True), RULE_TOKENS_MAX)
            is_tagged = not wanted.isdisjoint(tag.lower() for tag in hit.record.tags)
            found.append((not is_tagged, place, Rule(hit.id, inside(f"- {line}"))))
    return [rule for _tagged, _place, rule in sorted(found)[:RULES_MAX]]


def is_rule(record: Record) -> bool:
    """Whether a record states a rule about style, versions or tests."""
    return states_rule(words_of(node_of(record, links=False)), document(record).shown)


def file_lines(files: Iterable[FileInHand]) -> list[str]:
    """Return what files in hand declare, a line for each file, and for each file of tests."""
    lines: list[str] = []
    for one in files:
        if one.signatures:
            lines.append(f"- {one_line(one.path)} declares: {'; '.join(one.signatures)}")
        lines += [
            f"- {one_line(path)} tests {one_line(one.path)}: {', '.join(names)}"
            for path, names in one.tests.items()
        ]
    return lines
