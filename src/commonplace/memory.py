"""`Memory`, the library's interface: every surface (commands, server, hooks) goes through it."""

from __future__ import annotations

from commonplace.recaller import Recaller


class Memory(Recaller):
    """The memory that applies in a folder: its own home, if there is one, and the user's.

    `Writer`, `RecordChanger` and `Recaller` write, change and recall.
    """
