"""The errors that a user can correct: a class each, with its message, hint and exit code.

A programming error is not among them: it is an `assert` and a traceback.
"""

from __future__ import annotations

import errno

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


_IDS_SHOWN_MAX = 3
_FULL = (errno.ENOSPC, errno.EDQUOT if hasattr(errno, "EDQUOT") else errno.ENOSPC, errno.EFBIG)


class CommonplaceError(Exception):
    """The base of all our errors. `hint` says what to do; the command exits with `exit_code`."""

    exit_code = 1
    hint = ""


class UsageError(CommonplaceError):
    """Options that contradict one another, or an option or argument that is missing or wrong.

    `field` is the option to correct, if the reason is about one.
    """

    exit_code = 2

    def __init__(self, reason: str, hint: str = "", field: str = "") -> None:
        super().__init__(reason, hint, field)
        self.field = field
        self.reason = reason
        self.hint = hint

    def __str__(self) -> str:
        return f"`{self.field}` {self.reason}" if self.field else self.reason


class RecordInvalid(CommonplaceError):
    """A record that may not be written. `field` is the field to correct, or the flag for it."""

    exit_code = 3

    def __init__(self, field: str, reason: str, hint: str = "") -> None:
        super().__init__(field, reason, hint)
        self.field = field
        self.reason = reason
        self.hint = hint

    def __str__(self) -> str:
        return f"`{self.field}` {self.reason}"


class RecordNotFound(CommonplaceError):
    exit_code = 4

    def __init__(self, ident: str, message: str = "", hint: str = "") -> None:
        super().__init__(message or f"no record has an id that starts with `{ident}`")
        self.hint = (
            hint
            or "`commonplace export` lists every id; `commonplace where` shows the homes searched"
        )


class IdAmbiguous(CommonplaceError):
    exit_code = 5

    def __init__(self, prefix: str, ids: Sequence[str]) -> None:
        super().__init__(f"`{prefix}` matches {len(ids)} records")
        shown = ", ".join(f"`{ident}`" for ident in ids[:_IDS_SHOWN_MAX])
        self.hint = f"give more of the id: {shown}{' …' if len(ids) > _IDS_SHOWN_MAX else ''}"


class EpisodeNotStarted(CommonplaceError):
    exit_code = 36

    def __init__(self, agent: str, repo: str, ident: str = "") -> None:
        whose = f"with an id that starts with `{ident}`" if ident else f"of `{agent}` in `{repo}`"
        super().__init__(f"no episode {whose} is open")
        self.hint = "`commonplace episode start --goal TEXT` begins one; `episode list` shows them"


class RepoUnknown(CommonplaceError):
    """A name that no log has. *nearest* is the name that was probably meant."""

    exit_code = 30

    def __init__(self, name: str, nearest: str, hint: str) -> None:
        super().__init__(f"there is no repository `{name}`")
        self.hint = f"did you mean `{nearest}`? {hint}" if nearest else hint


class RepoAmbiguous(CommonplaceError):
    exit_code = 31

    def __init__(self, name: str, logs: Sequence[str]) -> None:
        super().__init__(f"{len(logs)} repositories are called `{name}`")
        self.hint = f"give the whole name: {', '.join(f'`{log}`' for log in logs)}"


class HomeUnusable(CommonplaceError):
    """A home that cannot be used: it is a file, or may not be read or written."""

    exit_code = 6

    def __init__(self, path: Path | str, reason: str, hint: str = "") -> None:
        super().__init__(f"the home `{path}` cannot be used: {reason}")
        self.hint = (
            hint or "choose another with `--home` or `COMMONPLACE_HOME`, or correct its permissions"
        )


class DiskFull(CommonplaceError):
    exit_code = 7

    def __init__(self, path: Path | str, stored: int = 0) -> None:
        before = f"{stored:,} records were stored, then " if stored else ""
        super().__init__(f"the disk is full: {before}nothing was added to `{path}`")
        self.path = path
        self.stored = stored
        self.hint = "free some space and write again; everything confirmed before is stored"


def unusable(path: Path | str, error: OSError) -> DiskFull | HomeUnusable:
    """Return our error for the system's *error* with a file of a home."""
    if error.errno in _FULL:
        return DiskFull(path)
    if error.errno == errno.ELOOP:
        return HomeUnusable(
            path,
            "a part of its path is a symbolic link, and links in a home are not followed",
            "put the file or folder itself there; only the home as a whole may be a link",
        )
    return HomeUnusable(path, error.strerror or str(error))


class LinesRefused(CommonplaceError):
    """Some lines of a bulk write were refused; the others were stored."""

    exit_code = 8

    def __init__(self, refused: int, stored: int) -> None:
        lines = f"{refused:,} of {refused + stored:,} lines" if refused + stored > 1 else "the line"
        others = "; the others are stored" if stored else ", and nothing is stored"
        super().__init__(f"{lines} {'was' if refused == 1 else 'were'} refused{others}")
        self.hint = "correct the lines named above and send only those again"


