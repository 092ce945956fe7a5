"""What the scripted model does: for each prompt a list of shell commands, then a closing sentence.

The model keeps no state. Which command comes next is read from the request itself: the number of
tool results after the prompt. So a request that an agent repeats gets the same answer.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

SUMMARY = "Summary: the build needed a configuration; it was made, and the build passed."
_SUMMARY_PHRASES = (
    "<summary>", "detailed summary", "handoff summary", "state_snapshot", "the summary process",
)  # fmt: skip
OTHER = "Build"  # The answer to requests beside the session, such as for a title.


class Item(NamedTuple):
    """One part of a conversation, in the order of the request."""

    kind: Literal["user", "result", "other"]
    text: str


class Answer(NamedTuple):
    """What the model answers: a shell command to run, or text."""

    command: str = ""
    text: str = ""


class Act(NamedTuple):
    """The commands that the model has the agent run when it reads *prompt*."""

    prompt: str
    commands: tuple[str, ...]
    closing: str


def answer(acts: tuple[Act, ...], items: list[Item], *, with_tools: bool) -> Answer:
    """Return the answer to a request with *items*, which offers tools or not."""
    found = _last_prompt(acts, items)
    if found is None:
        return Answer(text=OTHER)
    act, start = found
    after = items[start + 1 :]
    if _asks_for_summary(items):
        return Answer(text=SUMMARY)
    if not with_tools:
        return Answer(text=OTHER)
    done = sum(item.kind == "result" for item in after)
    if done < len(act.commands):
        return Answer(command=act.commands[done])
    return Answer(text=act.closing)


def _last_prompt(acts: tuple[Act, ...], items: list[Item]) -> tuple[Act, int] | None:
    for start in range(len(items) - 1, -1, -1):
        for act in acts:
            if items[start].kind == "user" and act.prompt in items[start].text:
                return act, start
    return None


def _asks_for_summary(items: list[Item]) -> bool:
    """Whether the agent compacts its context: it asks for a summary after all that was done."""
    results = [number for number, item in enumerate(items) if item.kind == "result"]
    after = items[results[-1] + 1 :] if results else items[1:]
    asked = "\n".join(item.text for item in after).lower()
    return any(phrase in asked for phrase in _SUMMARY_PHRASES)
