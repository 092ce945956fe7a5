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
    "handoff",
    "ledger",
    "context",
    "feedback",
    "link",
    "forget",
)
EVENT_TYPES = ("error", "success", "pattern", "learned", "decision")
OUTCOMES = ("worked", "failed", "wrong", "stale")
RELATIONS = (
    "derived_from",
    "related_to",
    "contradicts",
    "elaborates",
    "example_of",
    "supersedes",
    "superseded_by",
    "is_a",
    "uses",
)
# The most memories that an answer may hold.
LIMIT_MAX = 1000
# The least tokens in which an answer always has room for the title of a memory.
TOKENS_MIN = 20
