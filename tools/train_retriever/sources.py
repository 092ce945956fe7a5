"""The table of sources: what each package is, under which licence, and the checksum of its file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
TABLE = HERE / "sources.tsv"
CANDIDATES = HERE / "candidates.txt"

# Licences that ask for no more than their own notice, as SPDX names them and as authors write them.
PERMISSIVE = re.compile(
    r"\b(mit|mit-0|mit license|bsd|0bsd|[023]-clause bsd|bsd-[0234]-clause|apache|asl 2|isc|psf|psfl|python software foundation|"
    r"python-2\.0|zlib|unlicense|cc0|public domain|postgresql|zpl|zope public|hpnd|blueoak-1\.0\.0|wtfpl|bsl-1\.0|"
    r"boost software)\b",
    re.IGNORECASE,
)
# A word of these anywhere, and the package is left out, even where a choice is offered.
RESTRICTED = re.compile(
    r"gpl|modified|general public|affero|mozilla|mpl|eclipse|epl|cddl|eupl|osl-|non-?commercial|\bnc\b|proprietary|commercial|sspl|busl|elastic|"
    r"cc-by|creative commons|artistic",
    re.IGNORECASE,
)


class Source(NamedTuple):
    registry: str
    package: str
    version: str
    licence: str
    sha256: str
    file: str

    @property
    def name(self) -> str:
        return f"{self.registry}:{self.package}"


def is_permissive(licence: str) -> bool:
    return bool(PERMISSIVE.search(licence)) and not RESTRICTED.search(licence)


def read_table(path: Path = TABLE) -> list[Source]:
    lines = path.read_text(encoding="utf-8").splitlines()[1:]
    return [Source(*line.split("\t")) for line in lines if line]


def write_table(sources: list[Source], path: Path = TABLE) -> None:
    rows = ["\t".join(Source._fields), *("\t".join(source) for source in sorted(set(sources)))]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8", newline="\n")


def read_candidates(path: Path = CANDIDATES) -> list[tuple[str, str, str]]:
    """Registry, package and licence; the licence is empty where the package itself names it."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        words = line.partition("#")[0].split()
        if words and words[0] == "deb":
            found.append((words[0], words[1], words[2]))
        elif words:
            found += [(words[0], name, "") for name in words[1:]]
    return list(dict.fromkeys(found))
