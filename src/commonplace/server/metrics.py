"""Metrics in the Prometheus text format, where the `metrics` extra is installed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

# Warm answers take a few milliseconds; the default buckets begin at five.
BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
ROUTES = ("/mcp", "/health", "/metrics")
_DAYS = "in the last 7 days"
# What the page shows of the contexts that were built, by its name in `stats --context --json`.
_CONTEXT = {
    "built": ("contexts_built", f"Contexts built {_DAYS}."),
    "coverage": ("context_coverage", f"Share of contexts with a node of their domain {_DAYS}."),
    "drift": ("context_drift", f"Mean distance of the best nodes from the question {_DAYS}."),
    "nodes_now": ("working_set_nodes", "Nodes in the working set now."),
    "mean_resonance_now": ("working_set_resonance", "Mean resonance of the working set now."),
}
MISSING = "metrics need the `metrics` extra: install `commonplace[metrics]`"


class Metrics:
    """Counts and durations of requests by route, and the page that shows them."""

    def __init__(
        self,
        operations: Callable[[], frozenset[str]],
        in_flight: Callable[[], int],
        worth: Callable[[], dict[str, Any]],
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
        self._worth = worth
        self._by_source = {
            "injections": Gauge(
                "commonplace_injections", f"Times memories were given {_DAYS}.", ("source",), **more
            ),
            "tokens": Gauge(
                "commonplace_injected_tokens", f"Tokens given {_DAYS}.", ("source",), **more
            ),
        }
        self._by_frame = Gauge(
            "commonplace_frame_tokens", f"Tokens of each frame {_DAYS}.", ("frame",), **more
        )
        self._rated = Gauge(
            "commonplace_feedback_after",
            f"Feedback on memories after they were given {_DAYS}.",
            ("outcome",),
            **more,
        )
        self._checks = Gauge(
            "commonplace_checks_after",
            f"Tests and builds after memories were given {_DAYS}.",
            ("result",),
            **more,
        )
        self._tasks = Gauge(
            "commonplace_tasks",
            f"Tasks with and without memories, by how they ended {_DAYS}.",
            ("memories", "outcome"),
            **more,
        )
        self._context = {
            key: Gauge(f"commonplace_{name}", text, **more)
            for key, (name, text) in _CONTEXT.items()
        }

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

        self._set_worth(self._worth())
        return bytes(generate_latest(self._registry))

    def _set_worth(self, found: dict[str, Any]) -> None:
        """Show what was given to agents, as `stats --context` does."""
        for gauge in (*self._by_source.values(), self._by_frame):
            gauge.clear()
        for source, figures in found["cost"]["by_source"].items():
            for name, gauge in self._by_source.items():
                gauge.labels(source).set(figures[name])
        for frame, tokens in found["cost"]["by_frame"].items():
            self._by_frame.labels(frame).set(tokens)
        self._set_utility(found["utility"])
        for key, gauge in self._context.items():
            value = found["context"][key]
            gauge.set(math.nan if value is None else value)

    def _set_utility(self, found: dict[str, Any]) -> None:
        """Show what followed: feedback, tests and builds, and how tasks ended."""
        for outcome, count in found["rated"].items():
            self._rated.labels(outcome).set(count)
        for result, count in found["tests_after"].items():
            self._checks.labels(result).set(count)
        for memories in ("with", "without"):
            tasks = found[f"tasks_{memories}"]
            ended = {name: tasks[name] for name in ("succeeded", "failed")}
            ended["other"] = tasks["tasks"] - sum(ended.values())
            for outcome, count in ended.items():
                self._tasks.labels(memories, outcome).set(count)


def create(
    operations: Callable[[], frozenset[str]],
    in_flight: Callable[[], int],
    worth: Callable[[], dict[str, Any]],
) -> Metrics | None:
    """Return the metrics, or `None` if the extra is not installed."""
    try:
        return Metrics(operations, in_flight, worth)
    except ImportError:
        return None
