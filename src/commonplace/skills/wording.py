"""What commands, files and goals of several episodes have in common, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.foreign import code, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

# A step that edits a file has a key such as `edit *.py`.
EDIT = "edit"
EXAMPLES_MAX = 2
GOAL_WORDS_MAX = 60
_AROUND = " .,;:!?()[]{}\"'`"
_SMALL_WORDS = frozenset(
    ["a", "an", "and", "as", "at", "by", "for", "from", "in", "into", "it", "its", "of", "on",
     "or", "please", "that", "the", "this", "to", "with"]
)  # fmt: skip
_CHARS_MAX = 200


def describe_step(key: str, targets: Sequence[str]) -> str:
    """Return a step in words: the command that all episodes have, or its common beginning."""
    targets = [one for one in targets if one]
    if key.startswith(f"{EDIT} "):
        kind = key.removeprefix(f"{EDIT} ")
        if len(targets) == 1:
            return f"Edit {_code(targets[0])}"
        return f"Edit {kind if kind == 'a file' else f'a file {code(kind)}'}{_examples(targets)}"
    if len(targets) == 1:
        return _code(targets[0])
    same = _common_beginning([one.split() for one in targets])
    return _code(" ".join([*same, "…"]) if same else key) + _examples(targets)


def _common_beginning(rows: Sequence[Sequence[str]]) -> list[str]:
    same: list[str] = []
    for words in zip(*rows, strict=False):
        if len(set(words)) > 1:
            break
        same.append(words[0])
    return same


def _examples(targets: Sequence[str]) -> str:
    shown = [_code(one) for one in targets[:EXAMPLES_MAX]]
    return f", for example {' or '.join(shown)}" if shown else ""


def _code(text: str) -> str:
    return code(cut(text))


def cut(text: str) -> str:
    """Return *text*, with an ellipsis at its end if it is too long."""
    return text if len(text) <= _CHARS_MAX else f"{text[: _CHARS_MAX - 1].rstrip()}…"


def shared_words(goals: Sequence[str]) -> str:
    """Return the longest run of words that all *goals* have; "" if it says nothing."""
    rows = [goal.split() for goal in goals]
    if not rows or not all(rows):
        return ""
    plain = [[word.strip(_AROUND).casefold() for word in row[:GOAL_WORDS_MAX]] for row in rows]
    flat = [f" {' '.join(row)} " for row in plain]
    for size in range(len(plain[0]), 1, -1):
        for at in range(len(plain[0]) - size + 1):
            run = plain[0][at : at + size]
            is_whole = not {run[0], run[-1]} & (_SMALL_WORDS | {""})
            if is_whole and all(f" {' '.join(run)} " in text for text in flat):
                title = one_line(" ".join(rows[0][at : at + size]).strip(_AROUND))
                return title[:1].upper() + title[1:]
    return ""


def join_keys(keys: Sequence[str]) -> str:
    """Return `npm install, test, publish` for commands of one program."""
    parts: list[str] = []
    before = ""
    for key in keys:
        program, _space, rest = key.partition(" ")
        parts.append(rest if program == before and rest else key)
        before = program
    return one_line(", ".join(parts))
