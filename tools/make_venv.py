"""Make the project's environment at the locked versions, with uv if present, else venv and pip.

Run by `make venv`; needs only the standard library of Python 3.11+.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main(folder: Path) -> int:
    if sys.version_info < (3, 11):
        print(
            f"error: Python 3.11 or newer is needed, this is {sys.version.split()[0]}",
            file=sys.stderr,
        )
        print("hint: run `make PYTHON=python3.12 …` with one that is", file=sys.stderr)
        return 2
    uv = shutil.which("uv")
    version = sys.version.split()[0]
    say(f"Setting up {folder} with {'uv' if uv else 'venv and pip'}, Python {version}")
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if uv:
        run(uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, str(folder))
        # Compiled here, as pip does, so that start-up times do not depend on the installer.
        install = [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", str(python)]
    else:
        venv.create(folder, with_pip=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    say("Installing the locked dependencies")
    run(*install, "-r", str(ROOT / "requirements.lock"))
    say("Installing Commonplace itself, from this folder")
    run(*install, "--no-deps", "--no-build-isolation", "--editable", str(ROOT))
    # The package `skills-ref` calls its program `agentskills`; its own guide calls it `skills-ref`.
    for program in python.parent.glob("agentskills*"):
        shutil.copy2(program, program.with_stem("skills-ref"))
    say(f"Ready: {python.parent / 'commonplace'}")
    return 0


def run(*command: str) -> None:
    subprocess.run(command, check=True, cwd=ROOT)


def say(text: str) -> None:
    print(f"» {text}", flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main(Path(sys.argv[1])))
    except subprocess.CalledProcessError as error:
        print(
            f"error: `{' '.join(error.cmd[:4])} …` failed with {error.returncode}", file=sys.stderr
        )
        sys.exit(1)
