"""The signers whose packs are installed without quarantine, by their public keys.

The signer of the packs that come with the package is one of them. The list of the
others belongs to this machine's user and is kept in the state of their home, where neither git nor
a pack can change it.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.errors import HomeUnusable
from commonplace.files import atomic
from commonplace.files.plain import read_small
from commonplace.log.pack_logs import holding

if TYPE_CHECKING:
    from commonplace.where.home import Home

_BYTES_MAX = 1 << 20
# The key of the packs that came with this package. Whoever could change it could change our code.
SHIPPED_KEY = Path(__file__).parent / "shipped" / "KEY"


class Signer(NamedTuple):
    """A signer that is trusted: the public key, a name to know it by, and since when."""

    key: str
    name: str
    since: str


def signers(home: Home) -> list[Signer]:
    """Return the signers that the user of *home* trusts, in the order of their keys."""
    fields: Any = {}
    with suppress(FileNotFoundError):
        try:
            fields = json.loads(read_small(home.trusted_signers_file, _BYTES_MAX))
        except (ValueError, RecursionError):
            fields = None
    if not isinstance(fields, dict):
        # Never as if nobody was trusted: then `trust` would overwrite the list.
        raise HomeUnusable(
            home.trusted_signers_file, "it is no list of signers", "delete it, and trust them again"
        )
    return [
        Signer(key, str(one.get("name", "")), str(one.get("since", "")))
        for key, one in sorted(fields.items())
        if isinstance(one, dict)
    ]


def is_trusted(home: Home, key: str) -> bool:
    """Whether the user trusts that signer, or packs of that signer came with the package."""
    return any(one.key == key for one in signers(home)) or key == shipped_key()


def shipped_key() -> str:
    """Return the key that signed the packs that came with the package; "" if there is none."""
    try:
        return SHIPPED_KEY.read_text("ascii").strip()
    except (OSError, ValueError):
        return ""


def trust(home: Home, key: str, name: str, since: str) -> None:
    """Trust the signer with the public key *key*."""
    with holding(home):
        _write(home, {one.key: one for one in signers(home)} | {key: Signer(key, name, since)})


def distrust(home: Home, key: str) -> bool:
    """Trust that signer no longer; return whether it was trusted."""
    with holding(home):
        known = {one.key: one for one in signers(home)}
        was_there = known.pop(key, None) is not None
        _write(home, known)
    return was_there


def _write(home: Home, known: dict[str, Signer]) -> None:
    fields = {key: {"name": one.name, "since": one.since} for key, one in sorted(known.items())}
    atomic.replace(home.trusted_signers_file, [json.dumps(fields, indent=1).encode()])
