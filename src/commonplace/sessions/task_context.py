"""What a session says about its task: its phase, and the constraints in its prompts.

Only what is stated counts. A phase that is guessed wrong, or a sentence that is no constraint,
would make unrelated tasks look alike.
"""

from __future__ import annotations

import re

CONSTRAINTS_MAX = 8
CONSTRAINT_CHARS_MIN = 8
CONSTRAINT_CHARS_MAX = 160
PROMPT_CHARS_MAX = 4000
# The phase that a word states: the first part of a branch such as `fix/login`, or a word in the
# name of an agent such as `code-reviewer`.
_PHASES = {
    "planning": ("plan", "planner", "planning"),
    "development": ("feat", "feature", "features", "develop", "developer", "development"),
    "debugging": ("fix", "bugfix", "hotfix", "debug", "debugger", "debugging"),
    "testing": ("test", "tests", "tester", "testing", "qa"),
    "review": ("review", "reviewer"),
    "refactoring": ("refactor", "refactoring"),
    "documentation": ("docs", "documentation"),
    "release": ("release", "releases"),
    "deployment": ("deploy", "deployment"),
}
_PHASE_OF_WORD = {word: phase for phase, words in _PHASES.items() for word in words}
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
# Quotes, shells, logs and indented code are not the user's own sentences.
_NO_SENTENCE = re.compile(r"\s{4}|\t|[>$|#]|\d+:|\[|at ")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")
_SENTENCE_END = re.compile(r"(?<=[.!;])\s+")
_CONSTRAINT = re.compile(
    r"^(?:please,? |and |but |also,? )*"
    r"(?:do not|don't|never|avoid|only use|use only|constraints?:|no more than|at most)\b"
    r"|\bmust(?: not| never|n't)?\b|\bshould never\b|, (?:but )?(?:do not|don't|never) \w"
    r"|\b(?:no|without|without any) (?:new|third[- ]party|external|additional|extra|breaking) \w"
    r"|\bwithout (?:adding|changing|touching|breaking|using|editing|modifying|removing) \w"
    r"|(?:[<≤]|\bunder|\bwithin|\bat most|\bno more than) ?\d+ ?"
    r"(?:ms|s|seconds?|minutes?|kb|mb|gb|%|lines?|tokens?)(?!\w)",
    re.IGNORECASE,
)


def phase_of(mode: str, role: str, branch: str) -> str:
    """Return the phase of a session; "" if nothing states it.

    *mode* is the agent's own mode, *role* the kind of agent that the session was started as.
    """
    if mode.lower() == "plan":
        return "planning"
    start, slash, _rest = branch.partition("/")
    words = [*re.split(r"[\W_]+", role.lower()), *([start.lower()] if slash else [])]
    return next((_PHASE_OF_WORD[word] for word in words if word in _PHASE_OF_WORD), "")


def constraints_in(prompt: str) -> list[str]:
    """Return the sentences of a prompt that state what must or must not be done."""
    found: dict[str, None] = {}
    for line in _CODE.sub("\n", prompt[:PROMPT_CHARS_MAX]).splitlines():
        if _NO_SENTENCE.match(line):
            continue
        for part in _SENTENCE_END.split(_BULLET.sub("", line).strip()):
            sentence = part.strip().rstrip(".;")
            is_short = CONSTRAINT_CHARS_MIN <= len(sentence) <= CONSTRAINT_CHARS_MAX
            if is_short and not sentence.endswith("?") and _CONSTRAINT.search(sentence):
                found[sentence] = None
    return list(found)[:CONSTRAINTS_MAX]
