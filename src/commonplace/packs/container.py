"""The file of a pack: written in one step, and read only after all of it was verified.

It is a tar archive of `pack.json`, `pack.sig` and `nodes.jsonl`, compressed with zstd, and then
encrypted with age or not. `pack.json` names the hash of `nodes.jsonl`, and the signature is of
`pack.json`. Whatever the size of a pack, little of it is in memory at a time, and no plain text is
written to the disk.
"""

from __future__ import annotations

import errno
import os
import re
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.errors import HomeUnusable, PackRefused
from commonplace.files import atomic
from commonplace.files.plain import FILE_BYTES_MAX, make_folder, open_for_read, open_named
from commonplace.packs import age, compression, manifest, signing, tar, unsigned
from commonplace.packs.shared_file import SharedFile
from commonplace.records import LINE_READ_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path
    from typing import BinaryIO, Self

    from commonplace.packs.keys import Keys, Seal
    from commonplace.packs.manifest import Manifest

NODES_BYTES_MAX = 4 << 30
_SIGNATURE = re.compile(r"(ed25519:[0-9a-f]{64}) ([0-9a-f]{128})\n", re.ASCII)
_SIGNATURE_BYTES_MAX = 1024
_PIECE_BYTES = 256 << 10
_START_BYTES = 64


class Opened(NamedTuple):
    """A pack of which every byte was verified.

    `signer` is the public key it is signed with, "" for a pack of the first format. `encryption`
    is "" or `passphrase` or `recipients`. `lines` yields the records, each time from the first one.
    """

    manifest: Manifest
    signer: str
    encryption: str
    lines: Callable[[], Iterator[bytes]]


def write(
    path: Path,
    manifest_fields: Mapping[str, Any],
    lines: Iterable[bytes],
    *,
    signer: signing.SigningKey,
    seal: Seal | None,
    confined: bool = False,
) -> Manifest:
    """Write a pack of *lines* to *path* in one step, signed by *signer*, and encrypted if *seal*.

    A line has no end of line. *manifest_fields* (see `manifest.make`) are read after the last line,
    so that their counts can be made while *lines* are. Without *seal*, the same arguments make the
    same bytes. An existing file is replaced; a new one is for its owner only. With *confined*, the
    path may not lead through a link.
    """
    name = path.name
    sealer = age.Sealer(seal) if seal else None
    target = path if confined else path.parent.resolve() / name
    try:
        make_folder(target.parent)
        _remove_leftovers(target)
        with _Spool(target.parent) as spool:
            records = _spool(name, lines, spool)
            description, raw = manifest.make(
                name, manifest_fields, records, spool.size, f"sha256:{spool.digest.hexdigest()}"
            )
            signature = f"{signer.public} {signer.sign(raw).hex()}\n".encode()
            pieces = compression.compress(name, _archive(raw, signature, spool))
            with atomic.writing(target) as out:
                if sealer:
                    sealer.write(name, pieces, out)
                else:
                    out.writelines(pieces)
                if out.tell() > FILE_BYTES_MAX:
                    raise PackRefused(
                        name, f"would be over {FILE_BYTES_MAX:,} bytes", "select less"
                    )
    except OSError as error:
        raise PackRefused(name, f"cannot be written: {error.strerror or error}") from error
    return description


@contextmanager
def opened(
    path: Path,
    keys: Keys,
    *,
    confined: bool = False,
    allow_unsigned: bool = False,
    progress: Callable[[int], None] = lambda _count: None,
) -> Iterator[Opened]:
    """Verify all of the pack at *path*, and yield it. Raises `PackRefused` if anything is wrong.

    With *confined*, the path may not lead through a link, and the file must be the user's own. With
    *allow_unsigned*, an encrypted pack of the first format is read as well, which has no signature.
    *progress* is called with the number of bytes that were verified.
    """
    name = path.name
    with _open(path, confined=confined) as stream, ExitStack() as stack:
        found = _find(name, stream, keys)
        if not _begins_as_pack(found):
            if not (allow_unsigned and found.by):
                raise PackRefused(name, "is not a pack, or not one that is signed")
            yield _open_unsigned(name, found)
            return
        first = _read(name, found.pieces, stack, progress)
        for _line in first.lines:
            pass

        def lines() -> Iterator[bytes]:
            again = _read(name, found.pieces, stack)
            if again.raw != first.raw:
                raise PackRefused(name, "was changed while it was read")
            return again.lines

        yield Opened(first.manifest, first.signer, found.by, lines)


