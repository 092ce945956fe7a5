"""The pack `git-core`: its form, its questions, and every snippet in a scratch repository."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tools import check_pack_shell, pack_sources

from knowledge_packs import needs_linux

if TYPE_CHECKING:
    from tools.pack_sources import SourceNode

PACK = "git-core"


def test_shellcheck_has_nothing_to_say() -> None:
    assert check_pack_shell.shellcheck(pack_sources.read(PACK)) == []


@needs_linux
@pytest.mark.parametrize(
    "node", check_pack_shell.checked_nodes(PACK), ids=lambda node: str(node.id)
)
def test_a_snippet_does_what_its_node_says(node: SourceNode) -> None:
    assert check_pack_shell.problems(node) == []
