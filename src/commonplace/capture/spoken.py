"""Lessons spoken in passing: `LEARNED: …` inside a comment command (seed 003)."""

from __future__ import annotations

import shlex

PREFIX = "LEARNED:"
# The commands whose arguments are meant for readers. A `grep LEARNED:` or a file that holds the word says nothing.
SPEAKERS = ("bd comment", "bd comments add", "gh issue comment", "gh pr comment", "git commit", "git notes", "echo")


def lessons_in(command: str) -> list[str]:
    """The lessons that a shell command states, in their order."""
    if PREFIX not in command:
        return []
    try:
        words = shlex.split(command)
    except ValueError:
        return []  # An unclosed quote: not a command that ran.
    if not any(_calls(words, speaker.split()) for speaker in SPEAKERS):
        return []
    spoken = (word.partition(PREFIX)[2].strip() for word in words if PREFIX in word)
    return [lesson for lesson in spoken if lesson]


def _calls(words: list[str], speaker: list[str]) -> bool:
    length = len(speaker)
    return any(words[start : start + length] == speaker for start in range(len(words) - length + 1))
