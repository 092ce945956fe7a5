"""The fixed words of a record: its kind, a lesson's type, an outcome of feedback, a relation.

They have a module of their own because completions and help texts need them, and loading all of
`records/` for a list of words would take longer than a server takes to answer.
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
EVENT_TYPES = ("error", "success", "pattern", "learned")
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
