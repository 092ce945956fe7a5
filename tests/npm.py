"""Tools from npm for the tests that need them: installed once beside the virtual environment, skipped when they cannot be."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from functools import cache
from hashlib import blake2b
from typing import TYPE_CHECKING

import pytest

from commonplace.files.lock import hold
from conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
CONFORMANCE = "@modelcontextprotocol/conformance@0.1.16"
# Some of these tools need a Node that is newer than what systems ship; npm has that too.
NODE = "node@22"


@cache
def installed(*packages: str) -> Path:
    """The folder with these packages and a Node that runs them, or a skip that says why there is none."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    folder = (
        ROOT / ".venv" / "npm" / blake2b(" ".join(packages).encode(), digest_size=6).hexdigest()
    )
    folder.mkdir(parents=True, exist_ok=True)
    with hold(folder / "lock", 300):  # Tests run side by side.
        if not (folder / "ready").exists():
            (folder / "package.json").write_text("{}", "utf-8")
            command = [npm, "install", "--silent", "--no-audit", "--no-fund", *packages, NODE]
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=300, check=False
            )
            if done.returncode:
                pytest.skip(
                    f"npm could not install {', '.join(packages)}: {done.stderr.strip()[-200:]}"
                )
            (folder / "ready").touch()
    return folder


@cache
def locked(source: Path) -> Path:
    """The folder with the packages that `package-lock.json` in *source* names, or a skip that says why not."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("node and npm are not installed")
    raw = (source / "package-lock.json").read_bytes()
    folder = ROOT / ".venv" / "npm" / blake2b(raw, digest_size=6).hexdigest()
    folder.mkdir(parents=True, exist_ok=True)
    with hold(folder / "lock", 300):
        if not (folder / "ready").exists():
            for name in ("package.json", "package-lock.json"):
                shutil.copyfile(source / name, folder / name)
            done = subprocess.run(
                [npm, "ci", "--silent", "--no-audit", "--no-fund"],
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
            if done.returncode:
                pytest.skip(f"npm could not install its packages: {done.stderr.strip()[-200:]}")
            (folder / "ready").touch()
    return folder


def run(package: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command of an npm *package*."""
    folder = installed(package)
    name = package.rpartition("@")[0]
    manifest = json.loads((folder / "node_modules" / name / "package.json").read_text("utf-8"))
    script = (
        manifest["bin"]
        if isinstance(manifest["bin"], str)
        else next(iter(manifest["bin"].values()))
    )
    return subprocess.run(
        [
            str(folder / "node_modules" / ".bin" / "node"),
            str(folder / "node_modules" / name / script),
            *arguments,
        ],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, **environment},
        timeout=120,
        check=False,
    )