class FindingsLeft(CommonplaceError):
    """Something is left to do: `doctor`, `scan` or an erasure found it, or maintenance failed."""

    exit_code = 9

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class SettingsInvalid(CommonplaceError):
    exit_code = 10

    def __init__(self, path: Path | str, reason: str) -> None:
        super().__init__(f"`{path}`: {reason}")
        self.hint = "docs/SETTINGS.md lists every setting with its type and default"


class LogBusy(CommonplaceError):
    exit_code = 11

    def __init__(self, path: Path, seconds: float) -> None:
        super().__init__(f"another process has held `{path}` for over {seconds:.0f} s")
        self.hint = (
            "`commonplace doctor` shows the state of the home; try again when that process is done"
        )


class EmbedderUnavailable(CommonplaceError):
    """There is no embedder. Everything but the search by meaning works without one."""

    exit_code = 12

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(reason)
        self.hint = hint


class OutputLost(CommonplaceError):
    """The output could not be written: stdout goes to a full disk, or was closed."""

    exit_code = 13

    def __init__(self, error: OSError) -> None:
        super().__init__(f"the output could not be written to stdout: {error.strerror or error}")
        self.hint = "records that the command writes are stored; only the output is lost"


class NoteRefused(CommonplaceError):
    """A note's path or content that is not allowed."""

    exit_code = 14

    def __init__(self, path: str, reason: str, lines: Sequence[int] | None = None) -> None:
        super().__init__(f"`{path}` {reason}")
        self.reason = reason
        # If the text to replace must match once and does not: the lines of its matches.
        self.lines = lines


class NoteNotFound(CommonplaceError):
    exit_code = 15

    def __init__(self, path: str) -> None:
        super().__init__(f"there is no note `{path}`")
        self.hint = "list the notes to see their names"


class NoteChanged(CommonplaceError):
    """A write that requires a hash which the note no longer has."""

    exit_code = 16

    def __init__(self, path: str) -> None:
        super().__init__(f"`{path}` has changed since it was read")
        self.hint = "read it again and repeat the edit on its current text"


class ServerTrouble(CommonplaceError):
    """A server that cannot be started, reached or stopped, or that already runs."""

    exit_code = 17

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class NoAnswer(CommonplaceError):
    """A memory server of `commonplace.client` gave no answer: what was sent may have arrived."""

    exit_code = 70

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.hint = "what could not be saved is kept and sent again by the next call"

    def __str__(self) -> str:
        return f"the memory server did not answer: {self.args[0]}"


class AccessRefused(NoAnswer):
    """A memory server of `commonplace.client` that does not accept the token: nothing was done."""

    exit_code = 72

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.hint = "`commonplace token add` makes one; what could not be saved is kept"

    def __str__(self) -> str:
        return f"the memory server refuses the token ({self.args[0]})"


class ToolRefused(CommonplaceError):
    """A memory server of `commonplace.client` that refused a call, or has no such tool."""

    exit_code = 71

    def __init__(self, tool: str, reason: str) -> None:
        super().__init__(tool, reason)
        self.tool, self.reason = tool, reason
        self.hint = "correct what was sent, or start the server with the tools of `kom`"

    def __str__(self) -> str:
        return f"the memory server refused `{self.tool}`: {self.reason}"


class AccessTokenNotFound(CommonplaceError):
    exit_code = 18

    def __init__(self, ident: str, found: int = 0) -> None:
        count = f"{found} access tokens have" if found else "no access token has"
        super().__init__(f"{count} an id that starts with `{ident}`")
        self.hint = "`commonplace token list` shows every id"


class FormatUnknown(CommonplaceError):
    """A path with no file of a format that can be imported."""

    exit_code = 21

    def __init__(self, path: Path, formats: Iterable[str]) -> None:
        super().__init__(f"no file in `{path}` is of a known format")
        self.hint = (
            f"name the format with `--from` ({', '.join(formats)}); "
            "`--from jsonl` takes any lines with a text"
        )


class FolderRefused(CommonplaceError):
    """A folder that an export may not or cannot write to."""

    exit_code = 22

    def __init__(self, path: Path, reason: str, hint: str = "") -> None:
        super().__init__(f"cannot export to `{path}`: {reason}")
        self.hint = hint or "name another folder with `--to`"


class ScopeMissing(CommonplaceError):
    """An access token without the scope that a request needs."""

    exit_code = 25

    def __init__(self, scope: str) -> None:
        super().__init__(f"this access token lacks the scope `{scope}`")
        self.hint = "create an access token that has it: `commonplace token add`"


class CandidateNotFound(CommonplaceError):
    exit_code = 23

    def __init__(self, prefix: str, message: str = "", hint: str = "") -> None:
        super().__init__(
            message or f"no candidate in the inbox has an id that starts with `{prefix}`"
        )
        self.hint = hint or "`commonplace inbox list` shows every candidate"