def is_pack(path: Path, *, confined: bool = False) -> bool:
    """Whether the file at *path* begins as a pack does, encrypted or not. It need not be whole."""
    if not os.path.lexists(path):
        return False
    with _open(path, confined=confined) as stream:
        return stream.read(_START_BYTES).startswith((*age.BEGINNINGS, compression.BEGINNING))


# --- Writing --------------------------------------------------------------------------------------


class _Spool:
    """The records until their hash is known, which the archive begins with: a file without a name.

    It is gone when the process ends, however it ends, and encrypted with a key that only this
    process has.
    """

    def __init__(self, folder: Path) -> None:
        self.size = 0
        self.digest = sha256()
        self._key = os.urandom(32)
        self._coder = self._cipher().encryptor()
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 (closed by __exit__)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._file.close()

    def write(self, data: bytes) -> None:
        self.size += len(data)
        self.digest.update(data)
        self._file.write(self._coder.update(data))

    def pieces(self) -> Iterator[bytes]:
        decoder = self._cipher().decryptor()
        digest = sha256()
        self._file.seek(0)
        while piece := self._file.read(_PIECE_BYTES):
            plain = decoder.update(piece)
            digest.update(plain)
            yield plain
        if digest.digest() != self.digest.digest():
            raise OSError("the disk returned other bytes than were written")

    def _cipher(self) -> Any:  # noqa: ANN401
        from cryptography.hazmat.primitives import ciphers  # noqa: PLC0415 (loads for 50 ms)

        # The nonce may be the same each time, as the key never is.
        return ciphers.Cipher(ciphers.algorithms.ChaCha20(self._key, bytes(16)), mode=None)


def _spool(name: str, lines: Iterable[bytes], spool: _Spool) -> int:
    """Write *lines* to *spool*, and return their number."""
    records = 0
    waiting = bytearray()
    for line in lines:
        if not line or b"\n" in line or len(line) >= LINE_READ_BYTES_MAX:
            raise PackRefused(name, f"has a record that is no line, after {records:,} others")
        records += 1
        waiting += line
        waiting += b"\n"
        if len(waiting) >= _PIECE_BYTES:
            spool.write(bytes(waiting))
            waiting.clear()
            if spool.size > NODES_BYTES_MAX:
                break
    spool.write(bytes(waiting))
    if spool.size > NODES_BYTES_MAX:
        raise PackRefused(name, f"would be over {NODES_BYTES_MAX:,} bytes", "select less")
    return records


def _archive(raw: bytes, signature: bytes, spool: _Spool) -> Iterator[bytes]:
    for member, content in ((tar.MANIFEST, raw), (tar.SIGNATURE, signature)):
        yield tar.header(member, len(content)) + content + tar.padding(len(content))
    yield tar.header(tar.NODES, spool.size)
    yield from spool.pieces()
    yield tar.padding(spool.size) + tar.END


def _remove_leftovers(target: Path) -> None:
    """Remove what a process that was killed has left of this pack."""
    for found in atomic.temporaries_of(target):
        if atomic.is_leftover(found):
            with suppress(OSError):
                found.unlink()


# --- Reading --------------------------------------------------------------------------------------


class _Reading(NamedTuple):
    """The beginning of a pack, verified; and its lines, whose end verifies the rest."""

    manifest: Manifest
    signer: str
    raw: bytes
    lines: Iterator[bytes]


def _open(path: Path, *, confined: bool) -> BinaryIO:
    try:
        stream = (open_for_read if confined else open_named)(path)
    except HomeUnusable as error:
        raise _unreadable(path.name, error.__cause__) from None
    if stream is None:
        raise PackRefused(path.name, "is not there", f"it would be `{path}`")
    return stream


def _unreadable(name: str, error: BaseException | None) -> PackRefused:
    if getattr(error, "errno", None) == errno.ELOOP:
        return PackRefused(name, "leads through a link, which is not followed")
    return PackRefused(name, f"cannot be read: {getattr(error, 'strerror', None) or error}")


