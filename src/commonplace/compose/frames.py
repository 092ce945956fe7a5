"""Context frames: the parts of an agent's prompt, always in the same order and within a budget.

Identity, problem, knowledge, episodic, constraints, scratchpad. The knowledge frame is a dictionary
of nodes (`hdod.py`) with at most its share of the budget; the others are lines of text. Whichever
way the frames are printed, as JSON or as Markdown, the text has at most as many tokens as the
budget. Pure: the server and the client library use the same functions.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.compose import tokens
from commonplace.compose.hdod import as_json, cost, cut, materialise
from commonplace.compose.lines import inside
from commonplace.errors import UsageError
from commonplace.foreign import FRAME, longer_fence

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from commonplace.compose.hdod import Shown

# In fewer tokens not even the beginning of a question fits.
BUDGET_MIN = 20
BUDGET_MAX = 200_000
KNOWLEDGE = "knowledgeHDoD"
# The frames by their keys, in their order, with their headings.
TITLES = {
    "identity": "Identity",
    "problem": "Problem",
    KNOWLEDGE: f"Knowledge ({FRAME})",
    "episodic": "Episodic",
    "constraints": "Constraints",
    "scratchpad": "Scratchpad",
}
KEYS = tuple(TITLES)
TEXT_KEYS = tuple(key for key in KEYS if key != KNOWLEDGE)
# The types of nodes that the knowledge frame shows; the others have frames of their own.
KNOWLEDGE_TYPES = ("concept", "skill", "fact", "snippet", "pattern")
# The share of what knowledge leaves that each frame is sure of. What one does not need goes to the
# others in the order of `_SPARE`.
_SHARES = {
    "problem": 0.35,
    "constraints": 0.2,
    "episodic": 0.2,
    "identity": 0.15,
    "scratchpad": 0.1,
}
_SPARE = ("problem", "constraints", "episodic", "identity", "scratchpad")
# In fewer tokens, the beginning of a line says nothing.
LINE_TOKENS_MIN = 6
# With a smaller budget, frames without content are left out: their keys would cost too much of it.
ALL_KEYS_BUDGET_MIN = 120
# What a context is saved as: the kind and format of each frame (seed names of the tool
# `save_context`).
KINDS = {key: "knowledge" if key == KNOWLEDGE else key for key in KEYS}
FORMATS = {key: "hdod.json" if key == KNOWLEDGE else "markdown" for key in KEYS}
# One more block of a saved context, which says what save it is: `id`, and whether it was `built`
# from the nodes `nodes`. A program that repeats a save after a lost answer gives the same id.
SAVE_KIND, SAVE_FORMAT = "save", "save.json"


class Material(NamedTuple):
    """What frames are made of: rendered lines, the most important first."""

    problem: Sequence[str]
    identity: Sequence[str] = ()
    knowledge: Sequence[Shown] = ()
    episodic: Sequence[str] = ()
    constraints: Sequence[str] = ()
    scratchpad: Sequence[str] = ()
    # The words that long texts are shortened for.
    query: str = ""


@dataclass(frozen=True, slots=True)
class Frames:
    """The frames of one context."""

    # The text of each frame but knowledge, by its key.
    texts: Mapping[str, str] = field(default_factory=dict)
    knowledge: dict[str, Any] = field(default_factory=dict)
    # The ids of the nodes in the knowledge frame, the best first.
    ids: tuple[str, ...] = ()
    # Whether frames without content have a key of their own.
    has_all_keys: bool = True

    def as_dict(self) -> dict[str, Any]:
        """Return the frames by their keys, in their order."""
        found = {
            key: self.knowledge if key == KNOWLEDGE else self.texts.get(key, "") for key in KEYS
        }
        return {key: value for key, value in found.items() if value or self.has_all_keys}

    def text(self, key: str) -> str:
        """Return the text of a frame; of knowledge, its JSON."""
        if key == KNOWLEDGE:
            return as_json(self.knowledge) if self.knowledge else ""
        return self.texts.get(key, "")

    def as_json(self) -> str:
        """Return the frames as one line of JSON."""
        return as_json(self.as_dict())

    def as_markdown(self) -> str:
        """Return the frames that have content, each below its heading."""
        return "\n\n".join(
            f"## {title}\n\n{self._markdown(key)}"
            for key, title in TITLES.items()
            if self.text(key)
        )

    def _markdown(self, key: str) -> str:
        if key != KNOWLEDGE:
            return self.text(key)
        # A line for each node at the top: a reader finds one sooner, and it costs next to nothing.
        lines = [f"{as_json(name)}:{as_json(entry)}" for name, entry in self.knowledge.items()]
        text = "{" + ",\n".join(lines) + "}"
        fence = longer_fence(text, "```")
        return f"{fence}json\n{text}\n{fence}"

    def tokens(self) -> int:
        """Return the tokens of the longer of the two ways to print the frames."""
        return max(tokens.count(self.as_json() + "\n"), tokens.count(self.as_markdown() + "\n"))

    def tokens_by_frame(self) -> dict[str, int]:
        """Return the tokens of the content of each frame."""
        return {key: tokens.count(self.text(key)) for key in KEYS}

    def as_blocks(self) -> list[dict[str, Any]]:
        """Return the frames that have content as `save_context` takes them."""
        return as_blocks(self.as_dict())


def as_blocks(frames: dict[str, Any]) -> list[dict[str, Any]]:
    """Return frames by their keys as a list of blocks with kind, format and data."""
    return [
        {"kind": KINDS[key], "format": FORMATS[key], "data": frames[key]}
        for key in KEYS
        if frames.get(key)
    ]


def check_budget(budget_tokens: int) -> None:
    """Raise `UsageError` for a budget that is too small to say anything in, or too large."""
    if not isinstance(budget_tokens, int):
        raise UsageError(f"the budget is `{budget_tokens}`, not a number of tokens")
    if not BUDGET_MIN <= budget_tokens <= BUDGET_MAX:
        raise UsageError(
            f"a context of {budget_tokens:,} tokens is not between {BUDGET_MIN} and {BUDGET_MAX:,}",
            "a prompt usually has room for 1,000 to 4,000",
        )


def compose(material: Material, budget_tokens: int, knowledge_share: float = 0.5) -> Frames:
    """Return the frames of *material*, which have at most *budget_tokens*.

    Knowledge has at most *knowledge_share* of them.
    """
    check_budget(budget_tokens)
    lines: dict[str, Any] = {key: list(map(inside, _lines(material, key))) for key in TEXT_KEYS}
    material = material._replace(**lines)
    has_all_keys = budget_tokens >= ALL_KEYS_BUDGET_MIN
    keys = _keys_that_fit(material, budget_tokens)
    room = budget_tokens - _skeleton_cost(KEYS if has_all_keys else keys)
    tree: dict[str, Any] = {}
    ids: list[str] = []
    if KNOWLEDGE in keys:
        share = min(int(budget_tokens * knowledge_share), room - LINE_TOKENS_MIN)
        tree, ids = materialise(material.knowledge, max(0, share), material.query)
        room -= cost(tree) if tree else 0
    frames = Frames(_fill(material, keys, room), tree, tuple(ids), has_all_keys)
    return _shortened(frames, material, budget_tokens)


def _keys_that_fit(material: Material, budget_tokens: int) -> list[str]:
    """Return the keys of the frames that have content.

    With a small budget, those that matter least are left out: keys and headings may have a third.
    """
    keys = [key for key in KEYS if _lines(material, key)]
    for key in ("scratchpad", "identity", "episodic", "constraints", KNOWLEDGE):
        if _skeleton_cost(keys) * 3 > budget_tokens and key in keys:
            keys.remove(key)
    return keys


def _skeleton_cost(keys: Sequence[str]) -> int:
    """Return what keys and headings cost, whichever way the frames are printed."""
    fence = "```json\n\n```\n" if KNOWLEDGE in keys else ""
    headings = "".join(f"## {TITLES[key]}\n\n\n\n" for key in keys) + fence
    return max(tokens.count(as_json(dict.fromkeys(keys, ""))), tokens.count(headings)) + 1


def _lines(material: Material, key: str) -> Sequence[Any]:
    return material.knowledge if key == KNOWLEDGE else getattr(material, key)


def _fill(material: Material, keys: Sequence[str], room: int) -> dict[str, str]:
    """Return the texts of all frames but knowledge, within *room* together."""
    kept: dict[str, list[str]] = {key: [] for key in TEXT_KEYS}
    left = room
    for is_second in (False, True):
        for key in [key for key in _SPARE if key in keys]:
            lines = list(_lines(material, key))[len(kept[key]) :]
            limit = left if is_second else min(left, int(room * _SHARES[key]))
            # Of the question, the beginning still says what it is about.
            used = _take(kept[key], lines, limit, may_cut=is_second and key == "problem")
            left -= used
    return {key: "\n".join(lines).strip("\n") for key, lines in kept.items()}


def _take(kept: list[str], lines: Sequence[str], tokens_max: int, *, may_cut: bool) -> int:
    """Add *lines* to *kept* as long as they fit, and return what they cost.

    The first that does not fit ends the frame, or is cut if nothing stands before it.
    """
    left = tokens_max
    for line in lines:
        needed = cost(line)
        if needed > left:
            is_first = not kept
            short = cut(line, left) if may_cut and is_first and left >= LINE_TOKENS_MIN else ""
            if short:
                kept.append(short)
                left -= cost(short)
            break
        kept.append(line)
        left -= needed
    return tokens_max - left


def _shortened(frames: Frames, material: Material, budget_tokens: int) -> Frames:
    """Return *frames*, with less in them if they are still too long.

    The parts were counted one by one, which is rather too much than too little. So this is for
    the smallest budgets, where keys and headings are most of the text.
    """
    texts = dict(frames.texts)
    for key in ("", "scratchpad", "identity", "episodic", "constraints"):
        if texts.pop(key, None) is not None:
            frames = replace(frames, texts=dict(texts), has_all_keys=False)
        if frames.tokens() <= budget_tokens:
            return frames
    room = budget_tokens
    while frames.tokens() > budget_tokens and room > 0:
        room -= 1
        frames = Frames({"problem": cut("\n".join(material.problem), room)}, has_all_keys=False)
    return frames
