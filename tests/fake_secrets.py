"""Secrets for tests, drawn at run time: no scanner shall find a key in this repository."""

from __future__ import annotations

import random
import string

_RANDOM = random.Random(20260)
MIXED = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + "234567"
DIGITS = "123456789"


def some(length: int, alphabet: str = MIXED) -> str:
    """Return *length* random characters; of letters and digits, the first six are `aB1x7Q`."""
    drawn = "".join(_RANDOM.choice(alphabet) for _ in range(length))
    return ("aB1x7Q" + drawn)[:length] if alphabet == MIXED else drawn


def bodies(length: int, alphabet: str, start: str = "") -> list[str]:
    """Return texts of *length* that together contain every character of *alphabet*."""
    step = length - len(start)
    parts = [alphabet[at : at + step] for at in range(0, len(alphabet), step)]
    return [start + (part * step)[:step] for part in parts]


def pem(label: str, newline: str = "\n") -> str:
    body = newline.join(some(64) for _ in range(3))
    return (
        f"-----BEGIN {label}-----{newline}{body}{newline}{some(20)}=={newline}-----END {label}-----"
    )
