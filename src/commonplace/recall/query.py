"""A question: its text, its filters, and the limits of the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from commonplace.errors import UsageError
from commonplace.index.ports import Filter
from commonplace.recall.dates import parse_moment
from commonplace.records import EVENT_TYPES, KINDS, micros
from commonplace.records.nodes import TYPES_WITH_RECORDS
from commonplace.vocabulary import LIMIT_MAX

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import datetime
    from pathlib import Path
    from typing import Self

# The kinds of files in the index, besides the kinds of records.
TEXT_KINDS = ("note", "skill")


class Narrowing(TypedDict, total=False):
    """The options of a question in the library and the server."""

    repo: str | Iterable[str] | None
    all_repos: bool
    kinds: str | Iterable[str] | None
    nodes: bool
    types: str | Iterable[str] | None
    tags: str | Iterable[str] | None
    agent: str | None
    files: str | Iterable[str] | None
    since: str | None
    until: str | None
    as_of: str | None
    archived: bool
    superseded: bool
    limit: int
    tokens_max: int
    cutoff: bool
    relevance_min: float
    without: Iterable[str]
    automatic: bool


class Query(Filter):
    """A question. `build` makes one from options and checks names and dates; `check` the rest."""

    text: str = ""
    limit: int = 5
    tokens_max: int = 500
    # Without the cut-off the plain ranking comes back, up to *limit*: for measuring.
    cutoff: bool = True
    as_of_micros: int | None = None
    # Files the agent works on: records that name them are preferred.
    files: tuple[str, ...] = ()
    # A minimum relevance above that of the settings.
    relevance_min: float = 0.0
    # Whether more candidates are proposed where the filters leave few.
    extend: bool = True
    # If nothing in `repos` is relevant, the best memory of another repository is shown.
    elsewhere: bool = False
    # Asked by a hook, not by an agent: automatic recalls are not counted as savings.
    automatic: bool = False
    # The repository the question comes from, which is preferred, and its folder.
    here: str = ""
    root: Path | None = None

    @classmethod
    def build(
        cls,
        text: str,
        *,
        now: datetime,
        here: str = "",
        reader: str = "",
        root: Path | None = None,
        repo: str | Iterable[str] | None = None,
        kinds: str | Iterable[str] | None = None,
        nodes: bool = True,
        types: str | Iterable[str] | None = None,
        tags: str | Iterable[str] | None = None,
        agent: str | None = None,
        files: str | Iterable[str] | None = (),
        since: str | None = None,
        until: str | None = None,
        as_of: str | None = None,
        **options: Any,  # noqa: ANN401 (the fields of this class)
    ) -> Self:
        """Return the question *text* with its filters; raise `UsageError` for wrong options.

        Names may be given alone or as several; dates as dates or ages. A kind includes the nodes
        of that type, unless *nodes* is false: for callers that need the fields of the kind.
        """
        kinds = _check_known(_set_of(kinds), (*KINDS, *TEXT_KINDS), "kind")
        return cls(
            text=text,
            repos=_set_of(repo),
            kinds=kinds,
            node_types=(kinds or frozenset()).intersection(TYPES_WITH_RECORDS if nodes else ()),
            types=_check_known(_set_of(types), EVENT_TYPES, "type"),
            tags=frozenset(tag.lower() for tag in _set_of(tags) or ()),
            agent=agent,
            files=tuple(sorted(_set_of(files) or ())),
            since_micros=micros(parse_moment(since, now, "since")) if since else None,
            until_micros=micros(parse_moment(until, now, "until", end_of_day=True))
            if until
            else None,
            as_of_micros=micros(parse_moment(as_of, now, "as_of", end_of_day=True))
            if as_of
            else None,
            without=frozenset(options.pop("without", ())),
            reader=reader,
            here=here,
            root=root,
            **options,
        )

    def check(self) -> None:
        """Raise `UsageError` if the text is empty or a limit is out of range."""
        if not self.text.strip():
            raise UsageError(
                "the question is empty", "give a few words about the task or the error"
            )
        if not 1 <= self.limit <= LIMIT_MAX:
            raise UsageError(f"the limit is {self.limit}, not between 1 and {LIMIT_MAX}")
        if self.tokens_max < 0:
            raise UsageError(f"the token bound is {self.tokens_max}, under 0")


def _set_of(values: str | Iterable[str] | None) -> frozenset[str] | None:
    """Return one name or several as a set."""
    if values is None:
        return None
    return frozenset([values] if isinstance(values, str) else values)


def _check_known(
    names: frozenset[str] | None, known: Collection[str], what: str
) -> frozenset[str] | None:
    unknown = sorted((names or frozenset()) - set(known))
    if unknown:
        raise UsageError(f"there is no {what} `{unknown[0]}`", f"choose among {', '.join(known)}")
    return names
