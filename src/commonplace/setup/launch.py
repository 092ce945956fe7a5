"""How an agent is told to start our programs, and how such a line is recognised later, whatever path it names.

A hook's line is always the same for one installation: agents that trust a line by its hash need not ask again.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

HOOK = "commonplace-hook"
MAIN = "commonplace"
ENSURE = "--ensure"


class Programs(NamedTuple):
    """What is written for our two programs: an absolute path, or a bare name."""

    main: str
    hook: str


BARE = Programs(MAIN, HOOK)


def programs(*, shared: bool) -> Programs:
    """Our programs as a settings file should name them.

    Absolute, since many hosts start others with a thin `PATH`; but in a file that is *shared* with others, whose paths
    differ, bare names if these lead to us here.
    """
    absolute = Programs(_absolute(MAIN), _absolute(HOOK))
    on_path = (shutil.which(name) for name in BARE)
    if shared and all(
        found and _same(found, path) for found, path in zip(on_path, absolute, strict=True)
    ):
        return BARE
    return absolute


def is_temporary(programs: Programs) -> bool:
    """Whether this installation will go away by itself: `uvx` runs programs out of uv's cache."""
    return any(
        part.startswith(("archive-v", "environments-v")) for part in Path(programs.hook).parts
    )


def shell_line(
    program: str, arguments: list[str], *, powershell: bool = False, windows: bool = os.name == "nt"
) -> str:
    """A line for a shell that starts *program*. Only the program may need quotes: the arguments are ours."""
    if not windows:
        start = shlex.quote(program)
    elif " " not in program:
        start = program
    else:
        start = f'& "{program}"' if powershell else f'"{program}"'
    return " ".join([start, *arguments])


def is_hook(handler: object, agent: str) -> bool:
    """Whether *handler* (of any agent's settings) is a call of ours for *agent*."""
    if not isinstance(handler, dict):
        return False
    arguments = handler.get("args")
    said = (handler.get(key) for key in ("command", "bash", "powershell"))
    lines = [line for line in said if isinstance(line, str)]
    if isinstance(arguments, list):
        return len(lines) == 1 and _is(lines[0], HOOK) and arguments in ([agent], [agent, ENSURE])
    ours = re.compile(rf"""(?:.*[/\\"' ])?{HOOK}(?:\.exe)?["']? {re.escape(agent)}(?: {ENSURE})?""")
    return bool(lines) and all(ours.fullmatch(line) for line in lines)


def is_server(entry: object, agent: str) -> bool:
    """Whether *entry* starts our MCP server for *agent*."""
    if not isinstance(entry, dict):
        return False
    command, arguments = entry.get("command"), entry.get("args")
    if isinstance(command, list) and command:
        command, arguments = command[0], command[1:]
    return isinstance(command, str) and _is(command, MAIN) and arguments == server_arguments(agent)


def hook_arguments(agent: str, *, ensure: bool) -> list[str]:
    return [agent, ENSURE] if ensure else [agent]


def server_arguments(agent: str) -> list[str]:
    return ["mcp", "--agent", agent]


def _absolute(name: str) -> str:
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    return str(Path(found).absolute()) if found else name


def _same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _is(command: str, program: str) -> bool:
    return re.split(r"[/\\]", command)[-1].lower().removesuffix(".exe") == program
