"""Pull, merge and push a home that is a git repository of its own.

What comes from the remote is checked before it is merged: it must be a home, without links and
without files of `.state/`, where hooks would look for a server's address. What is pushed is checked
in the same way. git merges all files but the logs (see `merge.py`), in a worktree of its own below
`.state/`, so the home changes only once the result is known.
"""

from __future__ import annotations

import shutil
import subprocess
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, NamedTuple

from commonplace.erasure import erased
from commonplace.errors import FindingsLeft, HomeUnusable, UsageError, unusable
from commonplace.files import atomic
from commonplace.files.lock import hold
from commonplace.files.plain import read_all
from commonplace.log.hold import hold_logs
from commonplace.log.scan import scan
from commonplace.records import micros
from commonplace.transfer.merge import Logs, is_log, merge_lines, merge_logs, split_lines
from commonplace.where import git
from commonplace.where.marker import MARKER
from commonplace.where.state import INDEX, STATE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from commonplace.where.home import Home

NETWORK_S_MAX = 300.0
LOCAL_S_MAX = 120.0
# Somebody else may push between our merge and our push.
_PUSHES_MAX = 3
_SENT = (
    *("log", "repos.jsonl", "agents", "skills", "scripts", "config.toml"),
    *(".gitignore", ".gitattributes"),
)
_PLAIN_FILES = ("100644", "100755")
_QUIETLY = ("-q", "--no-gpg-sign", "--no-verify")
# The folder in `.state/` in which git merges.
_APART = "merging"


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
    _check_secrets(home)
    remote, branch = _remote(home), _branch(home)
    for _push in range(_PUSHES_MAX):
        theirs = _fetch(home, remote, branch)
        with hold_logs(home) as held:  # No process appends to a file that is replaced.
            before = _commit_of(home, "HEAD")
            try:
                committed = _commit(home, message)
                received = _merge(home, theirs, held) if theirs else 0
            except BaseException:
                _take_back(home, before)
                raise
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
        _check_no_branches(home, remote, branch)
        return ""
    if not code:
        code, _out, error = _git(home, "fetch", "-q", remote, branch, network=True)
    if code:
        raise FindingsLeft(
            f"`{remote}` cannot be reached: {_last_line(error)}",
            "nothing was changed; run it again when you are online",
        )
    theirs = _ask(home, "rev-parse", "FETCH_HEAD").strip()
    rows = _check_tree(
        home,
        theirs,
        f"`{remote}` holds",
        "nothing was changed; remove it there, then run `commonplace sync` again",
    )
    code, text, _error = _git(home, "cat-file", "blob", f"{theirs}:.gitattributes")
    if rows and (code or MARKER not in text.replace("\r\n", "\n")):
        raise UsageError(
            f"what `{remote}` holds is not a home of Commonplace",
            "nothing was changed; give the home a remote of its own",
        )
    return theirs


def _check_no_branches(home: Home, remote: str, branch: str) -> None:
    """Raise `UsageError` if the remote has another branch: two homes would never meet."""
    found = _git(home, "ls-remote", "--heads", remote, network=True)[1].split()
    others = [name.removeprefix("refs/heads/") for name in found if name.startswith("refs/heads/")]
    if others:
        raise UsageError(
            f"`{remote}` has no branch `{branch}`, and it has `{others[0]}`",
            f"nothing was changed; run `git -C {home.path} checkout {others[0]}`, or, with memories"
            f" of its own here, `git -C {home.path} branch -m {others[0]}`, then sync again",
        )


def _check_secrets(home: Home) -> None:
    found = scan(home)
    if found:
        raise FindingsLeft(
            f"`{found[0].path}` has a secret in line {found[0].line}"
            + (f", and {len(found) - 1} more were found" if len(found) > 1 else ""),
            "nothing was changed; `commonplace scan --fix` removes them, then sync again",
        )


def _check_tree(home: Home, commit: str, holder: str, hint: str) -> list[str]:
    """Return the paths in *commit*. Raises `UsageError` if one of them may not be there."""
    rows = [row for row in _ask(home, "ls-tree", "-r", "-z", commit).split("\0") if row]
    for row in rows:
        mode, path = row.split(" ", 1)[0], row.partition("\t")[2]
        # Windows ignores dots and spaces at the end of a name.
        first = path.split("/")[0].casefold().rstrip(". ")
        if mode not in _PLAIN_FILES or first == STATE or first.startswith(INDEX):
            raise UsageError(f"{holder} `{path}`, which may not be in a home", hint)
    return [row.partition("\t")[2] for row in rows]


