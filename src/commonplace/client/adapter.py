"""What the orchestrator asks of a memory server: the seven tools, as methods.

A program with its own connection to a server derives from `KomServerAdapter` and writes `call`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

from commonplace.client import seven

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class KomServerAdapter(ABC):
    """A memory server with the seven tools."""

    @abstractmethod
    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Any:  # noqa: ANN401 (JSON)
        """Call one of the seven tools, by its short name, and return the JSON of its result.

        Raises `NoAnswer` if it is not known whether the call arrived, and `ToolRefused` if the
        server says that it did not do what was asked.
        """

    @property
    def is_open(self) -> bool:
        """Whether `async with` has opened a connection that is kept."""
        return False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        return None

    async def arguments_of(self, _tool: str) -> frozenset[str]:
        """Return the names of a tool's arguments, as far as the server says them."""
        return frozenset()

    async def search_memory(
        self,
        query: str,
        k: int = 32,
        filters: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 (JSON)
        more = {"filters": dict(filters)} if filters else {}
        return await self.call(seven.SEARCH, {"query": query, "k": k, **more})

    async def recall_context(
        self, ident: str, k: int = 32, scope: str = "task", repo: str = ""
    ) -> Any:  # noqa: ANN401 (JSON)
        more = await self._repo(seven.RECALL, repo)
        return await self.call(seven.RECALL, {"scope": scope, "id": ident, "k": k, **more})

    async def save_context(
        self,
        task_id: str,
        frames: Sequence[Mapping[str, Any]],
        **more: Any,  # noqa: ANN401 (JSON)
    ) -> Any:  # noqa: ANN401 (JSON)
        return await self.call(
            seven.SAVE, {"task_id": task_id, "frames": [*map(dict, frames)], **more}
        )

    async def upsert_memory(
        self, nodes: Sequence[Mapping[str, Any]], *, merge: bool = True, repo: str = ""
    ) -> Any:  # noqa: ANN401 (JSON)
        more = await self._repo(seven.UPSERT, repo)
        return await self.call(seven.UPSERT, {"nodes": [*map(dict, nodes)], "merge": merge, **more})

    async def project_snapshot(self, *, include_memory: bool = True, repo: str = "") -> Any:  # noqa: ANN401 (JSON)
        more = await self._repo(seven.SNAPSHOT, repo)
        return await self.call(seven.SNAPSHOT, {"include_memory": include_memory, **more})

    async def _repo(self, tool: str, repo: str) -> dict[str, str]:
        """Return *repo* as an argument, if the server's tool takes it."""
        return {"repo": repo} if repo and "repo" in await self.arguments_of(tool) else {}

    async def export_encrypted(self, selection: str, out: str) -> Any:  # noqa: ANN401 (JSON)
        return await self.call(seven.EXPORT, {"selection": selection, "out": out})

    async def feedback(self, ident: str, outcome: str) -> bool:
        """Rate a node, if the server has a tool for that; return whether it has noted it."""
        if not await self.arguments_of(seven.RATE) >= seven.RATING:
            return False
        await self.call(seven.RATE, {"id": ident, "outcome": outcome})
        return True

    async def import_encrypted(self, pack: str) -> Any:  # noqa: ANN401 (JSON)
        return await self.call(seven.IMPORT, {"pack": pack})
