"""The logs of packs: one file for each, with a description of the pack beside it.

The records of a pack have a log of their own, so that the pack can be replaced and removed as a
whole. No line of the user is in it: what they say about its records goes to the log of all
repositories (`where/repository.py: log_for_changes`).
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from contextlib import contextmanager, suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.errors import HomeUnusable, PackRefused, unusable
from commonplace.files import atomic
from commonplace.files.lock import hold
from commonplace.files.plain import is_ours, open_for_read, read_all, read_small
from commonplace.foreign import one_line
from commonplace.log import read
from commonplace.log.fold import log_lines
from commonplace.log.logs import list_repos
from commonplace.records import from_line
from commonplace.records.json_text import encode_sorted
from commonplace.where import homes
from commonplace.where.home import LOG_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from commonplace.records import Record
    from commonplace.where.home import Home

NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?")
_DESCRIPTION_BYTES_MAX = 1 << 20
# What differs between two copies of a record though both say the same.
ABOUT_RECORD = ("timestamp", "repo", "agent_id", "meta")


class Description(NamedTuple):
    """An installed pack: its `pack.json`, who signed it, when it came, and what was suspicious.

    *shipped* says that the package brought it, so that the next release may replace it.
    """

    name: str
    manifest: dict[str, Any]
    signer: str = ""
    installed_at: str = ""
    flagged: int = 0
    shipped: bool = False

    @property
    def version(self) -> str:
        return str(self.manifest.get("version", ""))

    @property
    def checksum(self) -> str:
        return str(self.manifest.get("checksum", ""))


@contextmanager
def holding(home: Home) -> Iterator[None]:
    """Hold the packs of *home*: no other process installs or removes one meanwhile."""
    with hold(home.packs_lock):
        yield


def names(home: Home) -> list[str]:
    """Return the names of the packs in *home*, in order, also of those half written or removed."""
    try:
        found = sorted(home.pack_logs_folder.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise unusable(home.pack_logs_folder, error) from error
    stems = {
        path.name.removesuffix(path.suffix)
        for path in found
        if path.suffix in (LOG_SUFFIX, ".json") and is_ours(path)
    }
    return sorted(name for name in stems if NAME.fullmatch(name))


def describe(home: Home, name: str) -> Description | None:
    """Return the description of a pack; `None` if *home* does not have the pack.

    Of one that was being written or removed when the process was killed, it names no version.
    """
    if name not in names(home):
        return None
    fields: Any = None
    with suppress(OSError, ValueError, RecursionError):
        fields = json.loads(read_small(home.pack_description(name), _DESCRIPTION_BYTES_MAX))
    if not isinstance(fields, dict) or not isinstance(fields.get("manifest"), dict):
        return Description(name, {})
    flagged = fields.get("flagged")
    return Description(
        name,
        fields["manifest"],
        str(fields.get("signer", "")),
        str(fields.get("installed_at", "")),
        flagged if isinstance(flagged, int) else 0,
        fields.get("shipped") is True,
    )


def write(
    home: Home,
    described: Callable[[], Description],
    lines: Iterable[bytes],
    dropped: Iterable[str] = (),
) -> None:
    """Put *lines* in the place of the log of a pack; *described* is asked when all were written.

    *dropped*, read after *lines*, are the ids that the log had and no longer has: what was said
    about them is still in other logs, and goes with the pack. The caller holds the packs of *home*.
    If *lines* raises, all stays as it was.
    """
    homes.check_usable(home)
    if not home.log_folder.is_dir():
        homes.make(home)
    name = described().name
    with atomic.replacing(home.pack_log(name)) as stream:
        for line in lines:
            stream.write(line)
        stream.flush()
        _note_dropped(home, name, dropped)
        # Without a manifest, a pack is one whose installation was interrupted. Its signer stays:
        # nobody else may do the rest.
        _write_description(home, described()._replace(manifest={}))
    _write_description(home, described())


def dropped_ids(home: Home, name: str) -> set[str]:
    """Return the ids of the records that only earlier versions of a pack had."""
    path = home.pack_dropped_ids(name)
    raw = read_all(path)
    try:
        found = json.loads(raw) if raw else []
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list):
        raise HomeUnusable(
            path, "it is no list of ids", "delete it; what it named then stays if the pack goes"
        )
    return {ident for ident in found if isinstance(ident, str)}


def _note_dropped(home: Home, name: str, dropped: Iterable[str]) -> None:
    known = dropped_ids(home, name)
    if more := set(dropped) - known:
        # In one line and with ASCII only, whatever characters an id has.
        atomic.replace(home.pack_dropped_ids(name), [json.dumps(sorted(known | more)).encode()])


def _write_description(home: Home, described: Description) -> None:
    raw = json.dumps(described._asdict(), ensure_ascii=False, indent=1).encode()
    atomic.replace(home.pack_description(described.name), [raw])


def check_same_signer(given: str, signer: str, here: Description | None) -> None:
    """Raise if another signer's pack has that name: it must not be replaced by a stranger's.

    *given* is what the user named. A pack that was interrupted has its signer, too.
    """
    if here is not None and here.signer and here.signer != signer:
        raise PackRefused(
            one_line(given),
            f"is called `{here.name}`, as a pack that is here and that another key has signed",
            f"compare the signers with `commonplace pack list`; `commonplace pack remove"
            f" {here.name}` removes the one that is here",
        )


def remove_log(home: Home, name: str) -> None:
    """Remove the log of a pack. Its description still says that it was there."""
    _unlink(home.pack_log(name))


def remove_description(home: Home, name: str) -> None:
    """Remove the last of a pack. Its description goes after what a removal needs to be repeated."""
    _unlink(home.pack_dropped_ids(name))
    _unlink(home.pack_description(name))


def records(home: Home, name: str) -> Iterator[Record]:
    """Yield the records of a pack."""
    for found in read.parse(home.pack_log(name)):
        if not isinstance(found, read.Damage):
            yield found[1]


def count(home: Home, name: str) -> int:
    """Return how many lines the log of a pack has."""
    stream = open_for_read(home.pack_log(name))
    if stream is None:
        return 0
    with stream:
        return sum(block.count(b"\n") for block in iter(lambda: stream.read(1 << 20), b""))


def content_digest(fields: Mapping[str, Any]) -> int:
    """Return a number that two records with the same id share if both say the same."""
    content = {name: value for name, value in fields.items() if name not in ABOUT_RECORD and value}
    raw = encode_sorted(content).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(raw, digest_size=8).digest(), "big")


class _RecordsHere(ABC):
    """Records of a home, by id: they win over those of a pack that arrives."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._digests: dict[str, int] = {}
        for record in self._records():
            self._note(record)

    def __contains__(self, ident: object) -> bool:
        return ident in self._digests

    def says_the_same(self, record: Record) -> bool:
        return self._digests.get(record.id) == content_digest(record.fields)

    def read(self, ids: Iterable[str]) -> dict[str, Record]:
        """Return the last versions of *ids*."""
        wanted = set(ids)
        if not wanted:
            return {}
        return {record.id: record for record in self._records() if record.id in wanted}

    def _note(self, record: Record) -> None:
        self._digests[record.id] = content_digest(record.fields)

    @abstractmethod
    def _records(self) -> Iterator[Record]:
        """Yield the records that are here, the latest version of each last."""


