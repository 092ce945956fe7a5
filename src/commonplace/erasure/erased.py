"""When a record was erased, by a digest of its id: nothing of its text is kept.

So that `forget --undo` of an erased record can say that it is gone, rather than never heard of.
"""

from __future__ import annotations

import os
from hashlib import blake2b
from typing import TYPE_CHECKING

from commonplace.files.plain import open_for_append, read_start

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commonplace.where.home import Home

BYTES_MAX = 1 << 20


def add(homes: Sequence[Home], ident: str, when: str) -> None:
    """Note in each of *homes* that the record *ident* was erased at *when*."""
    for home in homes:
        if home.state_folder.is_dir():
            descriptor = open_for_append(home.erased_file)
            try:
                os.write(descriptor, f"{digest(ident)} {when}\n".encode())
            finally:
                os.close(descriptor)


def find(homes: Sequence[Home], ident: str) -> str:
    """Return when the record with the whole id *ident* was last erased; "" if it was not."""
    return max((times(home).get(digest(ident), "") for home in homes), default="")


def times(home: Home) -> dict[str, str]:
    """Return when records of *home* were last erased, by the digests of their ids."""
    try:
        lines = read_start(home.erased_file, BYTES_MAX).decode("ascii", "replace").split("\n")
    except OSError:
        return {}
    found: dict[str, str] = {}
    for line in lines:
        name, _, when = line.partition(" ")
        found[name] = max(when, found.get(name, ""))
    return found


def digest(ident: str) -> str:
    return blake2b(ident.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
