"""Traces: an operation on the memory has the name that OpenTelemetry gives it, and nothing of what was asked."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from mcp import Client
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from commonplace.memory import Memory
from commonplace.server.build import build_server


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    return exporter


def test_a_recall_is_a_search_of_memory(own_home: Path, spans: InMemorySpanExporter) -> None:
    with Memory.open(own_home) as memory:
        server = build_server(lambda _scope="read": memory, ["core"])

        async def ask() -> None:
            async with Client(server) as client:
                fields = {"lesson": "the proxy needs a restart", "repo": "app"}
                await client.call_tool("remember", fields)
                await client.call_tool("recall", {"text": "proxy restart", "repo": "app"})

        anyio.run(ask)

    found = {
        str(span.name): dict(span.attributes or {})
        for span in spans.get_finished_spans()
        if "gen_ai.memory.store.id" in (span.attributes or {})
    }
    assert set(found) == {"create_memory commonplace", "search_memory commonplace"}
    searched = found["search_memory commonplace"]
    assert searched["gen_ai.operation.name"] == "search_memory"
    assert searched["gen_ai.memory.record.count"] == 1
    assert not any("proxy" in str(value) for span in found.values() for value in span.values())
