"""Which keys encrypt and open packs: from the settings, the environment, and the user's files.

A passphrase comes from the environment or from a file that the user's settings name, never from an
argument: what an agent is told, it may repeat.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.errors import UsageError
from commonplace.files import atomic
from commonplace.files.lock import hold
from commonplace.files.plain import read_all, read_named
from commonplace.packs import age

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from commonplace.settings import Settings
    from commonplace.where.home import Home

VARIABLE = "COMMONPLACE_PASSPHRASE"
_KEY_BYTES_MAX = 64 << 10
_HINT = (
    f"set {VARIABLE}, or `packs.passphrase_file` or `packs.recipients` in the user's config.toml"
)


class Seal(NamedTuple):
    """How a pack is encrypted: for recipients (`age1…`, `ssh-…`), else by a passphrase."""

    recipients: tuple[str, ...] = ()
    passphrase: str = ""

    @property
    def by(self) -> str:
        """Who can open it: `passphrase`, or how many recipients."""
        count = len(self.recipients)
        return f"{count} recipient{'' if count == 1 else 's'}" if count else "passphrase"


class Keys(NamedTuple):
    """What opens packs. Each is called only if a pack needs it, and raises if there is none."""

    passphrase: Callable[[], str]
    identities: Callable[[], list[Any]]


def seal_from(settings: Settings, environment: Mapping[str, str] = os.environ) -> Seal:
    """Return the seal that the settings choose: recipients, else the passphrase."""
    if names := settings["packs.recipients"]:
        return Seal(tuple(names))
    found = _passphrase(settings, environment)
    if not found:
        raise UsageError("there is no key to encrypt a pack with", _HINT)
    return Seal(passphrase=found)


def keys_from(
    settings: Settings,
    home: Home,
    environment: Mapping[str, str] = os.environ,
    *,
    identity: str = "",
) -> Keys:
    """Return the keys that the settings name, and the identity that *home* has of its own.

    *identity* is the file that `--identity` names, in the place of that of the settings.
    """

    def passphrase() -> str:
        found = _passphrase(settings, environment)
        if not found:
            raise UsageError(
                "the pack is encrypted by a passphrase, and there is none",
                f"set {VARIABLE}, or `packs.passphrase_file` in the user's config.toml",
            )
        return found

    named_by = "--identity" if identity else "packs.identity_file"
    file = identity or settings["packs.identity_file"]
    return Keys(passphrase, lambda: _identities(file, named_by, home))


def make_identity(home: Home, created: str) -> str:
    """Make the private key of age of *home*, and return the recipient that packs name for it.

    It is made once. The file is written as `age-keygen` writes it, so `age -d -i` takes it, too.
    """
    path = home.identity_file
    with hold(home.signing_lock):
        if path.exists():
            found = _own_identities(home)
            if not found:
                raise UsageError(f"`{path}` holds no identity", "move it away, and make a new one")
            return str(found[0].to_public())
        identity = age.load().x25519.Identity.generate()
        recipient = str(identity.to_public())
        text = f"# created: {created}\n# public key: {recipient}\n{identity}\n"
        atomic.replace(path, [text.encode()])
        return recipient


def _passphrase(settings: Settings, environment: Mapping[str, str]) -> str:
    """Return the passphrase; "" if there is none."""
    if given := environment.get(VARIABLE):
        return given
    file = settings["packs.passphrase_file"]
    return read_passphrase(file, "packs.passphrase_file") if file else ""


def read_passphrase(file: str, named_by: str) -> str:
    """Return the first line of *file*. Raises `UsageError` if it is empty."""
    text = _read(file, named_by).decode("utf-8", "replace")
    # The end of its first line is not part of it.
    found = text.split("\n", 1)[0].removesuffix("\r")
    if not found:
        raise UsageError(f"the file of `{named_by}`, `{file}`, has no passphrase", _HINT)
    return found


def _identities(file: str, named_by: str, home: Home) -> list[Any]:
    pyrage = age.load()
    found: list[Any] = []
    if file:
        found = _parse(pyrage, _read(file, named_by))
        if not found:
            raise UsageError(
                f"the file of `{named_by}`, `{file}`, holds no identity",
                "it has `AGE-SECRET-KEY-1…` lines, or a private key of ssh without a passphrase",
            )
    found += _own_identities(home)
    if not found:
        raise UsageError(
            "the pack is encrypted for recipients, and no identity is set",
            "name the file of your key as `packs.identity_file` in the user's config.toml",
        )
    return found


def _own_identities(home: Home) -> list[Any]:
    """Return the identity that `make_identity` made; none if it was not called."""
    return _parse(age.load(), read_all(home.identity_file, _KEY_BYTES_MAX))


def _parse(pyrage: Any, raw: bytes) -> list[Any]:  # noqa: ANN401
    try:
        if b"PRIVATE KEY-----" in raw:
            return [pyrage.ssh.Identity.from_buffer(raw)]
        lines = (line.strip() for line in raw.decode("utf-8", "replace").split("\n"))
        keys = [line for line in lines if line and not line.startswith("#")]
        return [pyrage.x25519.Identity.from_str(key) for key in keys]
    except pyrage.IdentityError:
        return []


def _read(file: str, named_by: str) -> bytes:
    try:
        return read_named(Path(file).expanduser(), _KEY_BYTES_MAX)
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(
            f"the file of `{named_by}`, `{file}`, cannot be read: {reason}",
            "name another file"
            if named_by.startswith("--")
            else "correct the setting in the user's config.toml",
        ) from None
