"""Link episodes with what was involved: the nodes they name, and the records rated meanwhile.

Few and sure links: a node is named by its whole id, or by a label that no other word looks like.
`uses` and `related_to` hide nothing, so a wrong one does little harm.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.errors import CommonplaceError
from commonplace.graph import fetch
from commonplace.graph.tree import NODE_KINDS
from commonplace.index.ports import Filter
from commonplace.index.terms import query_terms
from commonplace.learn import marks
from commonplace.recall import graph
from commonplace.recall.visibility import shown_cards
from commonplace.records import Episode, Node, micros
from commonplace.records.nodes import type_of
from commonplace.where.repository import ALL_REPOSITORIES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from commonplace.index.ports import Reader
    from commonplace.recaller import Recaller
    from commonplace.records import Record

LINKS_MAX = 8
EPISODES_AT_ONCE = 200
TEXT_CHARS_MAX = 4000
CANDIDATES_MAX = 50
TOKENS_MAX = 400
RATED_WEIGHT = 1.0
# A node that is named by its id is meant; one whose label is mentioned probably is.
ID_WEIGHT = 0.8
LABEL_WEIGHT = 0.5
# Every session has a persona, and episodes are linked with knowledge, not with one another.
_LINKED_TYPES = frozenset(["concept", "skill", "fact", "snippet", "pattern", "tool", "task"])
_WORD = re.compile(r"[\w][\w./:-]*[\w]")
_DISTINCT = re.compile(r"[A-Z0-9_]")
_LABEL_CHARS_MIN = 3


class Involved(NamedTuple):
    """A record that an episode involves."""

    id: str
    rel: str
    w: float

    def as_link(self) -> dict[str, Any]:
        """Return the link of the episode to it."""
        return {"to": self.id, "rel": self.rel, "w": self.w}


def with_links(memory: Recaller, episode: Mapping[str, Any]) -> dict[str, Any]:
    """Return the checked fields of an episode that will be written, with the links it lacks."""
    fields = dict(episode)
    links = list(fields.get("links") or [])
    linked = {link.get("to") for link in links if isinstance(link, dict)}
    with memory.engine().reading() as readers:
        found = _named(memory, readers, Episode(fields))
    links += [one.as_link() for one in found if one.id not in linked]
    return {**fields, "links": links} if links else fields


def link_new(
    memory: Recaller, *, dry_run: bool = False, is_over: Callable[[], bool] = lambda: False
) -> int:
    """Link the episodes of the nearest home that are new since the last run; return how many links.

    What is linked stays as it is, so a run may be killed anywhere.
    """
    home, count = memory.home, 0
    while memory.trusts(home) and home.path.is_dir() and not is_over():
        with memory.engine().reading() as readers:
            mark = marks.read(home.observations_mark, readers[0].build())
            after = readers[0].records_after(mark.key, ["episode"])
            found = list(islice(after, EPISODES_AT_ONCE))
        count += link(memory, [record for _key, _log, record in found], dry_run=dry_run)
        if dry_run or not found:
            break
        marks.write(home.observations_mark, mark._replace(key=found[-1][0]))
    return count


def link(memory: Recaller, episodes: Sequence[Record], *, dry_run: bool = False) -> int:
    """Link *episodes* with what they involve and are not linked with yet; return how many links."""
    with memory.engine().reading() as readers:
        stated = graph.statements(readers, [one.id for one in episodes])
        linked = {frozenset((one.edge.of, one.edge.to)) for one in stated}
        wanted = [
            (episode.id, one)
            for episode in episodes
            if isinstance(episode, Episode)
            for one in _involved(memory, readers, episode)
            if frozenset((episode.id, one.id)) not in linked
        ]
    written = 0
    for ident, one in wanted if not dry_run else ():
        try:
            memory.link(ident, one.rel, one.id, weight=one.w, meta={"source": "observation"})
        except CommonplaceError:
            continue  # It was forgotten meanwhile.
        written += 1
    return len(wanted) if dry_run else written


def _involved(memory: Recaller, readers: Sequence[Reader], episode: Episode) -> list[Involved]:
    found = {one.id: one for one in _named(memory, readers, episode)}
    found |= {one.id: one for one in _rated(memory, readers, episode)}
    return sorted(found.values(), key=lambda one: (-one.w, one.id))[:LINKS_MAX]


# --- What it names --------------------------------------------------------------------------------


def _named(memory: Recaller, readers: Sequence[Reader], episode: Episode) -> list[Involved]:
    """Return the nodes whose id or label the episode mentions, the surest first."""
    filter_ = fetch.visible(memory)
    paths = list(_paths(episode.fields))
    tasks = set(_tasks(episode.fields))
    texts = list(_texts(episode.fields))
    text = " \n ".join([*texts, *paths])[:TEXT_CHARS_MAX]
    words = {*paths, *tasks, *islice(_WORD.findall(text), TOKENS_MAX)}
    found: dict[str, Involved] = {}
    for record in _nodes(readers, filter_, words, text):
        if type_of(record) not in _LINKED_TYPES or record.id == episode.id:
            continue
        if record.id in words and (_is_path(record.id) or record.id in tasks):
            rel = "related_to" if record.id in tasks.union(paths) else "uses"
            found[record.id] = Involved(record.id, rel, ID_WEIGHT)
        elif _mentions(text, record.label):
            found.setdefault(record.id, Involved(record.id, "uses", LABEL_WEIGHT))
    return sorted(found.values(), key=lambda one: (-one.w, one.id))[:LINKS_MAX]


def _nodes(
    readers: Sequence[Reader], filter_: Filter, ids: Collection[str], text: str
) -> Iterator[Node]:
    """Yield the nodes with one of *ids*, and those that have most words of *text*."""
    kinds = Filter(kinds=NODE_KINDS)
    wanted = query_terms(text)
    for home, reader in enumerate(readers):
        if home in filter_.without_homes:
            continue
        matches = reader.match(wanted, reader.statistics(wanted), kinds, CANDIDATES_MAX)
        keys = {*reader.keys(ids).values(), *(key for key, _score in matches)}
        cards = shown_cards(readers, home, reader.cards(keys).values(), filter_)
        for record in reader.records([card.key for card in cards]).values():
            if isinstance(record, Node):
                yield record


def _is_path(ident: str) -> bool:
    """Whether an id can be meant by its mention: `skill.cpp` or `src/app.py`, not `test`."""
    return "." in ident or "/" in ident


def _mentions(text: str, label: str) -> bool:
    """Whether *text* has *label* as whole words; one word must not look like any other."""
    words = label.split()
    if len(words) == 1 and (len(label) < _LABEL_CHARS_MIN or not _DISTINCT.search(label)):
        return False
    phrase = r"\s+".join(map(re.escape, words))
    case = re.NOFLAG if len(words) == 1 else re.IGNORECASE
    return bool(re.search(rf"(?<!\w){phrase}(?!\w)", text, case))


def _tasks(fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield the ids that the node of the episode's task may have: `q1`, or `task.q1`."""
    task = fields.get("task_id")
    if isinstance(task, str) and task:
        yield task
        yield f"task.{task}"


