"""What the tools of agents do with packs: write one, and import one, from confined places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.errors import PackRefused
from commonplace.exchange.importer import import_items
from commonplace.exchange.items import ImportedRecord, Skipped, Source, Unreadable
from commonplace.foreign import OUTSIDE
from commonplace.packs import container, keys, places, quarantine
from commonplace.packs.exporting import Exported, export_pack
from commonplace.packs.importing import INSTALLED, Options, home_of, import_pack
from commonplace.records import decode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from commonplace.exchange.items import Item
    from commonplace.memory import Memory


class Imported(NamedTuple):
    """What became of the records of a pack. `place` is `installed` or `quarantined`."""

    path: str
    manifest: dict[str, Any]
    added: int
    unchanged: int
    kept: int
    forgotten: int
    skipped: int
    redacted: int
    place: str = INSTALLED
    changed: int = 0
    removed: int = 0
    flagged: int = 0
    signer: str = ""
    of_other_packs: int = 0


def export_encrypted(memory: Memory, chosen: str, out: str) -> Exported:
    """Write the records that *chosen* selects to *out*, encrypted.

    A pack of that name is replaced; any other file stays, and is an error.
    """
    home = memory.homes[memory.trusted_home()]
    path = places.find(home, memory.settings["packs.folders"], out)
    return export_pack(memory, chosen, path, keys.seal_from(memory.settings), confined=True)


def import_encrypted(memory: Memory, given: str) -> Imported:
    """Import the pack *given*: all of its records, or none if one is not valid.

    By a signer whom the user does not trust, it goes to quarantine. The user's own records win over
    those of the pack, and importing it again adds nothing; a later version replaces it.
    """
    number = memory.trusted_home()
    path = places.find(memory.homes[number], memory.settings["packs.folders"], given)
    if number:
        raise PackRefused(
            given,
            "cannot be imported here: the home that came with this repository is not trusted",
            "`commonplace trust` trusts it; or name your own home with `--home`",
        )
    opening_keys = keys.keys_from(memory.settings, home_of(memory))
    with container.opened(path, opening_keys, confined=True, allow_unsigned=True) as pack:
        manifest = pack.manifest.fields
        if not pack.signer:
            return _import_unsigned(memory, given, path, pack)
    done = import_pack(memory, path, opening_keys, Options(upgrade=True, confined=True))
    quarantine.settle(memory, done)
    return Imported(
        str(path),
        manifest,
        done.added,
        done.unchanged,
        done.kept,
        done.forgotten,
        done.skipped,
        done.redacted,
        done.place,
        done.changed,
        done.removed,
        done.flagged,
        done.signer,
        done.of_other_packs,
    )


# --- Packs of the first format --------------------------------------------------------------------


def _import_unsigned(memory: Memory, given: str, path: Path, pack: container.Opened) -> Imported:
    """Import a pack that an older version wrote, which nobody signed, into the nearest home.

    Whoever encrypted it has a key of the user's.
    """
    report = import_items(
        memory,
        "pack",
        Source(path, path.parent, memory.repository.name),
        _items(pack),
        lambda problem: PackRefused(
            given, f"has a record that is not valid, in line {problem.line}: {problem.reason}"
        ),
    )
    return Imported(
        str(path),
        pack.manifest.fields,
        report.lines,
        report.unchanged,
        report.kept,
        report.forgotten,
        report.skipped_count,
        report.redacted,
    )


def _items(pack: container.Opened) -> Iterator[Item]:
    origin = f"pack:{pack.manifest.id}"
    for number, raw in enumerate(pack.lines(), 1):
        if not raw.strip():
            continue
        try:
            fields = decode(raw)
        except ValueError as error:
            yield Unreadable(number, str(error))
            continue
        if fields.get("kind") in ("feedback", "forget"):
            yield Skipped(number, "what a pack says about other records is not imported")
            continue
        meta = fields.get("meta")
        kept = dict(meta) if isinstance(meta, dict) else {}
        before = kept.get("origin")
        if not (isinstance(before, str) and before.startswith(OUTSIDE)):
            kept["origin"] = f"{origin} of {before}" if before else origin
        yield ImportedRecord({**fields, "meta": kept}, number)
