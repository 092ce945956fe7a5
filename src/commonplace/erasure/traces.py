"""Texts that can be found again without keeping them: by their digests.

An erasure that was interrupted must find the copies of a text that it has already removed from the
log. A note of the text itself would be one more copy, so a `Trace` keeps only how long the text is
and three hashes. Two of them have 20 bits: they can be computed for every place of a file at once,
and say too little to restore a text. The third is a digest, compared only where these two agree.
Whoever can read a trace can test a guess of the whole text, and nothing less.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Shorter texts (a tag, an outcome) may occur elsewhere by chance.
CHARS_MIN = 12
_HASH_BITS = 20
_DIGEST_BYTES = 16
_BLOCK_BYTES = 1 << 20
# A polynomial in this number, modulo 2**64: the hash of a window is a difference of two sums.
_BASE = 0x9E3779B97F4A7C15
_INVERSE = pow(_BASE, -1, 1 << 64)
_SHIFT = np.uint64(64 - _HASH_BITS)


class Trace(NamedTuple):
    """One text: its length in bytes, hashes of its first bytes and of all, and its digest."""

    length: int
    first: int
    whole: int
    digest: str


def traces_of(texts: Iterable[str]) -> frozenset[Trace]:
    """Return the traces of each text that is long enough, as it is and as JSON writes it."""
    return frozenset(
        _trace(form)
        for text in texts
        if len(text) >= CHARS_MIN
        for form in {
            text.encode("utf-8", "surrogatepass"),
            json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass"),
            json.dumps(text)[1:-1].encode(),
        }
    )


def find(raw: bytes, traces: Iterable[Trace]) -> Iterator[int]:
    """Yield the offsets at which one of the texts begins in *raw*, in no particular order.

    Copies of one text that overlap are found once. The time is that of a few passes over *raw*,
    whatever it holds.
    """
    wanted = sorted(traces)
    if not wanted or len(raw) < CHARS_MIN:
        return
    longest = wanted[-1].length
    is_first = np.zeros(1 << _HASH_BITS, dtype=bool)
    is_first[[trace.first for trace in wanted]] = True
    # Blocks bound the memory; each reaches so far into the next that no text is cut.
    hashes = _Windows(min(len(raw), _BLOCK_BYTES + longest))
    for start in range(0, len(raw) - CHARS_MIN + 1, _BLOCK_BYTES):
        block = raw[start : start + _BLOCK_BYTES + longest]
        hashes.read(block)
        firsts = hashes.everywhere(CHARS_MIN)[:_BLOCK_BYTES]
        places = np.flatnonzero(is_first[firsts])
        for trace in wanted if len(places) else ():
            near = places[(firsts[places] == trace.first) & (places + trace.length <= len(block))]
            end = 0
            for place in near[hashes.at(near, trace.length) == trace.whole].tolist():
                if place < end:
                    continue
                if _digest(block[place : place + trace.length]) == trace.digest:
                    end = place + trace.length
                    yield start + place


class _Windows:
    """The hashes of all windows of a block of bytes."""

    def __init__(self, bytes_max: int) -> None:
        self._powers, self._inverses = _powers(_BASE, bytes_max), _powers(_INVERSE, bytes_max)
        self._sums = np.zeros(1, dtype=np.uint64)

    def read(self, block: bytes) -> None:
        """Take *block*; the hashes are of its windows from now on."""
        self._sums = np.zeros(len(block) + 1, dtype=np.uint64)
        terms = np.frombuffer(block, dtype=np.uint8) * self._powers[: len(block)]
        np.cumsum(terms, out=self._sums[1:])

    def everywhere(self, length: int) -> np.ndarray:
        """Return the hash of each window of *length* bytes."""
        sums = self._sums[length:] - self._sums[:-length]
        hashes: np.ndarray = (sums * self._inverses[: len(sums)]) >> _SHIFT
        return hashes

    def at(self, places: np.ndarray, length: int) -> np.ndarray:
        """Return the hash of the window of *length* bytes at each of *places*."""
        sums = self._sums[places + length] - self._sums[places]
        hashes: np.ndarray = (sums * self._inverses[places]) >> _SHIFT
        return hashes


def _powers(base: int, count: int) -> np.ndarray:
    """Return the powers of *base* from 0 on, modulo 2**64."""
    powers = np.full(count, base, dtype=np.uint64)
    powers[:1] = 1
    return np.multiply.accumulate(powers, out=powers)


def _trace(raw: bytes) -> Trace:
    hashes = _Windows(len(raw))
    hashes.read(raw)
    first, whole = (int(hashes.everywhere(length)[0]) for length in (CHARS_MIN, len(raw)))
    return Trace(len(raw), first, whole, _digest(raw))


def _digest(raw: bytes) -> str:
    return blake2b(raw, digest_size=_DIGEST_BYTES).hexdigest()
