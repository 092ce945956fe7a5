"""How sure an automatic answer must be: nobody asked, so what is unrelated only disturbs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from commonplace.recall.hits import Hit

# Relevance by words alone is lower than relevance by words and meaning together.
WORDS_ONLY_SHARE = 0.75
# A long memory contains the common words of any prompt, so meaning has its own minimum.
# Measured: of 40 prompts unrelated to 2,357 memories, 16 were given some without it and 5 with it;
# of 146 related prompts, 127 and 123 were given the right one. (Relevance was half words and half
# meaning then. With more meaning in it, as now: 1 of 30 instead of none; 77 % of 217 as before.)
MEANING_MIN = 0.35


def is_relevant(hit: Hit, relevance_min: float) -> bool:
    """Whether *hit* is relevant enough, also by its meaning where that is known."""
    why = hit.why
    if why is None or why.meaning is None or why.relevance is None:
        return True  # Not embedded: the recall has judged it by its words.
    return why.relevance >= relevance_min and why.meaning >= min(MEANING_MIN, relevance_min)


def is_helpful(hit: Hit, session: str = "") -> bool:
    """Whether it is knowledge, or an episode that went well, of another session than this one."""
    fields = hit.record.fields
    return hit.kind != "episode" or (
        fields.get("outcome") == "success" and (not session or fields.get("task_id") != session)
    )
