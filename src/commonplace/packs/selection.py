"""Which records go into a pack: `domain:cpp type:skill since:90d`. All words must hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.errors import UsageError
from commonplace.graph.contexts import BUILT
from commonplace.packs.privacy import Hidden, is_private, is_tagged
from commonplace.records import KINDS
from commonplace.records.nodes import NODE_TYPES, type_of
from commonplace.rules.statements import STATEMENT_KINDS, subjects

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from commonplace.memory import Memory
    from commonplace.records import Record

_WORDS = ("domain", "repo", "kind", "type", "tag", "pack", "since", "until")


class Selection(NamedTuple):
    """The words of a selection, by name; several values of one name: any of them."""

    domain: frozenset[str] = frozenset()
    repo: frozenset[str] = frozenset()
    kind: frozenset[str] = frozenset()
    type: frozenset[str] = frozenset()
    tag: frozenset[str] = frozenset()
    pack: frozenset[str] = frozenset()
    since: str = ""
    until: str = ""

    def admits(self, record: Record) -> bool:
        tags = {tag.casefold() for tag in record.tags}
        return (
            (not self.kind or record.kind in self.kind)
            and (not self.type or type_of(record) in self.type)
            and (not self.tag or not self.tag.isdisjoint(tags))
            and (not self.pack or pack_of(record) in self.pack)
            and (not self.domain or not self.domain.isdisjoint(_domains(record, tags)))
        )


def parse(text: str) -> Selection:
    """Return the selection in *text*; `*` or nothing chooses all records."""
    found: dict[str, Any] = {}
    for word in text.split():
        if word == "*":
            continue
        name, colon, value = word.partition(":")
        if name not in _WORDS or not colon or not value:
            raise UsageError(
                f"the selection has `{word[:80]}`, which is no filter",
                f"write `*` for everything, or one of {', '.join(_WORDS)} with a value: `tag:x`",
            )
        if name in ("since", "until"):
            found[name] = value
        else:
            values = {one for one in value.split(",") if one}
            folded = values if name in ("repo", "kind", "type") else set(map(str.casefold, values))
            found[name] = found.get(name, frozenset()) | folded
    for name, known in (("kind", KINDS), ("type", NODE_TYPES)):
        unknown = sorted(found.get(name, frozenset()) - set(known))
        if unknown:
            raise UsageError(
                f"there is no {name} `{unknown[0]}`", f"choose among {', '.join(known)}"
            )
    return Selection(**found)


@dataclass
class LeftOut:
    """What a selection admits and a pack does not hold, by the reason."""

    private: int = 0
    # What came of a private record, names its id or repeats its text.
    telling_private: int = 0
    of_other_agents: int = 0
    of_packs: int = 0
    # Contexts that were built from other records, and repeat them.
    built_contexts: int = 0
    # Skills and notes: they are files of the home, and a pack holds records.
    files: int = 0
    # Links between two records of which one is not in the pack.
    links: int = 0
    # Feedback on records that are not in the pack.
    feedback: int = 0

    def as_dict(self) -> dict[str, int]:
        return {name: count for name, count in vars(self).items() if count}


def select(memory: Memory, chosen: Selection, left_out: LeftOut) -> Iterator[Record]:
    """Return the current records of trusted homes that *chosen* admits, and then their links.

    Left out are notes, ledgers and handoffs of other agents, what is tagged `private`, with all
    links to it and all that would tell of it, skills and notes, which are files, contexts that were
    built from other records, and the records of installed packs, unless *chosen* names their pack.
    """
    # Before anything is written for them: the words may not be valid.
    return _select(memory, chosen, _all(memory, chosen), left_out)


def _select(
    memory: Memory, chosen: Selection, records: Iterable[Record], left_out: LeftOut
) -> Iterator[Record]:
    # Of each record only a number is kept: there may be a million of them.
    seen: set[int] = set()
    hidden = Hidden(lambda: _all(memory, Selection(), superseded=True), memory.agent_id)
    left_out.of_other_agents += _count_notes_of_others(memory, chosen)
    for record in records:
        if (
            record.kind in STATEMENT_KINDS
            or not chosen.admits(record)
            or hash(record.id) in seen  # The nearest home comes first.
        ):
            continue
        if is_private(record, memory.agent_id):
            left_out.private += is_tagged(record)
            left_out.of_other_agents += not is_tagged(record)
        elif record.kind not in KINDS:
            left_out.files += 1
        elif not chosen.pack and pack_of(record):
            left_out.of_packs += 1
        elif record.fields.get("event_type") == BUILT and record.kind == "context":
            left_out.built_contexts += 1
        elif record.id in hidden.ids:
            left_out.telling_private += 1
        else:
            seen.add(hash(record.id))
            yield _without_links_to(record, hidden.ids)
    yield from _statements(memory, chosen, seen, hidden, left_out)


def _statements(
    memory: Memory, chosen: Selection, seen: set[int], hidden: Hidden, left_out: LeftOut
) -> Iterator[Record]:
    """Yield what is said about the records that are in the pack, and about no other."""
    for one in memory.select_everywhere(
        all_repos=True, automatic=True, archived=True, kinds=("link", "feedback")
    ):
        if one.kind != "link" and not chosen.admits(one):
            continue
        is_in = [hash(ident) in seen for ident in subjects(one)]
        if all(is_in) and not hidden.is_told_by(one):
            yield one
        elif one.kind == "link":
            left_out.links += any(is_in)
        else:
            left_out.feedback += 1


def pack_of(record: Record) -> str:
    """Return the pack that a record came with; "" if none, or if it was edited here since."""
    origin = record.meta.get("origin")
    if not isinstance(origin, str) or not origin.startswith("pack:") or "edited" in record.meta:
        return ""
    return origin.removeprefix("pack:").partition(" ")[0]


def _all(
    memory: Memory,
    chosen: Selection,
    *,
    superseded: bool = False,
    kinds: str | None = None,
    agent: str | None = None,
) -> Iterator[Record]:
    return memory.select_everywhere(
        superseded=superseded,
        kinds=kinds,
        agent=agent,
        repo=sorted(chosen.repo) or None,
        all_repos=not chosen.repo,
        automatic=True,
        archived=True,
        since=chosen.since or None,
        until=chosen.until or None,
    )


def _count_notes_of_others(memory: Memory, chosen: Selection) -> int:
    """Return how many notes of other agents *chosen* would admit: each agent is shown its own."""
    agents = {
        folder.name
        for home in memory.homes
        if memory.trusts(home) and home.notes_folder.is_dir()
        for folder in home.notes_folder.iterdir()
    }
    return sum(
        chosen.admits(note)
        for agent in sorted(agents - {memory.agent_id})
        for note in _all(memory, chosen, kinds="note", agent=agent)
    )


def _domains(record: Record, tags: Iterable[str]) -> set[str]:
    """Return the domains that a record belongs to: its tags, and the parts of its id."""
    found = {*tags, *(part.casefold() for part in record.id.split("."))}
    for holder in (record.fields, record.meta, record.fields.get("payload")):
        given = holder.get("domain_tags") if isinstance(holder, dict) else None
        if isinstance(given, list):
            found |= {one.casefold() for one in given if isinstance(one, str)}
    return found


def _without_links_to(record: Record, ids: set[str]) -> Record:
    """Return *record* without links and children that name one of *ids*."""
    fields = dict(record.fields)
    if isinstance(links := fields.get("links"), list):
        fields["links"] = [
            link for link in links if not (isinstance(link, dict) and link.get("to") in ids)
        ]
    if isinstance(children := fields.get("children"), dict):
        fields["children"] = {name: one for name, one in children.items() if one not in ids}
    return record if fields == record.fields else type(record)(fields)
