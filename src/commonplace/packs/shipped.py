"""The packs that come with the package."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from commonplace.errors import PackRefused, PackUnknown
from commonplace.packs import importing, keys, places, trusted

if TYPE_CHECKING:
    from collections.abc import Callable

    from commonplace.memory import Memory
    from commonplace.packs.importing import Changes

FOLDER = Path(__file__).parent / "shipped"


def names() -> list[str]:
    """Return the names of the packs that `pack add` installs."""
    return sorted(
        path.name.removesuffix(places.SUFFIX) for path in FOLDER.glob(f"*{places.SUFFIX}")
    )


def add(
    memory: Memory,
    name: str,
    *,
    dry_run: bool = False,
    progress: Callable[[int], None] = lambda _count: None,
) -> Changes:
    """Install a pack that came with the package, or the version that came with it now."""
    if name not in names():
        raise PackUnknown(name, names())
    path = FOLDER / f"{name}{places.SUFFIX}"
    key = trusted.shipped_key()
    if not key:
        raise PackRefused(
            path.name, "came without the key that signed it", "install Commonplace again"
        )
    # Each release is signed with a key of its own, so the key of an older one may differ.
    return importing.import_pack(
        memory,
        path,
        keys.keys_from(memory.settings, importing.home_of(memory)),
        importing.Options(signed_by=key, dry_run=dry_run, upgrade=True),
        progress,
    )
