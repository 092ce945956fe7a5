"""Write chosen records to a pack: redacted again, without what is private or of this machine."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.errors import PackRefused
from commonplace.exchange.own_ids import map_ids
from commonplace.foreign import one_line
from commonplace.packs import container, places, selection, signing
from commonplace.packs.importing import home_of
from commonplace.packs.machine_paths import MachinePaths
from commonplace.records import encode, slug, to_utc
from commonplace.records.nodes import type_of
from commonplace.redaction.fields import redact
from commonplace.redaction.suspicion import may_hold_secret
from commonplace.where.homes import user_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from commonplace.memory import Memory
    from commonplace.packs.keys import Seal
    from commonplace.records import Record

_MODELS = {"minilm": "all-MiniLM-L6-v2", "none": ""}
_DOMAINS_MAX = 10
_TAG_CHARS_MAX = 100
# What a step of ours notes about a record, which means nothing in another home.
_NOT_EXPORTED = ("batch", "step", "session")
_NAMES = frozenset(["id", "kind", "repo", "of", "to"])


class Exported(NamedTuple):
    """A pack that was written, who can open it, and what was left out or changed."""

    path: str
    manifest: dict[str, Any]
    bytes: int
    encrypted_for: str
    signer: str
    # How many records were left out, by the reason.
    left_out: dict[str, int]
    # Records with secrets that only this redaction found, and with paths of this machine.
    redacted: int
    paths_replaced: int


def export_pack(
    memory: Memory,
    chosen: str,
    path: Path,
    seal: Seal | None,
    given: Mapping[str, Any] | None = None,
    progress: Callable[[int], None] = lambda _count: None,
    *,
    confined: bool = False,
) -> Exported:
    """Write the records that *chosen* selects to *path*; encrypted if there is a *seal*.

    *given* has fields of `pack.json`: `name`, `version`, `authors`, `licence`, `title`. *confined*
    is for a path that an agent named: it may not lead through a link.
    """
    wanted = selection.parse(chosen)
    if path.exists() and not container.is_pack(path, confined=confined):
        raise PackRefused(
            one_line(str(path)), "is a file that is no pack, and stays", "name another file"
        )
    lines = _Lines(memory, wanted, progress)
    fields = _description(memory, path, chosen, given or {})
    signer = signing.key_of(home_of(memory))
    written = container.write(
        path, fields, lines.read(fields), signer=signer, seal=seal, confined=confined
    )
    return Exported(
        str(path),
        written.fields,
        path.stat().st_size,
        seal.by if seal else "",
        signer.public,
        lines.left_out.as_dict(),
        lines.redacted,
        lines.paths_replaced,
    )


class _Lines:
    """The lines of a pack, and what is counted while they are made."""

    def __init__(
        self, memory: Memory, wanted: selection.Selection, progress: Callable[[int], None]
    ) -> None:
        self._wanted = wanted
        self._progress = progress
        self.left_out = selection.LeftOut()
        self._records = selection.select(memory, wanted, self.left_out)
        self._paths = MachinePaths(user_folder(os.environ), memory.repository.root)
        self.redacted = self.paths_replaced = 0
        self._types: Counter[str] = Counter()
        self._tags: Counter[str] = Counter()

    def read(self, fields: dict[str, Any]) -> Iterator[bytes]:
        """Yield the lines, and then add what they have to *fields*. Raises if there is none."""
        count = 0
        for record in self._records:
            count += 1
            self._progress(1)
            self._types[type_of(record) or record.kind] += 1
            self._tags.update(record.tags)
            yield self._line(record)
        if not count:
            left = sum(self.left_out.as_dict().values())
            raise PackRefused(
                fields["name"],
                f"would be empty: no record is `{one_line(fields['selection'])}`"
                + (f" but {left:,} that are left out" if left else ""),
                "select others; `commonplace tags` lists the tags",
            )
        counted = sorted(self._tags.items(), key=lambda one: (-one[1], one[0]))
        common = [tag for tag, _count in counted if len(tag) <= _TAG_CHARS_MAX][:_DOMAINS_MAX]
        fields["domain_tags"] = sorted(self._wanted.domain) or common
        fields["counts"] = {"types": dict(sorted(self._types.items()))}

    def _line(self, record: Record) -> bytes:
        before = {name: value for name, value in record.fields.items() if name != "meta"}
        if meta := {
            name: value for name, value in record.meta.items() if name not in _NOT_EXPORTED
        }:
            before["meta"] = meta
        fields, line = before, encode(before)
        if self._paths.may_be_in(line):
            # Others refer to an id, and the name of a repository is no path.
            kept = {name: value for name, value in before.items() if name in _NAMES}
            fields = map_ids({**self._paths.replace(before), **kept}, self._paths.replace_in_id)
            self.paths_replaced += fields != before
            line = encode(fields)
        if may_hold_secret(line):
            fields, found = redact(fields)
            self.redacted += bool(found)
            line = encode(fields)
        return line.encode()


def _description(
    memory: Memory, path: Path, chosen: str, given: Mapping[str, Any]
) -> dict[str, Any]:
    now = to_utc(memory.now())
    name = str(given.get("name") or path.name.removesuffix(places.SUFFIX))
    kind = memory.settings["embedder.kind"]
    return {
        "id": slug(name, 64) or "pack",
        "name": name,
        "version": now[:10].replace("-", "."),
        # No vectors are in it: they are made where it is imported.
        "embedding_model": _MODELS.get(kind, memory.settings["embedder.model"]),
        "created_at": now,
        "selection": chosen.strip() or "*",
        **{field: value for field, value in given.items() if value},
    }
