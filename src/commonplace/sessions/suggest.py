"""What the index adds, where there is one at hand: memories for a prompt, and for a branch and its changed files.

Only a server imports this; a hook by itself never does.
"""

from __future__ import annotations

import os
import re
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING

from commonplace.compose import tokens
from commonplace.errors import CommonplaceError
from commonplace.index.terms import query_terms
from commonplace.rules import Tally
from commonplace.sessions import start
from commonplace.sessions.episode import head
from commonplace.sessions.replies import printed

if TYPE_CHECKING:
    from commonplace.memory import Memory
    from commonplace.recall.hits import Hit
    from commonplace.sessions.events import Event
    from commonplace.sessions.state import State

PROMPT_TOKENS_MAX = 500
# What the envelope takes of it.
ENVELOPE_TOKENS = 40
PROMPT_WORDS_MIN = 3
PROMPT_CHARS_ASKED = 2000
HITS_MAX = 5
HERE_HITS_MAX = 4
GIT_S_MAX = 0.1
CHANGED_MAX = 20
RECENT_LOOKED_AT = 40
_WORD = re.compile(r"\w{2,}")
_EVERYDAY = (
    "please fix test fail run make add change commit push main branch code file update work start stop help thanks"
    " good look see check go do again now all next step continue proceed task project repository repo error bug issue"
    " problem implement write create use need want try let think explain yes okay sure done finish new old way thing"
)
# By words alone relevance is the share of the prompt they cover, which is less than what words and meaning agree on.
WORDS_SHARE = 0.75
# Everyday words of a prompt stand in any long memory. Of 40 prompts that had nothing to do with 2,357 memories,
# 16 were given some, with this bound 5; of 146 that had, 127 were given the right one, and 123 with it. (Relevance was
# half words and half meaning then. With more meaning in it, as now: 1 of 30 instead of none; 77 % of 217 as before.)
MEANING_MIN = 0.35
# What nobody asked for is knowledge: how a session went, a task or a handoff is told to those who ask.
UNASKED = (*start.KNOWLEDGE, "concept", "snippet", "tool")
_PLAIN_BRANCHES = frozenset(["main", "master", "develop", "trunk", "head", ""])


def for_prompt(memory: Memory, event: Event, known: State) -> str:
    """The memories that matter to the prompt of *event* and were not shown in this session yet."""
    prompt = event.prompt.strip()
    if prompt.startswith(("/", "!", "#")) or not _says_something(prompt):
        return ""
    least = memory.settings["hooks.relevance_min"]
    hits = _relevant(memory, prompt[:PROMPT_CHARS_ASKED], event, known.shown(), least)
    while hits:
        said = _listed("Relevant Memories", hits)
        shown = printed(event, said)
        if tokens.count(shown) <= PROMPT_TOKENS_MAX:
            known.show([hit.id for hit in hits])
            return said if shown else ""
        hits = hits[:-1]
    return ""


def _says_something(prompt: str) -> bool:
    """Whether it has words of its own: `please fix the failing tests` is said of every project every day."""
    if len(_WORD.findall(prompt)) < PROMPT_WORDS_MIN:
        return False
    return bool(query_terms(prompt[:PROMPT_CHARS_ASKED]).keys() - query_terms(_EVERYDAY).keys())


def for_start(memory: Memory, event: Event, known: State) -> start.Known:
    """What there is to say at a start: the same as the files say, by way of the index, and what matters here."""
    repos = start.repos(event)
    hits = memory.recent(RECENT_LOOKED_AT, repo=repos, kinds=start.KNOWLEDGE)
    unique = start.deduplicated(hit.record for hit in reversed(hits) if not hit.is_doubted)
    count = len(unique) if len(hits) < RECENT_LOOKED_AT else _counted(memory, repos)
    recent = unique[: start.RECENT_MAX]
    handoffs = [hit.record for hit in memory.recent(HITS_MAX, repo=repos, kinds=["handoff"])]
    still_open = [
        one
        for one in handoffs
        if start.is_open(one, Tally(**memory.describe(one.id)["feedback"]), event)
    ]
    # A start follows on an empty context, also in the middle of a session: what was shown before is gone from it.
    relevant, where = _here(memory, event, known, frozenset(record.id for record in recent))
    known.show([record.id for record in recent])
    return start.Known(
        recent=recent,
        total=str(count),
        context=start.context_of(memory, event),
        handoff=still_open[0] if still_open else None,
        relevant=relevant,
        where=where,
    )


def _counted(memory: Memory, repos: list[str]) -> int:
    kinds = memory.stats(repos)["kinds"]
    return sum(kinds.get(kind, 0) for kind in start.KNOWLEDGE)


def _here(memory: Memory, event: Event, known: State, above: frozenset[str]) -> tuple[str, str]:
    """What is known about the branch and the files that are changed in it."""
    if not event.root:
        return "", ""
    _commit, branch = head(event.root)
    changed = _changed(event.root)
    words = " ".join(
        re.split(r"[\W_]+", "" if branch.lower() in _PLAIN_BRANCHES else branch.rpartition("/")[2])
    )
    query = " ".join([words, *(re.sub(r"[\W_]+", " ", path) for path in changed)]).strip()
    if not query:
        return "", ""
    with suppress(CommonplaceError):
        hits = _relevant(
            memory, query, event, above, memory.settings["recall.relevance_min"], changed
        )[:HERE_HITS_MAX]
        if hits:
            known.show([hit.id for hit in hits])
            names = (
                f"branch {branch}" if words else "",
                f"{len(changed)} changed files" if changed else "",
            )
            where = " and ".join(name for name in names if name)
            return "\n".join(f"{number}. {hit.text}" for number, hit in enumerate(hits, 1)), where
    return "", ""


def _relevant(
    memory: Memory,
    query: str,
    event: Event,
    above: frozenset[str],
    relevance_min: float,
    files: list[str] | None = None,
) -> list[Hit]:
    by_words = relevance_min * WORDS_SHARE
    with suppress(CommonplaceError):
        found = memory.recall(
            query,
            repo=start.repos(event),
            kinds=UNASKED,
            files=files or (),
            limit=HITS_MAX,
            tokens_max=PROMPT_TOKENS_MAX - ENVELOPE_TOKENS,
            relevance_min=by_words,
            without=above,
            automatic=True,
        )
        return [hit for hit in found.hits if _matters(hit, relevance_min)]
    return []


def _matters(hit: Hit, relevance_min: float) -> bool:
    why = hit.why
    if why is None or why.meaning is None or why.relevance is None:
        return True  # Not embedded yet, or never: its words were asked for enough of the prompt already.
    return why.relevance >= relevance_min and why.meaning >= min(MEANING_MIN, relevance_min)


def _listed(title: str, hits: list[Hit]) -> str:
    lines = [f"{number}. {hit.text}" for number, hit in enumerate(hits, 1)]
    return "\n".join([f"**{title} ({len(hits)}):**", "", *lines])


def _changed(root: str) -> list[str]:
    """Files that git says were changed, if it says so in time."""
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            [  # noqa: S607
                "git",
                "--no-optional-locks",
                "-c",
                "core.fsmonitor=false",
                "status",
                "--porcelain",
                "-z",
                "-uno",
            ],
            cwd=root,
            capture_output=True,
            timeout=GIT_S_MAX,
            check=True,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
            stdin=subprocess.DEVNULL,
        )
        entries = done.stdout.decode("utf-8", "replace").split("\0")
        return [entry[3:] for entry in entries if len(entry) > 3 and entry[2] == " "][:CHANGED_MAX]  # noqa: PLR2004
    return []
