"""Commonplace: memory for coding agents, in plain files.

from commonplace import Memory

with Memory.open() as memory:
    memory.log(event_type="error", lesson="always verify ownership before npm operations")
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from commonplace.errors import CommonplaceError
    from commonplace.memory import Memory
    from commonplace.records import Record

__all__ = ["CommonplaceError", "Memory", "Record", "__version__"]

__version__ = "0.1.0"

# Loaded on first use: a hook imports this package too, and must not pay for what it does not need.
_HOMES = {"CommonplaceError": "errors", "Memory": "memory", "Record": "records"}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 (see above)

    return getattr(import_module(f"commonplace.{_HOMES[name]}"), name)
