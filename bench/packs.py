"""Measure packs: export and import of many records, in time and memory, each in its own process.

python bench/packs.py [--records 1000000]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from commonplace.memory import Memory
from commonplace.packs import container, exporting, importing, keys, signing
from commonplace.packs.importing import Options

if TYPE_CHECKING:
    from collections.abc import Iterator

STEPS = ("write", "import", "again", "index", "export")
_NO_KEYS = keys.Keys(lambda: "", list)


def lines(count: int) -> Iterator[bytes]:
    """Yield lessons of about 400 bytes, as a log has them."""
    for number in range(count):
        fields = {
            "id": f"les-pack-{number:08d}",
            "kind": "lesson",
            "timestamp": "2026-01-01T00:00:00Z",
            "agent_id": "default",
            "repo": f"repo-{number % 50}",
            "event_type": "learned",
            "context": f"module {number % 977} of the service, written in the style of team {number}",
            "command": "",
            "lesson": f"prefer guard {number} over a manual release: the destructor of the object "
            f"runs whatever ends the scope, and file {number * 7919 % 1000003} is closed once",
            "tags": ["cpp", f"tag-{number % 100}"],
        }
        yield json.dumps(fields).encode() + b"\n"


def fill(home: Path, count: int) -> None:
    (home / "log").mkdir(parents=True)
    with (home / "log" / "repo-0.jsonl").open("wb") as stream:
        stream.writelines(lines(count))


def write(path: Path, count: int) -> dict[str, int]:
    """Write a pack of *count* records, without a home."""
    fields = {"id": "big", "name": "big", "version": "1", "created_at": "2026-01-01T00:00:00Z"}
    given = (line.rstrip(b"\n") for line in lines(count))
    made = container.write(path, fields, given, signer=signing.generate(), seal=None)
    return {"records": made.records, "bytes": path.stat().st_size}


def step(name: str, folder: Path, count: int) -> None:
    """Run one step, and print its seconds, its peak of memory and what it counted."""
    place = folder / ("b" if name in ("import", "again") else "a")
    start = time.monotonic()
    with Memory.open(
        place, settings={"embedder.kind": "none"}, background=False, cwd=folder
    ) as memory:
        pack = folder / "big.kpack"
        if name == "write":
            found = write(pack, count)
        elif name == "index":
            fill(place, count)
            memory.engine().catch_up()
            found = {}
        elif name == "export":
            done = exporting.export_pack(memory, "domain:cpp", folder / "out.kpack", None)
            found = {"records": done.manifest["counts"]["records"], "bytes": done.bytes}
        else:
            changes = importing.import_pack(memory, pack, _NO_KEYS, Options(trust=True))
            found = {"added": changes.added, "unchanged": changes.unchanged}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(json.dumps({"step": name, "s": round(time.monotonic() - start, 1), "MiB": peak, **found}))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--step", choices=STEPS)
    parser.add_argument("--folder", type=Path)
    args = parser.parse_args()
    if args.step:
        step(args.step, args.folder, args.records)
        return 0
    with tempfile.TemporaryDirectory() as name:
        for one in STEPS:
            words = [sys.executable, __file__, "--step", one, "--folder", name]
            words += ["--records", str(args.records)]
            done = subprocess.run(words, check=False)
            if done.returncode:
                return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
