"""Which commit and branch are checked out in a repository."""

from __future__ import annotations

import re
from pathlib import Path

from commonplace.where.repository import read_of_git


def git_head(root: str) -> tuple[str, str]:
    """Return the commit and the branch that are checked out, read from git's own files."""
    try:
        git = Path(root) / ".git"
        if git.is_file():
            git = Path(root) / read_of_git(git).removeprefix("gitdir:").strip()
        head = read_of_git(git / "HEAD").strip()
        if not head.startswith("ref:"):
            return _commit(head), ""
        ref = head.removeprefix("ref:").strip()
        if not ref.startswith("refs/") or ".." in ref:
            return "", ""  # It could name any file of the user.
        branch = ref.removeprefix("refs/heads/")
        common = git
        if (git / "commondir").is_file():
            common = git / read_of_git(git / "commondir").strip()
        if (common / ref).is_file():
            return _commit(read_of_git(common / ref)), branch
        packed = read_of_git(common / "packed-refs", errors="replace")
        return next(
            (_commit(line) for line in packed.splitlines() if line.endswith(f" {ref}")), ""
        ), branch
    except (OSError, UnicodeDecodeError, ValueError):
        return "", ""


def _commit(text: str) -> str:
    """Return the commit that *text* begins with; "" if it is none."""
    found = re.match(r"[0-9a-f]{40}(?![0-9a-f])|[0-9a-f]{64}(?![0-9a-f])", text)
    return found[0][:40] if found else ""
