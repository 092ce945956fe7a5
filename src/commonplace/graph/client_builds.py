"""Contexts that a client built: noted as given to an agent, as those that are built here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.compose.frames import KINDS, KNOWLEDGE, Frames
from commonplace.compose.hdod import as_json
from commonplace.graph import resonance

if TYPE_CHECKING:
    from commonplace.graph.contexts import SavedContext
    from commonplace.recaller import Recaller

_KEYS = {kind: key for key, kind in KINDS.items()}


def note_build(memory: Recaller, saved: SavedContext) -> None:
    """Write down that an agent was given the context *saved*, if a client has just built it."""
    if not (saved.is_new and saved.is_built):
        return
    frames = _frames(saved)
    working = resonance.read(memory)
    memory.note_injection(
        "context",
        frames.tokens(),
        saved.nodes,
        saved.task_id,
        saved.session,
        frames=frames.tokens_by_frame(),
        repo=saved.repo,
        covered=saved.covered,
        drift=saved.drift,
        nodes=len(working.rows),
        resonance=working.mean_value(),
    )


def _frames(saved: SavedContext) -> Frames:
    data = {_KEYS[one["kind"]]: one.get("data") for one in saved.frames if one["kind"] in _KEYS}
    knowledge = data.pop(KNOWLEDGE, None) or {}
    return Frames(
        {key: text if isinstance(text, str) else as_json(text) for key, text in data.items()},
        knowledge if isinstance(knowledge, dict) else {"": knowledge},
    )
