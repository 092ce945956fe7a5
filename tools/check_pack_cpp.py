"""Compile and run the code of the pack cpp-core: `python tools/check_pack_cpp.py [--alone] [ID…]`.

A node's code is compiled together with its check, and what the check says must hold:

    ```cpp check
    void check() { assert(f() == 1); }      plain C++: `check` is called
    ```

Blocks of a check may begin with a line that gives them another meaning:

    // before                  comes before the node's code: what the code takes for granted
    // fails: TEXT             the compiler must refuse the code with this block, and say TEXT
    // sanitizer: TEXT         a call of `misbehave` must end in a sanitizer's message with TEXT
    // file: PATH              a file that lies beside the code (also with `#`; not for plain C++)

The line `check:` of a node says how the rest is checked: `separate` (not in a namespace), `catch2`,
`gtest`, `cmake [ARGUMENTS]` (configure and build, then run the check's commands; the code is
CMakeLists.txt, and `@` in an argument is the folder) or `sh` (run the code, then the check).

Plain nodes share a precompiled header and few translation units, each in a namespace of its own,
so that all takes half a minute. `--alone` compiles each one by itself, with nothing but its own
includes, and runs it under the sanitizers; it takes some minutes.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

if __package__:
    from tools import pack_sources
    from tools.check_pack_cpp_headers import missing_headers
else:  # Run as a script, this folder is where modules are looked for.
    import pack_sources  # type: ignore[import-not-found,no-redef]
    from check_pack_cpp_headers import missing_headers  # type: ignore[import-not-found,no-redef]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tools.pack_sources import Code, SourceNode

PACK = "cpp-core"
FLAGS = ("-std=c++20", "-Wall", "-Wextra", "-Werror", "-pthread")
SANITIZERS = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
# Translation units that plain nodes are shared out to: enough for a few cores, and few enough
# that loading the precompiled header costs little.
UNITS = 8
TIMEOUT_S = 300
GCC_MIN = 12
GTEST_LIBRARIES = ("-lgmock", "-lgtest", "-lgtest_main")
FILE_NAMES = {"cmake": "CMakeLists.txt", "json": "CMakePresets.json"}
# Debian 12 has version 2 of Catch2, with one header; the nodes use the headers of version 3.
CATCH2_HEADERS = (
    "catch_test_macros.hpp",
    "catch_template_test_macros.hpp",
    "catch_approx.hpp",
    "generators/catch_generators_all.hpp",
    "matchers/catch_matchers_all.hpp",
)
_INCLUDE = re.compile(r"^[ \t]*(#include <[^>\n]+>).*$", re.MULTILINE)
_MARK = re.compile(r"(?://|#) (?P<name>before|fails|sanitizer|file)(?:: (?P<value>.+))?\n")


@dataclass(frozen=True)
class Result:
    """What came of one job: the nodes it checked, and what is wrong (empty if nothing is)."""

    ids: tuple[str, ...]
    error: str = ""
    skipped: str = ""


@dataclass(frozen=True)
class Block:
    """A block of a check, without its first line if that gives it a meaning."""

    mark: str
    value: str
    text: str


def blocks(node: SourceNode, mark: str) -> list[Block]:
    return [block for block in map(_block, node.checks) if block.mark == mark]


def _block(code: Code) -> Block:
    match = _MARK.match(code.text)
    if match is None:
        return Block("", "", code.text)
    return Block(match["name"], match["value"] or "", code.text[match.end() :])


def how(node: SourceNode) -> str:
    return node.fields.get("check", "plain").split()[0]


def source(node: SourceNode) -> str:
    """Return the node's code with its check. The compiler names the node in its messages."""
    return "".join(
        f'#line 1 "{node.id} {part}"\n{text}\n'
        for part, texts in (
            ("before", [block.text for block in blocks(node, "before")]),
            ("code", [code.text for code in node.codes]),
            ("check", [block.text for block in blocks(node, "")]),
        )
        for text in texts
    )


