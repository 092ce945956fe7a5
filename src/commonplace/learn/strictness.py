"""How sure an automatic answer must be: nobody asked, so what is unrelated only disturbs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from commonplace.recall.hits import Hit

# In a store of few memories nearly any word that a prompt shares with one seems rare, so meaning
# has its own minimum. Measured: of 40 prompts unrelated to 2,357 memories, 16 were given some
# without it and 5 with it; of 146 related prompts, 127 and 123 were given the right one.
# (Relevance was half words and half meaning then.)
MEANING_MIN = 0.35


def is_relevant(hit: Hit, relevance_min: float) -> bool:
    """Whether *hit* is likely enough to answer, also by its meaning where that is known."""
    why = hit.why
    if why is None or why.relevance is None:
        return True
    is_meant = why.meaning is None or why.meaning >= min(MEANING_MIN, relevance_min)
    return is_meant and why.relevance >= relevance_min


def is_helpful(hit: Hit, session: str = "") -> bool:
    """Whether it is knowledge, or an episode that went well, of another session than this one."""
    fields = hit.record.fields
    return hit.kind != "episode" or (
        fields.get("outcome") == "success" and (not session or fields.get("task_id") != session)
    )
