"""Lessons after a prefix: `LEARNED: …` in a comment, a commit message or an `echo`."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import NamedTuple

from commonplace.sessions import shell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PREFIXES = ("LEARNED:", "DECISION:", "FACT:", "GOTCHA:", "PATTERN:")
# Commands whose arguments are messages to readers. `grep LEARNED:` states no lesson.
MESSAGE_COMMANDS = (
    ("bd", "comment"),
    ("bd", "comments", "add"),
    ("bd", "note"),
    ("gh", "issue", "comment"),
    ("gh", "issue", "close"),
    ("gh", "pr", "comment"),
    ("gh", "pr", "review"),
    ("glab", "issue", "note"),
    ("glab", "mr", "note"),
    ("git", "commit"),
    ("git", "notes"),
    ("echo",),
    ("printf",),
)
LESSON_CHARS_MAX = 16_000
LESSONS_MAX = 20
# Options of git that take a value and precede the subcommand.
_GIT_VALUE_OPTIONS = ("-C", "-c", "--git-dir", "--work-tree", "--namespace")
# Trailers of a commit message are not part of the lesson.
_TRAILERS = ("co-authored-by:", "signed-off-by:", "reviewed-by:", "change-id:", "🤖 generated with")
# Patterns are compiled when they are first used: hooks pay for every millisecond.
_ISSUE = r"(?i)\b(?:fix(?:es|ed)?|close[sd]?|resolve[sd]?|refs?|see)\s+(#\d+|[A-Za-z]\w*-\d+)"
_LIST_MARKS = "-*•#> \t"
_SENTENCE_END = r"[.!?;:)\]\u2013\u2014]\**\s+\**$|\s--?\s+\**$"
# How a sentence about the prefix itself goes on.
_ABOUT_PREFIX = r"(?i)(is|are|means?|prefix(es)?|lines?|comments?)\b"
_PRINTERS = ("echo", "printf")
# Words that stand for a lesson that is not written yet.
_UNFINISHED = frozenset(["todo", "tbd", "fixme", "xxx", "lorem", "placeholder"])
_OPTION = r"^(?:--[a-z][\w-]*=|-[a-z]*m)"
_REDIRECTION = r"\d?>|<"
# Variables and placeholders: a lesson that consists of these has no content.
_PLACEHOLDERS = r"\$\(.*?\)|\$\{?\w+\}?|<[^<>]*>"


class PrefixedLesson(NamedTuple):
    """A lesson, the prefix it was stated with, and the issue it is about."""

    prefix: str
    text: str
    issue: str


def find_lessons(command: str, prefixes: Sequence[str] = PREFIXES) -> list[PrefixedLesson]:
    """Return the lessons that a shell command states, in order, without repetitions."""
    if not any(prefix in command for prefix in prefixes):
        return []
    try:
        simple = shell.parse(command)
    except shell.UnclosedQuote:
        return []
    found: list[PrefixedLesson] = []
    for pipeline in _pipelines(simple):
        # In a pipeline the last command names the issue: `echo … | gh issue comment 5 -F -`.
        words = next((words for words in reversed(pipeline) if _message_command(words)), None)
        if words is not None and _is_for_readers(words, pipeline[-1]):
            texts = [text for each in pipeline for text in _texts(each, prefixes)]
            issue = _issue(words, " ".join(texts))
            found += [
                PrefixedLesson(prefix, lesson, issue)
                for text in texts
                for prefix, lesson in _lessons_in(text, prefixes)
            ]
    return list(dict.fromkeys(found))[:LESSONS_MAX]


def _is_for_readers(words: Sequence[str], last: Sequence[str]) -> bool:
    """Whether the message *words* is read by somebody, rather than by the *last* of its pipeline.

    `echo "LEARNED: x" | grep LEARNED` tries out the prefix. A comment or a commit is made, whatever
    reads what it prints.
    """
    return words[0] not in _PRINTERS or words is last or last[:1] == ["tee"]


def _lessons_in(text: str, prefixes: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield (prefix, lesson) for each lesson in *text*, with its lines as they are.

    A lesson ends where the next one begins, at a trailer, or with the item of a list that it
    stands in; else with the text.
    """
    prefix, lines, margin, is_item = "", list[str](), 0, False
    is_after_blank = False
    for line in text.split("\n"):
        found, before, rest = _split_at_prefix(line, prefixes)
        indent = len(line) - len(line.lstrip())
        is_next_item = is_item and indent <= margin and line.lstrip()[:1] in _BULLETS
        is_past_item = is_item and indent <= margin and is_after_blank
        is_trailer = line.strip().lower().startswith(_TRAILERS)
        if found or is_trailer or (line.strip() and (is_next_item or is_past_item)):
            yield from _whole(prefix, lines, margin, is_item=is_item)
            prefix, lines, margin = found, [rest] if found else [], indent
            is_item = bool(found) and before.strip()[:1] in _BULLETS
        elif prefix:
            lines.append(line)
        is_after_blank = not line.strip()
    yield from _whole(prefix, lines, margin, is_item=is_item)