def hoist(texts: Iterable[str]) -> tuple[str, list[str]]:
    """Return the includes of *texts*, each once, and the texts with empty lines in their place."""
    texts = list(texts)
    found = {include: None for text in texts for include in _INCLUDE.findall(text)}
    return "".join(f"{include}\n" for include in found), [_INCLUDE.sub("", text) for text in texts]


def _name(ident: str) -> str:
    """Return the id of a node as a name of C++."""
    return re.sub(r"\W", "_", ident)


def in_namespaces(nodes: Sequence[SourceNode]) -> tuple[str, str]:
    """Return the includes of *nodes*, and their code, each in a namespace of its own."""
    includes, texts = hoist(map(source, nodes))
    spaces = [
        f"namespace {_name(node.id)} {{\n{text}}}\n"
        for node, text in zip(nodes, texts, strict=True)
    ]
    return includes, "".join(spaces)


class Checker:
    """Runs the compilers in a scratch folder."""

    def __init__(self, folder: Path, *, is_alone: bool = False) -> None:
        self.folder = folder
        self.is_alone = is_alone
        self.header = folder / "all.hpp"
        self.precompiled = Event()  # Who includes the header waits for it.

    def jobs(self, nodes: Sequence[SourceNode]) -> list[Callable[[], Result]]:
        """Return what is to be done, the longest first. Each job can run in a thread."""
        by_kind: dict[str, list[SourceNode]] = {}
        for node in nodes:
            if node.checks:
                by_kind.setdefault(how(node), []).append(node)
        catch2, gtest = by_kind.pop("catch2", []), by_kind.pop("gtest", [])
        plain, separate = by_kind.pop("plain", []), by_kind.pop("separate", [])
        projects, scripts = by_kind.pop("cmake", []), by_kind.pop("sh", [])
        if by_kind:
            raise ValueError(f"there is no check {', '.join(by_kind)}")
        jobs: list[Callable[[], Result]] = []
        jobs += [partial(self.catch2, catch2)] if catch2 else []
        jobs += [partial(self.gtest, gtest)] if gtest else []
        jobs += [partial(self.project, node) for node in projects]
        jobs += [partial(self.script, node) for node in scripts]
        jobs += self._programs(plain, separate)
        for node in (*plain, *separate):
            bad = (*blocks(node, "fails"), *blocks(node, "sanitizer"))
            jobs += [partial(self.refused, node, block) for block in bad]
        return jobs

    def _programs(
        self, plain: list[SourceNode], separate: list[SourceNode]
    ) -> list[Callable[[], Result]]:
        plain, separate = (
            [node for node in some if blocks(node, "")] for some in (plain, separate)
        )
        if self.is_alone:
            separate, plain = [*plain, *separate], []
        units = [plain[number::UNITS] for number in range(min(UNITS, len(plain)))]
        return [
            *(partial(self.unit, unit) for unit in units),
            *(partial(self.separate, node) for node in separate),
        ]

    def precompile(self, nodes: Sequence[SourceNode]) -> Result:
        """Compile the headers of all plain nodes into one."""
        includes, _texts = hoist(source(node) for node in nodes if how(node) == "plain")
        self.header.write_text(f"{includes}#include <cstdio>\n")
        command = ["g++", *FLAGS, "-x", "c++-header", str(self.header)]
        try:
            return _all((), self.folder, command)
        finally:
            self.precompiled.set()

    def _header(self) -> list[str]:
        if self.is_alone:
            return []
        self.precompiled.wait()
        return ["-include", str(self.header)]

    def unit(self, nodes: list[SourceNode]) -> Result:
        """Compile nodes into one program, each in its namespace, and run it."""
        ids = tuple(node.id for node in nodes)
        calls = [f'std::fputs("{one}\\n", stderr); {_name(one)}::check();\n' for one in ids]
        text = f"{in_namespaces(nodes)[1]}\nint main() {{\n{''.join(calls)}}}\n"
        folder = self._folder(ids[0])
        (folder / "unit.cpp").write_text(text)
        command = ["g++", *FLAGS, *self._header(), "unit.cpp", "-o", "unit"]
        return _all(ids, folder, command, ["./unit"])

    def separate(self, node: SourceNode) -> Result:
        """Compile a node by itself and run it."""
        folder = self._folder(node.id)
        (folder / "node.cpp").write_text(f"{source(node)}\nint main() {{ check(); }}\n")
        sanitizers = SANITIZERS if self.is_alone else ()
        command = ["g++", *FLAGS, *sanitizers, "node.cpp", "-o", "node"]
        return _all((node.id,), folder, command, ["./node"])

    def refused(self, node: SourceNode, block: Block) -> Result:
        """The compiler refuses the code with *block*, or the program dies under the sanitizers."""
        folder = self._folder(f"{node.id}.refused")
        text = f"{source(node)}\n{block.text}\n"
        if block.mark == "fails":
            (folder / "node.cpp").write_text(text)
            done = _run(["g++", *FLAGS, "-fsyntax-only", *self._header(), "node.cpp"], folder)
        else:
            (folder / "node.cpp").write_text(f"{text}int main() {{ misbehave(); }}\n")
            flags = ["-std=c++20", "-w", *SANITIZERS]  # Compilers warn of some of these.
            built = _run(["g++", *flags, "node.cpp", "-o", "node"], folder)
            if built.error:
                return Result((node.id,), built.error)
            done = _run(["./node"], folder)
        if not done.error:
            return Result((node.id,), f"it was to end with: {block.value}")
        if block.value not in done.output:
            return Result((node.id,), f"it was to end with: {block.value}\n{done.output}")
        return Result((node.id,))

    def catch2(self, nodes: list[SourceNode]) -> Result:
        ids = tuple(node.id for node in nodes)
        include = Path("/usr/include/catch2")
        folder = self._folder("catch2")
        if (include / "catch_test_macros.hpp").exists():
            return self._test_program(nodes, folder, ["-lCatch2Main", "-lCatch2"])
        if not (include / "catch.hpp").exists():
            return Result(ids, skipped="not installed: catch2")
        for name in CATCH2_HEADERS:
            path = folder / "include" / "catch2" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"#pragma once\n#include <{include / 'catch.hpp'}>\n")
        return self._test_program(nodes, folder, ["-Iinclude", "-lCatch2WithMain"])

    def gtest(self, nodes: list[SourceNode]) -> Result:
        if not Path("/usr/include/gmock/gmock.h").exists():
            ids = tuple(node.id for node in nodes)
            return Result(ids, skipped="not installed: libgtest-dev, libgmock-dev")
        return self._test_program(nodes, self._folder("gtest"), GTEST_LIBRARIES)

    def _test_program(
        self, nodes: list[SourceNode], folder: Path, arguments: Sequence[str]
    ) -> Result:
        (folder / "tests.cpp").write_text("".join(in_namespaces(nodes)))
        command = ["g++", *FLAGS, "tests.cpp", "-o", "tests", *arguments]
        return _all(tuple(node.id for node in nodes), folder, command, ["./tests"])

    def project(self, node: SourceNode) -> Result:
        """Configure and build a CMake project, and run its tests."""
        lacking = [name for name in ("cmake", "ninja") if shutil.which(name) is None]
        arguments = node.fields["check"].split()[1:]
        needed = (Path(one.partition("=/")[2]) for one in arguments if "=/" in one)
        lacking += [f"/{path}" for path in needed if not (Path("/") / path).exists()]
        if lacking:
            return Result((node.id,), skipped=f"not installed: {', '.join(lacking)}")
        folder = self._files(node)
        arguments = [one.replace("@", str(folder)) for one in arguments]
        configure = ["cmake", "-S", ".", "-B", "build", "-Wno-dev", *arguments]
        (folder / "after.sh").write_text("".join(block.text for block in blocks(node, "")))
        build = ["cmake", "--build", "build"]
        return _all((node.id,), folder, configure, build, ["bash", "-eu", "after.sh"])

    def script(self, node: SourceNode) -> Result:
        """Run the commands of a node, then those of its check."""
        folder = self._files(node)
        codes = [code.text for code in node.codes if code.language == "sh"]
        text = "".join([*codes, *(block.text for block in blocks(node, ""))])
        (folder / "run.sh").write_text(text)
        words = set(re.findall(r"^(?:valgrind|gdb|setarch|gcov|nm|cmake)\b", text, re.MULTILINE))
        words |= {"ninja"} if "cmake" in words else set()
        if lacking := sorted(word for word in words if shutil.which(word) is None):
            return Result((node.id,), skipped=f"not installed: {', '.join(lacking)}")
        return _all((node.id,), folder, ["bash", "-eu", "run.sh"])

    def _files(self, node: SourceNode) -> Path:
        folder = self._folder(node.id)
        for code in node.codes:
            if name := FILE_NAMES.get(code.language):
                (folder / name).write_text(code.text)
        for block in blocks(node, "file"):
            path = folder / block.value
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)
        return folder

    def _folder(self, name: str) -> Path:
        return Path(tempfile.mkdtemp(prefix=f"{name}.", dir=self.folder))


