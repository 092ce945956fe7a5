"""Secrets in a home that was written before redaction, or past it: found, and taken out on request."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from commonplace import records
from commonplace.files import atomic
from commonplace.files.lock import hold
from commonplace.files.plain import read_all
from commonplace.log import read
from commonplace.log.logs import files
from commonplace.redaction import Redaction, redact, redact_text

if TYPE_CHECKING:
    from pathlib import Path

    from commonplace.where.home import Home


class Secret(NamedTuple):
    """Where a secret lies and of what kind it is; never the secret."""

    path: Path
    line: int
    kind: str
    field: str


def scan(home: Home) -> list[Secret]:
    """Every secret in the logs, archives, damaged lines and text files of the home."""
    return [secret for path in _files(home) for secret in _cleaned(path)[0]]


def clean(home: Home) -> list[Secret]:
    """Take them out where they stand, each file replaced in one step; returns what was taken out."""
    taken: list[Secret] = []
    for path in _files(home):
        if _cleaned(path)[0]:
            with hold(path):
                secrets, content = _cleaned(path)
                atomic.replace(path, [content])
            taken += secrets
    return taken


def _files(home: Home) -> list[Path]:
    """Not the index, which is rebuilt from what is scanned here, and nothing of git's."""

    def wanted(path: Path) -> bool:
        within = path.relative_to(home.path)
        return (
            not atomic.in_progress(path)
            and home.index_folder not in path.parents
            and ".git" not in within.parts
        )

    return [path for path in files(home) if wanted(path)]


def _cleaned(path: Path) -> tuple[list[Secret], bytes]:
    """The secrets in the file, and its content without them."""
    return _cleaned_log(path) if path.suffix == ".jsonl" else _cleaned_text(path)


def _cleaned_log(path: Path) -> tuple[list[Secret], bytes]:
    secrets: list[Secret] = []
    content: list[bytes] = []
    for line in read.lines(path, whole=True):
        found, raw = _cleaned_line(line.raw)
        secrets += [
            Secret(path, line.number, redaction.kind, redaction.field) for redaction in found
        ]
        content.append(raw if line.torn else raw + b"\n")
    return secrets, b"".join(content)


def _cleaned_line(raw: bytes) -> tuple[list[Redaction], bytes]:
    if not raw.strip():
        return [], raw
    try:
        fields = records.decode(raw)
    except ValueError:
        text, kinds = redact_text(raw.decode("utf-8", "surrogateescape"))
        return [Redaction(kind, "line") for kind in kinds], text.encode("utf-8", "surrogateescape")
    cleaned, found = redact(fields)
    return found, records.encode(cleaned).encode() if found else raw


def _cleaned_text(path: Path) -> tuple[list[Secret], bytes]:
    raw = read_all(path)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return [], raw  # Not a text: nothing of ours writes such a file.
    cleaned, kinds = redact_text(text)
    by_line = [
        (number, kind)
        for number, line in enumerate(text.split("\n"), 1)
        for kind in redact_text(line)[1]
    ]
    # A key block spans lines, so it shows only in the whole; it is told at the file's first line.
    spanning = [(1, kind) for kind in kinds if kind not in {found for _number, found in by_line}]
    secrets = (
        [Secret(path, number, kind, "text") for number, kind in (*by_line, *spanning)]
        if kinds
        else []
    )
    return secrets, cleaned.encode()
