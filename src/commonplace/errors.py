"""What a user can put right: one class a mistake, with its sentence, its hint and its exit code.

A mistake of ours is not here: it is an `assert` and a traceback.
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
    """The root of the tree. `hint` says what to do, `exit_code` what the command line answers."""

    exit_code = 1
    hint = ""


class UsageError(CommonplaceError):
    """Flags that contradict one another, or a flag that is missing."""

    exit_code = 2

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class RecordInvalid(CommonplaceError):
    """A record that may not be written. `field` is the one to put right."""

    exit_code = 3

    def __init__(self, field: str, reason: str, hint: str = "") -> None:
        super().__init__(f"`{field}` {reason}")
        self.field = field
        self.reason = reason
        self.hint = hint


class RecordNotFound(CommonplaceError):
    exit_code = 4

    def __init__(self, ident: str, message: str = "", hint: str = "") -> None:
        super().__init__(message or f"no record has an id that starts with `{ident}`")
        self.hint = (
            hint
            or "`commonplace export` lists every id; `commonplace where` says which home was searched"
        )


class IdAmbiguous(CommonplaceError):
    exit_code = 5

    def __init__(self, prefix: str, ids: Sequence[str]) -> None:
        super().__init__(f"`{prefix}` matches {len(ids)} records")
        shown = ", ".join(f"`{ident}`" for ident in ids[:_IDS_SHOWN_MAX])
        self.hint = f"give more of the id: {shown}{' …' if len(ids) > _IDS_SHOWN_MAX else ''}"


class HomeUnusable(CommonplaceError):
    """The folder that should hold the memory cannot: it is a file, or may not be read or written."""

    exit_code = 6

    def __init__(self, path: Path | str, reason: str, hint: str = "") -> None:
        super().__init__(f"the home `{path}` cannot be used: {reason}")
        self.hint = (
            hint
            or "choose another with `--home` or `COMMONPLACE_HOME`, or put its permissions right"
        )


class DiskFull(CommonplaceError):
    exit_code = 7

    def __init__(self, path: Path | str, stored: int = 0) -> None:
        before = f"{stored:,} records were stored, then " if stored else ""
        super().__init__(f"the disk is full: {before}nothing was added to `{path}`")
        self.path = path
        self.stored = stored
        self.hint = "free some space and write again; everything acknowledged before is safe"


def unusable(path: Path | str, error: OSError) -> DiskFull | HomeUnusable:
    """What the system's *error* about a file of a home means to the user."""
    return (
        DiskFull(path) if error.errno in _FULL else HomeUnusable(path, error.strerror or str(error))
    )


class LinesRefused(CommonplaceError):
    """Some lines of a bulk write were not taken; the others were."""

    exit_code = 8

    def __init__(self, refused: int, taken: int) -> None:
        super().__init__(
            f"{refused:,} of {refused + taken:,} lines were refused; the others are stored"
        )
        self.hint = "put the lines named above right and send those again"


class FindingsLeft(CommonplaceError):
    """A check found something and did not mend it: `doctor`, `scan`, an erasure that left a trace."""

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
            "`commonplace doctor` shows what is going on; try again when that process is done"
        )


class EmbedderUnavailable(CommonplaceError):
    """There is no embedder; everything but similarity works without one."""

    exit_code = 12

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(reason)
        self.hint = hint


class OutputLost(CommonplaceError):
    """The answer could not be written: a full disk behind stdout, a stream that was closed."""

    exit_code = 13

    def __init__(self, error: OSError) -> None:
        super().__init__(f"the answer could not be written to stdout: {error.strerror or error}")
        self.hint = "what was to be stored is stored; only the answer is lost"


class NoteRefused(CommonplaceError):
    """A note's path or content that is not allowed."""

    exit_code = 14

    def __init__(self, path: str, reason: str, lines: Sequence[int] | None = None) -> None:
        super().__init__(f"`{path}` {reason}")
        self.reason = reason
        # Where the text to replace was found, if that is the trouble: nowhere, or in several lines.
        self.lines = lines


class NoteNotFound(CommonplaceError):
    exit_code = 15

    def __init__(self, path: str) -> None:
        super().__init__(f"there is no note `{path}`")
        self.hint = "list the notes to see what there is"


class NoteChanged(CommonplaceError):
    """A write that insisted on a hash the note no longer has."""

    exit_code = 16

    def __init__(self, path: str) -> None:
        super().__init__(f"`{path}` has changed since it was read")
        self.hint = "read it again and repeat the edit on what is there now"


class ServerTrouble(CommonplaceError):
    """A server that cannot be started, reached or stopped, or one that is already there."""

    exit_code = 17

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class TokenNotFound(CommonplaceError):
    exit_code = 18

    def __init__(self, ident: str, found: int = 0) -> None:
        super().__init__(
            f"{f'{found} tokens have' if found else 'no token has'} an id that starts with `{ident}`"
        )
        self.hint = "`commonplace token list` shows every id"


class FormatUnknown(CommonplaceError):
    """Nothing at a path is of a format that can be imported."""

    exit_code = 21

    def __init__(self, path: Path, formats: Iterable[str]) -> None:
        super().__init__(f"nothing in `{path}` is of a format that is known")
        self.hint = f"say what it is with `--from` ({', '.join(formats)}); `--from jsonl` takes any lines with a text"


class FolderRefused(CommonplaceError):
    """A folder that an export may not or cannot write to."""

    exit_code = 22

    def __init__(self, path: Path, reason: str, hint: str = "") -> None:
        super().__init__(f"`{path}` cannot take the export: {reason}")
        self.hint = hint or "name another folder with `--to`"


class ScopeMissing(CommonplaceError):
    """A token that may not do what was asked of it."""

    exit_code = 25

    def __init__(self, scope: str) -> None:
        super().__init__(f"this token lacks the scope `{scope}`")
        self.hint = "ask for a token that has it: `commonplace token add`"


class CandidateNotFound(CommonplaceError):
    exit_code = 23

    def __init__(self, prefix: str) -> None:
        super().__init__(f"no candidate in the inbox has an id that starts with `{prefix}`")
        self.hint = "`commonplace inbox list` shows what waits"


class SetupIncomplete(CommonplaceError):
    """Some settings files were left alone; the others were done."""

    exit_code = 19

    def __init__(self, left: Sequence[tuple[Path, str]], of: int) -> None:
        self.left = left
        count = f"{len(left)} of {of} files were" if of > 1 else "the file was"
        super().__init__(
            f"{count} left alone: " + "; ".join(f"`{path}`: {reason}" for path, reason in left)
        )
        self.hint = "put that right and run the same command again; what was done stays as it is"


class NoAgentFound(CommonplaceError):
    exit_code = 20

    def __init__(self, known: Sequence[str]) -> None:
        super().__init__("no agent was found here")
        self.hint = f"name one: `commonplace setup {known[0]}` (there are {', '.join(known)})"


class NoteExists(CommonplaceError):
    """A name that is taken already."""

    exit_code = 26

    def __init__(self, path: str) -> None:
        super().__init__(f"there is a note or folder `{path}` already")
        self.hint = "choose another path, or delete what is there first"


class ExtraMissing(CommonplaceError, ImportError):
    """A package that only an extra brings. An `ImportError` as well, for programs that do without."""

    exit_code = 27

    def __init__(self, extra: str, package: str) -> None:
        super().__init__(
            f"this needs the package `{package}`, which comes with the extra `{extra}`: install `commonplace[{extra}]`"
        )
