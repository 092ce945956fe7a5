"""Estimate the number of tokens in a text without a tokenizer, rather too high than too low."""

from __future__ import annotations

import math
from functools import lru_cache

BYTES_PER_TOKEN = 4
# The first and the last of the characters that are wide: CJK and emoji.
_WIDE = (
    ("\u1100", "\u11ff"),
    ("\u2e80", "\u9fff"),
    ("\uac00", "\ud7af"),
    ("\uf900", "\ufaff"),
    ("\uff00", "\uffef"),
    ("\U0001f000", "\U0003ffff"),
)


def count(text: str) -> int:
    """Return the estimated number of tokens in *text*.

    A token is about four bytes; a CJK character or emoji is nearly a whole token.
    """
    by_bytes = len(text.encode("utf-8", "replace")) / BYTES_PER_TOKEN
    if text.isascii():
        return math.ceil(by_bytes)
    # Not by a pattern: to compile this one takes milliseconds, and most commands need it.
    wide = sum([text.count(one) for one in set(text) if one >= _WIDE[0][0] and _is_wide(one)])
    narrow = len(text) - wide
    other = len(text) - len(text.encode("ascii", "ignore")) - wide
    return math.ceil(max(by_bytes, (narrow - other) / 4 + other / 2.5 + wide / 1.2))


@lru_cache(maxsize=4096)
def _is_wide(character: str) -> bool:
    return any(first <= character <= last for first, last in _WIDE)


def cut(text: str, tokens_max: int, mark: str = " …") -> str:
    """Return *text*, cut after a word so that it has at most *tokens_max* tokens."""
    if count(text) <= tokens_max:
        return text
    length = _fitting(text, tokens_max, mark)
    kept = text[:length]
    space = max(kept.rfind(" "), kept.rfind("\n"))
    if space > length // 2:
        kept = kept[:space]
    return kept.rstrip() + mark if kept.strip() else ""


def _fitting(text: str, tokens_max: int, mark: str) -> int:
    """Return how many characters of *text* fit beside *mark*."""
    # No text has fewer tokens than its bytes say, and a character has at least one byte.
    high = max(0, min(len(text), tokens_max * BYTES_PER_TOKEN - len(mark.encode())))
    low = 0
    while low < high:
        # Of plain text, all that the bytes allow fits; so the longest is tried first.
        middle = high if text.isascii() else (low + high + 1) // 2
        if count(text[:middle] + mark) <= tokens_max:
            low = middle
        else:
            high = middle - 1
    return low
