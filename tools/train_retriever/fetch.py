"""Download the sources with the registries' own clients: pip's index reader, `npm pack`, `apt-get download`.

`resolve` looks for the newest version of each candidate and writes the table; `fetch` takes exactly what the table names and
compares checksums. Nothing that is downloaded is run or installed.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import tarfile
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from email.parser import HeaderParser
from typing import TYPE_CHECKING, Any

from tools.train_retriever.sources import (
    Source,
    is_permissive,
    read_candidates,
    read_table,
    write_table,
)

if TYPE_CHECKING:
    from pathlib import Path

FILE_BYTES_MAX = 80_000_000
THREADS = 6
_one_at_a_time = threading.Lock()


class Pip:
    """pip's own reader of package indexes: it follows pip's configuration, and builds nothing, as `pip download` would."""

    def __init__(self) -> None:
        from pip._internal.commands.download import DownloadCommand  # noqa: PLC0415

        self._command = DownloadCommand("download", "")
        self._context = self._command.main_context()
        self._context.__enter__()
        self._options, _rest = self._command.parse_args(["--no-binary", ":all:", "-q", "x"])
        self._session = self._command.get_default_session(self._options)
        self._finder = self._command._build_package_finder(self._options, self._session)  # noqa: SLF001

    def link(self, package: str, version: str | None) -> tuple[str, Any] | None:
        from pip._vendor.packaging.specifiers import SpecifierSet  # noqa: PLC0415

        specifier = SpecifierSet(f"=={version}") if version else None
        with _one_at_a_time:
            best = self._finder.find_best_candidate(package, specifier).best_candidate
        return best and (str(best.version), best.link)

    def get(self, url: str) -> bytes:
        answer = self._session.get(url, timeout=120, headers={"Accept-Encoding": "identity"})
        answer.raise_for_status()
        return bytes(answer.content)


def fetch_pypi(pip: Pip, package: str, version: str | None, folder: Path) -> Path | None:
    found = pip.link(package, version)
    if found is None:
        return None
    path = folder / found[1].filename
    if not path.exists():
        content = pip.get(found[1].url_without_fragment)
        if len(content) > FILE_BYTES_MAX:
            return None
        path.write_bytes(content)
    return path


def fetch_npm(package: str, version: str | None, folder: Path) -> Path | None:
    command = ["npm", "pack", "--silent", "--pack-destination", str(folder)]
    done = subprocess.run(
        [*command, f"{package}@{version or 'latest'}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=folder,
    )
    name = done.stdout.strip().splitlines()
    return folder / name[-1] if done.returncode == 0 and name else None


def fetch_deb(package: str, version: str | None, folder: Path) -> Path | None:
    before = set(folder.glob(f"{package}_*.deb"))
    if before:
        return before.pop()
    name = f"{package}={version}" if version else package
    subprocess.run(
        ["apt-get", "download", name], check=False, cwd=folder, capture_output=True, timeout=600
    )
    return next(iter(folder.glob(f"{package}_*.deb")), None)


def described(registry: str, path: Path) -> tuple[str, str]:
    """The version and the licence that the file itself names."""
    if registry == "deb":
        return path.name.split("_")[1].replace("%3a", ":"), ""
    if registry == "npm":
        with tarfile.open(path) as archive:
            member = next(
                m for m in archive if m.name.count("/") == 1 and m.name.endswith("/package.json")
            )
            content = archive.extractfile(member)
            assert content is not None
            entry = json.load(content)
        licence = entry.get("license") or entry.get("licenses") or ""
        if isinstance(licence, list):
            licence = " OR ".join(
                str(one.get("type", one) if isinstance(one, dict) else one) for one in licence
            )
        return entry["version"], str(
            licence.get("type", "") if isinstance(licence, dict) else licence
        )
    header = HeaderParser().parsestr(pkg_info(path))
    classifiers = [
        c.rpartition("::")[2].strip()
        for c in header.get_all("Classifier", [])
        if c.startswith("License")
    ]
    stated = (header.get("License-Expression") or "").strip()
    first_line = next(iter((header.get("License") or "").strip().splitlines()), "")
    stated = stated or " / ".join(c for c in classifiers if c != "OSI Approved") or first_line[:60]
    return str(header["Version"]), stated


def pkg_info(path: Path) -> str:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            name = next(
                n for n in archive.namelist() if n.count("/") == 1 and n.endswith("/PKG-INFO")
            )
            return archive.read(name).decode("utf-8", "replace")
    with tarfile.open(path) as tar:
        member = next(m for m in tar if m.name.count("/") == 1 and m.name.endswith("/PKG-INFO"))
        content = tar.extractfile(member)
        assert content is not None
        return content.read().decode("utf-8", "replace")


def resolve(folder: Path) -> None:
    """Download the newest version of every candidate that is not in the table, and add those that may be used."""
    folder.mkdir(parents=True, exist_ok=True)
    known = {(source.registry, source.package): source for source in read_table()}
    pip = Pip()

    def one(candidate: tuple[str, str, str]) -> Source | None:
        registry, package, licence = candidate
        if (registry, package) in known:
            return known[registry, package]
        try:
            path = _fetch(pip, registry, package, None, folder)
            if path is None:
                print(f"not found: {registry} {package}")
                return None
            version, stated = described(registry, path)
        except Exception as error:  # noqa: BLE001  (one broken archive must not end the other thousand)
            print(f"not readable: {registry} {package}: {error!r:.200}")
            return None
        licence = (licence or stated).replace("\t", " ")
        if registry != "deb" and not is_permissive(licence):
            print(f"licence: {registry} {package}: {licence!r}")
            path.unlink()
            return None
        return Source(registry, package, version, licence, checksum(path), path.name)

    with ThreadPoolExecutor(THREADS) as threads:
        write_table([source for source in threads.map(one, read_candidates()) if source])


def fetch(sources: list[Source], folder: Path) -> None:
    """Download what the table names; end with an error if a file is not the one that was meant."""
    folder.mkdir(parents=True, exist_ok=True)
    pip = Pip()

    def one(source: Source) -> None:
        path = folder / source.file
        if not path.exists():
            _fetch(pip, source.registry, source.package, source.version, folder)
        if not path.exists() or checksum(path) != source.sha256:
            raise SystemExit(
                f"error: `{source.file}` could not be downloaded, or is another file than the table's"
            )

    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(one, sources))


def _fetch(pip: Pip, registry: str, package: str, version: str | None, folder: Path) -> Path | None:
    if registry == "pypi":
        return fetch_pypi(pip, package, version, folder)
    return (fetch_npm if registry == "npm" else fetch_deb)(package, version, folder)


def checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
