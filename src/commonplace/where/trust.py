"""Which homes of repositories the user trusts.

The home that a clone brings was written by others. Until the user trusts it, its records are marked
in recall, nothing of it is shown automatically, and its settings for hooks are not used. A home
that we made ourselves is trusted.

The mark holds the identity of the folder that the home is in, and a random word that is kept in
git's own folder there, where no clone can bring it: another clone at the same place is not the one
that was trusted, even if the system gives it the same inode.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from commonplace.errors import unusable
from commonplace.files import atomic
from commonplace.files.plain import read_small

if TYPE_CHECKING:
    from pathlib import Path

    from commonplace.where.home import Home

_MARK_BYTES_MAX = 200


def is_trusted(home: Home) -> bool:
    """Whether the user has trusted *home*, it was made here, or there is nothing in it yet.

    The quarantine is never trusted: a pack leaves it.
    """
    if home.is_quarantine:
        return False
    try:
        marked = read_small(home.trust_mark, _MARK_BYTES_MAX) == _identity(home, _word(home))
    except OSError:
        marked = False
    return marked or is_empty(home)


def is_empty(home: Home) -> bool:
    """Whether *home* holds nothing that somebody could have written."""
    try:
        return not os.listdir(home.path)
    except OSError:
        return False


def trust(home: Home) -> None:
    try:
        word = _word(home)
        place = _place_of_word(home)
        if not word and place is not None:
            word = os.urandom(16).hex().encode()
            atomic.write(place, [word])
        atomic.write(home.trust_mark, [_identity(home, word)])
    except OSError as error:
        raise unusable(home.trust_mark, error) from error


def distrust(home: Home) -> None:
    with suppress(FileNotFoundError):
        home.trust_mark.unlink()


def _place_of_word(home: Home) -> Path | None:
    """Return the file in git's folder; `None` if that is not in the folder around the home."""
    git = home.path.parent / ".git"
    return git.resolve() / "commonplace-trust" if git.is_dir() else None


def _word(home: Home) -> bytes:
    place = _place_of_word(home)
    try:
        return read_small(place, _MARK_BYTES_MAX) if place is not None else b""
    except FileNotFoundError:
        return b""


def _identity(home: Home, word: bytes) -> bytes:
    found = os.stat(home.path.parent)
    return f"{found.st_dev}:{found.st_ino}:".encode() + word
