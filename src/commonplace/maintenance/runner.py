"""Run the steps of maintenance in order, under one lock for each home."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from commonplace.errors import CommonplaceError, UsageError
from commonplace.files.lock import try_hold
from commonplace.maintenance.steps import STEPS, Turn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from commonplace.maintenance.steps import Step
    from commonplace.memory import Memory

# How long one step may take; the rest is done next time.
STEP_S_MAX = 60.0


@dataclass
class Report:
    """The result of a run of maintenance, by step."""

    home: str
    dry_run: bool = False
    # Another process was doing the same, so nothing was done.
    busy: bool = False
    steps: dict[str, dict[str, Any]] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as `commonplace maintain --json` prints it."""
        return {
            "home": self.home,
            "dry_run": self.dry_run,
            "busy": self.busy,
            "steps": self.steps,
        }


def run(
    memory: Memory,
    steps: Sequence[str] | None = None,
    *,
    dry_run: bool = False,
    step_s_max: float = STEP_S_MAX,
    is_over: Callable[[], bool] = lambda: False,
) -> Report:
    """Run the named *steps*, or all, on the nearest home of *memory*.

    A step that fails is reported, and the next one still runs. Each takes *step_s_max* at
    most; when *is_over* is true, no more is done.
    """
    unknown = [name for name in steps or () if name not in STEPS]
    if unknown:
        raise UsageError(f"there is no step `{unknown[0]}`", f"choose among {', '.join(STEPS)}")
    report = Report(str(memory.home.path), dry_run)
    if not memory.home.path.is_dir():
        return report  # There is no home yet, and nothing to do.
    with try_hold(memory.home.maintenance_lock) as mine:
        if not mine:
            report.busy = True
            return report
        for name, step in STEPS.items():
            if (steps is None or name in steps) and not is_over():
                turn = Turn(dry_run, _over_or_late(is_over, step_s_max))
                report.steps[name] = _run_step(step, memory, turn)
        if steps is None and not dry_run and not is_over():
            memory.home.maintenance_mark.touch(mode=0o600)
    return report


def _over_or_late(is_over: Callable[[], bool], seconds: float) -> Callable[[], bool]:
    """Return a function that is true when *is_over* is, or when *seconds* have passed."""
    deadline = time.monotonic() + seconds
    return lambda: is_over() or time.monotonic() > deadline


def _run_step(step: Step, memory: Memory, turn: Turn) -> dict[str, Any]:
    try:
        return step.run(memory, turn)
    except CommonplaceError as error:
        return {"error": str(error)}
