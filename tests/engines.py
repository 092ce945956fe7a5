"""The engines that keep an index. Each passes tests/test_index_contract.py; add a new one here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.index.embedded.index import EmbeddedIndex

if TYPE_CHECKING:
    from collections.abc import Callable

    from commonplace.index.ports import Index
    from commonplace.where.home import Home

ENGINES: dict[str, Callable[[Home], Index]] = {"embedded": EmbeddedIndex}
