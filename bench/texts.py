"""Memories and questions to measure speed with: made up, seeded, and shaped like what coding agents write.

    python bench/texts.py [--logs FOLDER]      (the shape of 2,000 of them, beside the logs in FOLDER if it is there)

A memory is a situation and a few sentences about it. Its frames and words are written here; words are drawn with the
frequencies of Zipf and Mandelbrot, 1 / (rank + 40) ** 1.25, as was measured in real logs. About every sixth word is a
name of code (`parseRequestHeaders`, `src/cache/session_store.py`), a command or a code of an error. Names are built
from the same words and belong to one of fifty repositories, where a few come up often and most once; so the
vocabulary grows with the store as it does in life. Lengths are log-normal, the median 46 words. A question takes some
words of one memory and adds one or two of its own.

Nothing is copied from the logs they are compared with: `lessons/` and `mulch/` of the shared agent logs.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import statistics
import sys
from bisect import bisect
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from commonplace.embed.minilm import FOLDER, VOCABULARY
from commonplace.embed.wordpiece import WordPiece
from commonplace.index.terms import STOP_WORDS, query_terms, terms
from commonplace.index.vector_passages import texts_to_embed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

SHARED = Path(__file__).resolve().parent.parent.parent / "shared" / "data" / "agent-logs"
REPOSITORIES = 50
WORDS_MEDIAN, WORDS_SIGMA, WORDS_MAX = 44, 0.52, 370

# --- Words, the commonest first -----------------------------------------------------------------------------------

NOUNS = [
    "test",
    "file",
    "agent",
    "code",
    "error",
    "path",
    "command",
    "session",
    "branch",
    "config",
    "type",
    "task",
    "state",
    "build",
    "worktree",
    "hook",
    "process",
    "message",
    "function",
    "output",
    "server",
    "commit",
    "version",
    "model",
    "queue",
    "field",
    "store",
    "line",
    "log",
    "record",
    "index",
    "test",
    "module",
    "package",
    "script",
    "directory",
    "user",
    "database",
    "table",
    "query",
    "request",
    "response",
    "token",
    "key",
    "value",
    "cache",
    "timeout",
    "lock",
    "event",
    "handler",
    "client",
    "worker",
    "thread",
    "memory",
    "schema",
    "migration",
    "column",
    "row",
    "transaction",
    "connection",
    "pool",
    "socket",
    "port",
    "host",
    "header",
    "body",
    "payload",
    "json",
    "yaml",
    "parser",
    "lexer",
    "syntax",
    "template",
    "prompt",
    "context",
    "window",
    "budget",
    "limit",
    "page",
    "offset",
    "cursor",
    "batch",
    "stream",
    "buffer",
    "chunk",
    "frame",
    "component",
    "button",
    "panel",
    "layout",
    "style",
    "theme",
    "page",
    "route",
    "view",
    "form",
    "input",
    "label",
    "icon",
    "modal",
    "list",
    "item",
    "tree",
    "node",
    "edge",
    "graph",
    "cluster",
    "container",
    "image",
    "volume",
    "network",
    "proxy",
    "gateway",
    "service",
    "endpoint",
    "region",
    "bucket",
    "object",
    "secret",
    "credential",
    "permission",
    "role",
    "policy",
    "audit",
    "certificate",
    "signature",
    "hash",
    "digest",
    "checksum",
    "salt",
    "nonce",
    "session",
    "cookie",
    "header",
    "redirect",
    "dependency",
    "lockfile",
    "registry",
    "mirror",
    "release",
    "tag",
    "changelog",
    "license",
    "readme",
    "guide",
    "example",
    "snippet",
    "reference",
    "glossary",
    "fixture",
    "mock",
    "stub",
    "assertion",
    "snapshot",
    "coverage",
    "report",
    "suite",
    "runner",
    "flake",
    "retry",
    "backoff",
    "jitter",
    "deadline",
    "heartbeat",
    "probe",
    "metric",
    "counter",
    "gauge",
    "histogram",
    "trace",
    "span",
    "sample",
    "dashboard",
    "alert",
    "threshold",
    "baseline",
    "benchmark",
    "profile",
    "allocation",
    "leak",
    "pointer",
    "reference",
    "borrow",
    "lifetime",
    "trait",
    "generic",
    "interface",
    "class",
    "method",
    "property",
    "attribute",
    "decorator",
    "annotation",
    "enum",
    "union",
    "literal",
    "constant",
    "variable",
    "argument",
    "parameter",
    "default",
    "flag",
    "option",
    "environment",
    "shell",
    "terminal",
    "prompt",
    "stdin",
    "stdout",
    "stderr",
    "pipe",
    "signal",
    "exit",
    "code",
    "status",
    "result",
    "exception",
    "traceback",
    "stack",
    "heap",
    "garbage",
    "collector",
    "runtime",
    "interpreter",
    "compiler",
    "linker",
    "loader",
    "bundle",
    "asset",
    "sourcemap",
    "polyfill",
    "transpiler",
    "preset",
    "plugin",
    "extension",
    "registry",
    "manifest",
    "workspace",
    "monorepo",
    "submodule",
    "remote",
    "origin",
    "upstream",
    "rebase",
    "merge",
    "conflict",
    "diff",
    "patch",
    "hunk",
    "blame",
    "bisect",
    "stash",
    "tag",
    "reviewer",
    "owner",
    "ticket",
    "issue",
    "milestone",
    "sprint",
    "epic",
    "story",
    "backlog",
    "estimate",
    "priority",
    "severity",
    "incident",
    "outage",
    "postmortem",
    "rollback",
    "deployment",
    "rollout",
    "canary",
    "replica",
    "shard",
    "partition",
    "leader",
    "follower",
    "quorum",
    "consensus",
    "snapshot",
    "journal",
    "segment",
    "compaction",
    "tombstone",
    "bloom",
    "filter",
    "embedding",
    "vector",
    "cosine",
    "ranking",
    "recall",
    "precision",
    "corpus",
    "tokenizer",
    "vocabulary",
    "stemmer",
    "synonym",
    "locale",
    "encoding",
    "charset",
    "newline",
    "whitespace",
    "indentation",
    "comment",
    "docstring",
    "heading",
    "paragraph",
    "sentence",
    "word",
    "character",
    "byte",
    "integer",
    "float",
    "decimal",
    "boolean",
    "string",
    "array",
    "slice",
    "map",
    "set",
    "tuple",
    "iterator",
    "generator",
    "closure",
    "callback",
    "promise",
    "future",
    "coroutine",
    "scheduler",
    "executor",
    "semaphore",
    "mutex",
    "barrier",
    "channel",
    "mailbox",
    "actor",
    "supervisor",
    "daemon",
    "cron",
    "job",
    "pipeline",
    "stage",
    "artifact",
    "archive",
    "tarball",
    "wheel",
    "crate",
    "gem",
    "image",
    "layer",
    "digest",
    "manifest",
    "firewall",
    "subnet",
    "dns",
    "resolver",
    "certificate",
    "cipher",
    "handshake",
    "keepalive",
    "packet",
    "latency",
    "throughput",
    "bandwidth",
    "quota",
    "throttle",
    "limiter",
    "breaker",
    "fallback",
    "feature",
    "toggle",
    "experiment",
    "cohort",
    "funnel",
    "invoice",
    "payment",
    "refund",
    "currency",
    "customer",
    "account",
    "subscription",
    "catalog",
    "inventory",
    "checkout",
    "shipment",
    "address",
    "email",
    "notification",
    "digest",
    "webhook",
    "subscriber",
    "topic",
    "exchange",
    "broker",
    "consumer",
    "producer",
    "acknowledgement",
    "viewport",
    "breakpoint",
    "grid",
    "column",
    "gutter",
    "font",
    "palette",
    "contrast",
    "focus",
    "keyboard",
    "tooltip",
    "dropdown",
    "carousel",
    "skeleton",
    "spinner",
]
VERBS = [
    "use",
    "run",
    "fix",
    "add",
    "check",
    "update",
    "test",
    "pass",
    "read",
    "write",
    "set",
    "return",
    "call",
    "remove",
    "create",
    "handle",
    "make",
    "keep",
    "move",
    "load",
    "parse",
    "avoid",
    "import",
    "wrap",
    "store",
    "send",
    "match",
    "start",
    "stop",
    "merge",
    "split",
    "build",
    "install",
    "validate",
    "resolve",
    "register",
    "render",
    "fetch",
    "retry",
    "reject",
    "require",
    "export",
    "expect",
    "compare",
    "convert",
    "escape",
    "encode",
    "decode",
    "emit",
    "dispatch",
    "spawn",
    "kill",
    "wait",
    "poll",
    "watch",
    "mock",
    "stub",
    "assert",
    "verify",
    "review",
    "rename",
    "extract",
    "inline",
    "refactor",
    "migrate",
    "upgrade",
    "downgrade",
    "pin",
    "bump",
    "publish",
    "deploy",
    "restart",
    "reload",
    "flush",
    "close",
    "open",
    "seek",
    "truncate",
    "append",
    "rotate",
    "archive",
    "compress",
    "encrypt",
    "sign",
    "revoke",
    "grant",
    "deny",
    "redirect",
    "rewrite",
    "normalise",
    "serialise",
    "deserialise",
    "aggregate",
    "filter",
    "sort",
    "group",
    "join",
    "index",
    "rank",
    "score",
    "cluster",
    "sample",
    "trace",
    "profile",
    "benchmark",
    "tune",
    "throttle",
    "debounce",
    "batch",
    "stream",
    "buffer",
    "drain",
    "schedule",
    "cancel",
    "abort",
    "resume",
    "suspend",
    "lock",
    "unlock",
    "acquire",
    "release",
    "subscribe",
    "unsubscribe",
    "acknowledge",
    "propagate",
    "bubble",
    "swallow",
    "suppress",
    "silence",
    "warn",
    "report",
    "annotate",
    "document",
    "deprecate",
]
QUALITIES = [
    "new",
    "missing",
    "same",
    "empty",
    "wrong",
    "stale",
    "only",
    "single",
    "current",
    "old",
    "full",
    "first",
    "last",
    "local",
    "default",
    "invalid",
    "existing",
    "separate",
    "explicit",
    "optional",
    "shared",
    "async",
    "strict",
    "nested",
    "duplicate",
    "broken",
    "slow",
    "flaky",
    "large",
    "small",
    "relative",
    "absolute",
    "global",
    "static",
    "dynamic",
    "public",
    "private",
    "internal",
    "external",
    "remote",
    "concurrent",
    "sequential",
    "atomic",
    "idempotent",
    "safe",
    "unsafe",
    "raw",
    "partial",
    "complete",
    "recursive",
    "lazy",
    "eager",
    "cached",
    "expired",
    "orphaned",
    "hidden",
    "visible",
    "generated",
    "temporary",
    "persistent",
    "mutable",
    "frozen",
    "signed",
    "truncated",
    "malformed",
    "ambiguous",
    "redundant",
    "obsolete",
    "legacy",
    "experimental",
    "deterministic",
    "random",
    "reproducible",
    "portable",
    "native",
]
TOOLS = [
    "git",
    "npm",
    "pytest",
    "docker",
    "pnpm",
    "node",
    "python",
    "tsc",
    "cargo",
    "vitest",
    "make",
    "eslint",
    "uv",
    "ruff",
    "mypy",
    "go",
    "bun",
    "kubectl",
    "pip",
    "gh",
    "jest",
    "vite",
    "psql",
    "webpack",
    "terraform",
    "helm",
    "yarn",
    "poetry",
    "tox",
    "gradle",
    "mvn",
    "cmake",
    "bazel",
    "redis-cli",
    "nginx",
    "ansible",
    "systemctl",
    "tmux",
    "sqlite3",
    "curl",
    "jq",
    "playwright",
    "prettier",
    "biome",
    "rustc",
    "clippy",
    "podman",
    "buildx",
    "alembic",
    "prisma",
    "celery",
    "gunicorn",
    "uvicorn",
    "grpcurl",
    "protoc",
]
ACTIONS = [
    "install",
    "run",
    "build",
    "test",
    "push",
    "pull",
    "add",
    "status",
    "check",
    "update",
    "start",
    "init",
    "apply",
    "deploy",
    "lint",
    "sync",
    "merge",
    "rebase",
    "exec",
    "logs",
    "publish",
    "fetch",
    "migrate",
    "rollback",
    "upgrade",
    "audit",
    "format",
    "cache",
    "clean",
    "watch",
    "config",
]
ERRORS = [
    "ENOENT",
    "EACCES",
    "TypeError",
    "timeout",
    "ValueError",
    "ECONNREFUSED",
    "KeyError",
    "ModuleNotFoundError",
    "EADDRINUSE",
    "ETIMEDOUT",
    "404",
    "500",
    "SIGTERM",
    "ImportError",
    "AssertionError",
    "SyntaxError",
    "OOMKilled",
    "SIGKILL",
    "502",
    "EPERM",
    "RuntimeError",
    "SQLITE_BUSY",
    "CrashLoopBackOff",
    "ERESOLVE",
    "deadlock",
    "TS2345",
    "TS2339",
    "E0308",
    "E0502",
    "SIGSEGV",
    "504",
    "429",
    "UnicodeDecodeError",
    "RecursionError",
    "ImagePullBackOff",
    "EMFILE",
    "ENOSPC",
    "NullPointerException",
    "IndexError",
    "PermissionError",
    "BrokenPipeError",
    "CORS",
    "EEXIST",
    "TS7006",
    "E0277",
    "F401",
    "ConnectionResetError",
    "403",
]
FOLDERS = [
    "src",
    "lib",
    "tests",
    "app",
    "cmd",
    "internal",
    "packages",
    "scripts",
    "docs",
    "api",
    "core",
    "server",
    "web",
    "cli",
    "config",
    "db",
    "utils",
    "hooks",
]
ENDINGS = ["py", "ts", "tsx", "go", "rs", "js", "md", "json", "yaml", "toml", "sql", "sh"]

# Words in capitals are replaced at random: see `SLOTS`.
SITUATIONS = (
    """
