"""Encrypt and decrypt with age: by a passphrase, or for recipients and with an identity.

A passphrase comes from the environment or from a file that the user's settings name, never from an
argument: what an agent is told, it may repeat. `pyrage` is loaded only here, when it is needed.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.errors import ExtraMissing, PackRefused, UsageError
from commonplace.files.plain import read_named

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from commonplace.settings import Settings

VARIABLE = "COMMONPLACE_PASSPHRASE"
_KEY_BYTES_MAX = 64 << 10
# How a file in the age format begins, and the last line of its header.
BEGINNING, _HEADER_END = b"age-encryption.org/v1\n", b"\n--- "
_BY_PASSPHRASE = b"\n-> scrypt "
# Each recipient has some lines there. Thousands of them would take an hour to try.
_HEADER_BYTES_MAX = 16 << 10
_HINT = (
    f"set {VARIABLE}, or `packs.passphrase_file` or `packs.recipients` in the user's config.toml"
)


class Sealed(NamedTuple):
    """Encrypted bytes, and who can open them: `passphrase`, or `recipients` and how many."""

    raw: bytes
    by: str


def check(settings: Settings, environment: Mapping[str, str] = os.environ) -> None:
    """Raise if nothing can be encrypted, before anything is read for it."""
    _pyrage()
    if not settings["packs.recipients"] and not _passphrase(settings, environment):
        raise UsageError("there is no key to encrypt a pack with", _HINT)


def encrypt(
    plain: bytes, settings: Settings, environment: Mapping[str, str] = os.environ
) -> Sealed:
    """Return *plain* encrypted for the recipients of the settings, else by the passphrase."""
    pyrage = _pyrage()
    names: list[str] = settings["packs.recipients"]
    if names:
        recipients = [_recipient(pyrage, name) for name in names]
        count = f"{len(names)} recipient{'' if len(names) == 1 else 's'}"
        return Sealed(pyrage.encrypt(plain, recipients), count)
    passphrase = _passphrase(settings, environment)
    if not passphrase:
        raise UsageError("there is no key to encrypt a pack with", _HINT)
    return Sealed(pyrage.passphrase.encrypt(plain, passphrase), "passphrase")


def decrypt(
    name: str, raw: bytes, settings: Settings, environment: Mapping[str, str] = os.environ
) -> bytes:
    """Return what the pack *name* holds. Raises `PackRefused`, or `UsageError` without a key."""
    pyrage = _pyrage()
    if not raw.startswith(BEGINNING):
        raise PackRefused(name, "is not a file in the age format")
    header = raw[:_HEADER_BYTES_MAX].partition(_HEADER_END)
    if not header[1]:
        raise PackRefused(name, "has no header of age, or one for too many recipients")
    if _BY_PASSPHRASE in header[0]:
        passphrase = _passphrase(settings, environment)
        if not passphrase:
            raise UsageError(
                f"the pack `{name}` is encrypted by a passphrase, and there is none",
                f"set {VARIABLE}, or `packs.passphrase_file` in the user's config.toml",
            )
        return _opened(pyrage, name, lambda: pyrage.passphrase.decrypt(raw, passphrase))
    identities = _identities(pyrage, settings)
    return _opened(pyrage, name, lambda: pyrage.decrypt(raw, identities))


def _opened(pyrage: Any, name: str, action: Callable[[], bytes]) -> bytes:  # noqa: ANN401
    try:
        return action()
    except pyrage.DecryptError as error:
        raise PackRefused(
            name,
            f"cannot be opened ({error}): the key is not the one it was encrypted for, or the "
            "file was changed or cut off",
        ) from None


def _pyrage() -> Any:  # noqa: ANN401 (it has no types)
    try:
        import pyrage  # noqa: PLC0415 (see above)
    except ImportError as error:
        raise ExtraMissing("packs", "pyrage>=1.4") from error
    return pyrage


def _passphrase(settings: Settings, environment: Mapping[str, str]) -> str:
    """Return the passphrase; "" if there is none."""
    if given := environment.get(VARIABLE):
        return given
    file = settings["packs.passphrase_file"]
    if not file:
        return ""
    text = _read(file, "packs.passphrase_file").decode("utf-8", "replace")
    # The end of its first line is not part of it.
    found = text.split("\n", 1)[0].removesuffix("\r")
    if not found:
        raise UsageError(f"the file of `packs.passphrase_file`, `{file}`, has no passphrase", _HINT)
    return found


def _recipient(pyrage: Any, name: str) -> Any:  # noqa: ANN401
    kind = pyrage.ssh if name.startswith("ssh-") else pyrage.x25519
    try:
        return kind.Recipient.from_str(name)
    except pyrage.RecipientError:
        raise UsageError(
            f"`packs.recipients` holds `{name[:40]}`, which is no recipient",
            "name public keys: `age1…`, `ssh-ed25519 …` or `ssh-rsa …`",
        ) from None


def _identities(pyrage: Any, settings: Settings) -> list[Any]:  # noqa: ANN401
    file = settings["packs.identity_file"]
    if not file:
        raise UsageError(
            "the pack is encrypted for recipients, and no identity is set",
            "name the file of your key as `packs.identity_file` in the user's config.toml",
        )
    raw = _read(file, "packs.identity_file")
    try:
        if b"PRIVATE KEY-----" in raw:
            return [pyrage.ssh.Identity.from_buffer(raw)]
        lines = (line.strip() for line in raw.decode("utf-8", "replace").split("\n"))
        keys = [line for line in lines if line and not line.startswith("#")]
        found = [pyrage.x25519.Identity.from_str(key) for key in keys]
    except pyrage.IdentityError:
        found = []
    if not found:
        raise UsageError(
            f"the file of `packs.identity_file`, `{file}`, holds no identity",
            "it has `AGE-SECRET-KEY-1…` lines, or a private key of ssh without a passphrase",
        )
    return found


def _read(file: str, setting: str) -> bytes:
    try:
        return read_named(Path(file).expanduser(), _KEY_BYTES_MAX)
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(
            f"the file of `{setting}`, `{file}`, cannot be read: {reason}",
            "correct the setting in the user's config.toml",
        ) from None
