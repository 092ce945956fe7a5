"""The orchestrator for programs without an event loop: each call waits for its result."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from anyio.from_thread import start_blocking_portal

from commonplace.client.orchestrator import MemoryOrchestrator

if TYPE_CHECKING:
    from collections.abc import Callable

    from commonplace.client.adapter import KomServerAdapter
    from commonplace.client.likeness import Embed
    from commonplace.client.pending import Pending


class BlockingOrchestrator:
    """Use it in a `with` block. It has every method of `MemoryOrchestrator`, without `await`."""

    def __init__(
        self,
        server: KomServerAdapter,
        embed: Embed | None = None,
        **more: Any,  # noqa: ANN401
    ) -> None:
        """Take what `MemoryOrchestrator` takes."""
        self._make = partial(MemoryOrchestrator, server, embed, **more)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._portal = stack.enter_context(start_blocking_portal())
            made = self._make()
            stack.callback(made.close)
            self._memory = stack.enter_context(self._portal.wrap_async_context_manager(made))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stack.close()

    @property
    def working_set(self) -> dict[str, float]:
        return self._memory.working_set

    @property
    def pending(self) -> list[Pending]:
        return self._memory.pending

    @property
    def refused(self) -> list[Pending]:
        return self._memory.refused

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(MemoryOrchestrator, name)

        def call(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401
            async def run() -> Any:  # noqa: ANN401
                return await method(self._memory, *arguments, **named)

            return self._portal.call(run)

        return call