class LocalRecords(_RecordsHere):
    """What the logs of repositories hold."""

    def __init__(self, home: Home) -> None:
        self._forgotten: set[str] = set()
        super().__init__(home)

    def is_forgotten(self, ident: str) -> bool:
        """Whether the user has forgotten the record of a pack, and nothing brought it back."""
        return ident in self._forgotten and ident not in self._digests

    def wins_over(self, ident: str) -> bool:
        """Whether the record of a pack with that id stays out."""
        return ident in self._digests or ident in self._forgotten

    def _note(self, record: Record) -> None:
        super()._note(record)
        if record.kind == "forget":
            self._forgotten.add(str(record.fields.get("of")))

    def _records(self) -> Iterator[Record]:
        for repo in list_repos(self._home):
            for line in log_lines(self._home, repo):
                with suppress(ValueError):  # A damaged line: `doctor` names it.
                    yield from_line(line.line.raw)


class OtherPacks(_RecordsHere):
    """What the packs other than *name* hold: no pack changes what another one says."""

    def __init__(self, home: Home, name: str) -> None:
        self._name = name
        super().__init__(home)

    def _records(self) -> Iterator[Record]:
        for other in names(self._home):
            if other != self._name:
                yield from records(self._home, other)


class Released(NamedTuple):
    """A pack that left the quarantine, and how many of its records others kept out.

    Others are the user's own, and those of packs that were there first.
    """

    name: str
    records: int
    kept: int


def release(home: Home, name: str) -> Released:
    """Move a pack from the quarantine into *home*.

    Raises `FileNotFoundError` if it is not there. If it is killed, the pack is in both, and the
    next call does the rest.
    """
    with holding(home):
        described = describe(home.quarantine, name)
        if described is None or not described.manifest:
            raise FileNotFoundError(name)
        check_same_signer(name, described.signer, describe(home, name))
        local, others = LocalRecords(home), OtherPacks(home, name)
        kept = count = 0

        def lines() -> Iterator[bytes]:
            nonlocal kept, count
            for found in read.parse(home.quarantine.pack_log(name)):
                if isinstance(found, read.Damage):
                    continue
                if local.wins_over(found[1].id) or found[1].id in others:
                    kept += 1
                else:
                    count += 1
                    yield found[0].raw + b"\n"

        # There is a log only if an installation was interrupted.
        before = (record.id for record in records(home, name))
        write(home, lambda: described, lines(), before)
        remove_log(home.quarantine, name)
        remove_description(home.quarantine, name)
    return Released(name, count, kept)


def _unlink(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise unusable(path, error) from error
