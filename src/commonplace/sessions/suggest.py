"""Suggest memories from the index: for a prompt, and for a branch and its changes.

Only a server imports this, never a hook.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

from commonplace.announce import announcement
from commonplace.compose import tokens
from commonplace.compose.answer import header
from commonplace.errors import CommonplaceError
from commonplace.foreign import one_line
from commonplace.index.terms import query_terms
from commonplace.learn.brief import brief
from commonplace.learn.gathering import Task
from commonplace.learn.strictness import is_helpful, is_relevant
from commonplace.rules import Tally
from commonplace.sessions import start
from commonplace.sessions.replies import context_reply
from commonplace.where import git
from commonplace.where.head import git_head

if TYPE_CHECKING:
    from concurrent.futures import Future

    from commonplace.memory import Memory
    from commonplace.recall.hits import Hit
    from commonplace.records import Record
    from commonplace.sessions.events import Event
    from commonplace.sessions.state import State

PROMPT_TOKENS_MAX = 500
# Reserved for the JSON around the text.
ENVELOPE_TOKENS = 40
PROMPT_WORDS_MIN = 3
PROMPT_CHARS_MAX = 2000
HITS_MAX = 5
# Of the handoffs and ledgers, only the newest are looked at.
LEFT_MAX = 40
BRANCH_HITS_MAX = 4
GIT_S_MAX = 0.1
CHANGED_MAX = 20
RECENT_CANDIDATES_MAX = 40
_WORD = re.compile(r"\w{2,}")
_COMMON_WORDS = (
    "please fix test fail run make add change commit push main branch code file update work start"
    " stop help thanks good look see check go do again now all next step continue proceed task"
    " project repository repo error bug issue problem implement write create use need want try let"
    " think explain yes okay sure done finish new old way thing"
)
# Only knowledge is suggested. Episodes, tasks and handoffs are found by an explicit recall.
SUGGESTED_KINDS = (*start.KNOWLEDGE, "concept", "snippet", "tool")
_PLAIN_BRANCHES = frozenset(["main", "master", "develop", "trunk", "head", ""])


def for_prompt(memory: Memory, event: Event, session: State) -> str:
    """Return the memories that are relevant to a prompt and were not shown in the session yet.

    The first answer of a session is a brief; it is as strict about relevance.
    """
    prompt = event.prompt.strip()
    if prompt.startswith(("/", "!", "#")) or not is_specific(prompt):
        return ""
    relevance_min = memory.settings["hooks.relevance_min"]
    query = prompt[:PROMPT_CHARS_MAX]
    if not session.fields.get("briefed"):
        return _brief(memory, event, session, query, relevance_min)
    hits = _relevant(memory, query, session.shown_ids(), relevance_min)
    while hits:
        text = header(len(hits), PROMPT_TOKENS_MAX) + _number(hits)
        reply = context_reply(event, text)
        if tokens.count(reply) <= PROMPT_TOKENS_MAX:
            session.mark_shown([hit.id for hit in hits])
            return text if reply else ""
        hits = hits[:-1]
    return ""


def _brief(memory: Memory, event: Event, session: State, goal: str, relevance_min: float) -> str:
    """Return the brief before the task that a session begins with."""

    def accept(hit: Hit) -> bool:
        return is_helpful(hit, event.session) and is_relevant(hit, relevance_min)

    def fits(text: str) -> bool:
        return tokens.count(context_reply(event, text)) <= PROMPT_TOKENS_MAX

    with suppress(CommonplaceError):
        # Handoffs were shown when the session started.
        made = brief(
            memory,
            goal,
            Task(accept=accept),
            tokens=PROMPT_TOKENS_MAX,
            without=session.shown_ids(),
            relevance_min=relevance_min,
            fits=fits,
        )
        if found := made.hits():
            session.fields["briefed"] = True
            session.mark_shown([hit.id for hit in found])
            return made.text if context_reply(event, made.text) else ""
    return ""


def is_specific(prompt: str) -> bool:
    """Whether it has words of its own, unlike `please fix the failing tests`."""
    if len(_WORD.findall(prompt)) < PROMPT_WORDS_MIN:
        return False
    return bool(query_terms(prompt[:PROMPT_CHARS_MAX]).keys() - query_terms(_COMMON_WORDS).keys())


def for_start(memory: Memory, event: Event, session: State) -> start.StartContext:
    """Return the start context from the index, with what is known about the branch."""
    # git takes half of the time: it runs while the index is read.
    with ThreadPoolExecutor(1) as pool:
        listing = pool.submit(_changed_files, event.root)
        return _start_context(memory, event, session, listing)


def _start_context(
    memory: Memory, event: Event, session: State, listing: Future[list[str]]
) -> start.StartContext:
    unique, count = _recent(memory)
    recent = unique[: start.RECENT_MAX]
    kinds = ["handoff", "ledger"]
    left = [hit.record for hit in memory.recent(LEFT_MAX, kinds=kinds, automatic=True)]
    still_open = (
        one
        for one in left
        # Most are closed or for others; only for the rest is the feedback looked up.
        if start.is_open_handoff(one, Tally(), event)
        and start.is_open_handoff(one, Tally(**memory.describe(one.id)["feedback"]), event)
    )
    # At a start the context is empty, also in the middle of a session: memories may be shown again.
    shown = frozenset(record.id for record in recent)
    relevant, where = _about_branch(memory, event, session, shown, listing)
    session.mark_shown([record.id for record in recent])
    return start.StartContext(
        recent=recent,
        total=str(count),
        context=start.read_context(memory, event),
        handoff=next(still_open, None),
        ledger=next((one for one in left if start.is_recent_ledger(one, event)), None),
        relevant=relevant,
        where=where,
        announcement=announcement(memory, "agent"),
        candidates=start.count_candidates(memory),
    )


def _recent(memory: Memory) -> tuple[list[Record], int]:
    """Return the latest entries, one of each key, and how many entries there are in all."""
    wanted = RECENT_CANDIDATES_MAX
    while True:
        hits = memory.recent(wanted, kinds=start.KNOWLEDGE, automatic=True)
        unique = start.deduplicate(hit.record for hit in reversed(hits) if not hit.is_doubted)
        if len(hits) < wanted:
            return unique, len(unique)
        if len(unique) >= start.RECENT_MAX:
            return unique, _count(memory)
        wanted *= 4  # Many of them have the same key, or are doubted.


def _count(memory: Memory) -> int:
    kinds = memory.stats(query=memory.query(automatic=True))["kinds"]
    return sum(kinds.get(kind, 0) for kind in start.KNOWLEDGE)


def _about_branch(
    memory: Memory,
    event: Event,
    session: State,
    shown: frozenset[str],
    listing: Future[list[str]],
) -> tuple[str, str]:
    """Return what is known about the branch and its changed files, and a title for that."""
    if not event.root:
        return "", ""
    _commit, branch = git_head(event.root)
    changed = listing.result()
    words = " ".join(
        re.split(r"[\W_]+", "" if branch.lower() in _PLAIN_BRANCHES else branch.rpartition("/")[2])
    )
    query = " ".join([words, *(re.sub(r"[\W_]+", " ", path) for path in changed)]).strip()
    if not query:
        return "", ""
    with suppress(CommonplaceError):
        hits = _relevant(memory, query, shown, memory.settings["recall.relevance_min"], changed)[
            :BRANCH_HITS_MAX
        ]
        if hits:
            session.mark_shown([hit.id for hit in hits])
            names = (
                f"branch {one_line(branch)}" if words else "",
                f"{len(changed)} changed files" if changed else "",
            )
            where = " and ".join(name for name in names if name)
            return _number(hits), where
    return "", ""


def _relevant(
    memory: Memory,
    query: str,
    shown: frozenset[str],
    relevance_min: float,
    files: list[str] | None = None,
) -> list[Hit]:
    with suppress(CommonplaceError):
        found = memory.recall(
            query,
            kinds=SUGGESTED_KINDS,
            files=files or (),
            limit=HITS_MAX,
            tokens_max=PROMPT_TOKENS_MAX - ENVELOPE_TOKENS,
            relevance_min=relevance_min,
            without=shown,
            automatic=True,
        )
        return [hit for hit in found.hits if is_relevant(hit, relevance_min)]
    return []


def _number(hits: list[Hit]) -> str:
    return "\n".join(f"{number}. {hit.text}" for number, hit in enumerate(hits, 1))


def _changed_files(root: str) -> list[str]:
    """Return the files that `git status` lists as changed; none if it takes too long."""
    if not root:
        return []
    listing = git.output(root, "status", "--porcelain", "-z", "-uno", seconds_max=GIT_S_MAX)
    entries = listing.split("\0")
    return [entry[3:] for entry in entries if len(entry) > 3 and entry[2] == " "][:CHANGED_MAX]  # noqa: PLR2004
