"""The kinds of candidate: what each must hold, and what accepting one does.

A new kind is one row of `KINDS`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from commonplace.errors import PackUnknown, RecordNotFound
from commonplace.records import KINDS as RECORD_KINDS
from commonplace.records import Pattern
from commonplace.rules import one_side

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from commonplace.inbox.candidate import Candidate
    from commonplace.recaller import Recaller
    from commonplace.records import Record

    Identity = Callable[[Mapping[str, Any]], tuple[str, ...]]
    # Takes the memory, the number of the home whose inbox holds the candidate, and the candidate.
    Accept = Callable[[Recaller, int, Candidate], dict[str, Any]]


def _values(*names: str) -> Identity:
    return lambda fields: tuple(str(fields.get(name) or "") for name in names)


def _ends(rel: str = "") -> Identity:
    """Return what tells one link from another: whichever side names it, it is the same one."""
    return lambda fields: one_side(fields["of"], rel or fields["rel"], fields["to"])


def _steps_or_name(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what tells one skill from another: its steps, as its name comes from goals."""
    return (str(fields.get("steps") or fields.get("name") or ""),)


def _write_record(memory: Recaller, home_number: int, one: Candidate) -> dict[str, Any]:
    fields = one.record
    repo = fields.get("repo") or one.repo
    links = [*fields.get("links", []), *_links_to_evidence(one)]
    meta = {"source": "inbox", **({"session": one.session} if one.session else {})}
    entry = memory.prepare(
        {
            **({"event_type": "learned"} if one.kind == "lesson" else {}),
            **fields,
            "kind": one.kind,
            "repo": memory.log_to_write(repo) if repo else None,
            "agent_id": fields.get("agent_id") or one.agent or None,
            "links": links or None,
            "meta": {**meta, **fields.get("meta", {})},
        }
    )
    if _is_known(memory, entry.record.id, home_number):
        # What the candidate was proposed from may be known by now, and more.
        return memory.edit(entry.record.id, lambda known: _gain(known, entry.record, one)).fields
    memory.store([entry], home_number)
    return entry.record.fields


def _is_known(memory: Recaller, ident: str, home_number: int) -> bool:
    """Whether that home has the record with the whole id *ident*, and shows it."""
    try:
        found = memory.find(ident)
    except RecordNotFound:
        return False
    return found.record.id == ident and found.home_number == home_number


def _gain(known: Record, accepted: Record, one: Candidate) -> dict[str, Any]:
    """Return what changes in *known*: it gains evidence, and the words that somebody has edited."""
    changes = {name: value for name, value in one.changed.items() if name != "repo"}
    more = [link for link in accepted.links if link["to"] not in known.sources]
    if more:
        changes["links"] = [*known.links, *more]
    if isinstance(known, Pattern) and isinstance(accepted, Pattern):
        episodes = [ep for ep in accepted.source_episodes if ep not in known.source_episodes]
        if episodes:
            changes["source_episodes"] = [*known.source_episodes, *episodes]
        if accepted.confidence > known.confidence:
            changes.setdefault("confidence", accepted.confidence)
    return changes


def _links_to_evidence(one: Candidate) -> list[dict[str, str]]:
    """Return links to the evidence that the record does not name in a field of its own."""
    named = sources_of(one)
    return [{"to": ident, "rel": "derived_from"} for ident in one.evidence if ident not in named]


def sources_of(one: Candidate) -> tuple[str, ...]:
    """Return the sources that the record of a candidate names in its own fields."""
    return RECORD_KINDS[one.kind]({"kind": one.kind, "id": "", **one.record}).sources


def _write_link(rel: str = "") -> Accept:
    # A link is written beside the record that it is about, whichever inbox held it.
    def write(memory: Recaller, _home_number: int, one: Candidate) -> dict[str, Any]:
        fields = one.record
        meta = {"source": "inbox", **fields.get("meta", {})}
        weight = fields.get("w", 1.0)
        name = rel or fields["rel"]
        return memory.link(fields["of"], name, fields["to"], weight=weight, meta=meta).fields

    return write