@dataclass(frozen=True)
class Done:
    """A program that has ended. `error` is what it printed if it failed."""

    output: str
    error: str


def _run(command: Sequence[str], folder: Path) -> Done:
    environment = {**os.environ, "LC_ALL": "C", "CMAKE_GENERATOR": "Ninja"}
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        timeout=TIMEOUT_S,
        check=False,
    )
    failed = f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout[-4000:]}"
    return Done(done.stdout, failed if done.returncode else "")


def _all(ids: tuple[str, ...], folder: Path, *commands: Sequence[str]) -> Result:
    """Run *commands* up to the first that fails."""
    for command in commands:
        if error := _run(command, folder).error:
            return Result(ids, error)
    return Result(ids)


def compiler_missing() -> str:
    """Say why there is no compiler that the pack is written for; nothing if there is one."""
    if shutil.which("g++") is None:
        return "not installed: g++"
    version = _run(["g++", "-dumpfullversion"], Path.cwd()).output.partition(".")[0]
    if not version.isdecimal() or int(version) < GCC_MIN:  # Clang has other messages.
        return f"g++ is not GCC {GCC_MIN} or later"
    return ""


def check(ids: Sequence[str] = (), *, is_alone: bool = False) -> list[Result]:
    """Check the nodes of the pack, or those whose ids start with one of *ids*."""
    nodes = [
        node
        for node in pack_sources.read(PACK)
        if not ids or any(node.id.startswith(ident) for ident in ids)
    ]
    results = [
        Result((node.id,), f"its code does not include {', '.join(missing)}")
        for node in nodes
        if (missing := missing_headers(code.text for code in node.codes if code.language == "cpp"))
    ]
    if reason := compiler_missing():
        checked = tuple(node.id for node in nodes if node.checks)
        return [*results, Result(checked, skipped=reason)]
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(os.cpu_count()) as pool:
        checker = Checker(Path(scratch), is_alone=is_alone)
        jobs = checker.jobs(nodes)
        if not is_alone:
            jobs.insert(0, partial(checker.precompile, nodes))  # First: others wait for it.
        results += [one.result() for one in [pool.submit(job) for job in jobs]]
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description="Compile and run the code of the pack cpp-core.")
    parser.add_argument("ids", nargs="*", help="only nodes whose ids start with one of these")
    parser.add_argument("--alone", action="store_true", help="each node by itself, sanitized")
    args = parser.parse_args()
    results = check(args.ids, is_alone=args.alone)
    for result in results:
        if result.error:
            print(f"{', '.join(result.ids)}:\n{result.error}\n", file=sys.stderr)
        elif result.skipped:
            print(f"Skipped ({result.skipped}): {', '.join(result.ids)}")
    failed = sum(bool(result.error) for result in results)
    passed = {ident for one in results if not one.error and not one.skipped for ident in one.ids}
    print(f"{len(passed)} nodes hold, {failed} jobs failed.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
