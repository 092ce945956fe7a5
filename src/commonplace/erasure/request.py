"""Erase the record that a user names by the beginning of its id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.erasure import Receipt, erase, erased, pending
from commonplace.errors import IdAmbiguous, RecordNotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from commonplace.where.home import Home


def erase_record(
    homes: Sequence[Home],
    ident: str,
    *,
    resolve: Callable[[str], tuple[int, str]],
    trusts: Callable[[Home], bool],
    when: str,
    progress: Callable[[int], None],
) -> Receipt:
    """Erase the one record whose id starts with *ident*, and note that it was erased *when*.

    *resolve* returns the number of a record's home, and its whole id.
    """
    scope: Sequence[Home] = [home._replace(trusted=trusts(home)) for home in homes]
    try:
        number, whole = resolve(ident)
    except RecordNotFound:
        whole = _begun(homes, ident)
        if not whole:
            raise
    else:
        if not trusts(homes[number]):
            # What a stranger's home says about other records does not reach out of it.
            scope = homes[number : number + 1]
    receipt = erase(scope, whole, progress)
    erased.add(scope, whole, when)
    return receipt


def _begun(homes: Sequence[Home], ident: str) -> str:
    """Return the id of an interrupted erasure, which may have removed the record already."""
    begun = [one.id for one in pending(homes) if one.id.startswith(ident)]
    if len(begun) > 1 and ident not in begun:
        raise IdAmbiguous(ident, sorted(begun))
    return ident if ident in begun else next(iter(begun), "")
