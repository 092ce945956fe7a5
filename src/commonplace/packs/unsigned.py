"""Packs of the first format, which are still read.

They are a tar archive of `pack.json` and `nodes.jsonl`, encrypted, neither compressed nor signed.
Nothing is read from an archive but these two, and never more than a limit.
"""

from __future__ import annotations

import json
import tarfile
from hashlib import sha256
from io import BytesIO
from typing import Any, NamedTuple

from commonplace.errors import PackRefused
from commonplace.packs.manifest import Manifest
from commonplace.transfer.backup import SmallHeader

FORMAT = 1
BYTES_MAX = 128 << 20
# The archive has a few headers more than its files.
ARCHIVE_BYTES_MAX = BYTES_MAX + (1 << 20)
MANIFEST, NODES = "pack.json", "nodes.jsonl"
_MANIFEST_BYTES_MAX = 1 << 20
_MEMBERS_MAX = 100
_TEXTS = ("id", "name", "version", "embedding_model", "created_at", "checksum")


class Pack(NamedTuple):
    """The description of a pack, and its records as lines."""

    manifest: dict[str, Any]
    nodes: bytes


def checksum(nodes: bytes) -> str:
    return f"sha256:{sha256(nodes).hexdigest()}"


def describe(pack: Pack) -> Manifest:
    """Return what the pack says about itself, as packs say it now."""
    found = pack.manifest
    counts = found.get("counts")
    types = counts.get("types") if isinstance(counts, dict) else None
    tags = found.get("domain_tags")
    return Manifest(
        found["id"],
        found["name"],
        found["version"],
        tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else (),
        found["embedding_model"],
        found["created_at"],
        (),
        "",
        sum(1 for line in pack.nodes.split(b"\n") if line.strip()),
        types if isinstance(types, dict) else {},
        found["checksum"],
        found,
    )


def read(name: str, archive: bytes) -> Pack:
    """Return the pack in *archive*. Raises `PackRefused` if anything is wrong with it."""
    if len(archive) > ARCHIVE_BYTES_MAX:
        raise PackRefused(name, f"is over {ARCHIVE_BYTES_MAX:,} bytes")
    files, others = _members(name, archive)
    manifest = _manifest(name, files.get(MANIFEST))
    if others:
        raise PackRefused(name, f"holds `{others[0]}`, which is no file of a pack")
    nodes = files.get(NODES)
    if nodes is None:
        raise PackRefused(name, f"has no `{NODES}`")
    if manifest["checksum"] != checksum(nodes):
        raise PackRefused(name, f"is damaged: `{NODES}` does not have the checksum of `{MANIFEST}`")
    return Pack(manifest, nodes)


def _members(name: str, archive: bytes) -> tuple[dict[str, bytes], list[str]]:
    """Return the files of a pack by name, and the names of others, which are not read."""
    files: dict[str, bytes] = {}
    others: list[str] = []
    try:
        # Never compressed: what is read is no larger than the archive itself.
        with tarfile.open(fileobj=BytesIO(archive), mode="r:", tarinfo=SmallHeader) as opened:
            for member in opened:
                if not member.isreg():
                    raise PackRefused(name, f"holds `{member.name}`, which is not a plain file")
                if member.name in files or member.name in others:
                    raise PackRefused(name, f"holds `{member.name}` twice")
                if len(others) >= _MEMBERS_MAX:
                    raise PackRefused(name, "holds too many files")
                if member.name not in (MANIFEST, NODES):
                    others.append(member.name)
                    continue
                limit = _MANIFEST_BYTES_MAX if member.name == MANIFEST else BYTES_MAX
                if member.size > limit:
                    raise PackRefused(name, f"has a `{member.name}` of over {limit:,} bytes")
                stream = opened.extractfile(member)
                assert stream is not None, "it is a plain file"
                files[member.name] = stream.read()
                if len(files[member.name]) != member.size:
                    raise PackRefused(name, f"is cut off in `{member.name}`")
    except (tarfile.TarError, EOFError, ValueError, OverflowError, RecursionError) as error:
        raise PackRefused(name, f"is no valid archive: {error}") from None
    return files, others


def _manifest(name: str, raw: bytes | None) -> dict[str, Any]:
    if raw is None:
        raise PackRefused(name, f"has no `{MANIFEST}`")
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or type(found.get("format")) is not int:
        raise PackRefused(name, f"has a `{MANIFEST}` that does not describe a pack")
    if found["format"] > FORMAT:
        raise PackRefused(
            name,
            f"has the format {found['format']}, and this version reads {FORMAT}",
            "install a newer version of Commonplace",
        )
    if not all(isinstance(found.get(field), str) for field in _TEXTS):
        raise PackRefused(name, f"has a `{MANIFEST}` that lacks one of {', '.join(_TEXTS)}")
    return found
