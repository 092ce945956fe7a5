"""`CONTINUITY.md`: an agent's working memory, of which one marked section is ours.

The section names memories and mistakes by their ids, as the memory reference of Loki shows it. The
rest of the file belongs to the agent, and every byte of it stays as it is.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.errors import CommonplaceError, UsageError, unusable
from commonplace.files import atomic, marked_section
from commonplace.files.lock import hold
from commonplace.files.plain import make_folder, read_small
from commonplace.foreign import one_line
from commonplace.learn.brief import NOTHING, brief, summary_of
from commonplace.learn.gathering import Task
from commonplace.learn.strictness import is_helpful, is_relevant
from commonplace.redaction.text import redact_text

if TYPE_CHECKING:
    from commonplace.learn.brief import Entry
    from commonplace.recall.hits import Hit
    from commonplace.recaller import Recaller
    from commonplace.where.home import Home

FILE_BYTES_MAX = 1 << 20
MARKS = marked_section.CONTINUITY
GOAL_CHARS_MAX = 300
# In a home, the section has a block for each of the latest repositories.
REPOSITORIES_MAX = 8
# The end marker names whom a section is for.
WRITER = "kept by `commonplace continuity`"
MEMORIES = "## Relevant Memories (Auto-Retrieved)"
MISTAKES = "## Mistakes to Avoid (From Learnings)"
REPOSITORY = "Repository: "
_BLOCK = re.compile(rf"(?m)^(?={REPOSITORY})")
_GOAL = re.compile(r"(?m)^<!-- goal: (.*?) -->\r?$")


class Updated(NamedTuple):
    """What became of a file: whether it changed, and what our section says."""

    path: Path
    changed: bool
    goal: str
    section: str

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON shows it."""
        return {**self._asdict(), "path": str(self.path)}


def find_file(memory: Recaller, path: Path | None = None) -> Path:
    """Return the file *path*, or the one that the settings name, or that of the home in use.

    Raises `UsageError` for a path that is not a Markdown file of the repository.
    """
    named = memory.settings["continuity.path"]
    if path is None and not (named and memory.repository.root):
        return _trusted_home(memory).continuity_file
    root = (memory.repository.root or Path.cwd()).resolve()
    # Not resolved: a link in it is refused when the file is opened.
    file = Path(os.path.normpath(root / (path or named)))
    reason = ""
    if root not in file.parents:
        reason = f"is not in `{root}`"
    elif file.suffix.lower() != ".md":
        reason = "is no Markdown file: its name does not end with `.md`"
    elif ".git" in file.relative_to(root).parts:
        reason = "is git's own"
    elif any(home.path in file.parents for home in memory.homes):
        reason = "is in a home, where only its own CONTINUITY.md is for this"
    if reason:
        raise UsageError(
            f"the path `{one_line(str(file))}` {reason}", "name a file of this repository"
        )
    return file


def is_kept(memory: Recaller) -> bool:
    """Whether hooks keep the file up to date: it is there, or the settings ask for one."""
    if not memory.settings["continuity.maintain"]:
        return False
    with suppress(CommonplaceError, OSError):
        file = find_file(memory)
        return file.is_file() or bool(memory.settings["continuity.create"])
    return False


def maintain(memory: Recaller, goal: str = "") -> None:
    """Update the file for hooks, if it `is_kept`. What cannot be done is left to the next event."""
    with suppress(CommonplaceError, OSError):
        if is_kept(memory) and (goal.strip() or noted_goal(memory)):
            update(memory, goal, is_asked=False)