T A fails with E in P | E when I is called from J | the Q N of I is V ed twice | C hangs after the N N
Q N in P after a N N | N N does not V the N | C passes locally but the N fails in CI | I returns a Q N
when the N is Q , J V s the N | T A in a Q N | Manual capture | how I and J share the N | N : Q N in F
""".strip()
    .replace("\n", " | ")
    .split("|")
)
SENTENCES = (
    """
V the N before the N N , not after it . | The Q N is V ed by `I` in `P` . | Always V `I` with a Q N when the N is Q .
Do not V the N in `F` ; V `J` instead . | `C` V s the N and leaves the Q N behind . | Root cause: the N N was Q , so `I` got E .
Fix: V the N in `P` and V the Q N . | Without this the N would V every N it has . | `I` V s only when N and `J` are Q .
`I` V s the N , while `J` still has the Q one . | See `P` for how the N N is V ed . | The N must be Q before `I` can V it .
If the N is Q , V it with `C` . | After U the N N had to be V ed again . | It took K attempts , because E looks like a Q N .
Each N has its own N , which `I` does not V . | Prefer a Q N over V ing the N by hand . | Use `I` ( `F` ) for the N and `J` for the N N .
N N and N N are not the same : the first is Q . | When the N V s , the Q N is V ed by the N . | Never V a Q N from the N N .
The N in `F` has a limit of K , so V the N . | `C` needs the N to be Q . | Since U `I` is Q in `P` .
Two N s V the same N ; the later one gets E . | `I` and `J` both V the N in `P` , so `F` has to V it first .
The N V s `I` -> `J` -> N N ( see `P` ) . | V ing `J` in the N keeps the N Q . | Checked with `C` : K of K N s pass .
""".strip()
    .replace("\n", " | ")
    .split("|")
)
SLOT = re.compile(r"\b[A-Z]\b")


class Zipf:
    """Words drawn by their rank, the first most often."""

    def __init__(self, words: Iterable[str]) -> None:
        self.words = list(dict.fromkeys(words))
        self._sums = list(accumulate(1 / (rank + 40) ** 1.25 for rank in range(len(self.words))))

    def draw(self, randomness: random.Random) -> str:
        return self.words[bisect(self._sums, randomness.random() * self._sums[-1])]


_NOUNS, _VERBS, _QUALITIES, _TOOLS, _ACTIONS, _ERRORS = map(
    Zipf, (NOUNS, VERBS, QUALITIES, TOOLS, ACTIONS, ERRORS)
)


# --- Names --------------------------------------------------------------------------------------------------------


def _number(randomness: random.Random, repository: int) -> int:
    """Which of a repository's names: a few come up often, most once."""
    rank = min(int(4 * randomness.paretovariate(0.7)), 10_000_000)
    return (repository * 10_000_019 + rank) * 2_654_435_761 % (1 << 61)


