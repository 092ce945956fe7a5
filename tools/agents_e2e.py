"""Run the agents' own programs against a scripted model on loopback, from setup to undo.

    make agents           # installs the programs into .tools
    make agents-e2e       # every agent; AGENT=claude-code runs one

    python tools/agents_e2e.py [AGENT …] [--update] [--keep] [--list]

`--update` writes what the agents sent to tests/data/agents_e2e; without it, what differs from there
is reported. `--keep` keeps the scratch folders. The exit code is 1 if a check failed, or if an
agent sends other fields than before. docs/AGENTS_E2E.md says what each agent can do.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.e2e import fixtures  # noqa: E402
from tools.e2e.drivers import DRIVERS  # noqa: E402
from tools.e2e.scenario import Run  # noqa: E402

PROGRAMS = ROOT / ".tools" / "node_modules" / ".bin"
ALONE = "COMMONPLACE_E2E_ALONE"  # Set in a namespace that has no network but loopback.
FOUND_CHARS = 3000


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("agents", nargs="*", metavar="AGENT", help=", ".join(DRIVERS))
    parser.add_argument("--update", action="store_true", help="write the fixtures anew")
    parser.add_argument("--keep", action="store_true", help="keep the scratch folders")
    args = parser.parse_args()
    unknown = [name for name in args.agents if name not in DRIVERS]
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(DRIVERS)}")
    if not Path("/proc/self/environ").exists():
        parser.error("this needs Linux: it looks for processes that are left in /proc")
    alone = _without_network()
    if alone is not None:
        return alone
    results = [_run(name, args) for name in args.agents or DRIVERS]
    return 0 if all(results) else 1


def _without_network() -> int | None:
    """Run this again where there is only loopback; `None` if that is so, or cannot be had."""
    if os.environ.get(ALONE):
        return None
    probe = subprocess.run(["unshare", "-rn", "true"], capture_output=True, check=False)
    if probe.returncode:
        print("This system allows no network namespace: the agents could reach the network")
        return None
    command = 'ip link set lo up && exec "$0" "$@"'
    inner = ["unshare", "-rn", "sh", "-c", command, sys.executable, *sys.argv]
    return subprocess.run(inner, env={**os.environ, ALONE: "1"}, check=False).returncode


def _run(name: str, args: argparse.Namespace) -> bool:
    driver = DRIVERS[name]
    if not (PROGRAMS / driver.program).exists():
        print(f"{name}: not installed; `make agents` installs it")
        return False
    folder = Path(tempfile.mkdtemp(prefix="commonplace-e2e-")).resolve()
    run = Run(driver, PROGRAMS, folder)
    passed = True
    try:
        for check in run.checks():
            print(f"{name}: {'ok' if check.holds else 'FAILED'}: {check.name}", flush=True)
            if not check.holds:
                passed = False
                print(check.found[-FOUND_CHARS:])
    finally:
        if args.keep:
            print(f"{name}: kept {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return passed and _compare(name, run, update=args.update)


def _compare(name: str, run: Run, *, update: bool) -> bool:
    """Report what the agent sends otherwise than in the fixture, or write the fixture."""
    before = fixtures.read(name)
    if update or before is None:
        fixtures.write(name, run.fixture)
        print(f"{name}: {run.version}: fixture written")
        return True
    changes = fixtures.differences(before, run.fixture)
    print(f"{name}: {run.version}; the fixture is of {before['version']}")
    for line in changes:
        print(f"{name}: changed: {line}")
    return not changes


if __name__ == "__main__":
    sys.exit(main())
