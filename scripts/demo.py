"""The main job, end to end: one agent learns something, another one has it. Run by `make demo`."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

COMMAND = Path(sys.executable).parent / "commonplace"


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "COMMONPLACE_HOME": str(Path(folder) / "home"), "HOME": folder, "NO_COLOR": "1"}

        def run(*arguments: str, agent: str) -> str:
            print(f"\n{agent} $ commonplace {shlex.join(arguments)}", flush=True)
            done = subprocess.run(
                [COMMAND, *arguments],
                env={**environment, "COMMONPLACE_AGENT": agent},
                cwd=folder,
                capture_output=True,
                text=True,
                check=False,
            )
            print((done.stdout + done.stderr).rstrip(), flush=True)
            if done.returncode:
                sys.exit(done.returncode)
            return done.stdout.strip()

        print("Two agents, one memory: plain files in a home of their own, thrown away at the end.")
        ident = run(
            "log", "--repo", "gptcoach2", "--type", "error", "--context", "npm install failed with EACCES",
            "--command", "sudo chown -R $USER . && npm ci", "--lesson", "always verify ownership before npm operations",
            "--success-rate", "9/10", "--tags", "npm,permissions,node_modules", agent="agent-a",
        )  # fmt: skip
        run("recall", "npm install fails with a permission error", "--all-repos", agent="agent-b")
        run("feedback", ident[:16], "worked", agent="agent-b")
        run("history", ident[:16], agent="agent-a")
        path = Path(folder) / "home" / "log" / "gptcoach2.jsonl"
        print(f"\nThe memory itself, {path.relative_to(folder)}:")
        print(path.read_text("utf-8").rstrip())
    return 0


if __name__ == "__main__":
    sys.exit(main())
