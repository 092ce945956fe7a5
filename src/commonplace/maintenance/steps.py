"""The steps of maintenance. Each is bounded, can be killed at any moment, and goes on next time.

A step is a function of the memory and its turn. It returns what it did, or with `turn.dry_run` what
it would do, as values that JSON can hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace import injections
from commonplace.errors import EmbedderUnavailable
from commonplace.files import atomic
from commonplace.log.logs import files, list_repos
from commonplace.log.rotate import rotate
from commonplace.sessions import ingest, spool

if TYPE_CHECKING:
    from collections.abc import Callable

    from commonplace.memory import Memory

USAGE_TRIMMED_MAX = 10_000


class Turn(NamedTuple):
    """One run of a step: whether to change nothing, and when its time is over."""

    dry_run: bool
    is_over: Callable[[], bool]


class Step(NamedTuple):
    """A named piece of maintenance."""

    name: str
    about: str
    run: Callable[[Memory, Turn], dict[str, Any]]


def finish_erasures(memory: Memory, turn: Turn) -> dict[str, Any]:
    """Finish erasures that were interrupted."""
    from commonplace import erasure  # noqa: PLC0415 (it loads NumPy, a server that starts has not)

    if turn.dry_run:
        return {"unfinished": len(erasure.pending(memory.homes))}
    receipts = erasure.finish(memory.homes)
    left = [f"text left in {name}" for receipt in receipts for name in receipt.left_in]
    return {"finished": len(receipts), **({"left": "; ".join(left)} if left else {})}


def ingest_spool(memory: Memory, turn: Turn) -> dict[str, Any]:
    """Ingest the events in the spool."""
    if turn.dry_run:
        return {"waiting": len(spool.list_names(memory.home.spool_folder))}
    return {"events": ingest.drain(memory, is_over=turn.is_over)}


def close_sessions(memory: Memory, turn: Turn) -> dict[str, Any]:
    """Write the episodes of sessions that ended without an end event, and drop old drafts."""
    if turn.dry_run:
        return {"sessions": len(ingest.idle_sessions(memory))}
    with ingest.drain_lock(memory.home, 0.0) as is_held:
        # The process that drains now also writes the sessions.
        return {"sessions": ingest.tidy(memory) if is_held else 0}


def close_drafts(memory: Memory, turn: Turn) -> dict[str, Any]:
    """Write the episodes that were started and not ended, and drop old drafts."""
    from commonplace.learn import drafts  # noqa: PLC0415 (most homes have none)

    return {"episodes": drafts.tidy(memory, dry_run=turn.dry_run)}


def prune_episodes(memory: Memory, turn: Turn) -> dict[str, Any]:
    """Summarize the episodes that are some days old, and archive the old ones."""
    from commonplace.learn.pruning import prune  # noqa: PLC0415 (as above)

    return prune(memory, dry_run=turn.dry_run, is_over=turn.is_over)


def merge_records(memory: Memory, turn: Turn) -> dict[str, Any]:
    """Merge the patterns, anti-patterns and lessons that say the same."""
    from commonplace.learn.merging import merge  # noqa: PLC0415 (as above)

    return merge(memory, dry_run=turn.dry_run, is_over=turn.is_over)


def propose_skills(memory: Memory, turn: Turn) -> dict[str, Any]:
    """Propose in the inbox, as skills, what several successful episodes did in the same order."""
    from commonplace.learn import routines  # noqa: PLC0415 (as above)
    from commonplace.sessions.intents import intents  # noqa: PLC0415

    return routines.propose(memory, intents, dry_run=turn.dry_run)


def rotate_logs(memory: Memory, turn: Turn) -> dict[str, Any]:
    """Move the oldest records of long logs to their archives."""
    home, settings = memory.home, memory.settings
    rotated = []
    for repo in list_repos(home):
        if turn.is_over():
            break
        done = rotate(
            home,
            repo,
            lines_max=settings["rotation.lines_max"],
            move=settings["rotation.move"],
            dry_run=turn.dry_run,
        )
        if done is not None and done.lines_moved:
            rotated.append(done._asdict())
    return {"rotated": rotated}


def merge_index(memory: Memory, turn: Turn) -> dict[str, Any]:
    """Bring the index up to date and merge its new documents."""
    engine = memory.engine()
    waiting = sum(status.waiting for status in engine.status())
    if turn.dry_run:
        return {"waiting": waiting}
    engine.merge()
    return {"merged": waiting - sum(status.waiting for status in engine.status())}


def embed_backlog(memory: Memory, turn: Turn) -> dict[str, Any]:
    """Embed the memories that have no vectors yet."""
    engine = memory.engine()
    missing = engine.vectors.missing()
    if turn.dry_run or engine.embedding.is_off or not missing:
        return {"missing": 0 if engine.embedding.is_off else missing}
    try:
        done = engine.vectors.embed_alone(turn.is_over)
    except EmbedderUnavailable as error:
        return {"missing": missing, "reason": str(error)}
    return {"embedded": done or 0, "missing": engine.vectors.missing()}


def consolidate(memory: Memory, turn: Turn) -> dict[str, Any]:
    """Make patterns of what the episodes and lessons that are new have in common.

    At the first time all are, whatever their age: the step `episodes` puts old ones away.
    """
    if not memory.settings["learn.background"]:
        return {}
    from commonplace.learn import consolidation  # noqa: PLC0415 (as above)

    report = consolidation.consolidate(
        memory, everything=True, dry_run=turn.dry_run, is_over=turn.is_over, wait_s_max=0.0
    )
    return {
        "made": len(report.made),
        "changed": len(report.changed),
        "held_back": len(report.held_back),
        **({"batch": report.batch} if report.batch and not turn.dry_run else {}),
    }


def suggest_links(memory: Memory, turn: Turn) -> dict[str, Any]:
    """Propose links and contradictions of the records that are new since the last run."""
    from commonplace.learn import contradictions  # noqa: PLC0415 (it loads NumPy, as above)

    if not memory.settings["maintenance.suggestions"]:
        return {}
    return dict(contradictions.run(memory, dry_run=turn.dry_run, is_over=turn.is_over))


def link_episodes(memory: Memory, turn: Turn) -> dict[str, Any]:
    """Link new episodes with the nodes that they name and the records that were rated meanwhile."""
    from commonplace.graph import observations  # noqa: PLC0415 (as above)

    return {"links": observations.link_new(memory, dry_run=turn.dry_run, is_over=turn.is_over)}


def trim_usage(memory: Memory, turn: Turn) -> dict[str, Any]:
    """Drop the usage counts of records that no longer exist, and the oldest injections."""
    usage = memory.engine().usage.nearest
    if usage is not None and not turn.dry_run:
        injections.trim(usage)
    return {"dropped": memory.engine().trim_usage(0 if turn.dry_run else USAGE_TRIMMED_MAX)}


def remove_leftovers(memory: Memory, turn: Turn) -> dict[str, Any]:
    """Remove temporary files of processes that were killed while they wrote."""
    from commonplace.index import removal  # noqa: PLC0415 (as above)

    found = [path for path in files(memory.home) if atomic.is_leftover(path)]
    found += removal.set_aside(memory.home)
    if not turn.dry_run:
        for path in found:
            if path.is_file():
                path.unlink(missing_ok=True)
        removal.remove_set_aside(memory.home)
    return {"files": len(found)}


STEPS: dict[str, Step] = {
    step.name: step
    for step in (
        # First: the others would copy what must go.
        Step("erasures", "finish erasures that were interrupted", finish_erasures),
        Step("spool", "ingest the events of hooks", ingest_spool),
        Step("sessions", "write sessions that ended without an end event", close_sessions),
        Step("drafts", "write episodes that were started and not ended", close_drafts),
        Step("rotation", "move the oldest records of long logs to the archive", rotate_logs),
        Step("index", "bring the index up to date", merge_index),
        Step("embedding", "embed memories that have no vectors", embed_backlog),
        Step("learning", "make patterns of what tasks have in common", consolidate),
        Step("skills", "propose what several episodes did as skills", propose_skills),
        # After learning: what a new pattern rests on stays, and a new pattern is compared at once.
        Step(
            "episodes", "summarize old episodes, and archive what nothing rests on", prune_episodes
        ),
        Step("merging", "merge patterns and lessons that say the same", merge_records),
        Step("suggestions", "propose links and contradictions of new records", suggest_links),
        Step("observations", "link new episodes with what they involved", link_episodes),
        Step("usage", "drop usage counts of records that no longer exist", trim_usage),
        Step("leftovers", "remove temporary files of killed processes", remove_leftovers),
    )
}
