"""What setting up would change, file by file, and doing it: whole or not at all a file, and nothing outside the folder.

A file that is damaged, cannot be written or lies elsewhere is left alone with the reason; the others still get done.
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

from commonplace.errors import CommonplaceError
from commonplace.files import atomic
from commonplace.redaction import redact_text
from commonplace.setup.agents import AGENTS, Agent, Part, Where
from commonplace.setup.jsonc import NotEditable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commonplace.setup.launch import Programs

FILE_BYTES_MAX = 32 << 20
_BOM = "\ufeff"


class Change(NamedTuple):
    """One file: for whom, what is in it, what would be, and why it is left alone if it is."""

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
        """What changes, as a unified diff without line ends, and without the secrets that such files hold."""
        before, after = (_lines(text) for text in (self.before, self.after))
        old, new = (
            "/dev/null" if text is None else str(self.path) for text in (self.before, self.after)
        )
        diff = difflib.unified_diff(before, after, old, new, n=2, lineterm="")
        return [redact_text(line)[0] for line in diff]


class Wired(NamedTuple):
    """How an agent is wired in one place: which of its parts are there, and which are not as they should be."""

    agent: str
    scope: str
    parts: tuple[str, ...]
    outdated: tuple[str, ...]


def present(where: Where) -> dict[str, str]:
    """The agents that are here, each with what says so."""
    found: dict[str, str] = {}
    for agent in AGENTS.values():
        sign = (
            next((sign for sign in agent.signs if (where.root / sign).exists()), "")
            if not where.of_user
            else ""
        )
        command = next(
            (
                one
                for one in agent.commands
                if shutil.which(one, path=where.environment.get("PATH"))
            ),
            "",
        )
        folder = agent.folder(where)
        if sign:
            found[agent.name] = f"`{sign}` is in this project"
        elif command:
            found[agent.name] = f"`{command}` is on the PATH"
        elif where.of_user and folder.is_dir():
            found[agent.name] = f"there is `{folder}`"
    return found


def planned(names: Sequence[str], where: Where, programs: Programs, *, undo: bool) -> list[Change]:
    """What setting up (or undoing) the named agents changes, in order, nothing done yet."""
    files: dict[Path, list[tuple[Agent, Part]]] = {}
    for name in names:
        for part in AGENTS[name].parts(where, programs):
            files.setdefault(part.path, []).append((AGENTS[name], part))
    return [_change(path, parts, where, undo=undo) for path, parts in files.items()]


def wired(where: Where, programs: Programs) -> list[Wired]:
    """The agents that have something of ours in this folder's files."""
    rows = []
    for agent in AGENTS.values():
        parts, outdated = [], []
        for part in agent.parts(where, programs):
            try:
                text = _without_bom(_text(_target(part.path, agent, where)))
                if part.edit.found(text) == "ours":
                    parts.append(part.what)
                    outdated += [part.what] if part.edit.put(text) != text else []
            except NotEditable:
                continue
        if parts:
            scope = "user" if where.of_user else "project"
            rows.append(Wired(agent.name, scope, tuple(parts), tuple(outdated)))
    return rows


def carry_out(change: Change, where: Where, folders: Folders) -> Change:
    """Do it; what comes back says so, or why the file was left alone after all."""
    if change.action in ("left alone", "unchanged"):
        return change
    try:
        target = _target(change.path, AGENTS[change.agents[0]], where)
        if _text(target) != change.before:
            raise NotEditable("it has changed in the meantime; run this again")
        if change.after is None:
            target.unlink()
            folders.remove_empty(target.parent)
        else:
            folders.make(target.parent, mode=0o700 if where.of_user else 0o777)
            atomic.write(
                target, [change.after.encode("utf-8")], mode=0o600 if where.of_user else 0o666
            )
    except NotEditable as error:
        return change._replace(left_alone=str(error))
    except OSError as error:
        return change._replace(left_alone=f"it cannot be written: {error.strerror or error}")
    return change


class Folders:
    """The folders that setting up has made, noted in the user's home: only these are removed again, when empty."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.made: set[str] = set()
        with suppress(OSError, ValueError, TypeError, KeyError):
            self.made = {str(folder) for folder in json.loads(path.read_bytes())["folders"]}

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
                return  # Something else is in it by now.
            self.made.discard(str(folder))
            folder = folder.parent

    def save(self) -> None:
        """Write the note, or remove it when there is nothing to note. Without it, folders stay: no harm done."""
        with suppress(CommonplaceError, OSError):
            if self.made:
                for folder in (self.path.parent.parent, self.path.parent):
                    folder.mkdir(mode=0o700, exist_ok=True)
                atomic.replace(
                    self.path, [json.dumps({"folders": sorted(self.made)}).encode(), b"\n"]
                )
            elif self.path.exists():
                self.path.unlink()
                self.path.parent.rmdir()
                self.path.parent.parent.rmdir()


# --- One file -------------------------------------------------------------------------------------------------------


def _change(path: Path, parts: list[tuple[Agent, Part]], where: Where, *, undo: bool) -> Change:
    agents = tuple(dict.fromkeys(agent.name for agent, _ in parts))
    what = tuple(dict.fromkeys(part.what for _, part in parts))
    before: str | None = None
    try:
        target = _target(path, parts[0][0], where)
        before = _text(target)
        after = _edited(before, parts, undo=undo)
        if after != before:
            _check_writable(target)
    except NotEditable as error:
        return Change(path, agents, what, before, before, left_alone=str(error))
    other = any(part.edit.found(_without_bom(after)) == "other" for _, part in parts)
    remark = (
        "it has a `commonplace` that setup has not written: left as it is"
        if other and not undo
        else ""
    )
    return Change(path, agents, what, before, after, remark=remark)


def _edited(text: str | None, parts: list[tuple[Agent, Part]], *, undo: bool) -> str | None:
    """*text* with all *parts* put in, or taken out in the opposite order. A byte order mark stays in front."""
    bom = _BOM if text is not None and text.startswith(_BOM) else ""
    text = _without_bom(text)
    for _, part in reversed(parts) if undo else parts:
        text = part.edit.taken(text) if undo else part.edit.put(text)
    return bom + (text or "") if bom else text


def _lines(text: str | None) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _without_bom(text: str | None) -> str | None:
    return text.removeprefix(_BOM) if text is not None else None


def _target(path: Path, agent: Agent, where: Where) -> Path:
    """The file behind *path*, through links. It must lie in the folder, or in the one the agent was told to use."""
    try:
        target = path.resolve()
        inside = [where.root.resolve(), *([agent.folder(where).resolve()] if where.of_user else [])]
    except (OSError, RuntimeError):  # A loop of links.
        raise NotEditable("it leads nowhere") from None
    if not any(target.is_relative_to(folder) for folder in inside):
        raise NotEditable(f"it leads out of `{where.root}`, to `{target}`")
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
    """Refuse what replacing would do against the owner's will: a read-only file, a file of somebody else's."""
    folder = next(one for one in target.parents if one.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise NotEditable(f"nothing can be written in `{folder}`")
    if target.exists():
        found = target.stat()
        if not found.st_mode & stat.S_IWUSR or not os.access(target, os.W_OK):
            raise NotEditable("it is read-only")
        if os.name == "posix" and os.geteuid() not in (0, found.st_uid):
            raise NotEditable("it belongs to another user")
