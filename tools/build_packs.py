"""Write the packs that come with the package, from the sources in `packs/` (`make packs`).

The records are the same for the same sources. The packs of one build are signed with a new key,
which is thrown away: its public half, `KEY`, comes with the package as the packs do.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from tools import pack_sources

from commonplace.graph.given import kind_of
from commonplace.packs import container, shipped, signing
from commonplace.records import encode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tools.pack_sources import SourceNode

# When the texts were written. A build has no date, so that the same sources are the same records.
CREATED = "2026-11-01T00:00:00Z"


def record_of(node: SourceNode, about: dict[str, Any]) -> dict[str, Any]:
    """Return the record that *node* becomes in the pack."""
    payload = {"definition": node.text}
    if node.codes:
        payload["code"] = "\n".join(code.text for code in node.codes)
        payload["language"] = node.codes[0].language
    return {
        "id": node.id,
        "kind": kind_of(node.type),
        "timestamp": CREATED,
        "type": node.type,
        "label": node.label,
        "payload": {name: value for name, value in payload.items() if value},
        "links": [{"to": link.to, "rel": link.rel, "w": link.w} for link in node.links],
        "children": node.children,
        "tags": node.tags,
        "meta": {
            "source": f"seedpack:{about['name']}",
            "version": about["version"],
            **({"unchecked": node.unchecked} if node.unchecked else {}),
        },
    }


def lines_of(pack: str) -> Iterator[bytes]:
    """Yield the lines of a pack, in the order of the ids."""
    about = pack_sources.about(pack)
    for node in sorted(pack_sources.read(pack), key=lambda one: one.id):
        fields = record_of(node, about)
        yield encode({name: value for name, value in fields.items() if value}).encode()


def build(folder: Path) -> list[str]:
    """Write all packs and the key to *folder*, in the place of those that are there."""
    signer = signing.generate()
    names = pack_sources.names()
    for old in (*folder.glob("*.kpack"), folder / "KEY"):
        old.unlink(missing_ok=True)
    for name in names:
        about = pack_sources.about(name)
        types: dict[str, int] = {}
        for node in pack_sources.read(name):
            types[node.type] = types.get(node.type, 0) + 1
        fields = {
            **about,
            "id": name,
            "created_at": CREATED,
            "counts": {"types": dict(sorted(types.items()))},
        }
        path = folder / f"{name}.kpack"
        container.write(path, fields, lines_of(name), signer=signer, seal=None)
        path.chmod(0o644)
    if names:
        (folder / "KEY").write_text(f"{signer.public}\n", "ascii")
    return names


def main() -> int:
    shipped.FOLDER.mkdir(exist_ok=True)
    try:
        names = build(shipped.FOLDER)
    except pack_sources.SourceError as error:
        print(error, file=sys.stderr)
        return 1
    for name in names:
        size = (shipped.FOLDER / f"{name}.kpack").stat().st_size
        print(f"{name}: {len(pack_sources.read(name))} nodes, {size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
