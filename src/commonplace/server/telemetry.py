"""Traces of what is done with the memory, by the names that OpenTelemetry has for it.

The MCP library opens a span for each call of a tool. In it, a span of ours says which operation on
the memory that was, and how many memories it was about. Without an exporter these cost nothing.
What was asked and what was found is never in them.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from opentelemetry import trace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.trace import Span

# The one store is this machine's memory; its path would tell who the user is.
STORE = "commonplace"
SEARCH, CREATE, UPSERT, UPDATE, DELETE = (
    "search_memory",
    "create_memory",
    "upsert_memory",
    "update_memory",
    "delete_memory",
)
_COUNT = "gen_ai.memory.record.count"


@contextmanager
def memory_span(operation: str) -> Iterator[Span]:
    """Open the span of an operation; `count` says how many memories it was about."""
    with trace.get_tracer("commonplace").start_as_current_span(
        f"{operation} {STORE}",
        attributes={"gen_ai.operation.name": operation, "gen_ai.memory.store.id": STORE},
    ) as span:
        yield span


def count(span: Span, records: int) -> None:
    """Say how many memories the operation found or wrote."""
    span.set_attribute(_COUNT, records)
