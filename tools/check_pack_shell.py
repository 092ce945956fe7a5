"""Check the snippets of `packs/git-core` and `packs/shell-core`: shellcheck, and a run of each.

    python tools/check_pack_shell.py [words of an id …]

The check of a node is a bash script that runs in an empty folder, under `set -euo pipefail`, with
HOME in that folder, without git configuration and without network. It finds the node's code in the
file `$SNIPPET`, runs it with `snippet ARGS …` (or reads it with `. "$SNIPPET"`) and fails unless
the code did what the node says. `PRELUDE` has the functions that checks share.

Every check is also run with an empty file in place of the code, and must fail then: a check that
passes without the code checks nothing.

The code of an anti-pattern is wrong on purpose. Its line `check: shellcheck SC2086` names the
warnings that shellcheck must give for it, no more and no less.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools import pack_sources

CHECKED = ("git-core", "shell-core")
SHELLS = ("sh", "bash")
RUN_SECONDS_MAX = 30
# A snippet is a fragment: its variables and functions are for the code around it.
FRAGMENT = "SC2034,SC2154,SC2317,SC2329"
_EXPECTED = re.compile(r"shellcheck (?P<codes>SC\d+(?: SC\d+)*)")

PRELUDE = r"""
set -euo pipefail
fail() { printf 'check failed: %s\n' "$*" >&2; exit 1; }
same() { [ "$1" = "$2" ] || fail "got [$1], expected [$2]"; }
has() { case $1 in *"$2"*) ;; *) fail "[$1] has no [$2]" ;; esac; }
hasnt() { case $1 in *"$2"*) fail "[$1] has [$2]" ;; *) ;; esac; }
fails() { if "$@"; then fail "no error from: $*"; fi; }
snippet() { "$SNIPPET_SHELL" "$SNIPPET" "$@"; }
repo() { git init -q -b main "$1" && cd "$1"; }
commit() { # FILE [TEXT [SUBJECT]]
  mkdir -p "$(dirname "$1")"
  printf '%s\n' "${2-$1}" >"$1"
  git add -- "$1" && git commit -q -m "${3-add $1}"
}
subjects() { git log --format=%s "$@" | tr '\n' ',' | sed 's/,$//'; }
"""


def code_of(node: pack_sources.SourceNode) -> str:
    return "\n".join(code.text for code in node.codes)


def shellcheck(nodes: list[pack_sources.SourceNode]) -> list[str]:
    """Return a line for each thing that shellcheck says, or does not say, against expectation."""
    program = shutil.which("shellcheck", path=f"{Path(sys.executable).parent}{os.pathsep}{_path()}")
    if program is None:
        return ["shellcheck is not installed: run `make venv`"]
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for shell in SHELLS:
            files = {}
            for node in nodes:
                if node.codes and node.codes[0].language == shell:
                    path = Path(folder, f"{node.id}.{shell}")
                    path.write_text(code_of(node), "utf-8")
                    files[str(path)] = node
            if files:
                wrong += _shellcheck(program, shell, files)
    return wrong


def _shellcheck(program: str, shell: str, files: dict[str, pack_sources.SourceNode]) -> list[str]:
    command = [program, "--norc", "--format=json1", f"--shell={shell}", f"--exclude={FRAGMENT}"]
    done = subprocess.run(
        [*command, *files], capture_output=True, text=True, check=False, encoding="utf-8"
    )
    if done.returncode > 1:
        return [f"shellcheck ended with {done.returncode}: {done.stderr.strip()}"]
    found: dict[str, dict[str, str]] = {path: {} for path in files}
    for comment in json.loads(done.stdout)["comments"]:
        text = f"line {comment['line']}: {comment['message']}"
        found[comment["file"]].setdefault(f"SC{comment['code']}", text)
    wrong = []
    for path, node in files.items():
        expected = _EXPECTED.fullmatch(node.fields.get("check", ""))
        codes = set(expected["codes"].split()) if expected else set()
        where = f"{node.where}: {node.id}"
        wrong += [
            f"{where}: {code}, {text}" for code, text in found[path].items() if code not in codes
        ]
        wrong += [
            f"{where}: shellcheck does not report {code}" for code in codes - set(found[path])
        ]
    return wrong


def run(node: pack_sources.SourceNode, folder: Path, code: str | None = None) -> str:
    """Run the check of *node* in the empty *folder*; return what is wrong, or an empty string.

    *code* stands in for the node's own code.
    """
    language = node.codes[0].language if node.codes else "sh"
    path = folder / "snippet"
    path.write_text(code_of(node) if code is None else code, "utf-8")
    for name in ("work", "home", "tmp"):
        (folder / name).mkdir()
    script = folder / "check"
    script.write_text(PRELUDE + "\n".join(check.text for check in node.checks), "utf-8")
    log = folder / "output"
    # A session of its own, so that whatever the script leaves running can be ended with it.
    with log.open("wb") as output:
        process = subprocess.Popen(
            # A shell cannot trap a signal that was ignored when it began, as under `nohup`.
            ["env", "--default-signal=HUP", "bash", str(script)],
            cwd=folder / "work",
            env=_environment(folder, path, language),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        process.wait(RUN_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        return f"{node.where}: {node.id}: it ran for more than {RUN_SECONDS_MAX} seconds"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.returncode == 0:
        return ""
    output_text = log.read_text("utf-8", errors="replace")
    return f"{node.where}: {node.id}: exit code {process.returncode}\n{output_text[-2000:]}"


def _environment(folder: Path, snippet: Path, language: str) -> dict[str, str]:
    who = {"NAME": "Ada", "EMAIL": "ada@example.org"}
    return {
        "PATH": _path(),
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "SNIPPET": str(snippet),
        "SNIPPET_SHELL": language if language in SHELLS else "sh",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ALLOW_PROTOCOL": "file",  # No network; and submodules from a local folder.
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_EDITOR": "true",
        "GIT_CEILING_DIRECTORIES": str(folder),
        **{f"GIT_AUTHOR_{key}": value for key, value in who.items()},
        **{f"GIT_COMMITTER_{key}": value for key, value in who.items()},
    }


def _path() -> str:
    return os.environ.get("PATH", os.defpath)


def checked_nodes(pack: str) -> list[pack_sources.SourceNode]:
    """Return the nodes of *pack* that have a check."""
    return [node for node in pack_sources.read(pack) if node.checks]


def problems(node: pack_sources.SourceNode) -> list[str]:
    """Run the check of *node*, with its code and without; return what is wrong."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        found.append(run(node, Path(folder)))
    with tempfile.TemporaryDirectory() as folder:
        if not run(node, Path(folder), code=""):
            found.append(f"{node.where}: {node.id}: the check passes without the code")
    return [one for one in found if one]


def main(words: list[str]) -> int:
    wrong = []
    for pack in CHECKED:
        nodes = [n for n in pack_sources.read(pack) if all(word in n.id for word in words)]
        wrong += shellcheck(nodes)
        checked = [node for node in nodes if node.checks]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for found in pool.map(problems, checked):
                wrong += found
        print(f"{pack}: {len(nodes)} nodes, {len(checked)} with code that was run")
    for one in wrong:
        print(one, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except pack_sources.SourceError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
