"""Find secrets in the files of a home, and remove them on request.

Redaction removes secrets before a record is written; other programs may write them by hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from commonplace import records
from commonplace.files import atomic
from commonplace.files.lock import hold
from commonplace.files.plain import read_all
from commonplace.log import read
from commonplace.log.logs import files, is_of_git
from commonplace.redaction.fields import Redaction, redact
from commonplace.redaction.spans import merge_spans
from commonplace.redaction.text import find_spans, redact_text

if TYPE_CHECKING:
    from pathlib import Path

    from commonplace.where.home import Home


class Secret(NamedTuple):
    """Where a secret was found and its kind; never the secret itself."""

    path: Path
    line: int
    kind: str
    field: str


def scan(home: Home) -> list[Secret]:
    """Return every secret in the logs, archives, damaged lines and text files of the home."""
    return [secret for path in _files(home) for secret in _redact_file(path)[0]]


def remove_secrets(home: Home) -> list[Secret]:
    """Redact the files of the home, each replaced in one step; return the secrets removed."""
    removed: list[Secret] = []
    for path in _files(home):
        if _redact_file(path)[0]:
            with hold(home.lock_of(path)):
                # Its writer may have changed or removed it before we held the lock.
                secrets, content = _redact_file(path)
                if secrets:
                    atomic.replace(path, [content])
            removed += secrets
    return removed


def _files(home: Home) -> list[Path]:
    """Return the files to scan: all but the index, which is rebuilt from them, and git's files."""

    def is_scanned(path: Path) -> bool:
        return (
            not atomic.in_progress(path)
            and home.index_folder not in path.parents
            and home.snapshot_objects not in path.parents  # `snapshots/secrets.py` scans those.
            and not is_of_git(home, path)
        )

    return [path for path in files(home) if is_scanned(path)]


def _redact_file(path: Path) -> tuple[list[Secret], bytes]:
    """Return the secrets in the file, and its content without them."""
    return _redact_log(path) if path.suffix == ".jsonl" else _redact_text_file(path)


def _redact_log(path: Path) -> tuple[list[Secret], bytes]:
    secrets: list[Secret] = []
    content: list[bytes] = []
    for line in read.lines(path, whole=True):
        found, raw = redact_line(line.raw)
        secrets += [
            Secret(path, line.number, redaction.kind, redaction.field) for redaction in found
        ]
        content.append(raw if line.torn else raw + b"\n")
    return secrets, b"".join(content)


def redact_line(raw: bytes) -> tuple[list[Redaction], bytes]:
    """Return what was found in a line, and the line without it."""
    if not raw.strip():
        return [], raw
    try:
        # An id that comes from the text must not change with it: so it is written down.
        fields = records.fill_identity(records.decode(raw))
    except ValueError:
        text, kinds = redact_text(raw.decode("utf-8", "surrogateescape"))
        return [Redaction(kind, "line") for kind in kinds], text.encode("utf-8", "surrogateescape")
    redacted, found = redact(fields)
    return found, records.encode(redacted).encode() if found else raw


def _redact_text_file(path: Path) -> tuple[list[Secret], bytes]:
    raw = read_all(path)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return [], raw  # Not a text: Commonplace does not write such files.
    redacted, kinds = redact_text(text)
    secrets = []
    line, at = 1, 0
    for span in merge_spans(find_spans(text)) if kinds else []:
        line, at = line + text.count("\n", at, span.start), span.start
        secrets.append(Secret(path, line, span.kind, "text"))
    # What is only found without the others is reported at the first line.
    secrets += [Secret(path, 1, kind, "text") for kind in kinds[len(secrets) :]]
    return secrets, redacted.encode()
