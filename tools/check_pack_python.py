"""Check the Python code of the packs `python-core` and `sql-core`: types, then a run.

The code of a node and its check make one file. All files go through one run of `mypy --strict`,
then each one runs in an empty folder of its own, with warnings as errors. A node with the line
`check: pytest` is run by pytest instead. Code in another language, such as TOML, is not run: its
check finds the text in the constant `CODE`.

    python tools/check_pack_python.py [part of an id]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.pack_sources import SourceNode, read

PACKS = ("python-core", "sql-core")
SECONDS_MAX = 300  # It takes seconds; a busy machine may need many times as long.


def nodes(words: str = "") -> list[SourceNode]:
    """Return the nodes that have a check in Python, and *words* in their ids."""
    found = [node for pack in PACKS for node in read(pack) if words in node.id]
    return [node for node in found if any(one.language == "python" for one in node.checks)]


def source_of(node: SourceNode) -> str:
    """Return the file that checks *node*: its code, then its check."""
    parts = [code.text for code in node.codes if code.language == "python"]
    others = [code.text for code in node.codes if code.language != "python"]
    if others:
        parts.insert(0, f"CODE = {others[0]!r}\n")
    return "\n\n".join([*parts, *(check.text for check in node.checks)])


def check(wanted: list[SourceNode], folder: Path) -> list[str]:
    """Return what is wrong with the nodes, a text for each fault. The files go to *folder*."""
    files = {}
    for node in wanted:
        path = folder / f"{node.id.replace('.', '_').replace('-', '_')}.py"
        path.write_text(source_of(node), "utf-8")
        files[path] = node
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 2) as pool:
        types = pool.submit(_check_types, list(files), folder)
        tests = pool.submit(_run_tests, [path for path in files if _is_test(files[path])], folder)
        scripts = [path for path in files if not _is_test(files[path])]
        runs = list(pool.map(lambda path: _run_script(path, files[path]), scripts))
        return list(filter(None, [types.result(), tests.result(), *runs]))


def _is_test(node: SourceNode) -> bool:
    return node.fields.get("check") == "pytest"


def _check_types(files: list[Path], folder: Path) -> str:
    options = ["--strict", "--config-file=", "--cache-dir", str(folder / ".mypy_cache")]
    return _run([sys.executable, "-m", "mypy", *options, *map(str, files)], folder, "mypy")


def _run_tests(files: list[Path], folder: Path) -> str:
    if not files:
        return ""
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -q -p no:cacheprovider\n", "utf-8")
    command = [sys.executable, "-m", "pytest", "-W", "error", *map(str, files)]
    # With CI set, Hypothesis has no deadline, which a busy machine would miss.
    return _run(command, folder, "pytest", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", CI="true")


def _run_script(path: Path, node: SourceNode) -> str:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as empty:
        command = [sys.executable, "-I", "-W", "error", str(path)]
        return _run(command, Path(empty), f"{node.where} ({node.id})")


def _run(command: list[str], folder: Path, what: str, **environment: str) -> str:
    """Run *command* in *folder* and return what went wrong, or an empty text."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=SECONDS_MAX,
            env=os.environ | environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"{what}: it ran longer than {SECONDS_MAX} seconds"
    return "" if done.returncode == 0 else f"{what}:\n{done.stdout}{done.stderr}".rstrip()


def main() -> int:
    wanted = nodes(*sys.argv[1:2])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        faults = check(wanted, Path(folder))
    print(*faults, f"{len(wanted)} nodes, {len(faults)} faults", sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
