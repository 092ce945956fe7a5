"""What a user should know before they install a pack: who signed it, and what is suspicious."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.errors import PackRefused
from commonplace.foreign import one_line
from commonplace.log import pack_logs
from commonplace.packs import container, importing, inspection, signing, suspicion, trusted
from commonplace.records import decode

if TYPE_CHECKING:
    from pathlib import Path

    from commonplace.memory import Memory
    from commonplace.packs.inspection import Inspected
    from commonplace.packs.keys import Keys
    from commonplace.packs.suspicion import Flag


class Reviewed(NamedTuple):
    """A verified pack, who its signer is here, what of it is here, and what is suspicious."""

    inspected: Inspected
    known_as: str
    here: str
    flagged: int
    flags: list[Flag]

    def as_dict(self) -> dict[str, Any]:
        """Return what `inspect --json` prints."""
        return {
            **self.inspected._asdict(),
            "known_as": self.known_as,
            "here": self.here,
            "flagged": self.flagged,
            "flags": [flag._asdict() for flag in self.flags],
        }


def inspect(memory: Memory, path: Path, keys: Keys) -> Reviewed:
    """Verify the pack at *path* and look through its records. Nothing is imported."""
    inspected = inspection.inspect(path, keys)
    flagged = 0
    flags: list[Flag] = []
    with container.opened(path, keys) as pack:
        for number, raw in enumerate(pack.lines(), 1):
            try:
                found = list(suspicion.flags(decode(raw)))
            except ValueError as error:
                raise PackRefused(
                    one_line(str(path)), f"has no record in line {number}: {error}"
                ) from None
            flagged += bool(found)
            flags += found[: importing.LISTED_MAX - len(flags)]
    return Reviewed(
        inspected,
        signer_name(memory, inspected.signer),
        _here(memory, str(inspected.manifest["id"])),
        flagged,
        flags,
    )


def signer_name(memory: Memory, signer: str) -> str:
    """Return who a signer is: `you`, the name of a trusted one, or "" for a stranger.

    What comes with the package is by its authors.
    """
    home = importing.home_of(memory)
    if not signer:  # A pack of which nothing but a log is left.
        return ""
    if signing.public_of(home) == signer:
        return "you"
    if signer == trusted.shipped_key():
        return "Commonplace"
    names = [one.name or "trusted" for one in trusted.signers(home) if one.key == signer]
    return names[0] if names else ""


def _here(memory: Memory, name: str) -> str:
    home = importing.home_of(memory)
    for place in (home, home.quarantine):
        if found := pack_logs.describe(place, name):
            what = importing.QUARANTINED if place.is_quarantine else importing.INSTALLED
            return f"{what}, version {one_line(found.version)}"
    return ""
