"""Maintenance: the work that keeps a home small and complete, which appending never does itself.

Every step is a function with a name in one table (`steps.STEPS`); one runner takes them in order,
under one lock for each home. `commonplace maintain`, an idle server and the end of a session run
them.
"""

from commonplace.maintenance.runner import Report, run
from commonplace.maintenance.steps import STEPS, Step, Turn

__all__ = ["STEPS", "Report", "Step", "Turn", "run"]
