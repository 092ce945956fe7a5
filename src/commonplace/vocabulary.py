"""The fixed words of a record: its kind, a lesson's type, an outcome of feedback, a relation.

They, and the bounds of a question, have a module of their own because completions and help texts
need them, and loading all of `records/` for a list of words would take longer than a server takes
to answer.
"""

KIND_NAMES = (
    "lesson",
    "episode",
    "pattern",
    "anti_pattern",
    "fact",
    "concept",
    "snippet",
    "tool",
    "persona",
    "task",
    "node",
    "handoff",
    "ledger",
    "context",
    "feedback",
    "link",
    "forget",
)
EVENT_TYPES = ("error", "success", "pattern", "learned", "decision")
OUTCOMES = ("worked", "failed", "wrong", "stale")
# How a task ended. A record may hold another word: other programs have their own.
EPISODE_OUTCOMES = ("success", "failure", "partial", "unknown")
# The other name of each relation. A link is kept under one of the two, in that direction.
INVERSES = {
    "source_of": "derived_from",
    "superseded_by": "supersedes",
    "elaborated_by": "elaborates",
    "has_example": "example_of",
    "has_instance": "is_a",
    "used_by": "uses",
}
# Relations that are the same in both directions.
SYMMETRIC = ("related_to", "contradicts")
RELATIONS = (*INVERSES.values(), *INVERSES, *SYMMETRIC)
# The most memories that an answer may hold.
LIMIT_MAX = 1000
# What is longer is no question: the rest of it is not read.
QUERY_CHARS_MAX = 4000
# The least tokens in which an answer always has room for the title of a memory.
TOKENS_MIN = 20