_BULLETS = ("-", "*", "•")


def _whole(
    prefix: str, lines: list[str], margin: int, *, is_item: bool
) -> Iterator[tuple[str, str]]:
    """Yield (prefix, lesson) from its lines, if it says anything."""
    if not prefix:
        return
    # The first line stands after the prefix. The text of an item is indented below its mark.
    rest = [line.rstrip() for line in lines[1:]]
    if is_item:
        deeper = [len(line) - len(line.lstrip()) for line in rest if line]
        margin = min(deeper, default=margin)
    lesson = "\n".join([lines[0].rstrip(), *(_outdent(line, margin) for line in rest)]).strip()
    if _says_something(lesson):
        yield prefix, lesson[:LESSON_CHARS_MAX]


def _outdent(line: str, margin: int) -> str:
    return line[min(margin, len(line) - len(line.lstrip())) :]


def _says_something(lesson: str) -> bool:
    """Whether *lesson* is more than a placeholder."""
    said = re.sub(_PLACEHOLDERS, "", lesson).strip()
    first = re.match(r"\W*(\w*)", said)
    return re.search(r"\w", said) is not None and (
        first is None or first[1].lower() not in _UNFINISHED
    )


def _split_at_prefix(line: str, prefixes: Sequence[str]) -> tuple[str, str, str]:
    """Return the first prefix that begins a lesson, and the texts before and after it.

    It begins the line, or a sentence in it. In the middle of one it is only mentioned: "explain the
    LEARNED: prefix".
    """
    found = ((line.find(prefix), prefix) for prefix in prefixes)
    for at, prefix in sorted(match for match in found if match[0] >= 0):
        before = line[:at]
        rest = line[at + len(prefix) :].lstrip("*: \t")
        begins_sentence = re.search(_SENTENCE_END, before) and not re.match(_ABOUT_PREFIX, rest)
        if not before.strip(_LIST_MARKS) or begins_sentence:
            return prefix, before, rest
    return "", "", ""


def _pipelines(simple: Sequence[shell.SimpleCommand]) -> Iterator[list[list[str]]]:
    """Yield the words of commands, those of one pipeline together."""
    pipeline: list[list[str]] = []
    for command in simple:
        pipeline.append(shell.without_prefixes(command.words))
        if not command.piped:
            yield pipeline
            pipeline = []
    if pipeline:
        yield pipeline


def _texts(words: Sequence[str], prefixes: Sequence[str]) -> Iterator[str]:
    """Yield the texts in *words*. A prefix that is a word of its own is joined with the rest."""
    if words[:1] == ["printf"] or list(words[:2]) == ["echo", "-e"]:
        words = [word.replace("\\n", "\n") for word in words]
    for at, word in enumerate(words):
        if word in prefixes:
            yield " ".join(takewhile(lambda each: not re.match(_REDIRECTION, each), words[at:]))
            return
        # `--body=…` and `-m…` contain the text too.
        yield re.sub(_OPTION, "", word)


def _message_command(words: Sequence[str]) -> tuple[str, ...]:
    """Return the entry of `MESSAGE_COMMANDS` that *words* call; empty if they call none."""
    words = _without_git_options(words)
    return next((known for known in MESSAGE_COMMANDS if tuple(words[: len(known)]) == known), ())


def _without_git_options(words: Sequence[str]) -> Sequence[str]:
    if not words or words[0] != "git":
        return words
    at = 1
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _GIT_VALUE_OPTIONS else 1
    return ["git", *words[at:]]


def _issue(words: Sequence[str], text: str) -> str:
    """Return the bead or issue that a comment is on or a commit message refers to."""
    command = _message_command(words)
    if command[0] in ("bd", "gh", "glab"):
        given = [word for word in words[len(command) :] if not word.startswith("-")]
        numbers = (
            [word.rstrip("/").rpartition("/")[2] for word in given] if command[0] != "bd" else []
        )
        if number := next((one for one in numbers if one.isdecimal()), ""):
            return f"#{number}"
        return given[0][:80] if given and " " not in given[0] else ""
    named = re.search(_ISSUE, text)
    return named.group(1) if named else ""
