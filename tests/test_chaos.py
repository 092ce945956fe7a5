"""What was acknowledged is never lost: killed writers, fifty of them at once, maintenance running beside them."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from commonplace.log import read
from commonplace.memory import Memory

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="kill -9 and fork are POSIX's"),
]

KILLS = 200
WRITERS = 50
APPENDS = 200

WRITER = """
import sys
from commonplace import Memory
who, count = sys.argv[1], int(sys.argv[2])
with Memory.open() as memory:
    for number in range(count):
        record = memory.log(repo="shared", event_type="success", lesson=f"writer {who} learned thing {number}")
        print(record.id, flush=True)
"""
UPKEEP = """
import sys
from commonplace import Memory
from commonplace.maintenance import runner
is_last = False
while not is_last:
    # The last turn begins after the last line was written.
    is_last = sys.argv[1] in open(sys.argv[2]).read()
    with Memory.open() as memory:
        runner.run(memory, ["rotation"])
        memory.mend()
"""


def write_until_killed(home: Path, round_number: int, acknowledge: int) -> None:
    """In a child process: append as fast as possible, each id written to *acknowledge* once the append returned."""
    size = random.Random(round_number).choice([10, 10_000, 200_000])
    with Memory.open(home) as memory:
        for number in range(1_000_000):
            lesson = f"round {round_number} thing {number} " + "x" * size
            record = memory.log(repo="shared", event_type="success", lesson=lesson)
            os.write(acknowledge, record.id.encode() + b"\n")


def killed_writer(home: Path, round_number: int, delay_s: float) -> set[str]:
    """Fork a writer, let it run, kill it, and return what it was promised."""
    promises, acknowledge = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(promises)
        try:
            write_until_killed(home, round_number, acknowledge)
        finally:
            os._exit(1)
    os.close(acknowledge)
    first = os.read(promises, 65536)
    time.sleep(delay_s)  # The moment of the kill is the point of the test.
    os.kill(child, signal.SIGKILL)
    with os.fdopen(promises, "rb") as stream:
        promised = first + stream.read()
    os.waitpid(child, 0)
    whole, _newline, _torn = promised.rpartition(b"\n")
    return set(whole.decode().split())


def test_killed_writers_lose_nothing_acknowledged(own_home: Path) -> None:
    randomness = random.Random(11)
    path = own_home / "log" / "shared.jsonl"
    promised: set[str] = set()
    stored: set[str] = set()
    for round_number in range(KILLS):
        promised |= killed_writer(own_home, round_number, randomness.random() * 0.008)
        if round_number % 20 == 19:
            records, damages = read.read(path)
            stored |= {record.id for record in records}
            assert (
                len(damages) <= 20
            )  # At most one torn line a kill, each healed by the next append.
            path.unlink()

    assert promised <= stored
    assert len(promised) > KILLS


def test_fifty_writers_with_upkeep_beside_them_lose_tear_and_double_nothing(
    own_home: Path, tmp_path: Path
) -> None:
    own_home.mkdir()
    (own_home / "config.toml").write_text("[rotation]\nlines_max = 500\nmove = 250\n")
    flag = tmp_path / "flag"
    flag.write_text("")
    upkeep = subprocess.Popen([sys.executable, "-c", UPKEEP, "done", str(flag)])
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(who), str(APPENDS)], stdout=subprocess.PIPE
        )
        for who in range(WRITERS)
    ]
    promised = [
        ident for writer in writers for ident in writer.communicate(timeout=120)[0].decode().split()
    ]
    flag.write_text("done")
    assert upkeep.wait(timeout=60) == 0

    with Memory.open(own_home) as memory:
        stored = [record.id for record in memory.records()]
        findings = memory.check()
    lines = [
        line
        for path in own_home.glob("log/**/*.jsonl")
        for line in path.read_bytes().split(b"\n")
        if line.strip()
    ]
    assert len(promised) == len(set(promised)) == WRITERS * APPENDS
    assert sorted(stored) == sorted(promised)
    assert len(lines) == len(set(lines)) == WRITERS * APPENDS
    assert [finding for finding in findings if finding.what == "damage"] == []
    assert (own_home / "log" / "archive" / "shared.jsonl").is_file()
