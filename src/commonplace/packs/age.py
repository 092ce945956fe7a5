"""Encrypt and decrypt with age, in pieces. `pyrage` is loaded only here, when it is needed.

age with a passphrase works on the whole content at once, so such packs have a limit of their own.
"""

from __future__ import annotations

import re
from base64 import b64decode
from queue import Queue
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.errors import PackRefused, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import BinaryIO

    from commonplace.packs.keys import Keys, Seal
    from commonplace.packs.shared_file import SharedFile

# How a file in the age format begins, and the last line of its header.
_BEGINNING, _HEADER_END = b"age-encryption.org/v1\n", b"\n--- "
# With `age -a`, the file is text: this line, and all of it in base64.
_ARMOUR = b"-----BEGIN AGE ENCRYPTED FILE-----"
BEGINNINGS = (_BEGINNING, _ARMOUR)
_BY_PASSPHRASE = re.compile(rb"\n-> scrypt \S+ (\d{1,9})\n")
# 2 GiB of memory. Programs choose what takes them a second: 2^18 to 2^20.
_WORK_FACTOR_MAX = 21
# Each recipient has some lines there. Thousands of them would take an hour to try.
_HEADER_BYTES_MAX = 16 << 10
# All of it is in memory several times: about 1 GB. A passphrase alone takes age half of that.
PASSPHRASE_BYTES_MAX = 256 << 20
_PIECE_BYTES = 64 << 10
_PIECES_AHEAD = 16


class Sealer:
    """Encrypts as *seal* says. Raises `UsageError` at once if one of its recipients is none."""

    def __init__(self, seal: Seal) -> None:
        if not seal.recipients and not seal.passphrase:
            raise UsageError("there is no key to encrypt a pack with", "name one, or a passphrase")
        self._passphrase = seal.passphrase
        self._recipients = [_recipient(name) for name in seal.recipients]

    def write(self, pack: str, pieces: Iterable[bytes], out: BinaryIO) -> None:
        """Write *pieces* to *out*, encrypted."""
        pyrage = load()
        if self._recipients:
            source, target = _Remembering(_Pieces(iter(pieces))), _Remembering(out)
            try:
                pyrage.encrypt_io(source, target, self._recipients)
            except pyrage.EncryptError as error:
                own = source.error or target.error
                raise own or PackRefused(pack, f"cannot be encrypted: {error}") from None
            return
        parts: list[bytes] = []
        size = 0
        for piece in pieces:
            parts.append(piece)
            size += len(piece)
            if size > PASSPHRASE_BYTES_MAX:
                raise PackRefused(
                    pack,
                    f"would be over {PASSPHRASE_BYTES_MAX:,} bytes, too large for a passphrase",
                    "encrypt it for a recipient instead, or select less",
                )
        whole = b"".join(parts)
        parts.clear()
        out.write(pyrage.passphrase.encrypt(whole, self._passphrase))


class Unsealed(NamedTuple):
    """An encrypted file that a key opens: `pieces` yields its content, each time from the start."""

    pieces: Callable[[], Iterator[bytes]]
    by: str


def unseal(pack: str, file: SharedFile, keys: Keys) -> Unsealed:
    """Return the content of the age *file*. Raises `PackRefused`, `UsageError` if no key."""
    header, is_whole, _rest = _start(file).partition(_HEADER_END)
    if not header.startswith(_BEGINNING) or not is_whole:
        raise PackRefused(pack, "has no header of age, or one for too many recipients")
    pyrage = load()
    factor = _BY_PASSPHRASE.search(header + b"\n")
    if factor is None:
        identities = keys.identities()
        return Unsealed(lambda: _decrypt(pyrage, pack, file, identities), "recipients")
    if int(factor[1]) > _WORK_FACTOR_MAX:
        raise PackRefused(pack, "asks for too much memory to try a passphrase")
    passphrase = keys.passphrase()
    raw = file.reader().read(PASSPHRASE_BYTES_MAX + (1 << 20) + 1)
    if len(raw) > PASSPHRASE_BYTES_MAX + (1 << 20):
        raise PackRefused(
            pack,
            f"is over {PASSPHRASE_BYTES_MAX:,} bytes, too large for a passphrase",
            "decrypt it with `age -d`, and import the file that this makes",
        )
    try:
        whole = pyrage.passphrase.decrypt(raw, passphrase)
    except pyrage.DecryptError as error:
        raise _wrong_key(pack, error) from None
    return Unsealed(lambda: _slices(whole), "passphrase")


