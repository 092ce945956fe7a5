"""The id of a repository: a random word in git's own folder, which moves with the repository.

No clone brings it, since git never checks out a file into its own folder. It cannot be guessed, and
a home holds only its hash: so nobody who makes a repository can claim the log of another one.

Beside the word stands the path that it was written at. If the folder there still has the same word,
this repository is a copy of it (`cp -r`) and not the same one.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from commonplace.files import atomic
from commonplace.files.plain import read_named
from commonplace.records.ids import blake2b

FILE = "commonplace-id"
PREFIX = "id-"
_WORD_BYTES = 16
_FILE_BYTES_MAX = 8 << 10


def key_of(common: Path) -> str:
    """Return the hash of the id of the repository at *common*; "" if it has none of its own."""
    word, path = _read(common)
    if not word or _is_copy(common, word, path):
        return ""
    return _hash(word)


def ensure(common: Path) -> str:
    """Return the hash of the id of the repository, and write the id if it is missing or was moved.

    Returns "" if git's folder cannot be written.
    """
    word, path = _read(common)
    if path == str(common) and word:
        return _hash(word)
    if not word or _is_copy(common, word, path):
        word = os.urandom(_WORD_BYTES).hex()
    try:
        atomic.write(common / FILE, [f"{word}\n{common}\n".encode("utf-8", "surrogateescape")])
    except OSError:
        return ""
    return _hash(word)


def _read(common: Path) -> tuple[str, str]:
    """Return the word and the path in the file; two empty texts if there is none."""
    with suppress(OSError, ValueError):  # The path may be invalid on this system.
        raw = read_named(common / FILE, _FILE_BYTES_MAX)
        word, _end, path = raw.decode("utf-8", "surrogateescape").partition("\n")
        if len(word) == 2 * _WORD_BYTES:
            return word, path.removesuffix("\n")
    return "", ""


def _is_copy(common: Path, word: str, path: str) -> bool:
    return path != str(common) and _read(Path(path))[0] == word


def _hash(word: str) -> str:
    return PREFIX + blake2b(word.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
