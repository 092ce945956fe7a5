"""Import a pack into a log of its own: all of its records, or none if one is not valid.

A pack by a signer whom the user does not trust goes to the quarantine. Records of the user, and of
packs that were there first, win over those of a pack with the same ids.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.errors import NothingTrusted, PackRefused, RecordInvalid
from commonplace.foreign import one_line
from commonplace.log import pack_logs
from commonplace.log.pack_logs import Description, LocalRecords, OtherPacks
from commonplace.packs import arriving, container, signing, suspicion, trusted
from commonplace.records import check_repo_name, to_utc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from commonplace.memory import Memory
    from commonplace.packs.container import Opened
    from commonplace.packs.keys import Keys
    from commonplace.packs.suspicion import Flag
    from commonplace.records import Record
    from commonplace.where.home import Home

LISTED_MAX = 100
INSTALLED, QUARANTINED = "installed", "quarantined"


@dataclass
class Changes:
    """What became of the records of a pack. The lists have the first of them."""

    name: str
    version: str
    signer: str
    place: str
    dry_run: bool = False
    checksum: str = ""
    title: str = ""
    # The version that was there before; "" if there was none.
    before: str = ""
    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0
    # Records of the user have their ids, or the user has forgotten them.
    kept: int = 0
    forgotten: int = 0
    # Records of packs that were there first have their ids.
    of_other_packs: int = 0
    # Statements about other records, which are not imported.
    skipped: int = 0
    redacted: int = 0
    flagged: int = 0
    added_ids: list[str] = field(default_factory=list)
    changed_ids: list[str] = field(default_factory=list)
    removed_ids: list[str] = field(default_factory=list)
    differences: list[dict[str, Any]] = field(default_factory=list)
    flags: list[Flag] = field(default_factory=list)

    @property
    def records(self) -> int:
        """How many records of the pack are in its log."""
        found = self.added + self.changed + self.unchanged
        # In quarantine a pack is whole: what stays out is decided when it is installed.
        withheld = self.kept + self.forgotten + self.of_other_packs
        return found + withheld if self.place == QUARANTINED else found


def home_of(memory: Memory) -> Home:
    """Return the home that packs are installed in: the user's, whose records all folders find.

    Raises `NothingTrusted` if only the home of a repository is open that the user does not trust.
    """
    home = memory.homes[-1]
    if not memory.trusts(home):
        raise NothingTrusted(home.path)
    return home


class Options(NamedTuple):
    """How a pack is imported.

    *trust* installs it whoever signed it; *quarantine* never does. With *upgrade*, it takes the
    place of another version by the same signer; otherwise another version is an error. A pack that
    must be *signed_by* that key is installed without being asked; *confined* is for paths that an
    agent named.
    """

    trust: bool = False
    quarantine: bool = False
    dry_run: bool = False
    upgrade: bool = False
    signed_by: str = ""
    confined: bool = False


def import_pack(
    memory: Memory,
    path: Path,
    keys: Keys,
    options: Options = Options(),  # noqa: B008 (a constant)
    progress: Callable[[int], None] = lambda _count: None,
) -> Changes:
    """Install the pack at *path*, or put it into quarantine if its signer is not trusted."""
    dry_run, signed_by = options.dry_run, options.signed_by
    home = home_of(memory)
    with (
        container.opened(path, keys, confined=options.confined) as pack,
        _holding(home, dry_run=dry_run),
    ):
        name = pack.manifest.id
        _check_name(path, name)
        if signed_by and pack.signer != signed_by:
            raise PackRefused(one_line(str(path)), "is not signed by the key that it came with")
        is_known = not options.quarantine and (
            options.trust or bool(signed_by) or knows(home, pack.signer)
        )
        installed, waiting = whole(home, name), whole(home.quarantine, name)
        if installed and options.quarantine:
            raise PackRefused(
                one_line(str(path)),
                f"is called `{name}`, and a pack of that name is installed, not in quarantine",
                f"`commonplace pack remove {name}` removes it",
            )
        target = home if installed or is_known else home.quarantine
        here = pack_logs.describe(home, name) or pack_logs.describe(home.quarantine, name)
        # Each release of the package signs its packs with another key.
        is_next_release = here is not None and here.shipped and is_shipped(pack)
        if not is_next_release:
            pack_logs.check_same_signer(str(path), pack.signer, here)
        replaced = installed if target is home else waiting
        is_same = replaced is not None and replaced.checksum == pack.manifest.checksum
        if replaced is not None and not is_same:
            _check_replaceable(path, replaced, pack, upgrade=options.upgrade)
            if installed and not is_known:
                raise PackRefused(
                    one_line(str(path)),
                    "is by a signer whom you do not trust, and an installed pack would change",
                    f"`commonplace pack trust {pack.signer}` trusts the signer",
                )
        writer = _Writer(memory, pack, target, progress, dry_run=dry_run)
        done = writer.run(str(path), writes=not (dry_run or is_same))
        if target is home and waiting and not dry_run:
            pack_logs.remove_log(home.quarantine, name)
            pack_logs.remove_description(home.quarantine, name)
        done.checksum = pack.manifest.checksum
        done.title = str(pack.manifest.fields.get("title") or pack.manifest.name)
    return done


def whole(home: Home, name: str) -> Description | None:
    """Return the description of a pack that was installed to the end; `None` for others.

    Of one whose removal was interrupted, the description is left and the log is not.
    """
    found = pack_logs.describe(home, name)
    is_whole = found is not None and found.manifest and home.pack_log(name).is_file()
    return found if is_whole else None


def is_shipped(pack: Opened) -> bool:
    """Whether the key that came with the package has signed it."""
    return pack.signer == trusted.shipped_key()


def knows(home: Home, signer: str) -> bool:
    """Whether packs of that signer are installed without being asked: by the user, or trusted."""
    return trusted.is_trusted(home, signer) or signer == signing.public_of(home)


@contextmanager
def _holding(home: Home, *, dry_run: bool) -> Iterator[None]:
    if dry_run and not home.path.is_dir():
        yield  # The lock would make the home.
        return
    with pack_logs.holding(home):
        yield


def _check_name(path: Path, name: str) -> None:
    try:
        is_valid = pack_logs.NAME.fullmatch(check_repo_name(name))
    except ValueError:
        is_valid = None
    if not is_valid:
        raise PackRefused(one_line(str(path)), f"has the id `{one_line(name)}`, which names no log")


def _check_replaceable(path: Path, here: Description, pack: Opened, *, upgrade: bool) -> None:
    if not upgrade:
        raise PackRefused(
            one_line(str(path)),
            f"is version {pack.manifest.version} of `{here.name}`, and {here.version} is here",
            "`commonplace pack upgrade` puts it in the place of that one",
        )


class _Writer:
    """Writes the log of one pack, and counts what is written."""

    def __init__(
        self,
        memory: Memory,
        pack: Opened,
        target: Home,
        progress: Callable[[int], None],
        *,
        dry_run: bool,
    ) -> None:
        self._pack = pack
        self._name = pack.manifest.id
        self._target = target
        self._now = memory.now()
        self._line_bytes_max = memory.settings["line_bytes_max"]
        self._progress = progress
        # In quarantine, a record stays beside the user's own until the pack leaves it.
        self._local = LocalRecords(home_of(memory))
        self._others = OtherPacks(home_of(memory), self._name)
        self._before = {
            record.id: pack_logs.content_digest(record.fields)
            for record in pack_logs.records(target, self._name)
        }
        known = pack_logs.describe(target, self._name)
        place = QUARANTINED if target.is_quarantine else INSTALLED
        self.done = Changes(self._name, pack.manifest.version, pack.signer, place, dry_run)
        self.done.before = known.version if known else ""
        # Ids that the log had, and that the user's records now keep out of it.
        self._kept_out: list[str] = []
        self._differing: dict[str, Record] = {}

    def run(self, path: str, *, writes: bool) -> Changes:
        if writes:
            pack_logs.write(self._target, self._described, self._lines(path), self._dropped())
        else:
            for _line in self._lines(path):
                pass
        self.done.removed = len(self._before)
        self.done.removed_ids = sorted(self._before)[:LISTED_MAX]
        self.done.differences = self._differences()
        return self.done

    def _described(self) -> Description:
        return Description(
            self._name,
            self._pack.manifest.fields,
            self._pack.signer,
            to_utc(self._now),
            self.done.flagged,
            is_shipped(self._pack),
        )

    def _lines(self, path: str) -> Iterator[bytes]:
        """Yield the lines of the log. Raises `PackRefused` at the first that is not valid."""
        seen: set[int] = set()
        for number, raw in enumerate(self._pack.lines(), 1):
            self._progress(1)
            try:
                given, entry = arriving.read(raw, self._name, self._now, self._line_bytes_max)
            except (ValueError, RecordInvalid) as error:
                raise PackRefused(
                    one_line(path), f"has a record that is not valid, in line {number}: {error}"
                ) from None
            found = list(suspicion.flags(given)) if suspicion.may_be_suspicious(raw) else []
            self.done.flagged += bool(found)
            self.done.flags += found[: LISTED_MAX - len(self.done.flags)]
            if entry is None:
                self.done.skipped += 1
                continue
            record = entry.record
            if (key := hash(record.id)) in seen:
                raise PackRefused(
                    one_line(path),
                    f"has two records with one id, `{one_line(record.id)}`, in line {number}",
                )
            seen.add(key)
            self.done.redacted += bool(record.redactions)
            was_there = record.id in self._before
            if self._count(record):
                yield entry.line
            elif was_there:
                self._kept_out.append(record.id)

    def _dropped(self) -> Iterator[str]:
        """Yield the ids that the log had before and lacks now. All lines have been read."""
        yield from self._before
        yield from self._kept_out

    def _count(self, record: Record) -> bool:
        """Count the record, and return whether it is written."""
        done, ident = self.done, record.id
        before = self._before.pop(ident, None)
        if ident in self._local:
            done.kept += 1
            if not self._local.says_the_same(record) and len(self._differing) < LISTED_MAX:
                self._differing[ident] = record
            return self._target.is_quarantine
        if self._local.is_forgotten(ident):
            done.forgotten += 1
            return self._target.is_quarantine
        if ident in self._others:
            done.of_other_packs += 1
            if not self._others.says_the_same(record) and len(self._differing) < LISTED_MAX:
                self._differing[ident] = record
            return self._target.is_quarantine
        if before is None:
            done.added += 1
            done.added_ids += [ident] if len(done.added_ids) < LISTED_MAX else []
        elif before != pack_logs.content_digest(record.fields):
            done.changed += 1
            done.changed_ids += [ident] if len(done.changed_ids) < LISTED_MAX else []
        else:
            done.unchanged += 1
        return True

    def _differences(self) -> list[dict[str, Any]]:
        """Return in which fields records that are here differ from those of the pack.

        `pack` is the pack that has the record; "" for the user's own.
        """
        own = self._local.read(self._differing)
        of_packs = self._others.read(self._differing.keys() - own.keys())
        found = []
        for ident, theirs in sorted(self._differing.items()):
            ours = (own if ident in own else of_packs)[ident].fields
            names = [
                name
                for name in dict.fromkeys([*ours, *theirs.fields])
                if name not in pack_logs.ABOUT_RECORD and ours.get(name) != theirs.fields.get(name)
            ]
            found.append(
                {
                    "id": ident,
                    "pack": "" if ident in own else arriving.pack_of(ours),
                    "yours": {name: ours.get(name) for name in names},
                    "theirs": {name: theirs.fields.get(name) for name in names},
                }
            )
        return found
