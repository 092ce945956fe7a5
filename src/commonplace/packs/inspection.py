"""What `pack inspect`, `pack verify` and `pack keygen` report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.packs import container, keys, signing
from commonplace.packs.importing import home_of
from commonplace.records import to_utc

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from commonplace.memory import Memory
    from commonplace.packs.keys import Keys


class Inspected(NamedTuple):
    """A pack of which every byte was verified: its description, who signed it, and its size.

    `encryption` is "" or `passphrase` or `recipients`. `records` are as many as the manifest says.
    """

    path: str
    bytes: int
    encryption: str
    signer: str
    fingerprint: str
    records: int
    manifest: dict[str, Any]


class OwnKeys(NamedTuple):
    """The public keys of a home: packs for it name `recipient`, packs of it have `signer`."""

    recipient: str
    signer: str
    fingerprint: str
    identity_file: str


def inspect(
    path: Path, opening_keys: Keys, progress: Callable[[int], None] = lambda _count: None
) -> Inspected:
    """Verify the pack at *path*. Raises `PackRefused` if anything is wrong with it."""
    with container.opened(path, opening_keys, progress=progress) as pack:
        return Inspected(
            str(path),
            path.stat().st_size,
            pack.encryption,
            pack.signer,
            signing.fingerprint(pack.signer),
            pack.manifest.records,
            pack.manifest.fields,
        )


def make_keys(memory: Memory) -> OwnKeys:
    """Return the public keys of the home in use; those that it lacks are made."""
    home = home_of(memory)
    signer = signing.key_of(home).public
    recipient = keys.make_identity(home, to_utc(memory.now()))
    return OwnKeys(recipient, signer, signing.fingerprint(signer), str(home.identity_file))