def _write_skill(memory: Recaller, home_number: int, one: Candidate) -> dict[str, Any]:
    from commonplace import skills  # noqa: PLC0415 (see `accept`)
    from commonplace.skills.format import STEPS, valid_text  # noqa: PLC0415

    name, home = one.record["name"], memory.homes[home_number]
    steps = one.record.get("steps")
    # Somebody may have edited the name, and the text must have the same.
    text = valid_text(name, one.record["text"], {STEPS: str(steps)} if steps else None)
    path = skills.create(home, name, text)
    return {"id": f"skill:{name}", "kind": "skill", "path": str(path)}


def _release_pack(memory: Recaller, home_number: int, one: Candidate) -> dict[str, Any]:
    from commonplace.log import pack_logs  # noqa: PLC0415 (rarely needed)

    name, home = one.record["name"], memory.homes[home_number]
    try:
        described = pack_logs.describe(home.quarantine, name)
        if described is None or described.checksum != one.record["checksum"]:
            raise FileNotFoundError(name)
        released = pack_logs.release(home, name)
    except FileNotFoundError:
        raise PackUnknown(name, pack_logs.names(home.quarantine)) from None
    return {"id": f"pack:{name}", "kind": "pack", **released._asdict()}


# What a record rests on, and what is counted or noted about it: nobody's to write.
FIXED = frozenset(
    ["id", "kind", "meta", "links", "source", "source_episodes", "usage_count", "last_used"]
)


class Kind(NamedTuple):
    """A row of the table."""

    noun: str
    plural: str
    # The field with its words: the one that is shown first, and that an edit changes.
    text: str
    required: tuple[str, ...]
    # Two proposals with the same identity, in one repository, are one candidate.
    identity: Identity
    # One sentence; the names in braces are those of its fields.
    effect: str
    accept: Accept
    # How many wait at most, so that one kind does not crowd out another.
    waiting_max: int = 50
    # The fields that an edit may change; of a record, all but those in `FIXED`.
    editable: tuple[str, ...] = ()


KINDS = {
    "lesson": Kind(
        "lesson",
        "lessons",
        "lesson",
        ("lesson",),
        _values("context", "command", "lesson"),
        "Writes this lesson, which recall then finds.",
        _write_record,
        waiting_max=100,
    ),
    "pattern": Kind(
        "pattern",
        "patterns",
        "pattern",
        ("pattern",),
        _values("pattern"),
        "Writes this pattern with its evidence; recall then finds it.",
        _write_record,
        waiting_max=100,
    ),
    "anti_pattern": Kind(
        "anti-pattern",
        "anti-patterns",
        "what_fails",
        ("what_fails",),
        _values("what_fails", "why", "prevention"),
        "Writes this anti-pattern with its evidence; recall then warns of it.",
        _write_record,
    ),
    "link": Kind(
        "link",
        "links",
        "",
        ("of", "rel", "to"),
        _ends(),
        "Links `{of}` {rel} `{to}`; both stay as they are.",
        _write_link(),
        editable=("rel", "w"),
    ),
    "contradiction": Kind(
        "contradiction",
        "contradictions",
        "",
        ("of", "to"),
        _ends("contradicts"),
        "Marks `{of}` and `{to}` as contradicting, until `commonplace resolve` keeps one of them.",
        _write_link("contradicts"),
        editable=("w",),
    ),
    "supersession": Kind(
        "supersession",
        "supersessions",
        "",
        ("of", "to"),
        _ends("supersedes"),
        "Recall no longer shows `{to}`, because `{of}` supersedes it.",
        _write_link("supersedes"),
        editable=("w",),
    ),
    "skill": Kind(
        "skill",
        "skills",
        "text",
        ("name", "text"),
        _steps_or_name,
        "Writes the skill `{name}`, which recall then finds and `skill export` gives to agents.",
        _write_skill,
        editable=("name", "text"),
    ),
    "pack": Kind(
        "pack",
        "packs",
        "text",
        ("name", "checksum", "text"),
        _values("name", "checksum"),
        "Takes the pack `{name}` out of quarantine; recall then finds its records.",
        _release_pack,
        editable=("text",),
    ),
}
