"""A backup: one `.tar.gz` with the files of a home and a manifest of their hashes.

Nothing of the index is in it, which is made from the files, and nothing of this machine's state but
the candidates in the inbox: access tokens and addresses of servers stay here.
"""

from __future__ import annotations

import json
import os
import shutil
import tarfile
import zlib
from contextlib import suppress
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.errors import HomeUnusable, UsageError, unusable
from commonplace.files import atomic
from commonplace.files.plain import (
    FILE_BYTES_MAX,
    is_ours,
    make_folder,
    read_all,
    sync,
    sync_folder,
)
from commonplace.files.walk import ENTRIES_MAX, walk
from commonplace.log.hold import hold_logs
from commonplace.log.logs import log_files
from commonplace.where import restoring
from commonplace.where.state import INDEX, STATE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO, Self

    from commonplace.where.home import Home

MANIFEST = "manifest.json"
FORMAT = 1
INBOX = f"{STATE}/inbox/"
_MANIFEST_BYTES_MAX = 64 << 20
_PADDING_BYTES_MAX = 1 << 20
# Beyond its 512 bytes: for long names.
_HEADER_BYTES_MAX = 64 << 10
_DAMAGED = (tarfile.TarError, zlib.error, EOFError, OSError, ValueError, RecursionError)


class Summary(NamedTuple):
    """What a backup holds."""

    path: str
    files: int
    bytes: int
    records: int
    created: str


