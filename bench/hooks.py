"""How long each hook takes, with the server up and down, beside a bare interpreter in the same run.

    python bench/hooks.py [--rounds 41] [--lessons 1000] [--embedder]

Metrics: p50 and p95 of the wall time of whole `commonplace-hook claude-code` processes, from start to exit, event on stdin
and answer on stdout; as a multiple of the p50 of `python3 -c pass`, taken in turn so that noise hits both. The home holds
--lessons synthetic lessons of the repository the events come from; each prompt and each start is of another session,
so that there is always something to say. Bars: with the server up three times a bare start (p50); without one, the end
of a session within one second (p95). Without --embedder the server answers by words alone.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from texts import memory as lesson

from commonplace import Memory

BIN = Path(sys.executable).parent
HOOK = [str(BIN / "commonplace-hook"), "claude-code"]
RATIO_MAX = 3.0
END_S_MAX = 1.0
PROMPT = "npm install fails with EACCES in the api package; clear the cache or fix the permissions?"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--lessons", type=int, default=1000)
    parser.add_argument("--embedder", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home, project = Path(folder) / "home", Path(folder) / "project"
        project.mkdir()
        prepare(home, arguments.lessons, embedder=arguments.embedder)
        environment = {**os.environ, "COMMONPLACE_HOME": str(home), "HOME": folder}
        down = measure("server down", environment, project, arguments.rounds)
        serve(environment, project, "--ensure")
        try:
            measure("warming up", environment, project, 3)
            up = measure("server up", environment, project, arguments.rounds)
        finally:
            serve(environment, project, "--stop")
    missed = [name for name, (p50, _p95, bare) in up.items() if p50 / bare > RATIO_MAX]
    missed += [
        name for name, (_p50, p95, _bare) in down.items() if name == "end" and p95 > END_S_MAX
    ]
    print("all bars hold" if not missed else f"MISSED: {', '.join(missed)}")
    return 1 if missed else 0


def prepare(home: Path, count: int, *, embedder: bool) -> None:
    home.mkdir(mode=0o700)
    chosen = "minilm" if embedder else "none"
    (home / "config.toml").write_text(
        f'[embedder]\nkind = "{chosen}"\nbackground = false\n[server]\nport = 0\n'
    )
    (home / "config.toml").chmod(0o600)
    randomness = random.Random(count)
    with Memory.open(home) as memory:
        memory.append_lines(
            json.dumps({**lesson(randomness, n), "repo": "project"}).encode() for n in range(count)
        )
        memory.engine().catch_up()
        if embedder:
            memory.ready()


def measure(
    title: str, environment: dict[str, str], project: Path, rounds: int
) -> dict[str, tuple[float, float, float]]:
    """p50, p95 and the bare interpreter's p50, in seconds, of each event."""
    found = {}
    bare_ms = 0.0
    for name, fields in events().items():
        taken, bare = [], []
        for number in range(rounds):
            fresh = name in ("start", "prompt") or number == 0
            session = f"{title}-{name}-{number if fresh else 0}"
            event = {
                "session_id": session,
                "cwd": str(project),
                "tool_use_id": f"{session}-{number}",
                **fields,
            }
            bare.append(seconds([sys.executable, "-c", "pass"], b"", environment, project))
            taken.append(seconds(HOOK, json.dumps(event).encode(), environment, project))
        p95 = sorted(taken)[min(int(len(taken) * 0.95), len(taken) - 1)]
        found[name] = statistics.median(taken), p95, statistics.median(bare)
        bare_ms = found[name][2] * 1000
    if rounds > 3:
        print(f"\n{title} ({rounds} rounds; python3 -c pass: {bare_ms:.1f} ms)")
        for name, (p50, p95, bare_s) in found.items():
            print(
                f"  {name:10} p50 {p50 * 1000:7.1f} ms   p95 {p95 * 1000:7.1f} ms   {p50 / bare_s:5.2f} x"
            )
    return found


def events() -> dict[str, dict[str, object]]:
    def bash(command: str) -> dict[str, object]:
        return {
            "hook_event_name": "PostToolUse",
            "tool_name": "Bash",
            "tool_input": {"command": command},
            "tool_response": {"stdout": "ok"},
        }

    return {
        "start": {"hook_event_name": "SessionStart", "source": "startup"},
        "prompt": {"hook_event_name": "UserPromptSubmit", "prompt": PROMPT},
        "tool": bash("ls -la"),
        "learned": bash('bd comment BD-1 "LEARNED: fix the permissions before npm install"'),
        "failure": {
            "hook_event_name": "PostToolUseFailure",
            "tool_name": "Bash",
            "tool_input": {"command": "make"},
            "error": "Exit code 2\nboom",
        },
        "compact": {"hook_event_name": "PreCompact", "trigger": "auto"},
        "stop": {"hook_event_name": "Stop"},
        "end": {"hook_event_name": "SessionEnd", "reason": "other"},
    }


def seconds(command: list[str], stdin: bytes, environment: dict[str, str], project: Path) -> float:
    start = time.perf_counter()
    subprocess.run(
        command, input=stdin, env=environment, cwd=project, capture_output=True, check=True
    )
    return time.perf_counter() - start


def serve(environment: dict[str, str], project: Path, flag: str) -> None:
    subprocess.run(
        [str(BIN / "commonplace"), "serve", flag],
        env=environment,
        cwd=project,
        capture_output=True,
        check=True,
    )


if __name__ == "__main__":
    sys.exit(main())
