"""What git says about the working tree: the commit, and which files differ from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from commonplace.where import git

if TYPE_CHECKING:
    from commonplace.recaller import Recaller

GIT_S_MAX = 5.0
FILES_MAX = 200
# The letter of an entry, and how many fields come before its path.
_FIELDS_BEFORE_PATH = {"1": 8, "2": 9, "u": 10, "?": 1}


class WorkTree(NamedTuple):
    """The commit that is checked out, "" before the first one, and the changed files."""

    commit: str
    changed: list[str]


def of_repository(memory: Recaller) -> WorkTree | None:
    """Return the state of the repository here; `None` if there is none, or git does not answer."""
    root = memory.repository.root
    if root is None or memory.repository.common is None:
        return None
    # With `--branch` the listing is never empty, so that no answer is not taken for no change.
    arguments = ("status", "--porcelain=v2", "--branch", "-z", "--untracked-files=normal")
    entries = git.output(root, *arguments, seconds_max=GIT_S_MAX).split("\0")
    oid = next((one for one in entries if one.startswith("# branch.oid ")), "")
    if not oid:
        return None
    commit = oid.removeprefix("# branch.oid ").strip("()")
    own = {home.path for home in memory.homes}
    changed = [
        path
        for path in _paths(entries)
        # What we write into a home of this repository is not the agent's work.
        if not any(
            home.is_relative_to(root / path) or (root / path).is_relative_to(home) for home in own
        )
    ]
    return WorkTree("" if commit == "initial" else commit, changed[:FILES_MAX])


def _paths(entries: list[str]) -> list[str]:
    found: list[str] = []
    waiting = iter(entries)
    for entry in waiting:
        before = _FIELDS_BEFORE_PATH.get(entry[:1])
        if before is not None and entry[1:2] == " ":
            found.append(entry.split(" ", before)[-1])
            if entry[0] == "2":
                next(waiting, "")  # The old name of a renamed file.
    return found
