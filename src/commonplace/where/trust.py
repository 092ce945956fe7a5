"""Which homes of repositories the user trusts.

The home that a clone brings was written by others. Until the user trusts it, its records are marked
in recall, nothing of it is shown automatically, and its settings for hooks are not used. A home
that we made ourselves is trusted. The mark holds the identity of the folder that the home is in:
another clone at the same place is not the one that was trusted.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from commonplace.errors import unusable
from commonplace.files import atomic
from commonplace.files.plain import read_small

if TYPE_CHECKING:
    from commonplace.where.home import Home

_MARK_BYTES_MAX = 100


def is_marked(home: Home) -> bool:
    """Whether the user has trusted *home*, or it was made here."""
    try:
        return read_small(home.trust_mark, _MARK_BYTES_MAX) == _identity(home)
    except OSError:
        return False


def trust(home: Home) -> None:
    try:
        atomic.write(home.trust_mark, [_identity(home)])
    except OSError as error:
        raise unusable(home.trust_mark, error) from error


def distrust(home: Home) -> None:
    with suppress(FileNotFoundError):
        home.trust_mark.unlink()


def _identity(home: Home) -> bytes:
    found = os.stat(home.path.parent)
    return f"{found.st_dev}:{found.st_ino}".encode()
