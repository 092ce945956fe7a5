"""`commonplace list`: the records page by page, one a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.cli.arguments import add_home, add_json, suggest, whole_number
from commonplace.cli.columns import cut, print_lines, width_of
from commonplace.cli.filters import add_filters, narrowing_of
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import note, number_of, print_json, style, terminal_columns
from commonplace.foreign import one_line
from commonplace.records.nodes import NODE_KIND, type_of
from commonplace.vocabulary import LIMIT_MAX

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from commonplace.recall.hits import Hit
    from commonplace.recall.listing import Page

SORTS = ("newest", "oldest", "rate", "uses")
# Of a line; a narrower terminal breaks the lines itself.
TEXT_COLUMNS_MIN = 20
EXAMPLES = (
    "commonplace list",
    "commonplace list --tag ci --since 30d --sort rate",
    "commonplace list --all-repos --page 2",
)


def add_arguments(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add_filters(parser)
    add("--superseded", action="store_true", help="Show what newer records supersede, too")
    sort = add(
        "--sort",
        metavar="ORDER",
        default=SORTS[0],
        help=f"One of {', '.join(SORTS)} (default: %(default)s)",
    )
    suggest(sort, SORTS)
    add(
        "--limit",
        metavar="N",
        type=whole_number(1, LIMIT_MAX),
        default=20,
        help="Records on a page (default: %(default)s)",
    )
    add("--page", metavar="N", type=whole_number(1), default=1, help="Page to show (default: 1)")
    add_home(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    with open_memory(args.home) as memory:
        narrowing = narrowing_of(args)
        narrowing |= {"superseded": args.superseded, "limit": args.limit}
        found = memory.list_records(args.sort, args.page, **narrowing)
        here = memory.repository.name
    if args.json:
        print_json(as_dict(found))
        return 0
    print_page(found)
    if not found.total:
        note("No records match")
        if args.repo is None and not args.all_repos:
            note(f"hint: only `{here}` was listed; `--all-repos` lists every log")
    elif found.pages > 1:
        more = f"; `--page {found.page + 1}` is the next" if found.page < found.pages else ""
        note(f"page {found.page:,} of {found.pages:,}, {number_of(found.total, 'record')}{more}")
    return 0


def as_dict(found: Page) -> dict[str, Any]:
    """Return a page as `--json` prints it."""
    rows = [{**hit.as_dict(), "prefix": found.prefixes[hit.id]} for hit in found.hits]
    for row in rows:
        del row["score"], row["why"]
    return {"page": found.page, "pages": found.pages, "total": found.total, "records": rows}


def print_page(found: Page) -> None:
    """Print one line for each record: date, type, success rate, beginning of the id, text."""
    rows = [_cells(hit, found.prefixes[hit.id]) for hit in found.hits]
    widths = [max((width_of(row[at]) for row in rows), default=0) for at in range(4)]
    columns = terminal_columns()
    room = None
    if columns is not None:
        room = max(TEXT_COLUMNS_MIN, columns - sum(widths) - 2 * len(widths))
    lines = []
    for date, kind, rate, ident, text in rows:
        before = f"{date}  {kind:{widths[1]}}  {rate:>{widths[2]}}  "
        shown = text if room is None else cut(text, room)
        lines.append(f"{before}{style(f'{ident:{widths[3]}}', 'dim')}  {shown}")
    print_lines(lines)


def _cells(hit: Hit, prefix: str) -> tuple[str, str, str, str, str]:
    kind = str(hit.record.fields.get("event_type") or hit.kind)
    if kind == NODE_KIND:  # Nodes count as what they are.
        kind = type_of(hit.record)
    rate = str(hit.rate) if hit.rate is not None and hit.rate.tried else ""
    date, kind, ident = map(one_line, (hit.timestamp[:10], kind, prefix))
    return date, kind, rate, ident, hit.text
