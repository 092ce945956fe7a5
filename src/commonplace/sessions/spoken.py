"""Lessons spoken in passing: `LEARNED: …` in a comment, a commit message, a note or a plain `echo` (seed 003)."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import NamedTuple

from commonplace.sessions import shell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PREFIXES = ("LEARNED:", "DECISION:", "FACT:", "GOTCHA:", "PATTERN:")
# The commands whose arguments are meant for readers. A `grep LEARNED:` or a file that holds the word says nothing.
SPEAKERS = (
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
LESSON_CHARS_MAX = 4000
LESSONS_MAX = 20
# Options of git's own that take a value and stand before the subcommand.
_GIT_VALUED = ("-C", "-c", "--git-dir", "--work-tree", "--namespace")
# What ends a commit message is not part of what was learned.
_TRAILERS = ("co-authored-by:", "signed-off-by:", "reviewed-by:", "change-id:", "🤖 generated with")
# Patterns are compiled when they are first needed: hooks pay for every millisecond.
_ISSUE = r"(?i)\b(?:fix(?:es|ed)?|close[sd]?|resolve[sd]?|refs?|see)\s+(#\d+|[A-Za-z]\w*-\d+)"
_LEAD = "-*#> \t"
_OPTION = r"^(?:--[a-z][\w-]*=|-[a-z]*m)"
_REDIRECTION = r"\d?>|<"
# What the shell would have filled in, or a reader should: nothing is said yet.
_BLANKS = r"\$\(.*?\)|\$\{?\w+\}?|<[^<>]*>"
TAGS_MAX = 8
BEGINNING_MIN = 4


class Spoken(NamedTuple):
    """What was said: the prefix it was said with, the text, and the issue it was said about."""

    prefix: str
    text: str
    issue: str


def spoken_in(command: str, prefixes: Sequence[str] = PREFIXES) -> list[Spoken]:
    """What a shell command says to its readers, in its order, once each."""
    if not any(prefix in command for prefix in prefixes):
        return []
    try:
        simple = shell.commands(command)
    except shell.Unfinished:
        return []
    found: list[Spoken] = []
    for pipeline in _pipelines(simple):
        # Where one feeds another, the last says to whom: `echo … | gh issue comment 5 -F -`.
        speaker = next((words for words in reversed(pipeline) if _subcommand(words)), None)
        if speaker is not None:
            texts = [text for words in pipeline for text in _texts(words, prefixes)]
            issue = _issue(speaker, " ".join(texts))
            found += [
                Spoken(prefix, lesson, issue)
                for text in texts
                for prefix, lesson in said(text, prefixes)
            ]
    return list(dict.fromkeys(found))[:LESSONS_MAX]


def said(text: str, prefixes: Sequence[str] = PREFIXES) -> Iterator[tuple[str, str]]:
    """(prefix, lesson) for each lesson stated in *text*: up to the next one, a blank line or a trailer."""
    prefix, lines = "", list[str]()
    for line in [*text.split("\n"), ""]:
        begun, rest = _begun(line, prefixes)
        if begun or not line.strip() or line.strip().lower().startswith(_TRAILERS):
            if prefix and re.search(
                r"\w", re.sub(_BLANKS, "", lesson := " ".join(" ".join(lines).split()))
            ):
                yield prefix, lesson[:LESSON_CHARS_MAX]
            prefix, lines = begun, [rest] if begun else []
        elif prefix:
            lines.append(line.strip())


def _begun(line: str, prefixes: Sequence[str]) -> tuple[str, str]:
    """The prefix that *line* states a lesson with, and what follows it."""
    places = ((line.find(prefix), prefix) for prefix in prefixes)
    for at, prefix in sorted(place for place in places if place[0] >= 0):
        if at == 0 or line[at - 1] in _LEAD:
            return prefix, line[at + len(prefix) :].lstrip("*: ")
    return "", ""


def _pipelines(simple: Sequence[shell.Simple]) -> Iterator[list[list[str]]]:
    """Commands that feed one another together: `cat <<EOF | gh issue comment 5 --body-file -` is one saying."""
    pipeline: list[list[str]] = []
    for command in simple:
        pipeline.append(shell.plain(command.words))
        if not command.piped:
            yield pipeline
            pipeline = []
    if pipeline:
        yield pipeline


def _texts(words: Sequence[str], prefixes: Sequence[str]) -> Iterator[str]:
    """The words as their reader sees them: `printf` knows line ends, and a prefix alone begins what follows it."""
    if words[:1] == ["printf"] or list(words[:2]) == ["echo", "-e"]:
        words = [word.replace("\\n", "\n") for word in words]
    for at, word in enumerate(words):
        if word in prefixes:
            yield " ".join(takewhile(lambda each: not re.match(_REDIRECTION, each), words[at:]))
            return
        # `--body=…` and `-m…` hold a text as well as `--body …` does.
        yield re.sub(_OPTION, "", word)


def _subcommand(words: Sequence[str]) -> tuple[str, ...]:
    """The speaker that *words* call, if they call one."""
    words = _without_git_options(words)
    return next((speaker for speaker in SPEAKERS if tuple(words[: len(speaker)]) == speaker), ())


def _without_git_options(words: Sequence[str]) -> Sequence[str]:
    if not words or words[0] != "git":
        return words
    at = 1
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _GIT_VALUED else 1
    return ["git", *words[at:]]


def _issue(words: Sequence[str], text: str) -> str:
    """The bead or issue it is about: what the comment is on, else what a commit says it closes."""
    speaker = _subcommand(words)
    if speaker[0] in ("bd", "gh", "glab"):
        given = [word for word in words[len(speaker) :] if not word.startswith("-")]
        numbers = (
            [word.rstrip("/").rpartition("/")[2] for word in given] if speaker[0] != "bd" else []
        )
        if number := next((one for one in numbers if one.isdecimal()), ""):
            return f"#{number}"
        return given[0][:80] if given and " " not in given[0] else ""
    named = re.search(_ISSUE, text)
    return named.group(1) if named else ""


# --- Tags ---------------------------------------------------------------------------------------------------------

# A tag, and the beginnings of words that speak of it.
_TAGS = {
    "async": "async await coroutine promise taskgroup sendable asyncio",
    "concurrency": "concurren thread deadlock mutex race lock parallel actor",
    "testing": "test pytest jest vitest mock fixture flaky coverage",
    "database": "database sql sqlite postgres mysql migration query schema redis transaction",
    "network": "network http https socket timeout proxy dns tls ssl websocket webhook",
    "api": "api endpoint rest graphql grpc request response",
    "auth": "auth oauth login session jwt permission token",
    "security": "security secret encrypt vulnerab xss csrf injection sandbox",
    "performance": "performance slow latency cache memory leak profil throughput",
    "build": "build compile linker webpack vite bundl cmake makefile gradle maven",
    "dependencies": "dependenc package npm pnpm yarn pip poetry cargo lockfile version",
    "ci": "ci pipeline workflow github-actions runner deploy release",
    "docker": "docker container image kubernetes kubectl helm compose",
    "git": "git commit branch rebase merge worktree",
    "types": "type typing mypy typescript generic interface",
    "ui": "ui css layout component render view popup window swiftui react",
    "config": "config setting environment env yaml toml dotenv",
    "files": "file path directory symlink encoding utf-8 newline",
    "errors": "error exception crash panic traceback stacktrace",
    "macos": "macos appkit nswindow menubarextra xcode",
    "windows": "windows powershell registry",
    "python": "python asyncio pytest mypy",
    "javascript": "javascript node npm",
    "typescript": "typescript tsc",
    "rust": "rust cargo",
    "go": "golang goroutine",
    "swift": "swift swiftui sendable taskgroup",
}
_WORD = r"[a-z][a-z0-9-]+"


def tags_of(text: str, prefix: str = "LEARNED:") -> list[str]:
    """Tags by keyword scan; the first says how it was spoken."""
    spoken = prefix.rstrip(":").strip().lower().replace(" ", "-")
    words = set(re.findall(_WORD, text.lower()))
    starts = {word[:length] for word in words for length in range(BEGINNING_MIN, len(word))}
    # A short beginning (`ui`, `ci`) must be the whole word; a longer one may have an ending.
    spoken_of = words | starts
    found = [
        tag for tag, beginnings in _TAGS.items() if not spoken_of.isdisjoint(beginnings.split())
    ]
    return list(dict.fromkeys(["learned", spoken, *found]))[: TAGS_MAX + 1]
