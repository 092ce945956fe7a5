"""The inbox: what waits for a person's decision, one file each in `.state/inbox/`.

A candidate is written to the log only when somebody accepts it. Those of a home that is not
trusted, or that rest on a forgotten record, are neither shown nor accepted.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from commonplace.characters import remove_hidden
from commonplace.errors import CandidateNotFound, IdAmbiguous, RecordInvalid
from commonplace.files.lock import hold
from commonplace.inbox import store
from commonplace.inbox.candidate import (
    Candidate,
    Proposal,
    SolvedFailure,
    counts,
    counts_text,
)
from commonplace.inbox.evidence import find_hidden
from commonplace.inbox.kinds import FIXED, KINDS, Kind
from commonplace.inbox.store import damaged
from commonplace.inbox.store import paths as _paths
from commonplace.log.prepare import remove_hidden_everywhere
from commonplace.records import KINDS as RECORD_KINDS
from commonplace.records import make, slug
from commonplace.redaction.fields import redact
from commonplace.redaction.text import redact_text

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from commonplace.recaller import Recaller
    from commonplace.records import Record
    from commonplace.where.home import Home

__all__ = [
    "KINDS",
    "Candidate",
    "Proposal",
    "SolvedFailure",
    "accept",
    "add",
    "add_solved",
    "candidates",
    "counts",
    "counts_text",
    "damaged",
    "drop",
    "edit",
    "find",
    "propose",
    "settle",
    "trusted",
    "waiting",
    "withdraw",
    "withdraw_hidden",
]

EVIDENCE_MAX = 200


def propose(home: Home, proposal: Proposal) -> Candidate:
    """Add *proposal* to the inbox of *home* and return its candidate.

    What waits already gains the new evidence, and another session counts in `seen`. What was
    dropped before is not added: its `seen` is 0.
    """
    with hold(home.spool_lock):
        return add(home, proposal)


def add(home: Home, proposal: Proposal) -> Candidate:
    """Do the same where `home.spool_lock` is held already, as while events are ingested."""
    clean: dict[str, Any] = _clean(
        {"title": proposal.title, "fields": proposal.fields, "reason": proposal.reason}
    )
    kind = _kind(proposal.kind)
    _check(proposal.kind, clean["fields"])
    identity = kind.identity(clean["fields"])
    digest = _digest(proposal.repo, proposal.kind, *identity)
    words = slug(f"{kind.noun} {identity[0] or clean['title']}", 32)
    return _add(
        home,
        Candidate(
            id=f"cand-{words}-{digest}",
            seen=1,
            at=proposal.at,
            agent=proposal.agent,
            repo=proposal.repo,
            session=proposal.session,
            kind=proposal.kind,
            title=" ".join(str(clean["title"]).split()),
            fields=clean["fields"],
            evidence=list(dict.fromkeys(proposal.evidence))[-EVIDENCE_MAX:],
            against=list(dict.fromkeys(proposal.against))[-EVIDENCE_MAX:],
            reason=clean["reason"],
            worth=proposal.rank,
            batch=proposal.batch,
        ),
    )


def add_solved(home: Home, solved: SolvedFailure) -> Candidate:
    """Add a failure that was solved; its texts are redacted, and `home.spool_lock` is held."""
    digest = _digest(solved.repo, solved.intent, solved.error, solved.worked)
    ident = f"cand-{slug(solved.intent, 24) or 'command'}-{digest}"
    return _add(home, Candidate(id=ident, seen=1, **solved._asdict()))


def _add(home: Home, candidate: Candidate) -> Candidate:
    if _digest_of(candidate) in store.dropped(home):
        return candidate._replace(seen=0)
    before = store.read(store.path_of(home, candidate.id))
    if before is not None:
        candidate = candidate._replace(
            seen=before.seen + (before.session != candidate.session),
            lesson=before.lesson,
            changed=before.changed,
            batch=before.batch,
            evidence=list(dict.fromkeys([*before.evidence, *candidate.evidence]))[-EVIDENCE_MAX:],
        )
    if candidate != before:
        store.write(home, candidate)
    if before is None:
        _limit(home, candidate.kind)
    return candidate


def _limit(home: Home, kind: str) -> None:
    """Remove the lowest ranks of *kind*, if too many wait; what somebody has edited stays."""
    most = KINDS[kind].waiting_max
    if sum(1 for _path in _paths(home)) <= most:
        return  # The usual case, without reading any of them.
    waiting = candidates(home, kind=kind)
    surplus = len(waiting) - most
    for one in [one for one in reversed(waiting) if not one.is_edited][: max(surplus, 0)]:
        store.remove(home, one)


# --- What waits -----------------------------------------------------------------------------------


def trusted(memory: Recaller) -> list[Home]:
    """Return the homes whose inboxes may be shown."""
    return [home for home in memory.homes if memory.trusts(home)]


def candidates(*homes: Home, kind: str = "") -> list[Candidate]:
    """Return the candidates in the inboxes of *homes*, of one kind or all; highest rank first."""
    if kind:
        _kind(kind)
    read = (store.read(path) for home in homes for path in _paths(home))
    found = (one for one in read if one and kind in ("", one.kind))
    return sorted(found, key=lambda one: (-one.rank, -one.at, one.id))


def waiting(memory: Recaller, kind: str = "") -> list[Candidate]:
    """Return the candidates that may be shown and accepted, highest rank first."""
    found = candidates(*trusted(memory), kind=kind)
    hidden = find_hidden(memory, found)
    return [one for one in found if one.id not in hidden]


def find(memory: Recaller, prefix: str) -> tuple[Home, Candidate]:
    """Return the one candidate whose id starts with *prefix*, and its home, the nearest first.

    `cand-` may be left out. Raises `CandidateNotFound`, also if what it rests on was forgotten.
    """
    home, one = _find(memory, prefix)
    _check_shown(memory, [one])
    return home, one


def _check_shown(memory: Recaller, found: Sequence[Candidate]) -> None:
    for ident, source in find_hidden(memory, found).items():
        raise CandidateNotFound(
            ident,
            f"`{ident}` rests on `{source}`, which was forgotten",
            f"`commonplace forget --undo {source}` brings both back;"
            f" `commonplace inbox drop {ident}` removes the candidate",
        )


def _find(memory: Recaller, prefix: str) -> tuple[Home, Candidate]:
    # A repository that got a home of its own leaves its older candidates in the user's.
    matches: list[tuple[Home, Candidate]] = []
    for home in trusted(memory):
        if whole := _read_whole(home, prefix):
            return home, whole
        matches = [
            (home, one)
            for one in candidates(home)
            if prefix and (one.id.startswith(prefix) or one.id.startswith(f"cand-{prefix}"))
        ]
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise IdAmbiguous(prefix, [one.id for _home, one in matches])
    raise CandidateNotFound(prefix)


def _read_whole(home: Home, ident: str) -> Candidate | None:
    """Return the candidate with the whole id *ident*, without reading the others."""
    is_name = ident.startswith("cand-") and not any(char in ident for char in "/\\:")
    return store.read(store.path_of(home, ident)) if is_name else None


# --- Decisions ------------------------------------------------------------------------------------


def accept(memory: Recaller, prefixes: Collection[str]) -> Iterator[dict[str, Any]]:
    """Do what each candidate proposes, remove it, and yield the fields of what was written.

    A record goes to the home whose inbox held it: what was learned in private stays there. Nothing
    is accepted unless all *prefixes* name candidates. What another process has decided meanwhile is
    left out.
    """
    found = _find_all(memory, prefixes)
    _check_shown(memory, [one for _home, one in found])
    for home, listed in found:
        with hold(home.spool_lock):
            one = store.read(store.path_of(home, listed.id))
            if one is None:
                continue
            written = KINDS[one.kind].accept(memory, memory.homes.index(home), one)
            store.remove(home, one)
        yield written


def drop(memory: Recaller, prefixes: Collection[str]) -> list[Candidate]:
    """Remove candidates and return them; the same content is not proposed again.

    Nothing is dropped unless all *prefixes* name candidates.
    """
    found = _find_all(memory, prefixes)
    for home, one in found:
        with hold(home.spool_lock):
            store.add_dropped(home, [_digest_of(one)])
            store.remove(home, one)
    return [one for _home, one in found]


def withdraw(memory: Recaller, is_done: Callable[[Candidate], bool]) -> None:
    """Remove the candidates that *is_done* tells and nobody has edited.

    They may be proposed again.
    """
    for home in trusted(memory):
        if any(not one.is_edited and is_done(one) for one in candidates(home)):
            with hold(home.spool_lock):
                for one in candidates(home):
                    if not one.is_edited and is_done(one):
                        store.remove(home, one)


def withdraw_hidden(memory: Recaller) -> None:
    """Remove what rests on a record that was forgotten, so that its words do not stay here."""
    hidden = find_hidden(memory, candidates(*trusted(memory)))
    if hidden:
        withdraw(memory, lambda one: one.id in hidden)


def settle(memory: Recaller, first: Record, second: Record) -> None:
    """Drop what waits about a contradiction of two records: it was decided in another way.

    Nor is it proposed later.
    """
    decided = [
        _digest(repo, kind, *KINDS[kind].identity({"of": of.id, "to": to.id}))
        for kind in ("contradiction", "supersession")
        for of, to in ((first, second), (second, first))
        for repo in {first.repo, second.repo}
    ]
    for home in trusted(memory):
        waiting = [one for one in candidates(home) if _digest_of(one) in decided]
        if waiting or (home is memory.home and not set(decided) <= set(store.dropped(home))):
            with hold(home.spool_lock):
                store.add_dropped(home, decided)
                for one in waiting:
                    store.remove(home, one)


def edit(
    memory: Recaller,
    prefix: str,
    *,
    lesson: str | None = None,
    error: str | None = None,
    worked: str | None = None,
    fields: Mapping[str, Any] | None = None,
) -> Candidate:
    """Change a candidate and return it: others of its *fields* by name.

    *lesson* is what was learned, of a lesson or a pattern; *error* and *worked* are those of a
    failure that was solved. Raises `RecordInvalid` for what is not the candidate's to change.
    """
    home, one = find(memory, prefix)
    changes: dict[str, Any] = dict(fields or {})
    given = {"lesson": lesson, "error": error, "worked": worked}
    if not one.worked:
        if error is not None or worked is not None:
            raise RecordInvalid(
                "error" if error is not None else "worked", "is only of a failure that was solved"
            )
        if lesson is not None:
            changes[_lesson_field(one)] = lesson
        given = {}
    elif changes:
        raise RecordInvalid(
            next(iter(changes)),
            "cannot be changed here",
            "give `--lesson`, `--error` or `--worked`",
        )
    texts: dict[str, Any] = {
        name: _redact(text) for name, text in given.items() if text is not None
    }
    refused = [name for name in changes if name not in _editable(one)]
    if refused:
        raise RecordInvalid(
            refused[0], f"is no field to change of a candidate of the kind {one.kind}",
            f"change {', '.join(_editable(one))}; or drop the candidate",
        )  # fmt: skip
    # A process that ingests events counts in the same files.
    with hold(home.spool_lock):
        one = store.read(store.path_of(home, one.id)) or one
        changed = _clean({**one.changed, **changes})
        one = one._replace(changed=changed, **texts)
        if changes:
            _check(one.kind, one.record)
        store.write(home, one)
    return one


def _find_all(memory: Recaller, prefixes: Collection[str]) -> list[tuple[Home, Candidate]]:
    found = [_find(memory, prefix) for prefix in prefixes]
    return list({one.id: (home, one) for home, one in found}.values())


def _lesson_field(one: Candidate) -> str:
    """Return the field that holds what was learned."""
    words = KINDS[one.kind].text
    if one.kind not in ("lesson", "pattern"):
        hint = f"`--field {words}=TEXT` changes its words" if words else "it has no words to change"
        raise RecordInvalid("lesson", f"is no field of a candidate of the kind {one.kind}", hint)
    return words


def _editable(one: Candidate) -> Sequence[str]:
    """Return the names of the fields that an edit may change."""
    kind = KINDS[one.kind]
    if kind.editable:
        return kind.editable
    return [name for name in RECORD_KINDS[one.kind].known if name not in FIXED]


def _check(kind: str, fields: dict[str, Any]) -> None:
    """Raise `RecordInvalid` unless accepting *fields* can write a record."""
    for name in KINDS[kind].required:
        value = fields.get(name)
        if not isinstance(value, str) or not value.strip():
            raise RecordInvalid(name, f"must be text: a candidate of the kind {kind} needs it")
    if kind in RECORD_KINDS:
        given = {"event_type": "learned", **fields, "kind": kind}
        make(given, now=datetime.fromtimestamp(0, UTC), repo="any", agent_id="")
    if len(json.dumps(fields)) > store.CANDIDATE_BYTES_MAX // 2:
        raise RecordInvalid("fields", "are too long for the inbox", "propose a shorter text")


def _kind(name: str) -> Kind:
    if name not in KINDS:
        raise RecordInvalid("kind", f"is `{name}`, not one of {', '.join(KINDS)}")
    return KINDS[name]


def _digest_of(one: Candidate) -> str:
    return one.id.rpartition("-")[2]


def _digest(*parts: str) -> str:
    return blake2b("\x1f".join(parts).encode("utf-8", "replace"), digest_size=5).hexdigest()


def _redact(text: str) -> str:
    return redact_text(remove_hidden(text))[0]


def _clean(fields: dict[str, Any]) -> dict[str, Any]:
    """Return *fields* without hidden characters and secrets."""
    return dict(redact(remove_hidden_everywhere(fields))[0])
