"""Sign packs with Ed25519: each home has one key, made when it is first needed.

A public key is written `ed25519:` and 64 hexadecimal digits. The private key stays in the state of
its machine, which no export, backup, sync or git repository takes along.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING

from commonplace.errors import HomeUnusable, UsageError
from commonplace.files import atomic
from commonplace.files.lock import hold
from commonplace.files.plain import read_all

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from commonplace.where.home import Home

_PREFIX = "ed25519:"
_PUBLIC = re.compile(r"ed25519:[0-9a-f]{64}", re.ASCII)
_FILE_BYTES_MAX = 4096


class SigningKey:
    """A private key: signs, and says which public key verifies."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.public = _PREFIX + key.public_key().public_bytes_raw().hex()

    def sign(self, message: bytes) -> bytes:
        return self._key.sign(message)


def generate() -> SigningKey:
    """Return a new key, which is stored nowhere."""
    return SigningKey(_new())


def key_of(home: Home) -> SigningKey:
    """Return the key of *home*; made now if there is none."""
    path = home.signing_key_file
    with hold(home.signing_lock):
        raw = read_all(path, _FILE_BYTES_MAX)
        if raw:
            return SigningKey(_parse(home, raw))
        from cryptography.hazmat.primitives import serialization as form  # noqa: PLC0415

        key = _new()
        pem = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
        atomic.replace(path, [pem])
        return SigningKey(key)


def public_of(home: Home) -> str:
    """Return the public key of *home*; "" if it has none yet: to compare it, none is made."""
    return key_of(home).public if home.signing_key_file.is_file() else ""


def parse_public(text: str) -> str:
    """Return the public key in *text*. Raises `UsageError` if it is none."""
    found = text.strip().lower()
    if not _PUBLIC.fullmatch(found):
        raise UsageError(
            f"`{text[:80]}` is no public key of a signer",
            f"it is `{_PREFIX}` and 64 hexadecimal digits; `commonplace pack inspect` shows it",
        )
    return found


def fingerprint(public: str) -> str:
    """Return a short form of a public key for people to compare: eight groups of four digits."""
    digest = sha256(bytes.fromhex(public.removeprefix(_PREFIX))).hexdigest()
    return "-".join(digest[at : at + 4] for at in range(0, 32, 4))


def is_signed(public: str, signature: bytes, message: bytes) -> bool:
    """Whether *signature* of *message* was made with the private half of *public*."""
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 (loads for 50 ms)
    from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415

    try:
        key = ed25519.Ed25519PublicKey.from_public_bytes(
            bytes.fromhex(public.removeprefix(_PREFIX))
        )
        key.verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def _new() -> Ed25519PrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415

    return ed25519.Ed25519PrivateKey.generate()


def _parse(home: Home, raw: bytes) -> Ed25519PrivateKey:
    from cryptography.hazmat.primitives import serialization as form  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415

    try:
        found = form.load_pem_private_key(raw, password=None)
    except (ValueError, TypeError):
        found = None
    if not isinstance(found, ed25519.Ed25519PrivateKey):
        raise HomeUnusable(
            home.signing_key_file,
            "it holds no Ed25519 key; if you delete it, the next pack is signed with a new one",
        )
    return found
