"""Packs whose signers are not trusted: search them apart, and have the user review them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace import inbox
from commonplace.ask import answer
from commonplace.errors import PackUnknown, UsageError
from commonplace.foreign import UNTRUSTED
from commonplace.log import pack_logs
from commonplace.memory import Memory
from commonplace.packs import importing
from commonplace.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commonplace.log.pack_logs import Released
    from commonplace.packs.importing import Changes
    from commonplace.where.home import Home

IN_QUARANTINE = "in quarantine; not trusted"
_CANDIDATE = "pack"
_RANK = 5.0


def ask(memory: Memory, request: Mapping[str, Any]) -> Any:  # noqa: ANN401 (what JSON can hold)
    """Return what `commonplace.ask` answers from the quarantine alone, marked as such."""
    home = importing.home_of(memory).quarantine
    settings = {name: memory.settings[name] for name in SETTINGS}
    # Even where every repository is trusted, a pack is not.
    settings["trust.repositories"] = False
    with Memory(
        [home],
        memory.repository,
        agent_id=memory.agent_id,
        clock=memory.now,
        settings=settings,
        background=False,
    ) as opened:
        return _marked(answer(opened, {**request, "repo": None, "all_repos": True}))


def _marked(found: Any) -> Any:  # noqa: ANN401 (see above)
    """Return an answer in which each mark says what is not trusted: here, no repository is."""
    if isinstance(found, str):
        return found.replace(UNTRUSTED, IN_QUARANTINE)
    if isinstance(found, dict):
        return {name: _marked(value) for name, value in found.items()}
    return [_marked(value) for value in found] if isinstance(found, list) else found


def settle(memory: Memory, done: Changes) -> None:
    """After an import, have the user review what went to quarantine, and no longer the rest."""
    if done.dry_run:
        return
    if done.place == importing.QUARANTINED:
        propose_review(memory, done)
    else:
        withdraw_review(memory, done.name)


def propose_review(memory: Memory, done: Changes) -> None:
    """Put a pack that went to quarantine into the inbox. What the pack says is not repeated."""
    flagged = (
        f"{done.flagged:,} of them read like instructions to a model. " if done.flagged else ""
    )
    inbox.propose(
        importing.home_of(memory),
        inbox.Proposal(
            kind=_CANDIDATE,
            title=f"{done.name}, by a signer whom you do not trust",
            fields={
                "name": done.name,
                "checksum": done.checksum,
                "signer": done.signer,
                "text": f"{done.records:,} records, signed by {done.signer}. {flagged}"
                f"`commonplace recall --quarantined QUESTION` searches them.",
            },
            evidence=(),
            at=memory.now().timestamp(),
            rank=_RANK,
        ),
    )


def withdraw_review(memory: Memory, name: str) -> None:
    """Take the pack from the inbox: it was decided in another way."""
    inbox.withdraw(memory, lambda one: one.kind == _CANDIDATE and one.fields.get("name") == name)


def release(memory: Memory, name: str) -> Released:
    """Install a pack that is in quarantine."""
    home = importing.home_of(memory)
    try:
        released = pack_logs.release(home, name)
    except FileNotFoundError:
        if name in pack_logs.names(home):
            raise UsageError(f"the pack `{name}` is installed", "it is trusted already") from None
        raise PackUnknown(name, pack_logs.names(home.quarantine)) from None
    withdraw_review(memory, name)
    return released


def by_signer(home: Home, signer: str) -> list[str]:
    """Return the packs in quarantine that *signer* has signed, in order."""
    return [
        name
        for name in pack_logs.names(home.quarantine)
        if (found := importing.whole(home.quarantine, name)) and found.signer == signer
    ]
