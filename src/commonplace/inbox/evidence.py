"""Which candidates rest on a record that was forgotten: they are hidden, as that record is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.rules import SeveralHomes, is_gone, standings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commonplace.inbox.candidate import Candidate
    from commonplace.recaller import Recaller


def find_hidden(memory: Recaller, found: Iterable[Candidate]) -> dict[str, str]:
    """Return those of *found* that are hidden, by their ids, each with a record that is gone."""
    needed = {one.id: _needs(one) for one in found}
    ids = {ident for some in needed.values() for ident in some}
    if not ids:
        return {}  # The usual case of what hooks propose: no index is opened.
    with memory.engine().reading() as readers:
        # A home that is not trusted must not hide anything of the user's.
        homes = zip(memory.homes, readers, strict=True)
        facts = SeveralHomes([reader for home, reader in homes if memory.trusts(home)])
        gone = {ident for ident, one in standings(ids, facts).items() if is_gone(one)}
    return {
        ident: next(one for one in some if one in gone)
        for ident, some in needed.items()
        if not gone.isdisjoint(some)
    }


def _needs(one: Candidate) -> list[str]:
    """Return the ids of what it rests on: its evidence, or both ends of a link."""
    ends = (one.fields.get(name) for name in ("of", "to"))
    return [*map(str, one.evidence), *(end for end in ends if isinstance(end, str))]
