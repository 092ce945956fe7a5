"""Read the text files of a downloaded archive, without unpacking it to disk."""

from __future__ import annotations

import gzip
import random
import re
import subprocess
import tarfile
import zipfile
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILE_BYTES_MAX = 400_000
INDEX_BYTES_MAX = 8_000_000  # Of a page that lists all errors.
FILES_MAX = 2_500  # Of one ending in one archive, so that no package outweighs the others.
_WANTED = re.compile(
    r"\.(md|mdx|rst|txt|html?|py|pyi|d\.ts|js|mjs|ts|rs|go|[1-8][a-z]*|yml)$|/(readme|changes|changelog|news|history|faq|troubleshooting)$",
    re.IGNORECASE,
)
_SKIPPED = re.compile(
    r"/(node_modules|vendor|_vendor|vendored|third_party|extern|locale|locales|fixtures|licenses?|__pycache__|\.git|testdata)/|"
    r"/rust-doc/html/(core|alloc|std|test|proc_macro|unstable-book|embedded-book)/|\.min\.js$|licen[cs]e|copying|requirements.*\.txt$|/(genindex|search|py-modindex|sources)\.html|top_level\.txt|dictionary|SOURCES\.txt",
    re.IGNORECASE,
)


class File(NamedTuple):
    path: str
    text: str

    @property
    def ending(self) -> str:
        return self.path.rpartition(".")[2].lower()


def read_files(path: Path) -> list[File]:
    """The wanted files of the archive at *path*, in a random order that is always the same."""
    found = [File(name, text) for name, content in _entries(path) if (text := _text(content))]
    random.Random(path.name).shuffle(found)
    seen: Counter[str] = Counter()
    kept = []
    for file in found:
        seen[file.ending] += 1
        if seen[file.ending] <= FILES_MAX:
            kept.append(file)
    return kept


def _entries(path: Path) -> Iterator[tuple[str, bytes]]:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                if _is_wanted(info.filename) and info.file_size <= _bytes_max(info.filename):
                    yield info.filename, archive.read(info)
    elif path.suffix == ".deb":
        with (
            subprocess.Popen(
                ["dpkg-deb", "--fsys-tarfile", str(path)], stdout=subprocess.PIPE
            ) as process,
            tarfile.open(fileobj=process.stdout, mode="r|") as tar,
        ):
            yield from _tar_entries(tar)
    else:
        with tarfile.open(path) as tar:
            yield from _tar_entries(tar)


def _tar_entries(tar: tarfile.TarFile) -> Iterator[tuple[str, bytes]]:
    for member in tar:
        name = member.name.removesuffix(".gz")
        if not member.isfile() or member.size > _bytes_max(name) or not _is_wanted(name):
            continue
        content = tar.extractfile(member)
        if content is not None:
            read = content.read()
            yield name, gzip.decompress(read) if member.name.endswith(".gz") else read


def _bytes_max(name: str) -> int:
    return INDEX_BYTES_MAX if re.search(r"err(or|codes)[^/]*\.(html|md)$", name) else FILE_BYTES_MAX


def _is_wanted(name: str) -> bool:
    return bool(_WANTED.search(name)) and not _SKIPPED.search("/" + name)


def _text(content: bytes) -> str | None:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text.replace("\r\n", "\n")
