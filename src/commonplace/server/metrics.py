"""Metrics in the Prometheus text format, where the `metrics` extra is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

# Warm answers take a few milliseconds; the default buckets begin at five.
BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
ROUTES = ("/mcp", "/health", "/metrics")
MISSING = "metrics need the `metrics` extra: install `commonplace[metrics]`"


class Metrics:
    """Counts and durations of requests by route, and the page that shows them."""

    def __init__(
        self, operations: Callable[[], frozenset[str]], in_flight: Callable[[], int]
    ) -> None:
        from prometheus_client import (  # noqa: PLC0415
            CollectorRegistry,
            Counter,
            Gauge,
            Histogram,
            ProcessCollector,
        )

        self._operations = operations
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        more: dict[str, Any] = {"registry": self._registry}
        self._requests = Counter(
            "commonplace_requests", "Requests.", ("method", "route", "status"), **more
        )
        self._seconds = Histogram(
            "commonplace_request_seconds", "Seconds.", ("route",), buckets=BUCKETS_S, **more
        )
        Gauge("commonplace_requests_in_flight", "Requests now.", **more).set_function(in_flight)

    def observe(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count one request. All unknown paths are one route, since clients can send any path."""
        route = path if path in ROUTES else "other"
        if path.startswith("/api/v1/"):
            operation = path.split("/")[3]
            route = f"/api/v1/{operation}" if operation in self._operations() else "other"
        known = method if method in {"GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT"} else "other"
        self._requests.labels(known, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def page(self) -> bytes:
        from prometheus_client import generate_latest  # noqa: PLC0415

        return bytes(generate_latest(self._registry))


def create(
    operations: Callable[[], frozenset[str]], in_flight: Callable[[], int]
) -> Metrics | None:
    """Return the metrics, or `None` if the extra is not installed."""
    try:
        return Metrics(operations, in_flight)
    except ImportError:
        return None