def _paths(fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield the files of an episode."""
    context = fields.get("context")
    files = context.get("files_involved") if isinstance(context, dict) else ()
    for several in (files, fields.get("artifacts_produced")):
        if isinstance(several, list):
            yield from (name for name in several if isinstance(name, str))


def _texts(fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield what an episode says about its task, its actions and its errors."""
    context = fields.get("context")
    if isinstance(context, dict):
        yield from _strings([context.get("goal")])
    yield from _strings([fields.get("task_id")])
    for entries, names in (
        (fields.get("errors_encountered"), ("type", "message", "resolution")),
        (fields.get("action_log"), ("target", "error")),
    ):
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict):
                yield from _strings(entry.get(name) for name in names)


def _strings(values: Iterable[object]) -> Iterator[str]:
    return (value for value in values if isinstance(value, str) and value)


# --- What was rated meanwhile ---------------------------------------------------------------------


def _rated(memory: Recaller, readers: Sequence[Reader], episode: Episode) -> Iterator[Involved]:
    """Yield the records of this repository that the same agent rated during the episode."""
    start = micros(episode.timestamp)
    filter_ = Filter(
        kinds=frozenset(["feedback"]),
        agent=episode.agent_id,
        repos=frozenset([episode.repo, ALL_REPOSITORIES]),
        since_micros=start,
        until_micros=start + round(episode.duration_seconds * 1e6),
        archived=True,
    )
    without = fetch.visible(memory).without_homes
    for home, reader in enumerate(readers):
        if home in without:
            continue
        cards = shown_cards(readers, home, reader.select(filter_), filter_)
        for record in reader.records([card.key for card in cards]).values():
            yield Involved(str(record.fields["of"]), "uses", RATED_WEIGHT)
