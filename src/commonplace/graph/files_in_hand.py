"""What the files that an agent works on declare: signatures, and the tests about them.

Read from the files themselves: a context names them so that an agent keeps to them. Only plain
files inside the repository are read.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from commonplace.files.plain import read_named
from commonplace.foreign import one_line
from commonplace.graph.declarations import signatures

if TYPE_CHECKING:
    from collections.abc import Iterable

FILES_MAX = 12
FILE_BYTES_MAX = 256 << 10
TESTS_MAX = 8
_TEST_NAMES = re.compile(
    r"^\s*(?:async )?def (test_\w+)|^func (Test\w+)|\b(?:it|test)\(\s*[\"'`]([^\"'`\n]+)"
    r"|\b(?:(?:TEMPLATE_)?TEST_CASE|SCENARIO)(?:_METHOD\(\s*\w+,)?\(?\s*\"((?:[^\"\\\n]|\\.)+)\""
    r"|\bTEST(?:_[A-Z]+)?\(\s*([^\")\n]+)\)|#\[test\]\s*\n\s*(?:async )?fn (\w+)"
    r"|@Test\s*\n?\s*(?:public )?void (\w+)",
    re.MULTILINE,
)
_TEST_FOLDERS = ("", "tests", "test", "__tests__", "spec")
# The tests of a header are in a file that is compiled.
_HEADERS = (".h", ".hh", ".hpp", ".hxx", ".ipp", ".inl")
_COMPILED = (".cpp", ".cc", ".cxx", ".c")


class FileInHand(NamedTuple):
    """A file, what it declares, and the tests about it by the file that has them."""

    path: str
    signatures: list[str]
    tests: dict[str, list[str]]


def read(root: Path | None, files: Iterable[str]) -> tuple[list[FileInHand], list[str]]:
    """Return what *files* declare, and for each file that was not read a note with the reason."""
    found: list[FileInHand] = []
    notes: list[str] = []
    for name in list(dict.fromkeys(files))[:FILES_MAX]:
        try:
            path, text = _read(root, name)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            notes.append(f"`{one_line(name)}` was not read: {one_line(reason)}")
            continue
        # `_read` has raised without a root.
        base = root.resolve() if root is not None else path.parent
        shown = path.relative_to(base).as_posix()
        found.append(FileInHand(shown, signatures(path.name, text), _tests_of(base, path)))
    return found, notes


def names_of_tests(text: str) -> list[str]:
    """Return the names of the tests in the text of a file, in their order."""
    names = (
        one_line(next(filter(None, match.groups()), "")) for match in _TEST_NAMES.finditer(text)
    )
    return list(dict.fromkeys(filter(None, names)))[:TESTS_MAX]


def _read(root: Path | None, name: str) -> tuple[Path, str]:
    """Return the whole path and the text of a file in *root*. Raises `OSError`, `ValueError`."""
    if root is None:
        raise ValueError("there is no repository here")
    base = root.resolve()
    path = (base / name).resolve()
    if not path.is_relative_to(base) or ".git" in path.relative_to(base).parts:
        raise ValueError("it is outside of the repository")
    return path, read_named(path, FILE_BYTES_MAX).decode("utf-8", "replace")


def _tests_of(base: Path, path: Path) -> dict[str, list[str]]:
    """Return the tests of the files that are named after *path*."""
    found: dict[str, list[str]] = {}
    for candidate in _test_files(base, path):
        try:
            names = names_of_tests(_read(base, str(candidate))[1])
        except (OSError, ValueError):
            continue
        if names:
            found[candidate.relative_to(base).as_posix()] = names
    return found


def _test_files(base: Path, path: Path) -> list[Path]:
    """Return where the tests of *path* usually are."""
    stem, end = path.stem, path.suffix
    if stem.lower().startswith("test") or re.search(r"(?:_test|\.test|\.spec|Test)$", stem):
        return [path]
    names = [
        name
        for ending in (_COMPILED if end.lower() in _HEADERS else (end,))
        for name in (
            f"test_{stem}{ending}",
            f"{stem}_test{ending}",
            f"{stem}.test{ending}",
            f"{stem}.spec{ending}",
            f"{stem}Test{ending}",
        )
    ]
    folders = [path.parent / name for name in _TEST_FOLDERS]
    folders += [above / name for above in (path.parent.parent, base) for name in _TEST_FOLDERS[1:]]
    candidates = (folder / name for folder in folders for name in names)
    return [
        one
        for one in dict.fromkeys(candidates)
        if one.is_file() and one.resolve().is_relative_to(base)
    ]