def update(
    memory: Recaller, goal: str = "", path: Path | None = None, *, is_asked: bool = True
) -> Updated:
    """Write what is known about *goal* into our section, if that changes it.

    Without a goal it is the one that the section was last written for in this repository. If nobody
    asked for it, what is written is as relevant as hooks demand.
    """
    # A hook waits while this module is imported, and an erasure needs much more.
    from commonplace.erasure import sections  # noqa: PLC0415

    file = find_file(memory, path)
    goal = one_line(redact_text(goal.strip())[0])[:GOAL_CHARS_MAX].strip()
    goal = goal or noted_goal(memory, path)
    if not goal:
        raise UsageError("no goal is known", 'say what the task is: `--goal "fix the login"`')
    home = _trusted_home(memory)
    is_of_home = file == home.continuity_file
    for each in memory.homes:
        if memory.trusts(each) and each.path.is_dir():
            sections.note(each, file, home.continuity_lock)
    make_folder(home.state_folder)
    with hold(home.continuity_lock):
        # Under the lock: an erasure takes it after it has rewritten the logs, so what is written
        # here was read after that, or is removed again.
        body = _block(memory, goal, is_asked=is_asked)
        before = _read(file)
        blocks = _blocks(_section(before or "") or "") if is_of_home else {}
        if blocks.get(memory.repository.name) != body:
            others = (one for name, one in blocks.items() if name != memory.repository.name)
            whole = "\n\n".join([body, *others][:REPOSITORIES_MAX])
        else:
            whole = "\n\n".join(blocks.values())
        try:
            after = marked_section.add(before, MARKS, whole, WRITER)
        except marked_section.NotEditable as error:
            raise UsageError(f"`{one_line(str(file))}` cannot be changed: {error}") from None
        if after != before:
            try:
                # A file in a repository is for all who read that; one in a home is the user's.
                raw = after.encode("utf-8", "surrogateescape")
                atomic.write(file, [raw], mode=0o600 if is_of_home else 0o644)
            except OSError as error:
                raise unusable(file, error) from error
    return Updated(file, after != before, goal, body)


def show(memory: Recaller, path: Path | None = None) -> Updated:
    """Return our section for this repository, as it is in the file."""
    file = find_file(memory, path)
    text = _read(file)
    section = _blocks(_section(text or "") or "").get(memory.repository.name)
    if section is None:
        what = "does not exist" if text is None else "has no section of ours for this repository"
        hint = '`commonplace continuity update --goal "…"` writes it'
        raise UsageError(f"`{one_line(str(file))}` {what}", hint)
    return Updated(file, changed=False, goal=_goal_of(section), section=section)


def noted_goal(memory: Recaller, path: Path | None = None) -> str:
    """Return the goal that our section notes for this repository; "" if there is none."""
    blocks = _blocks(_section(_read(find_file(memory, path)) or "") or "")
    return _goal_of(blocks.get(memory.repository.name, ""))


def _goal_of(block: str) -> str:
    found = _GOAL.search(block)
    return found[1] if found else ""


def _blocks(section: str) -> dict[str, str]:
    """Return the blocks of a section by their repositories, in their order."""
    found = (one.strip("\n") for one in _BLOCK.split(section))
    return {
        one.partition("\n")[0].removeprefix(REPOSITORY): one
        for one in found
        if one.startswith(REPOSITORY)
    }


def _trusted_home(memory: Recaller) -> Home:
    """Return the nearest home that the user trusts: nothing is written to another."""
    trusted = next((home for home in memory.homes if memory.trusts(home)), None)
    if trusted is None:
        raise UsageError("the home in use is not trusted", "`commonplace trust` changes that")
    return trusted


def _section(text: str) -> str | None:
    with suppress(marked_section.NotEditable):
        if found := marked_section.find(text, MARKS):
            return "\n".join(text[found.start : found.end].splitlines()[1:-1])
    return None


def _read(file: Path) -> str | None:
    """Return the file with every byte that is not UTF-8 kept; `None` if there is none."""
    try:
        return read_small(file, FILE_BYTES_MAX).decode("utf-8", "surrogateescape")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise unusable(file, error) from error


def _block(memory: Recaller, goal: str, *, is_asked: bool) -> str:
    relevance_min = 0.0 if is_asked else memory.settings["hooks.relevance_min"]

    def accept(hit: Hit) -> bool:
        return is_asked or (is_helpful(hit) and is_relevant(hit, relevance_min))

    # As strict as the answers of hooks: agents read the file without asking for it.
    made = brief(memory, goal, Task(accept=accept), relevance_min=relevance_min)
    # A comment ends at the first `-->`.
    said = goal.replace("--", "- -").rstrip("-")
    return "\n".join(
        [
            f"{REPOSITORY}{one_line(memory.repository.name)}",
            f"<!-- goal: {said} -->",
            MEMORIES,
            *(_lines(made.memories) or [NOTHING]),
            "",
            MISTAKES,
            *(_lines(made.parts.get("avoid_these", [])) or [NOTHING]),
        ]
    )


def _lines(entries: list[Entry]) -> list[str]:
    return [
        f"- [{_label(entry.hit.id)}] {summary_of(entry.hit)}{_marks(entry.hit.marks)}"
        for entry in entries
    ]


def _marks(marks: tuple[str, ...]) -> str:
    return "".join(f" ({one_line(mark)})" for mark in marks if mark)


def _label(ident: str) -> str:
    kind, colon, name = ident.partition(":")
    return one_line(f"skill: {name}" if colon and kind == "skill" else ident)
