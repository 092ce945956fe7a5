"""Plan and apply the changes of setup, file by file: each file as a whole or not at all.

A file that is damaged, cannot be written or lies outside the folder is left alone, with the reason;
the others are changed all the same.
"""

from __future__ import annotations

import difflib
import json
import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from commonplace import agents
from commonplace.errors import CommonplaceError
from commonplace.files import atomic
from commonplace.files.marked_section import NotEditable
from commonplace.files.plain import read_small
from commonplace.redaction.text import redact_text
from commonplace.setup.edits import edit_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commonplace.agents import Agent
    from commonplace.agents.parts import Scope
    from commonplace.setup.edits import Edit
    from commonplace.setup.launch import Programs

FILE_BYTES_MAX = 32 << 20
_BOM = "\ufeff"


class Change(NamedTuple):
    """One file: its agents, our parts in it, its text before and after; why it is left alone."""

    path: Path
    agents: tuple[str, ...]
    what: tuple[str, ...]
    before: str | None
    after: str | None
    left_alone: str = ""
    remark: str = ""

    @property
    def action(self) -> str:
        if self.left_alone:
            return "left alone"
        if self.before == self.after:
            return "unchanged"
        return "remove" if self.after is None else "make" if self.before is None else "change"

    def diff(self) -> list[str]:
        """Return a unified diff without line ends and without secrets."""
        before, after = (_lines(text) for text in (self.before, self.after))
        old, new = (
            "/dev/null" if text is None else str(self.path) for text in (self.before, self.after)
        )
        diff = difflib.unified_diff(before, after, old, new, n=2, lineterm="")
        return [redact_text(line)[0] for line in diff]


class Wiring(NamedTuple):
    """Which of an agent's parts are in the files of one scope, and which of these are outdated."""

    agent: str
    scope: str
    parts: tuple[str, ...]
    outdated: tuple[str, ...]


def find_agents(scope: Scope) -> dict[str, str]:
    """Return the agents that are in use here, each with the reason."""
    found: dict[str, str] = {}
    for agent in agents.all():
        sign = (
            next((sign for sign in agent.project_signs if (scope.root / sign).exists()), "")
            if not scope.of_user
            else ""
        )
        command = next(
            (
                one
                for one in agent.commands
                if shutil.which(one, path=scope.environment.get("PATH"))
            ),
            "",
        )
        folder = agent.folder_in(scope)
        if sign:
            found[agent.name] = f"`{sign}` is in this project"
        elif command:
            found[agent.name] = f"`{command}` is on the PATH"
        elif scope.of_user and folder.is_dir():
            found[agent.name] = f"there is `{folder}`"
    return found


def plan_changes(
    names: Sequence[str], scope: Scope, programs: Programs, *, undo: bool
) -> list[Change]:
    """Return what setup, or undoing it, would change for the named agents, in order."""
    files: dict[Path, list[_FileEdit]] = {}
    for agent in map(agents.find, names):
        for part in agent.parts(scope):
            file_edit = _FileEdit(agent, part.what, edit_for(agent, part, programs))
            files.setdefault(part.path, []).append(file_edit)
    return [_change(path, parts, scope, undo=undo) for path, parts in files.items()]


def find_wiring(scope: Scope, programs: Programs) -> list[Wiring]:
    """Return the agents that have something of ours in the files of *scope*."""
    rows = []
    for agent in agents.all():
        parts, outdated = [], []
        for part in agent.parts(scope):
            edit = edit_for(agent, part, programs)
            try:
                text = _without_bom(_text(_target(part.path, agent, scope)))
                if edit.presence(text) == "ours":
                    parts.append(part.what)
                    outdated += [part.what] if edit.add(text) != text else []
            except NotEditable:
                continue
        if parts:
            name = "user" if scope.of_user else "project"
            rows.append(Wiring(agent.name, name, tuple(parts), tuple(outdated)))
    return rows


def apply(change: Change, scope: Scope, folders: Folders) -> Change:
    """Write or remove the file; the result says if it was left alone after all, and why."""
    if change.action in ("left alone", "unchanged"):
        return change
    try:
        target = _target(change.path, agents.find(change.agents[0]), scope)
        if _text(target) != change.before:
            raise NotEditable("it has changed in the meantime; run this again")
        if change.after is None:
            target.unlink()
            folders.remove_empty(target.parent)
        else:
            folders.make(target.parent, mode=0o700 if scope.of_user else 0o777)
            atomic.write(
                target.resolve(),
                [change.after.encode("utf-8")],
                mode=0o600 if scope.of_user else 0o666,
            )
    except NotEditable as error:
        return change._replace(left_alone=str(error))
    except OSError as error:
        return change._replace(left_alone=f"it cannot be written: {error.strerror or error}")
    return change