def _parts(number: int) -> list[str]:
    nouns = _NOUNS.words
    count = 1 + number % 3
    return [nouns[(number >> 7 * place + 3) % len(nouns)] for place in range(count)]


def name(randomness: random.Random, repository: int) -> str:
    """A function, class or setting, written as one does in the repository's language."""
    number = _number(randomness, repository)
    words = [_VERBS.words[number // 7 % len(_VERBS.words)], *_parts(number)]
    if number % 11 == 0:
        return "_".join(words).upper()
    if repository % 3 == 0:
        return "_".join(words)
    camel = "".join(map(str.capitalize, words))
    return (
        camel
        if number % 5 == 0 or repository % 3 == 2
        else camel[0].lower() + camel[1:] + "()" * (number % 2)
    )


def file(randomness: random.Random, repository: int) -> str:
    number = _number(randomness, repository)
    return (
        "_-"[repository % 2].join(_parts(number))
        + f".{ENDINGS[(repository + number % 3) % len(ENDINGS)]}"
    )


def path(randomness: random.Random, repository: int) -> str:
    number = _number(randomness, repository)
    folders = [FOLDERS[number % len(FOLDERS)], *_parts(number)[:1]][: 1 + number % 2]
    return "/".join([*folders, file(randomness, repository)])


def command(randomness: random.Random, repository: int) -> str:
    said = f"{_TOOLS.draw(randomness)} {_ACTIONS.draw(randomness)}"
    more = randomness.random()
    said += f" --{_NOUNS.draw(randomness)}" if more < 0.5 else ""
    return said + (f" {path(randomness, repository)}" if more > 0.7 else "")


def upgrade(randomness: random.Random, _repository: int) -> str:
    return f"{_TOOLS.draw(randomness)} {randomness.randint(0, 24)}.{randomness.randint(0, 20)}"


SLOTS: dict[str, Callable[[random.Random, int], str]] = {
    "N": lambda randomness, _repository: _NOUNS.draw(randomness),
    "V": lambda randomness, _repository: _VERBS.draw(randomness),
    "Q": lambda randomness, _repository: _QUALITIES.draw(randomness),
    "T": lambda randomness, _repository: _TOOLS.draw(randomness),
    "A": lambda randomness, _repository: _ACTIONS.draw(randomness),
    "E": lambda randomness, _repository: _ERRORS.draw(randomness),
    "K": lambda randomness, _repository: str(randomness.randint(2, 60)),
    "I": name,
    "J": name,
    "F": file,
    "P": path,
    "C": command,
    "U": upgrade,
}


# --- Memories and questions ---------------------------------------------------------------------------------------


def _fill_frame(frame: str, randomness: random.Random, repository: int) -> str:
    drawn = SLOT.sub(lambda match: SLOTS[match.group()](randomness, repository), frame.strip())
    return re.sub(r" (?=[.,;:)]|s\b)|e? (?=(?:ed|ing)\b)|(?<=\() ", "", drawn)


def memory(randomness: random.Random, number: int) -> dict[str, object]:
    """A lesson, as a record's fields."""
    repository = number % REPOSITORIES
    words = min(WORDS_MAX, randomness.lognormvariate(math.log(WORDS_MEDIAN), WORDS_SIGMA))
    context = _fill_frame(randomness.choice(SITUATIONS), randomness, repository)
    said: list[str] = []
    words -= len(context.split()) + 4
    while words > 0 or not said:
        sentence = _fill_frame(randomness.choice(SENTENCES), randomness, repository)
        said.append(sentence[0].upper() + sentence[1:])
        words -= len(sentence.split())
    return {
        "kind": "lesson",
        "repo": f"repo{repository}",
        "event_type": randomness.choice(["error", "success", "pattern", "learned"]),
        "timestamp": f"2026-{number % 12 + 1:02}-{number % 28 + 1:02}T00:00:00Z",
        "context": context,
        "command": command(randomness, repository) if randomness.random() < 0.3 else "",
        "lesson": " ".join(said),
        "success_rate": f"{randomness.randint(0, 9)}/9",
        "tags": [_TOOLS.draw(randomness), _NOUNS.draw(randomness)],
    }


def text(row: dict[str, object]) -> str:
    """What is searched of a memory."""
    return "\n\n".join(str(row[field]) for field in ("context", "lesson", "command") if row[field])


_WORD = re.compile(r"[\w.\-/]*\w")


def question(randomness: random.Random, row: dict[str, object]) -> str:
    """Some words of the memory *row* in their order, and one or two that it need not have."""
    telling = list(
        dict.fromkeys(word for word in _WORD.findall(text(row)) if word.lower() not in STOP_WORDS)
    )
    count = min(len(telling), max(2, round(randomness.lognormvariate(math.log(5), 0.4))))
    asked = [telling[place] for place in sorted(randomness.sample(range(len(telling)), count))]
    asked.insert(randomness.randint(0, len(asked)), _VERBS.draw(randomness))
    asked.insert(randomness.randint(0, len(asked)), _NOUNS.draw(randomness))
    return " ".join(asked)


# --- Their shape --------------------------------------------------------------------------------------------------


def real_memories(folder: Path) -> list[str]:
    """The texts of the lessons and of the expertise records below *folder*, the latest of each id."""
    found: dict[str, str] = {}
    fields = (
        "trigger",
        "name",
        "title",
        "description",
        "content",
        "insight",
        "rationale",
        "resolution",
        "evidence",
    )
    for path in sorted([*folder.glob("lessons/*.jsonl"), *folder.glob("mulch/*/*.jsonl")]):
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            parts = [
                row[name] for name in fields if isinstance(row.get(name), str) and row[name].strip()
            ]
            found[f"{path}:{row['id']}"] = "\n\n".join(parts)
    return [said for said in found.values() if said]


def real_questions(folder: Path) -> list[str]:
    path = folder / "retrieval" / "queries.jsonl"
    return (
        [json.loads(line)["text"] for line in path.read_text("utf-8").splitlines()]
        if path.exists()
        else []
    )


def shape(memories: Sequence[str], questions: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Name and figures: p10, median, p90 and mean."""
    pieces = WordPiece.load(FOLDER / VOCABULARY)
    said = [terms(one) for one in memories]
    frequencies: dict[str, int] = {}
    for found in said:
        for term in set(found):
            frequencies[term] = frequencies.get(term, 0) + 1
    passages = [part for one in memories for part in texts_to_embed(one[:80], one)]
    yield "words a memory", _spread([len(one.split()) for one in memories])
    yield "terms a memory", _spread([len(found) for found in said])
    yield "pieces a memory", _spread([len(pieces.encode(one, 100_000)) for one in memories])
    yield (
        "pieces a passage, at most 256",
        _spread([len(pieces.encode(one, 256)) for one in passages]),
    )
    yield "words a question", _spread([len(one.split()) for one in questions])
    yield "pieces a question", _spread([len(pieces.encode(one, 256)) for one in questions])
    asked = [
        100 * frequencies.get(term, 0) / len(memories)
        for one in questions
        for term in query_terms(one)
    ]
    yield "% of memories with a term asked for", _spread(asked)
    ranked = sorted(frequencies.values(), reverse=True)
    shares = [
        f"{100 * ranked[place] / len(memories):.1f}"
        for place in (0, 10, 100, 1000)
        if place < len(ranked)
    ]
    yield "% of memories with term 1, 11, 101, 1001", "  ".join(shares)
    once = sum(count == 1 for count in ranked) / max(len(ranked), 1)
    yield "terms in all, % of them once", f"{len(ranked):,}  {100 * once:.0f}"


def _spread(values: Sequence[float]) -> str:
    if not values:
        return "none"
    ordered = sorted(values)
    picked = [ordered[int(len(ordered) * share)] for share in (0.1, 0.5, 0.9)]
    return "  ".join(f"{value:.4g}" for value in [*picked, statistics.mean(ordered)])


def compare_shapes(logs: Path = SHARED) -> list[str]:
    """Return lines that compare the shape of these texts with that of real logs, if there are any."""
    randomness = random.Random(1)
    rows = [memory(randomness, number) for number in range(2000)]
    made = dict(
        shape(
            [text(row) for row in rows],
            [question(randomness, randomness.choice(rows)) for _ in range(800)],
        )
    )
    real = dict(shape(found, real_questions(logs))) if (found := real_memories(logs)) else {}
    lines = [
        f"{'p10  median  p90  mean':42}{'made here':32}{'agent logs' if real else ''}".rstrip()
    ]
    return lines + [
        f"{name:42}{figures:32}{real.get(name, '')}".rstrip() for name, figures in made.items()
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--logs", type=Path, default=SHARED)
    print("\n".join(compare_shapes(parser.parse_args().logs)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
