"""Shell completion: answer the shell, and install the script that makes it ask.

argcomplete does the work. It is imported only here, so the other commands pay nothing for it.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from argparse import ArgumentParser
from pathlib import Path

import argcomplete
from argcomplete.shell_integration import shellcode

from commonplace.cli.commands import COMMANDS, Group, load
from commonplace.cli.program import NAMES, PROGRAM, SHELLS, program_parser
from commonplace.errors import UsageError

PARENTS_MAX = 10


def complete() -> int:
    """Answer the shell, which has put the line in the environment. argcomplete ends the process."""
    argcomplete.autocomplete(whole_parser(os.environ["COMP_LINE"]), always_complete_options=False)
    return 0


def whole_parser(line: str) -> ArgumentParser:
    """Return a parser of all commands. Only those named in *line* have their arguments."""
    words = line.split()
    parser = program_parser()
    commands = parser.add_subparsers(prog=PROGRAM, parser_class=ArgumentParser)
    for name, entry in COMMANDS.items():
        command = commands.add_parser(name, help=entry.help)
        if name not in words:
            continue
        found = load(name)
        if isinstance(found, Group):
            members = command.add_subparsers(prog=f"{PROGRAM} {name}", parser_class=ArgumentParser)
            for member, leaf in found.commands.items():
                leaf.add_arguments(members.add_parser(member, help=leaf.help))
        else:
            found.add_arguments(command)
    return parser


def show(shell: str) -> int:
    """Print the script that makes *shell*, or the current one, ask for completions."""
    print(_script(_choose_shell(shell)))
    return 0


def install(shell: str) -> int:
    """Write that script to where *shell*, or the current one, reads it at its start."""
    shell = _choose_shell(shell)
    if shell == "bash":
        path = Path.home() / ".bash_completions" / f"{PROGRAM}.sh"
        _write(path, _script(shell))
        _append(Path.home() / ".bashrc", f"source {shlex.quote(str(path))}")
    elif shell == "zsh":
        path = Path.home() / ".zfunc" / f"_{PROGRAM}"
        _write(path, _script(shell))
        _append(Path.home() / ".zshrc", "fpath+=~/.zfunc; autoload -Uz compinit; compinit")
    elif shell == "fish":
        # fish looks for a file of the command's name.
        folder = Path.home() / ".config" / "fish" / "completions"
        for name in NAMES:
            _write(folder / f"{name}.fish", _script(shell, [name]))
        path = folder / f"{PROGRAM}.fish"
    else:
        path = _powershell_profile(shell)
        _append(path, _script(shell))
    print(f"{shell} completion installed in {path}")
    print("It works in terminals that you open from now on")
    return 0


def _script(shell: str, names: tuple[str, ...] | list[str] = NAMES) -> str:
    language = "powershell" if shell == "pwsh" else shell
    return shellcode(names, shell=language).strip()


def _choose_shell(shell: str) -> str:
    found = shell or _current_shell()
    if found not in SHELLS:
        raise UsageError(
            f"there is no completion for the shell `{found}`" if found else "the shell is unknown",
            f"name one of {', '.join(SHELLS)}",
        )
    return found


def _current_shell() -> str:
    """Return the current shell: the nearest parent process that is one, else the user's."""
    process = os.getppid()
    for _ in range(PARENTS_MAX):
        try:
            done = subprocess.run(  # noqa: S603 (a number)
                ["ps", "-o", "ppid=,comm=", "-p", str(process)],  # noqa: S607 (wherever it is)
                capture_output=True,
                text=True,
                check=True,
            )
        except (OSError, subprocess.CalledProcessError):
            break
        parent, _, command = done.stdout.strip().partition(" ")
        name = Path(command.strip().removeprefix("-")).name
        if name in SHELLS:
            return name
        if not parent.isdecimal():
            break
        process = int(parent)
    if os.name == "nt":
        return "powershell"
    return Path(os.environ.get("SHELL", "")).name


def _powershell_profile(shell: str) -> Path:
    try:
        done = subprocess.run(  # noqa: S603 (one of our own names)
            [shell, "-NoProfile", "-Command", "$PROFILE"],
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise UsageError(
            f"`{shell}` does not say where its profile is ({error})",
            f"add what `{PROGRAM} --show-completion {shell}` prints to the profile by hand",
        ) from error
    return Path(done.stdout.strip())


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise _write_error(path, error) from error


def _append(path: Path, text: str) -> None:
    """Add *text* to the end of the file, unless it is in it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        there = path.read_text("utf-8", "replace") if path.exists() else ""
        if text not in there:
            with path.open("a", encoding="utf-8") as stream:
                stream.write(f"{'' if there.endswith(chr(10)) or not there else chr(10)}{text}\n")
    except OSError as error:
        raise _write_error(path, error) from error


def _write_error(path: Path, error: OSError) -> UsageError:
    return UsageError(
        f"`{path}` cannot be written ({error.strerror})",
        f"`{PROGRAM} --show-completion` prints the script, to put it elsewhere",
    )
