"""Embed the backlog: the documents that have no vectors yet.

A few are embedded before an answer. Many are left to a background worker, a separate process that
is started after an answer, at most one for each home and not again within half a minute. It ends
when its work is done, within seconds when a home of it is gone, when another process embeds there,
and after `WORKER_S_MAX` in any case. It runs `python -m commonplace.backlog`.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commonplace.embed.service import EmbeddingService
from commonplace.errors import CommonplaceError, EmbedderUnavailable
from commonplace.files.lock import try_hold
from commonplace.files.plain import touch
from commonplace.index.embedded.index import EmbeddedIndex
from commonplace.index.ports import no_progress
from commonplace.where.home import Home

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Mapping, Sequence

    from commonplace.embed.embedder import Embedder
    from commonplace.index.ports import Index
    from commonplace.settings import Settings

# This many new documents are embedded before the answer; more wait for the worker.
EMBED_NOW_MAX = 8
EMBED_BATCH = 64
# A worker that could not do its work is not started again by every answer.
WORKER_PAUSE_S = 30.0
# A backlog that takes longer than this is continued by the next worker.
WORKER_S_MAX = 900.0
GONE_POLL_S = 1.0


def embed_few(index: Index, embedder: Embedder) -> None:
    """Embed the missing documents before an answer, if they are few."""
    index.use_model(embedder.name)
    if 0 < index.missing_vectors() <= EMBED_NOW_MAX:
        # A service may be too slow for an answer; the worker has more time.
        with suppress(EmbedderUnavailable):
            index.embed(embedder, EMBED_NOW_MAX)


def embed_all(
    index: Index,
    embedder: Embedder,
    *,
    progress: Callable[[int], None] = no_progress,
    until: Callable[[], bool] = lambda: False,
) -> int:
    """Embed every missing document until *until* is true; return how many got vectors."""
    done = 0
    # An index that was removed or replaced needs no more vectors.
    while not until() and not index.is_replaced():
        some = index.embed(embedder, EMBED_BATCH)
        if not some:
            break
        done += some
        progress(some)
    return done


def embed_alone(
    indexes: Sequence[Index],
    embedder: Embedder,
    until: Callable[[], bool] = lambda: False,
    progress: Callable[[int], None] = no_progress,
) -> int | None:
    """Embed all missing documents; return `None` if another process is doing so."""
    done, busy = 0, False
    for index in indexes:
        if index.in_memory or until():
            continue  # There is no home (its lock would bring it back), or it cannot be written.
        with try_hold(index.home.embed_lock) as mine:
            if mine:
                done += embed_all(index, embedder, progress=progress, until=until)
            busy = busy or not mine
    return None if busy and not done else done


# --- The worker -----------------------------------------------------------------------------------


def is_worker_due(home: Home, now_s: float) -> bool:
    """Whether to start a worker for *home*; if so, mark this for other processes."""
    mark = home.embed_mark

    def started_lately() -> bool:
        return mark.exists() and abs(now_s - mark.stat().st_mtime) < WORKER_PAUSE_S

    # A home whose state folder cannot be written gets no worker.
    with suppress(OSError, CommonplaceError):
        if started_lately():
            return False
        with try_hold(home.embed_lock) as free:
            if free and not started_lately():
                touch(mark, now_s)
                return True
    return False


def start_worker(
    homes: Sequence[Home], settings: Mapping[str, Any]
) -> subprocess.Popen[bytes] | None:
    """Start a worker in a new session, at the lowest priority.

    It is given the *settings* of the embedder: they may come from another home than its own.
    """
    # Every cold recall imports this module, and few start a worker.
    import subprocess  # noqa: PLC0415

    from commonplace import processes  # noqa: PLC0415

    places = [(str(home.path), str(home.state_elsewhere or "")) for home in homes]
    try:
        process = processes.start(
            "commonplace.backlog", cwd=places[0][0], stdin=subprocess.PIPE, lowest_priority=True
        )
        threading.Thread(target=process.wait, daemon=True).start()  # Prevents a zombie.
        assert process.stdin is not None
        with process.stdin:
            process.stdin.write(json.dumps({"homes": places, "settings": dict(settings)}).encode())
    except OSError:
        return None  # A later answer tries again.
    return process


def run_worker(homes: Sequence[Home], settings: Settings | Mapping[str, Any]) -> None:
    """Embed the backlog of *homes*, then end; an error ends the worker too."""
    deadline = time.monotonic() + WORKER_S_MAX
    is_gone = gone_check(homes)
    service = EmbeddingService(settings, lambda: datetime.now(UTC))
    indexes = [EmbeddedIndex(home) for home in homes]
    for index in indexes:
        index.catch_up()
    embed_alone(indexes, service.require(), lambda: is_gone() or time.monotonic() > deadline)


def gone_check(homes: Sequence[Home]) -> Callable[[], bool]:
    """Return a function: whether one of *homes* is gone, or another folder is in its place."""
    found = [(home.path, _identity(home.path)) for home in homes]
    return lambda: any(one is None or _identity(path) != one for path, one in found)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        folder = path.stat()
    except OSError:
        return None
    return folder.st_dev, folder.st_ino


def _end_when(is_gone: Callable[[], bool]) -> None:
    """End this process when its homes are gone: the model, or a service, may work for long."""
    while not is_gone():
        time.sleep(GONE_POLL_S)
    os._exit(0)


def main() -> None:
    from commonplace import processes  # noqa: PLC0415  (see `start_worker`)

    with suppress(OSError):  # Linux may weigh sessions against each other before processes.
        Path("/proc/self/autogroup").write_text(str(processes.LOWEST_PRIORITY), "ascii")
    job = json.load(sys.stdin)
    homes = [
        Home(Path(path), state_elsewhere=Path(state) if state else None)
        for path, state in job["homes"]
    ]
    threading.Thread(target=_end_when, args=(gone_check(homes),), daemon=True).start()
    run_worker(homes, job["settings"])


if __name__ == "__main__":
    main()
