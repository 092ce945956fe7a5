"""Records as one Markdown page, to read, print or put into a wiki. It cannot be imported again.

Titles are bold lines, not headings: an agent may read the page, and no memory begins a heading.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.foreign import block, longer_fence, one_line, origin
from commonplace.index.document import document
from commonplace.records import Lesson, from_line
from commonplace.rules import is_statement, rate, tally

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from commonplace.records import Record

TITLE_CHARS_MAX = 100


def to_markdown(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a page with the records in *lines*: a chapter a log, the newest first."""
    records: list[Record] = []
    outcomes: dict[str, list[str]] = {}
    for line in lines:
        record = from_line(line.encode())
        if record.kind == "feedback":
            outcomes.setdefault(record.fields["of"], []).append(record.fields["outcome"])
        elif not is_statement(record.kind):
            records.append(record)
    yield "# Memories"
    by_repo: dict[str, list[Record]] = {}
    for record in records:
        by_repo.setdefault(record.repo, []).append(record)
    for repo in sorted(by_repo):
        yield f"\n---\n\n**{one_line(repo) or 'no repository'}**"
        for record in sorted(by_repo[repo], key=lambda one: one.timestamp, reverse=True):
            yield from _section(record, outcomes.get(record.id, []))


def _section(record: Record, outcomes: list[str]) -> Iterator[str]:
    text = block(record.lesson if isinstance(record, Lesson) else document(record).text)
    context = one_line(record.context) if isinstance(record, Lesson) else ""
    title = context or one_line(document(record).title) or one_line(text)
    if len(title) > TITLE_CHARS_MAX:
        title = title[: TITLE_CHARS_MAX - 1].rsplit(" ", 1)[0] + " …"
    yield f"\n**{title}**\n"
    fence = longer_fence(text, "```")
    # A fence that the text leaves open would take in the rest of the page.
    is_open = sum(line.lstrip("> ").startswith("```") for line in text.split("\n")) % 2
    yield f"{text}\n{fence}" if is_open else text
    if isinstance(record, Lesson) and record.command:
        command = block(record.command)
        fence = longer_fence(command, "```")
        yield f"\n{fence}sh\n{command}\n{fence}"
    yield f"\n{'; '.join(_facts(record, outcomes))}"


def _facts(record: Record, outcomes: list[str]) -> Iterator[str]:
    kind = record.event_type if isinstance(record, Lesson) else record.kind
    yield f"*{one_line(record.timestamp[:10])}, {one_line(kind) or 'lesson'}*"
    stated = record.fields.get("success_rate")
    found = rate(stated if isinstance(stated, str) else "", tally(outcomes))
    if found is not None and found.tried:
        yield f"worked {found}"
    if where := origin(record.meta):
        yield where
    if record.tags:
        yield one_line(", ".join(record.tags))
    yield f"`{one_line(record.id)}`"
