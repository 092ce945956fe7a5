"""Secrets in snapshots: a snapshot keeps lines that other programs wrote before `scan` found them.

They are compressed, so the search through the files of a home does not see them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.log.scan import Secret, redact_line
from commonplace.snapshots import removal

if TYPE_CHECKING:
    from commonplace.where.home import Home


def find(home: Home) -> list[Secret]:
    """Return the secrets in the snapshots of *home*."""
    found: list[Secret] = []
    removal.visit(home, lambda lines: found.extend(_redact(home, lines)[0]))
    return found


def remove(home: Home) -> list[Secret]:
    """Remove the secrets from the snapshots of *home*, and return them."""
    found: list[Secret] = []

    def redact(lines: bytes) -> tuple[bytes, int]:
        secrets, kept = _redact(home, lines)
        found.extend(secrets)
        return kept, len(secrets)

    removal.rewrite(home, redact)
    return found


def _redact(home: Home, lines: bytes) -> tuple[list[Secret], bytes]:
    secrets: list[Secret] = []
    kept: list[bytes] = []
    for raw in lines[:-1].split(b"\n"):
        redactions, clean = redact_line(raw)
        secrets += [Secret(home.snapshots_folder, 0, one.kind, one.field) for one in redactions]
        kept.append(clean + b"\n")
    return secrets, b"".join(kept)