def _start(file: SharedFile) -> bytes:
    """Return the first bytes of the file, out of its armour."""
    raw = file.reader().read(2 * _HEADER_BYTES_MAX)
    if raw.startswith(_ARMOUR):
        text = b"".join(raw.partition(b"-----END")[0].split()[4:])  # Without the first line.
        try:
            raw = b64decode(text[: len(text) // 4 * 4])
        except ValueError:
            return b""
    return raw[:_HEADER_BYTES_MAX]


def load() -> Any:  # noqa: ANN401 (it has no types)
    import pyrage  # noqa: PLC0415 (see above)

    return pyrage


def _recipient(name: str) -> Any:  # noqa: ANN401
    pyrage = load()
    kind = pyrage.ssh if name.startswith("ssh-") else pyrage.x25519
    try:
        return kind.Recipient.from_str(name)
    except pyrage.RecipientError:
        raise UsageError(
            f"`{name[:40]}` is no recipient of packs",
            "name public keys: `age1…`, `ssh-ed25519 …` or `ssh-rsa …`",
        ) from None


def _wrong_key(pack: str, error: BaseException) -> PackRefused:
    reason = str(error).split("\n", 1)[0].rstrip(".")
    return PackRefused(
        pack,
        f"cannot be opened ({reason}): the key is not the one it was encrypted for, or the file "
        "was changed or cut off",
    )


def _slices(whole: bytes) -> Iterator[bytes]:
    for at in range(0, len(whole), _PIECE_BYTES):
        yield whole[at : at + _PIECE_BYTES]


class _Pieces:
    """Pieces as a file to read from."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def read(self, size: int) -> bytes:
        while not self._rest:
            found = next(self._pieces, None)
            if found is None:
                return b""
            self._rest = found
        part, self._rest = self._rest[:size], self._rest[size:]
        return part


class _Remembering:
    """A file for `pyrage`, which makes errors of its own out of those of a file: it keeps those."""

    def __init__(self, file: Any) -> None:  # noqa: ANN401
        self._file = file
        self.error: BaseException | None = None

    def read(self, size: int) -> bytes:
        return bytes(self._call(self._file.read, size))

    def write(self, data: bytes) -> int:
        return int(self._call(self._file.write, data))

    def flush(self) -> None:
        self._call(self._file.flush)

    def _call(self, action: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401
        try:
            return action(*arguments)
        except BaseException as error:
            self.error = error
            raise


class _Done(NamedTuple):
    error: BaseException | None


class _StoppedError(Exception):
    """Nobody wants the rest."""


class _Queue:
    """A file to write to, for a thread; what is written waits there until it is read."""

    def __init__(self) -> None:
        self.waiting: Queue[bytes | _Done] = Queue(_PIECES_AHEAD)
        self.is_stopped = False

    def write(self, data: bytes) -> int:
        if self.is_stopped:
            raise _StoppedError
        self.waiting.put(bytes(data))
        return len(data)

    def flush(self) -> None:
        pass


def _decrypt(
    pyrage: Any,  # noqa: ANN401
    pack: str,
    file: SharedFile,
    identities: list[Any],
) -> Iterator[bytes]:
    """Yield the content of *file*. `pyrage` writes to a file; a thread turns that around."""
    queue = _Queue()

    def work() -> None:
        error: BaseException | None = None
        source = _Remembering(file.reader())
        try:
            pyrage.decrypt_io(source, queue, identities)
        except BaseException as caught:  # noqa: BLE001 (raised again by the reader)
            error = source.error or caught
        queue.waiting.put(_Done(error))

    thread = Thread(target=work, name="decrypt", daemon=True)
    thread.start()
    item: bytes | _Done = b""
    try:
        while not isinstance(item := queue.waiting.get(), _Done):
            yield item
    finally:
        queue.is_stopped = True
        while not isinstance(item, _Done):
            item = queue.waiting.get()
        thread.join()
    if item.error is None:
        return
    # `pyrage` raises an `OSError` without a number if the content was changed.
    is_damage = isinstance(item.error, OSError) and item.error.errno is None
    if is_damage or isinstance(item.error, pyrage.DecryptError):
        raise _wrong_key(pack, item.error)
    raise item.error