def create(home: Home, file: Path, created: str, progress: Callable[[int], None]) -> Summary:
    """Write the backup of *home* to *file*, which must not exist, and read it back."""
    target = file.expanduser().absolute()
    if os.path.lexists(target):
        raise UsageError(f"`{file}` exists already", "name a new file")
    if target.is_relative_to(home.path):
        raise UsageError(f"`{file}` is in the home itself", "name a file outside the home")
    temporary = target.with_name(f".{target.name}.{os.urandom(6).hex()}.{os.getpid()}.rewriting")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            hashes = _write(home, stream, created, progress)
            stream.flush()
            sync(stream.fileno())
        found = verify(temporary)
        if found.hashes != hashes:
            raise UsageError(f"`{file}` could not be read back as it was written", "try again")
        atomic.rename(temporary, target)
        sync_folder(target.parent)
    except OSError as error:
        raise UsageError(
            f"`{file}` cannot be written: {error.strerror or error}", "choose another place"
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink()
    return found.summary._replace(path=str(target))


def _write(
    home: Home,
    stream: BinaryIO,
    created: str,
    progress: Callable[[int], None],
) -> dict[str, str]:
    hashes: dict[str, str] = {}
    with tarfile.open(fileobj=stream, mode="w:gz", format=tarfile.PAX_FORMAT) as archive:
        # No line is half written, and no log is renamed before it is read.
        with hold_logs(home) as held:
            files = list(_files(home))
            # A log that began after the others were held: a writer may be at work on it.
            late = set(log_files(home)).difference(held)
            for name, path in files:
                if path in late:
                    continue
                content = read_all(path)
                hashes[name] = sha256(content).hexdigest()
                _add(archive, name, content)
                progress(1)
        manifest = {"format": FORMAT, "created": created, "sha256": hashes}
        _add(archive, MANIFEST, json.dumps(manifest).encode())
    return hashes


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(content), 0o600
    archive.addfile(member, BytesIO(content))


def _files(home: Home) -> Iterator[tuple[str, Path]]:
    """Yield the files to keep, and their names in the backup."""
    found = [
        (path.relative_to(home.path).as_posix(), path)
        for path in walk(home.path)
        if is_ours(path) and _is_kept(path.relative_to(home.path))
    ]
    yield from sorted(found)
    with suppress(FileNotFoundError):
        for path in sorted(home.inbox_folder.iterdir()):
            if is_ours(path) and not path.name.endswith(".rewriting"):
                yield f"{INBOX}{path.name}", path


def _is_kept(path: Path) -> bool:
    first = path.parts[0]
    is_derived = first == STATE or first.startswith(INDEX) or ".git" in path.parts
    return not is_derived and path.suffix not in (".rewriting", ".lock") and path.name != MANIFEST


# --- Reading it -----------------------------------------------------------------------------------


class Verified(NamedTuple):
    """A backup that is whole: the hash of each file, and the summary."""

    hashes: dict[str, str]
    summary: Summary


def verify(file: Path) -> Verified:
    """Read all of the backup *file*. Raises `UsageError` if anything is wrong with it."""
    hashes: dict[str, str] = {}
    size = records = 0
    manifest: dict[str, Any] = {}
    for name, content in _members(file):
        if name == MANIFEST:
            manifest = _read_manifest(file, content)
            continue
        hashes[name] = sha256(content).hexdigest()
        size += len(content)
        records += content.count(b"\n") if name.startswith("log/") else 0
    if not manifest:
        raise _broken(file, "it has no manifest, so it may not be complete")
    if hashes != manifest["sha256"]:
        raise _broken(file, "its files are not those that its manifest names")
    return Verified(hashes, Summary(str(file), len(hashes), size, records, manifest["created"]))


class SmallHeader(tarfile.TarInfo):
    """A header whose extensions are small: `tarfile` reads each of them into memory as a whole."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        found = super().frombuf(buf, encoding, errors)
        is_small = found.size <= _HEADER_BYTES_MAX and found.type != tarfile.XGLTYPE
        if found.type == tarfile.GNUTYPE_SPARSE or not (found.isreg() or is_small):
            raise tarfile.ReadError("a header is too large")
        return found


def _members(file: Path) -> Iterator[tuple[str, bytes]]:
    """Yield each file in the backup: plain ones only, with names that stay inside a home."""
    seen: set[str] = set()
    try:
        with tarfile.open(file, "r:gz", tarinfo=SmallHeader) as archive:
            for member in archive:
                name = member.name
                if not member.isreg() or not is_safe(name) or name.casefold() in seen:
                    raise _broken(file, f"`{name}` may not be in a backup")
                limit = _MANIFEST_BYTES_MAX if name == MANIFEST else FILE_BYTES_MAX
                if member.size > limit or len(seen) > ENTRIES_MAX:
                    raise _broken(file, f"`{name}` is too large, or there are too many files")
                seen.add(name.casefold())
                stream = archive.extractfile(member)
                assert stream is not None, "it is a plain file"
                content = stream.read()
                if len(content) != member.size:
                    raise _broken(file, f"`{name}` is cut off")
                yield name, content
            # gzip's checksum is behind the padding at the end.
            assert archive.fileobj is not None, "it is open"
            if len(archive.fileobj.read(_PADDING_BYTES_MAX + 1)) > _PADDING_BYTES_MAX:
                raise _broken(file, "more follows after its end")
    except FileNotFoundError:
        raise UsageError(f"there is no file `{file}`", "name a backup") from None
    except _DAMAGED as error:
        raise _broken(file, str(error)) from None


def is_safe(name: str) -> bool:
    """Whether a file of a backup may have this *name*: inside a home, and not of its machinery."""
    parts = name.split("/")
    if name.startswith(INBOX):
        parts = parts[2:]
    # Windows ignores dots and spaces at the end of a name.
    plain = [part.casefold().rstrip(". ") for part in parts]
    is_plain = all(plain) and all(part.isprintable() for part in parts)
    is_ours_alone = plain[0] == STATE or plain[0].startswith(INDEX)
    has_git = ".git" in plain
    return is_plain and not is_ours_alone and not has_git and not set('\\:*?"<>|') & set(name)


def _read_manifest(file: Path, content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise _broken(file, "it was made by a newer version, or is none of ours")
    if not isinstance(found.get("sha256"), dict) or not isinstance(found.get("created"), str):
        raise _broken(file, "its manifest is not valid")
    return found


def _broken(file: Path, reason: str) -> UsageError:
    return UsageError(
        f"`{file}` is not a whole backup: {reason}", "nothing was changed; use another backup"
    )


# --- Restoring it ---------------------------------------------------------------------------------


def restore(home: Home, file: Path, *, replace: bool, stamp: str) -> tuple[Summary, Path | None]:
    """Make the home from the backup *file*; return where a home that was there before is now."""
    verified = verify(file)
    is_used = home.path.is_dir() and any(home.path.iterdir())
    if is_used and not replace:
        raise HomeUnusable(
            home.path,
            "it is not empty, and a backup is restored to a new or empty folder",
            "name another with `--home`, or add `--replace`: the old home is then kept beside it",
        )
    new = restoring.new_path(home.path, os.urandom(6).hex())
    old = restoring.old_path(home.path, stamp) if is_used else None
    try:
        _extract(file, home._replace(path=new), verified.hashes)
        # If this is killed here, `restoring.check` says how to go on.
        if old is not None:
            home.path.rename(old)
        elif home.path.is_dir():
            home.path.rmdir()
        _put_in_place(new, home.path, old)
    except OSError as error:
        raise unusable(home.path, error) from error
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return verified.summary, old


def _put_in_place(new: Path, path: Path, old: Path | None) -> None:
    try:
        new.rename(path)
    except OSError:
        if old is not None:
            old.rename(path)
        raise
    sync_folder(path.parent)


def _extract(file: Path, home: Home, hashes: dict[str, str]) -> None:
    """Write the files of the backup into *home*, which is new."""
    make_folder(home.path)
    for name, content in _members(file):
        if name == MANIFEST:
            continue
        if hashes.get(name) != sha256(content).hexdigest():
            raise _broken(file, "it was changed while it was read")
        is_candidate = name.startswith(INBOX)
        path = home.inbox_folder / name.removeprefix(INBOX) if is_candidate else home.path / name
        atomic.write(path, [content])
