"""Write a pack and import one. Both happen as a whole, or nothing is changed."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.errors import PackRefused
from commonplace.exchange.importer import import_items
from commonplace.exchange.items import ImportedRecord, Skipped, Source, Unreadable
from commonplace.foreign import OUTSIDE
from commonplace.packs import container, keys, places, selection, signing
from commonplace.records import decode, encode, slug, to_utc
from commonplace.records.nodes import type_of
from commonplace.redaction.fields import redact
from commonplace.redaction.suspicion import may_hold_secret

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from commonplace.exchange.items import Item
    from commonplace.memory import Memory
    from commonplace.records import Record

_MODELS = {"minilm": "all-MiniLM-L6-v2", "none": ""}
_DOMAINS_MAX = 10


class Exported(NamedTuple):
    """A pack that was written: its file, its description, its size, and who can open it."""

    path: str
    manifest: dict[str, Any]
    bytes: int
    encrypted_for: str


class Imported(NamedTuple):
    """What became of the records of a pack."""

    path: str
    manifest: dict[str, Any]
    added: int
    unchanged: int
    kept: int
    forgotten: int
    skipped: int
    redacted: int


def export_encrypted(memory: Memory, chosen: str, out: str) -> Exported:
    """Write the records that *chosen* selects to *out*, encrypted.

    A pack of that name is replaced; any other file stays, and is an error.
    """
    home = memory.homes[memory.trusted_home()]
    path = places.find(home, memory.settings["packs.folders"], out)
    wanted = selection.parse(chosen)
    _check_replaceable(out, path)
    seal = keys.seal_from(memory.settings)
    records = selection.select(memory, wanted)
    if not records:
        raise PackRefused(out, f"would be empty: no record is `{chosen}`", "select others")
    fields = _manifest(memory, path.name.removesuffix(places.SUFFIX), chosen, wanted, records)
    written = container.write(
        path, fields, _lines(records), signer=signing.key_of(home), seal=seal, confined=True
    )
    return Exported(str(path), written.fields, path.stat().st_size, seal.by)


def import_encrypted(memory: Memory, given: str) -> Imported:
    """Import the pack *given*: all of its records, or none if one is not valid.

    The user's own records win over those of the pack, and importing it again adds nothing.
    """
    number = memory.trusted_home()
    path = places.find(memory.homes[number], memory.settings["packs.folders"], given)
    if number:
        raise PackRefused(
            given,
            "cannot be imported here: the home that came with this repository is not trusted",
            "`commonplace trust` trusts it; or name your own home with `--home`",
        )
    opening = container.opened(
        path,
        keys.keys_from(memory.settings, memory.homes[number]),
        confined=True,
        allow_unsigned=True,
    )
    with opening as pack:
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


# --- Writing --------------------------------------------------------------------------------------


def _check_replaceable(out: str, path: Path) -> None:
    """Raise if there is a file that is not a pack: an agent chose the name."""
    if path.exists() and not container.is_pack(path):
        raise PackRefused(out, "is a file that is no pack, and stays", "name another file")


def _lines(records: Iterable[Record]) -> Iterator[bytes]:
    for record in records:
        line = encode(record.fields)
        if may_hold_secret(line):
            line = encode(redact(record.fields)[0])
        yield line.encode()


def _manifest(
    memory: Memory,
    name: str,
    chosen: str,
    wanted: selection.Selection,
    records: list[Record],
) -> dict[str, Any]:
    now = to_utc(memory.now())
    types = Counter(type_of(record) or record.kind for record in records)
    tags = Counter(tag for record in records for tag in record.tags)
    common = [tag for tag, _count in sorted(tags.items(), key=lambda one: (-one[1], one[0]))]
    kind = memory.settings["embedder.kind"]
    return {
        "id": slug(name, 64) or "pack",
        "name": name,
        "version": now[:10].replace("-", "."),
        "domain_tags": sorted(wanted.domain) or common[:_DOMAINS_MAX],
        # No vectors are in it: they are made where it is imported.
        "embedding_model": _MODELS.get(kind, memory.settings["embedder.model"]),
        "created_at": now,
        "selection": chosen.strip() or "*",
        "counts": {"types": dict(sorted(types.items()))},
    }


# --- Reading --------------------------------------------------------------------------------------


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
