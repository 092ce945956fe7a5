"""Tags for a text, by the words in it."""

from __future__ import annotations

import re

TAGS_MAX = 8
WORD_START_CHARS_MIN = 4
# A tag, and the words, or starts of words, that it is given for.
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


def tags_for(text: str, prefix: str = "LEARNED:") -> list[str]:
    """Return `learned`, the *prefix* as a tag, and the tags whose words are in *text*."""
    prefix_tag = prefix.rstrip(":").strip().lower().replace(" ", "-")
    words = set(re.findall(_WORD, text.lower()))
    starts = {word[:length] for word in words for length in range(WORD_START_CHARS_MIN, len(word))}
    # A short one (`ui`, `ci`) must be the whole word; a longer one may be the start of a word.
    present = words | starts
    found = [tag for tag, keywords in _TAGS.items() if not present.isdisjoint(keywords.split())]
    return list(dict.fromkeys(["learned", prefix_tag, *found]))[: TAGS_MAX + 1]
