"""The command line. `main` runs one command, and turns a user's mistake into a sentence."""
# PYTHON_ARGCOMPLETE_OK

from __future__ import annotations

import gc
import io
import os
import sys
from contextlib import suppress

from commonplace.cli.output import report_error
from commonplace.cli.program import run
from commonplace.errors import CommonplaceError, OutputLost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

# This many new objects, instead of 700.
COLLECT_AFTER = 50_000


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code. A user's mistake never shows a traceback."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    # A stream that the caller has closed is None, and cannot be written to.
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    for stream, errors in ((sys.stdout, "replace"), (sys.stderr, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper):
            # The same lines on every system.
            stream.reconfigure(encoding="utf-8", errors=errors, newline="\n")
    if argv is not None:
        return _run_and_report(arguments)
    # Few objects of a short command are garbage before its end: looking for some as often as Python
    # does takes 5 ms of a question.
    gc.set_threshold(COLLECT_AFTER)
    code = _run_and_report(arguments)
    # Everything was closed. Freeing it piece by piece takes as long as the question did, and ends
    # in an abort if the user has interrupted the loading of the model's libraries.
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _run_and_report(arguments: list[str]) -> int:
    code = 0
    try:
        try:
            code = _run(arguments)
        except CommonplaceError as error:
            code = error.exit_code
            report_error(error)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader has seen enough (`| head`).
        _discard_output(sys.stdout, sys.stderr)
    except OSError as error:
        if error.filename is not None:
            raise  # An error of a file, not of a stream: a mistake of ours.
        _discard_output(sys.stdout)
        return report_error(OutputLost(error))
    return code


def _discard_output(*streams: TextIO) -> None:
    """Python would report the error once more when it closes the streams."""
    for stream in streams:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _run(arguments: list[str]) -> int:
    if "_ARGCOMPLETE" in os.environ:
        from commonplace.cli.completion import complete  # noqa: PLC0415 (only a shell asks)

        return complete()
    return run(arguments)