def _find(name: str, stream: BinaryIO, keys: Keys) -> age.Unsealed:
    """Return the content of the file, decrypted if need be."""
    try:
        if os.fstat(stream.fileno()).st_size > FILE_BYTES_MAX:
            raise PackRefused(name, f"is over {FILE_BYTES_MAX:,} bytes")
        file = SharedFile(stream)
        found = age.Unsealed(lambda: _pieces(file), "")
        if file.reader().read(_START_BYTES).startswith(age.BEGINNINGS):
            found = age.unseal(name, file, keys)
    except OSError as error:
        raise _unreadable(name, error) from error
    return found._replace(pieces=lambda: _readable(name, found.pieces()))


def _readable(name: str, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield *pieces*, and raise our error for an `OSError`."""
    try:
        yield from pieces
    except OSError as error:
        raise _unreadable(name, error) from error


def _pieces(file: SharedFile) -> Iterator[bytes]:
    reader = file.reader()
    while piece := reader.read(_PIECE_BYTES):
        yield piece


def _begins_as_pack(found: age.Unsealed) -> bool:
    with ExitStack() as stack:
        return next(_closed_by(stack, found.pieces()), b"").startswith(compression.BEGINNING)


def _closed_by(stack: ExitStack, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Return *pieces*, a generator. A thread may be behind it, which ends with *stack*."""
    stack.callback(pieces.close)  # type: ignore[attr-defined]
    return pieces


def _read(
    name: str,
    pieces: Callable[[], Iterator[bytes]],
    stack: ExitStack,
    progress: Callable[[int], None] = lambda _count: None,
) -> _Reading:
    """Read the beginning of a pack: its description, and who signed it."""
    source = _closed_by(stack, pieces())
    plain = _closed_by(stack, compression.decompress(name, _reporting(source, progress)))
    archive = tar.Reader(name, plain)
    raw = archive.small(tar.MANIFEST, manifest.BYTES_MAX)
    description = manifest.parse(name, raw)
    signer = _signer(name, raw, archive.small(tar.SIGNATURE, _SIGNATURE_BYTES_MAX))
    return _Reading(description, signer, raw, _lines(name, archive, description))


def _reporting(source: Iterator[bytes], progress: Callable[[int], None]) -> Iterator[bytes]:
    for piece in source:
        yield piece
        progress(len(piece))


def _signer(name: str, raw: bytes, signature: bytes) -> str:
    """Return the public key that *raw* is signed with."""
    found = _SIGNATURE.fullmatch(signature.decode("latin-1"))
    if not found:
        raise PackRefused(name, f"has a `{tar.SIGNATURE}` that is no signature")
    if not signing.is_signed(found[1], bytes.fromhex(found[2]), raw):
        raise PackRefused(name, f"was changed: its signature is not of its `{tar.MANIFEST}`")
    return found[1]


def _lines(name: str, archive: tar.Reader, description: Manifest) -> Iterator[bytes]:
    """Yield the lines of `nodes.jsonl`. After the last one, verify them and the end of the file."""
    digest = sha256()
    count = 0
    rest = bytearray()
    size = archive.begin(tar.NODES, NODES_BYTES_MAX)
    for piece in archive.content(tar.NODES, size):
        digest.update(piece)
        *whole, after = piece.split(b"\n")
        if whole:
            whole[0] = bytes(rest + whole[0])
            rest.clear()
            count += len(whole)
            if not all(whole):
                raise PackRefused(name, f"has an empty line in `{tar.NODES}`")
            yield from whole
        rest += after
        if len(rest) > LINE_READ_BYTES_MAX:
            raise PackRefused(name, f"has a line of over {LINE_READ_BYTES_MAX:,} bytes")
    if rest:
        raise PackRefused(name, f"has a `{tar.NODES}` whose last line has no end")
    archive.end()
    if description.checksum != f"sha256:{digest.hexdigest()}":
        raise PackRefused(
            name, f"was changed: `{tar.NODES}` does not have the hash of `{tar.MANIFEST}`"
        )
    if (count, size) != (description.records, description.fields["counts"]["bytes"]):
        raise PackRefused(name, f"has {count:,} records, and its `{tar.MANIFEST}` says others")


def _open_unsigned(name: str, found: age.Unsealed) -> Opened:
    """Return a pack of the first format: encrypted, not compressed, not signed."""
    whole = bytearray()
    for piece in found.pieces():
        whole += piece
        if len(whole) > unsigned.ARCHIVE_BYTES_MAX:
            break
    pack = unsigned.read(name, bytes(whole))
    return Opened(
        unsigned.describe(pack),
        "",
        found.by,
        lambda: (line for line in pack.nodes.split(b"\n") if line),
    )