class Folders:
    """The folders that setup has made, listed in the user's home: only these are removed again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.made: set[str] = set()
        with suppress(OSError, ValueError, TypeError, KeyError):
            self.made = {
                str(folder) for folder in json.loads(read_small(path, FILE_BYTES_MAX))["folders"]
            }

    def make(self, folder: Path, mode: int) -> None:
        missing = [one for one in (folder, *folder.parents) if not one.exists()]
        for one in reversed(missing):
            one.mkdir(mode=mode, exist_ok=True)
            self.made.add(str(one))

    def remove_empty(self, folder: Path) -> None:
        while str(folder) in self.made:
            try:
                folder.rmdir()
            except OSError:
                return  # It is not empty.
            self.made.discard(str(folder))
            folder = folder.parent

    def save(self) -> None:
        """Write the list, or remove it when it is empty. Without it, empty folders stay."""
        with suppress(CommonplaceError, OSError):
            if self.made:
                atomic.replace(
                    self.path, [json.dumps({"folders": sorted(self.made)}).encode(), b"\n"]
                )
            elif self.path.exists():
                self.path.unlink()
                self.path.parent.rmdir()
                self.path.parent.parent.rmdir()


# --- One file -------------------------------------------------------------------------------------


class _FileEdit(NamedTuple):
    """What one agent's part does to a file."""

    agent: Agent
    what: str
    edit: Edit


def _change(path: Path, parts: list[_FileEdit], scope: Scope, *, undo: bool) -> Change:
    names = tuple(dict.fromkeys(part.agent.name for part in parts))
    what = tuple(dict.fromkeys(part.what for part in parts))
    before: str | None = None
    try:
        target = _target(path, parts[0].agent, scope)
        before = _text(target)
        after = _edit(before, parts, undo=undo)
        if after != before:
            _check_writable(target)
    except NotEditable as error:
        return Change(path, names, what, before, before, left_alone=str(error))
    other = any(part.edit.presence(_without_bom(after)) == "other" for part in parts)
    remark = (
        "it has a `commonplace` that setup has not written: left as it is"
        if other and not undo
        else ""
    )
    return Change(path, names, what, before, after, remark=remark)


def _edit(text: str | None, parts: list[_FileEdit], *, undo: bool) -> str | None:
    """Return *text* with *parts* added, or removed in reverse order; a BOM stays first."""
    bom = _BOM if text is not None and text.startswith(_BOM) else ""
    text = _without_bom(text)
    for part in reversed(parts) if undo else parts:
        text = part.edit.remove(text) if undo else part.edit.add(text)
    return bom + (text or "") if bom else text


def _lines(text: str | None) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _without_bom(text: str | None) -> str | None:
    return text.removeprefix(_BOM) if text is not None else None


def _target(path: Path, agent: Agent, scope: Scope) -> Path:
    """Return the target of *path*, which must be in the scope's root or the agent's folder."""
    try:
        target = path.resolve()
        allowed = [scope.root.resolve()]
        if scope.of_user:
            allowed.append(agent.folder_in(scope).resolve())
    except (OSError, RuntimeError):  # A loop of links.
        raise NotEditable("it leads nowhere") from None
    if not any(target.is_relative_to(folder) for folder in allowed):
        raise NotEditable(f"it leads out of `{scope.root}`, to `{target}`")
    return target


def _text(target: Path) -> str | None:
    try:
        if not stat.S_ISREG(target.stat().st_mode):
            raise NotEditable("it is not a file")
        if target.stat().st_size > FILE_BYTES_MAX:
            raise NotEditable(f"it has over {FILE_BYTES_MAX:,} bytes")
        return target.read_bytes().decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError:
        raise NotEditable("it is not UTF-8 text") from None
    except OSError as error:
        raise NotEditable(f"it cannot be read: {error.strerror or error}") from None


def _check_writable(target: Path) -> None:
    """Refuse to replace a read-only file or a file of another user."""
    folder = next(one for one in target.parents if one.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise NotEditable(f"nothing can be written in `{folder}`")
    if target.exists():
        found = target.stat()
        if not found.st_mode & stat.S_IWUSR or not os.access(target, os.W_OK):
            raise NotEditable("it is read-only")
        if os.name == "posix" and os.geteuid() not in (0, found.st_uid):
            raise NotEditable("it belongs to another user")