def _commit(home: Home, message: str) -> bool:
    """Commit what has changed; return whether there was something.

    Only what belongs to a home is added: anything else that lies there was never meant to be sent.
    """
    _ask(home, "add", "-u")
    _ask(home, "add", "-A", "--", *(name for name in _SENT if (home.path / name).exists()))
    # The home's `.gitignore` may be the user's own, without our lines.
    _ask(home, "reset", "-q", "--", *(f":(icase,glob){name}/**" for name in (STATE, f"{INDEX}*")))
    is_new = bool(_git(home, "diff", "--cached", "--quiet")[0])
    if is_new:
        _ask(home, *_identity(home), "commit", *_QUIETLY, "-m", message)
    if _commit_of(home, "HEAD"):
        _check_tree(
            home,
            "HEAD",
            f"the git repository of the home `{home.path}` holds",
            f"nothing was pushed; run `git -C {home.path} rm --cached PATH`, then sync again",
        )
    return is_new


def _merge(home: Home, theirs: str, held: Sequence[Path]) -> int:
    """Merge *theirs*; return how many commits that brought. A conflict changes nothing."""
    ours = _commit_of(home, "HEAD")
    received = _count(home, f"{ours}..{theirs}") if ours else 1
    if not received:
        return 0
    base = _git(home, "merge-base", ours, theirs)[1].strip() if ours else ""
    logs = _logs(home, ours)
    wanted = _logs(home, theirs)
    merged = merge_logs(_logs(home, base), logs, wanted, _erased(home))
    result = theirs
    if ours != base or merged != wanted:
        result = _merge_apart(home, ours, theirs, merged)
    # git would replace a log while it writes it, and a process could append to half of one.
    for path in logs.keys() | merged.keys():
        if logs.get(path) != merged.get(path):
            with nullcontext() if home.path / path in held else hold(home.path / path):
                # Another process may have begun the same log since ours were locked.
                here = [] if path in logs else split_lines(read_all(home.path / path))
                _replace(home.path / path, merge_lines([], here, merged.get(path, [])))
            _ask(home, "add", "-A", "--", path)
    _ask(home, "merge", "-q", "--ff-only", result)
    return received


def _erased(home: Home) -> dict[str, int]:
    """Return the times of `erased.txt` in microseconds."""
    found: dict[str, int] = {}
    for name, when in erased.times(home).items():
        with suppress(ValueError):
            found[name] = micros(when)
    return found


def _logs(home: Home, commit: str) -> Logs:
    """Return the lines of the logs in *commit*."""
    if not commit:
        return {}
    names = _ask(home, "ls-tree", "-r", "-z", "--name-only", commit).split("\0")
    found = {
        name: split_lines(git.to_bytes(_ask(home, "cat-file", "blob", f"{commit}:{name}")))
        for name in names
        if is_log(name)
    }
    return {name: lines for name, lines in found.items() if lines}


def _replace(path: Path, lines: Sequence[bytes]) -> None:
    if lines:
        atomic.replace(path, (line + b"\n" for line in lines))
        return
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise unusable(path, error) from error


def _merge_apart(home: Home, ours: str, theirs: str, merged: Logs) -> str:
    """Return the commit that merges *theirs* into *ours*, with the logs as *merged*."""
    apart = home._replace(path=home.state_folder / _APART)
    _remove_apart(home, apart.path)
    try:
        _ask(home, "worktree", "add", "-q", "--detach", str(apart.path), ours)
        code, out, error = _git(
            apart, *_identity(home), "merge", "--no-commit", "--no-ff", "-q", "-X", "no-renames",
            "--allow-unrelated-histories", theirs,
        )  # fmt: skip
        unmerged = _ask(apart, "diff", "--name-only", "-z", "--diff-filter=U").split("\0")
        conflicts = ", ".join(f"`{name}`" for name in unmerged if name and not is_log(name))
        if conflicts or (code and not any(unmerged)):
            raise FindingsLeft(
                f"both sides changed {conflicts}"
                if conflicts
                else f"git: {_last_line(error or out)}",
                f"nothing was changed; merge by hand with git in `{home.path}`, then run it again",
            )
        tracked = _ask(apart, "ls-files", "-z").split("\0")
        for path in {*filter(is_log, tracked), *merged}:
            _replace(apart.path / path, merged.get(path, []))
        _ask(apart, "add", "-A")
        _ask(apart, *_identity(home), "commit", *_QUIETLY, "--no-edit")
        return _commit_of(apart, "HEAD")
    finally:
        _remove_apart(home, apart.path)


def _remove_apart(home: Home, folder: Path) -> None:
    """Remove the worktree; one is left by a process that was killed."""
    shutil.rmtree(folder, ignore_errors=True)
    _git(home, "worktree", "prune")


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
