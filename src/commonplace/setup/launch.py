"""How a settings file starts our programs, and how such a line is recognised later, with any path.

The line of a hook is always the same for one installation, so that an agent which trusts a line by
its hash does not ask again.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

HOOK = "commonplace-hook"
MAIN = "commonplace"
ENSURE = "--ensure"
# Where the handlers of agents have a command line. An agent module may use other keys.
LINE_KEYS = ("command", "bash", "powershell")


class Programs(NamedTuple):
    """Our two programs as they are written: absolute paths or bare names."""

    main: str
    hook: str


BARE = Programs(MAIN, HOOK)


def programs(*, shared: bool) -> Programs:
    """Our programs as a settings file should name them.

    Absolute paths, since many agents start programs with a short `PATH`. In a file that is *shared*
    with other people, whose paths differ, bare names if these are found on the `PATH`.
    """
    absolute = Programs(_absolute(MAIN), _absolute(HOOK))
    on_path = (shutil.which(name) for name in BARE)
    if shared and all(
        found and _same_file(found, path) for found, path in zip(on_path, absolute, strict=True)
    ):
        return BARE
    return absolute


def is_temporary(programs: Programs) -> bool:
    """Whether the installation is in uv's cache, from which `uvx` runs programs."""
    return any(
        part.startswith(("archive-v", "environments-v")) for part in Path(programs.hook).parts
    )


def shell_line(
    program: str, arguments: list[str], *, powershell: bool = False, windows: bool = os.name == "nt"
) -> str:
    """Return a line for a shell that starts *program*. Our own arguments need no quotes."""
    if not windows:
        start = shlex.quote(program)
    elif " " not in program:
        start = program
    else:
        start = f'& "{program}"' if powershell else f'"{program}"'
    return " ".join([start, *arguments])


def is_hook_line(line: str, agent: str) -> bool:
    """Whether *line* calls our hook for *agent*."""
    program = rf"""(?:.*[/\\"' ])?{HOOK}(?:\.exe)?["']?"""
    return re.fullmatch(rf"{program} {re.escape(agent)}(?: {ENSURE})?", line) is not None


def is_hook(handler: object, agent: str, line_keys: Collection[str] = LINE_KEYS) -> bool:
    """Whether *handler*, with its command lines in *line_keys*, calls our hook for *agent*."""
    if not isinstance(handler, dict):
        return False
    arguments = handler.get("args")
    values = (handler.get(key) for key in line_keys)
    lines = [line for line in values if isinstance(line, str)]
    if isinstance(arguments, list):
        return (
            len(lines) == 1
            and _is_program(lines[0], HOOK)
            and arguments in ([agent], [agent, ENSURE])
        )
    return bool(lines) and all(is_hook_line(line, agent) for line in lines)


def is_server(entry: object, agent: str) -> bool:
    """Whether *entry* starts our MCP server for *agent*."""
    if not isinstance(entry, dict):
        return False
    command, arguments = entry.get("command"), entry.get("args")
    if isinstance(command, list) and command:
        command, arguments = command[0], command[1:]
    return (
        isinstance(command, str)
        and _is_program(command, MAIN)
        and arguments == server_arguments(agent)
    )


def hook_arguments(agent: str, *, ensure: bool) -> list[str]:
    return [agent, ENSURE] if ensure else [agent]


def server_arguments(agent: str) -> list[str]:
    return ["mcp", "--agent", agent]


def _absolute(name: str) -> str:
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    return str(Path(found).absolute()) if found else name


def _same_file(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _is_program(command: str, program: str) -> bool:
    return re.split(r"[/\\]", command)[-1].lower().removesuffix(".exe") == program
