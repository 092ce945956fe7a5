"""What the tests of the shipped packs share."""

from __future__ import annotations

import shutil
import sys
import tomllib
from typing import Any

import pytest
from tools import pack_sources

# Snippets say themselves where they need GNU tools; they are run where these are the usual ones.
needs_linux = pytest.mark.skipif(
    sys.platform != "linux" or not (shutil.which("bash") and shutil.which("git")),
    reason="the snippets are run on Linux, with bash and git",
)


def asked_of(pack: str) -> dict[str, list[dict[str, Any]]]:
    """Return the questions and tasks that the nodes of *pack* are to answer."""
    text = (pack_sources.PACKS / pack / "questions.toml").read_text("utf-8")
    return tomllib.loads(text)
