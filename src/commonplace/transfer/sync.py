"""Pull, merge and push a home that is a git repository of its own.

git merges two logs without a conflict, because `.gitattributes` says `merge=union`. What comes from
the remote is checked before it is merged: it must be a home, without links and without files of
`.state/`, where hooks would look for a server's address.
"""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from commonplace.errors import FindingsLeft, HomeUnusable, UsageError
from commonplace.files.lock import hold
from commonplace.log.logs import log_files
from commonplace.where import git
from commonplace.where.marker import MARKER
from commonplace.where.state import INDEX, STATE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commonplace.where.home import Home

NETWORK_S_MAX = 300.0
LOCAL_S_MAX = 120.0
# Somebody else may push between our merge and our push.
_PUSHES_MAX = 3
_PLAIN_FILES = ("100644", "100755")


class Report(NamedTuple):
    """What a sync did: how many commits it sent and took, and where from."""

    remote: str
    branch: str
    committed: bool
    received: int
    sent: int


def sync(home: Home, message: str, *, trusted: bool) -> Report:
    """Merge the home with its remote, both ways. What fails leaves the files as they were."""
    _check(home, trusted=trusted)
    remote, branch = _remote(home), _branch(home)
    for _push in range(_PUSHES_MAX):
        theirs = _fetch(home, remote, branch)
        with ExitStack() as locks:
            # No process appends to a file that git replaces.
            for path in log_files(home):
                locks.enter_context(hold(path))
            before = _commit_of(home, "HEAD")
            committed = _commit(home, message)
            received = _merge(home, theirs, before) if theirs else 0
        ours = _commit_of(home, "HEAD")
        sent = _count(home, f"{theirs}..{ours}" if theirs else ours)
        if not sent:
            return Report(remote, branch, committed, received, 0)
        code, _out, error = _git(home, "push", remote, f"HEAD:refs/heads/{branch}", network=True)
        if not code:
            return Report(remote, branch, committed, received, sent)
        if "rejected" not in error and "fetch first" not in error:
            break
    raise FindingsLeft(
        f"the home is merged, but `{remote}` did not take it: {_last_line(error)}",
        "run `commonplace sync` again when the remote can be written",
    )


def _check(home: Home, *, trusted: bool) -> None:
    if not (home.path / ".git").exists():
        raise UsageError(
            f"the home `{home.path}` is not a git repository of its own",
            "a home inside a repository is committed and pushed with it; for any other:"
            f" `git -C {home.path} init`, then `git -C {home.path} remote add origin URL`",
        )
    if not trusted:
        raise HomeUnusable(
            home.path,
            "git would run with the configuration of a home that you do not trust",
            "run `commonplace trust` first, if you trust who made it",
        )


def _remote(home: Home) -> str:
    names = _ask(home, "remote").split()
    if not names:
        raise UsageError(
            f"the home `{home.path}` has no remote",
            f"name one with `git -C {home.path} remote add origin URL`",
        )
    return "origin" if "origin" in names else names[0]


def _branch(home: Home) -> str:
    code, out, _error = _git(home, "symbolic-ref", "--short", "HEAD")
    if code:
        raise UsageError("the home has no branch checked out", "check one out with git")
    return out.strip()


def _fetch(home: Home, remote: str, branch: str) -> str:
    """Return the commit of the remote's branch; "" if it has none yet."""
    code, out, error = _git(
        home, "ls-remote", "--exit-code", remote, f"refs/heads/{branch}", network=True
    )
    if code == 2 and not out.strip():  # noqa: PLR2004 (git: no such branch)
        return ""
    if not code:
        code, _out, error = _git(home, "fetch", "-q", remote, branch, network=True)
    if code:
        raise FindingsLeft(
            f"`{remote}` cannot be reached: {_last_line(error)}",
            "nothing was changed; run it again when you are online",
        )
    theirs = _ask(home, "rev-parse", "FETCH_HEAD").strip()
    _check_tree(home, theirs, remote)
    return theirs


def _check_tree(home: Home, commit: str, remote: str) -> None:
    rows = [row for row in _ask(home, "ls-tree", "-r", "-z", commit).split("\0") if row]
    for row in rows:
        mode, path = row.split(" ", 1)[0], row.partition("\t")[2]
        first = path.split("/")[0].casefold()
        if mode not in _PLAIN_FILES or first == STATE or first.startswith(INDEX):
            raise UsageError(
                f"`{remote}` holds `{path}`, which may not be in a home",
                "nothing was changed; remove it there, then run `commonplace sync` again",
            )
    code, text, _error = _git(home, "cat-file", "blob", f"{commit}:.gitattributes")
    if rows and (code or MARKER not in text.replace("\r\n", "\n")):
        raise UsageError(
            f"what `{remote}` holds is not a home of Commonplace",
            "nothing was changed; give the home a remote of its own",
        )


def _commit(home: Home, message: str) -> bool:
    """Commit what has changed; return whether there was something."""
    _ask(home, "add", "-A")
    if not _git(home, "diff", "--cached", "--quiet")[0]:
        return False
    _ask(home, *_identity(home), "commit", "-q", "--no-gpg-sign", "--no-verify", "-m", message)
    return True


def _merge(home: Home, theirs: str, before: str) -> int:
    """Merge *theirs*; return how many commits that brought. A conflict changes nothing."""
    received = _count(home, f"HEAD..{theirs}") if _commit_of(home, "HEAD") else 1
    if not received:
        return 0
    options = ("--no-edit", "-q", "--no-gpg-sign", "--no-verify", "--allow-unrelated-histories")
    code, out, error = _git(home, *_identity(home), "merge", *options, theirs)
    if code:
        conflicts = _ask(home, "diff", "--name-only", "--diff-filter=U").split("\n")
        _git(home, "merge", "--abort")
        _take_back(home, before)
        named = ", ".join(f"`{name}`" for name in conflicts if name)
        raise FindingsLeft(
            f"both sides changed {named}" if named else f"git: {_last_line(error or out)}",
            f"nothing was changed; merge by hand with git in `{home.path}`, then run it again",
        )
    return received


def _take_back(home: Home, before: str) -> None:
    """Take the commit of this run back; the files stay as they are."""
    if before:
        _git(home, "reset", "-q", before)
    else:
        _git(home, "update-ref", "-d", "HEAD")
        _git(home, "rm", "-r", "-q", "--cached", ".")


def _identity(home: Home) -> Sequence[str]:
    if _git(home, "config", "user.email")[1].strip():
        return ()
    return ("-c", "user.name=commonplace", "-c", "user.email=commonplace@localhost")


def _commit_of(home: Home, name: str) -> str:
    code, out, _error = _git(home, "rev-parse", "-q", "--verify", name)
    return "" if code else out.strip()


def _count(home: Home, commits: str) -> int:
    return int(_ask(home, "rev-list", "--count", commits)) if commits else 0


def _ask(home: Home, *arguments: str) -> str:
    code, out, error = _git(home, *arguments)
    if code:
        raise FindingsLeft(f"git: {_last_line(error or out)}", f"see `git -C {home.path} status`")
    return out


def _git(home: Home, *arguments: str, network: bool = False) -> tuple[int, str, str]:
    seconds = NETWORK_S_MAX if network else LOCAL_S_MAX
    try:
        return git.run_of_user(home.path, *arguments, seconds_max=seconds)
    except subprocess.TimeoutExpired:
        return 1, "", f"git did not answer within {seconds:.0f} seconds"
    except OSError as error:
        raise UsageError(f"git cannot be run: {error.strerror}", "install git") from None


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it gave no reason"