class BatchUnknown(CommonplaceError):
    exit_code = 37

    def __init__(self, name: str, found: Sequence[str]) -> None:
        several = f"{len(found)} batches begin with" if found else "no batch is called"
        super().__init__(f"{several} `{name}`")
        self.hint = "`commonplace consolidate --log` lists every batch"


class BatchInUse(CommonplaceError):
    """A batch cannot be undone because something was built on what it wrote."""

    exit_code = 38

    def __init__(self, batch: str, ident: str, later: str) -> None:
        by = f"`{later}`" if later else "somebody"
        super().__init__(f"`{batch}` was not undone: {by} changed `{ident}` since")
        self.hint = (
            f"undo that first: `commonplace consolidate --undo {later}`"
            if later
            else f"`commonplace forget {ident}` hides it"
        )


class ProposalHeldBack(CommonplaceError):
    """A pattern in an agent's words was not written."""

    exit_code = 39

    def __init__(self, reason: str) -> None:
        super().__init__(f"the pattern is held back: {reason}")
        self.hint = "name more sources, or say the fix in their words; nothing was written"


class SetupIncomplete(CommonplaceError):
    """Some settings files were not changed; the others were."""

    exit_code = 19

    def __init__(self, left: Sequence[tuple[Path, str]], of: int) -> None:
        self.left = left
        count = f"{len(left)} of {of} files were" if of > 1 else "the file was"
        super().__init__(
            f"{count} not changed: " + "; ".join(f"`{path}`: {reason}" for path, reason in left)
        )
        self.hint = "correct that and run the same command again; the other changes stay"


class NoAgentFound(CommonplaceError):
    exit_code = 20

    def __init__(self, known: Sequence[str]) -> None:
        super().__init__("no agent was found here")
        self.hint = f"name one: `commonplace setup {known[0]}` (known: {', '.join(known)})"


class NoteExists(CommonplaceError):
    """A path at which there is a note or folder already."""

    exit_code = 26

    def __init__(self, path: str) -> None:
        super().__init__(f"there is a note or folder `{path}` already")
        self.hint = "choose another path, or delete that one first"


class ExtraMissing(CommonplaceError, ImportError):
    """A package that is installed only with an extra. Also an `ImportError`, for callers."""

    exit_code = 27

    def __init__(self, extra: str, package: str) -> None:
        super().__init__(
            f"this needs the package `{package}`, which comes with the extra `{extra}`: "
            f"install `commonplace[{extra}]`"
        )


class SkillRefused(CommonplaceError):
    """A skill whose name or text is not allowed, or that is there already."""

    exit_code = 46

    def __init__(self, name: str, reason: str, hint: str = "") -> None:
        super().__init__(f"the skill `{name}` {reason}")
        self.hint = hint or "a name is 1 to 64 of a-z, 0-9 and single hyphens, e.g. `write-tests`"


class SkillNotFound(CommonplaceError):
    exit_code = 47

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no skill `{name}`")
        self.hint = "`commonplace skill list` shows every skill"


class HandoffClosed(CommonplaceError):
    """A handoff that somebody has accepted, or that is closed for another reason."""

    exit_code = 48

    def __init__(self, ident: str, reason: str) -> None:
        super().__init__(f"the handoff `{ident}` {reason}")
        self.hint = "`commonplace handoff list` shows what is open"


class NothingTrusted(CommonplaceError):
    """No home here may be written to: the user trusts none of them."""

    exit_code = 49

    def __init__(self, path: Path | str) -> None:
        super().__init__(f"the home `{path}` came with a repository and is not trusted")
        self.hint = "`commonplace trust` trusts it, after you have looked into it"


class SnapshotNotFound(CommonplaceError):
    exit_code = 60

    def __init__(self, ident: str, several: int = 0) -> None:
        found = f"{several} snapshots have ids that start with" if several else "no snapshot is"
        super().__init__(f"{found} `{ident}`")
        self.hint = "`commonplace snapshot list` shows their ids and names"


class SnapshotDamaged(CommonplaceError):
    """A file of a snapshot that is missing, or that does not hold what was stored in it."""

    exit_code = 61

    def __init__(self, path: Path | str, reason: str, *, is_newer: bool = False) -> None:
        super().__init__(f"the snapshot cannot be read: `{path}`: {reason}")
        self.path = path
        self.reason = reason
        self.is_newer = is_newer
        self.hint = "the memory itself is whole; use another snapshot, and delete this one's file"


class PackRefused(CommonplaceError):
    """A pack that is not written or not imported; nothing was changed."""

    exit_code = 62

    def __init__(self, name: Path | str, reason: str, hint: str = "") -> None:
        super().__init__(f"the pack `{name}` {reason}")
        self.hint = hint or "nothing was changed"


class PackUnknown(CommonplaceError):
    """A pack that is not there."""

    exit_code = 63

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(f"there is no pack `{name}`")
        named = ", ".join(f"`{one}`" for one in known[:20])
        self.hint = f"there is {named}" if known else "`commonplace pack add` installs one"
