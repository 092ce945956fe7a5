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
                os.write(descriptor, f"{_digest(ident)} {when}\n".encode())
            finally:
                os.close(descriptor)


def find(homes: Sequence[Home], ident: str) -> str:
    """Return when the record with the whole id *ident* was last erased; "" if it was not."""
    times = []
    for home in homes:
        try:
            lines = read_start(home.erased_file, BYTES_MAX).decode("ascii", "replace").split("\n")
        except OSError:
            continue
        times += [line.partition(" ")[2] for line in lines if line.startswith(_digest(ident))]
    return max(times, default="")


def _digest(ident: str) -> str:
    return blake2b(ident.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
