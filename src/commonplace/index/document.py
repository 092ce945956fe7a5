"""The searchable text of a record of any kind: its texts, the most useful first."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace import frontmatter
from commonplace.foreign import code, longer_fence
from commonplace.records.episodes import errors_of, goal_of, summarise
from commonplace.records.sentences import paragraphs_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from commonplace.records import Record

# Fields that are not searched: they identify, classify or count.
_UNSEARCHED_FIELDS = frozenset(
    ["id", "kind", "timestamp", "repo", "agent_id", "agent", "links", "meta", "embeddings",
     "resonance", "stats", "event_type", "success_rate", "outcome", "type", "confidence",
     "usage_count", "last_used", "source_episodes", "source", "key", "ts", "git_commit", "path",
     "title", "of", "to", "rel", "w", "children"],
)  # fmt: skip
# The fields that come first, in this order: instructions before background.
_ORDER = (
    "label",
    "context",
    "pattern",
    "what_fails",
    "lesson",
    "correct_approach",
    "prevention",
    "command",
    "incorrect_approach",
    "why",
    "conditions",
    "text",
    "payload",
    "errors_encountered",
    "content",
)
# A new skill has these lines, in this order, until somebody replaces them.
SKILL_PLACEHOLDERS = (
    "- What must be there before the first step",
    "1. The first step",
    "- An error: what fixes it",
    "- How to see that it worked",
)
# The `event_type` of a context that `build_context` saved, and the frames of one that an agent
# wrote itself.
BUILT_CONTEXT = "built"
CONTEXT_KINDS = ("problem", "episodic", "scratchpad")
# Fields that are searched and not shown: they say nothing by themselves.
_LABELS = frozenset(["tags", "bead", "files"])
# Fields that need no label: what they hold is what the record says.
_MAIN = frozenset(
    [*_ORDER, "text", "description", "definition", "details", "body", "summary", "code", "examples",
     "frames", "lesson", "title", "notes"],
)  # fmt: skip
# What is shorter is a status, a name or an address, not a sentence.
_PROSE_WORDS_MIN = 4
_NAME = re.compile(r"\w[\w -]{0,30}", re.ASCII)


class Document(NamedTuple):
    """A record as text: its title, all its searchable text, and what a reader sees of that."""

    title: str
    text: str
    shown: str


def document(record: Record) -> Document:
    """Return the title and the searchable text of any record."""
    fields = record.fields
    if record.kind in ("skill", "note"):
        text = str(fields.get("text", ""))
        text = without_placeholders(text) if record.kind == "skill" else text
        return _text_document(str(fields.get("title", "")), text)
    if record.kind == "episode":
        return _episode_document(record)
    if record.kind == "context":
        fields = {**fields, "frames": _frames_to_search(fields)}
    command = fields.get("command")
    if isinstance(command, str) and "\n" in command.strip():
        fence = longer_fence(command, "```")
        fields = {**fields, "command": f"{fence}\n{command}\n{fence}"}  # Keeps its line ends.
    if isinstance(payload := fields.get("payload"), dict) and isinstance(payload.get("code"), str):
        fields = {**fields, "payload": _with_code(payload)}
    texts = [(name, text) for name, text in _searchable_texts(fields) if text.strip()]
    searched = dict.fromkeys(text for _name, text in texts)
    told = paragraphs_of(record)
    seen = " ".join("\n".join(told).split())
    # The rest of a ledger is times and hashes.
    more = () if record.kind == "ledger" else texts
    lesson = fields.get("lesson")
    # Beside a text of several lines, a bare command says nothing.
    labelled = "command" if isinstance(lesson, str) and "\n" in lesson.strip() else ""
    # What has a label comes first: behind the text, it would seem to be of its last section.
    rest = sorted(
        (
            (name in _MAIN and name != labelled, _told(name, text, is_labelled=name == labelled))
            for name, text in more
            if _plain(text) not in seen
        ),
        key=lambda one: one[0],
    )
    shown = dict.fromkeys([*told, *(text for _is_main, text in rest if text)])
    return Document(_title(record), "\n\n".join(searched), "\n\n".join(shown))


def _with_code(payload: dict[str, Any]) -> dict[str, Any]:
    """Return the payload of a snippet with its code as a block, and its language at the fence."""
    code, language = payload["code"].strip("\n"), payload.get("language")
    if "\n" in code:
        fence = longer_fence(code, "```")
        word = language if isinstance(language, str) and language.isalnum() else ""
        code = f"{fence}{word}\n{code}\n{fence}"  # Keeps its line ends.
    rest = {name: value for name, value in payload.items() if name != "language"}
    return {**rest, "code": code}


def _told(name: str, text: str, *, is_labelled: bool) -> str:
    """Return a text as a reader sees it: with the name of its field, unless that is obvious.

    Status words, addresses, dates and lists of files tell a reader nothing.
    """
    if is_labelled:
        return (
            f"{name.capitalize()}:\n{text}"
            if "\n" in text
            else f"{name.capitalize()}: {code(text)}"
        )
    if name in _MAIN:
        return text
    if name in _LABELS or len(text.split()) < _PROSE_WORDS_MIN or not _NAME.fullmatch(name):
        return ""
    return f"{name.replace('_', ' ').capitalize()}: {text}"


def _plain(text: str) -> str:
    """Return *text* without what a sentence that holds it may leave out."""
    return " ".join(text.split()).rstrip(". ")


def _episode_document(record: Record) -> Document:
    """Return an episode as sentences; its other texts are searched, but for its actions."""
    goal = goal_of(record)
    sentences = {error: error.sentence for error in errors_of(record)}
    told = [goal, *sentences.values()]
    seen = "\n".join(told)
    # Nearly every text is a part of an error; hundreds of them are not searched for one by one.
    parts = {part for error, text in sentences.items() for part in error if part in text}
    fields = {name: value for name, value in record.fields.items() if name != "action_log"}
    rest = [
        text
        for _name, text in _searchable_texts(fields)
        if (plain := " ".join(text.split())) not in parts and plain not in seen
    ]
    texts = dict.fromkeys(text for text in (*told, *rest) if text.strip())
    return Document(goal, "\n\n".join(texts), summarise(record))


def has_nothing_to_search(record: Record) -> bool:
    """Whether the record repeats other ones only, and gets no vectors."""
    return record.kind == "context" and record.fields.get("event_type") == BUILT_CONTEXT


def _frames_to_search(fields: Mapping[str, Any]) -> list[Any]:
    """Return what an agent itself wrote in the frames of a context.

    The rest repeats other memories, and one that `build_context` saved repeats the question: it
    would be the best match for that.
    """
    frames = fields.get("frames")
    kinds = () if fields.get("event_type") == BUILT_CONTEXT else CONTEXT_KINDS
    blocks = frames if isinstance(frames, list) else []
    return [one.get("data") for one in blocks if isinstance(one, dict) and one.get("kind") in kinds]


def _text_document(title: str, text: str) -> Document:
    """Return the document of a file; of its front matter, only the description is searched."""
    fields, body = frontmatter.split(text)
    described = (fields or {}).get("description")
    about = " ".join(described.split()) if isinstance(described, str) else ""
    whole = f"{about}\n\n{body.strip()}" if about else body.strip()
    return Document(title, whole, whole)


def without_placeholders(text: str) -> str:
    """Return the text of a skill without the lines of the template that nobody has replaced."""
    if not any(line in text for line in SKILL_PLACEHOLDERS):
        return text
    return "\n".join(line for line in text.split("\n") if line.strip() not in SKILL_PLACEHOLDERS)


def about_and_body(shown: str) -> tuple[str, str]:
    """Return the description of a skill, "" if it has none, and the text after it."""
    about, _line, body = shown.partition("\n\n")
    return ("", shown) if about.startswith("#") else (about, body)


def _searchable_texts(fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the name of a field with each of its texts."""
    meta = fields.get("meta")
    found = {name: fields[name] for name in _ORDER if name in fields}
    found |= {
        name: value
        for name, value in fields.items()
        if name not in _UNSEARCHED_FIELDS and name not in _ORDER
    }
    if isinstance(meta, dict):
        found["bead"] = meta.get("bead")  # People look for what an issue has taught.
    for name, value in found.items():
        if name == "payload" and isinstance(value, dict):
            for key, held in value.items():
                yield from ((str(key), text) for text in _strings(held))
        else:
            yield from ((name, text) for text in _strings(value))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        if value and all(isinstance(item, str) for item in value):
            yield ", ".join(value)
        else:
            for item in value:
                yield from _strings(item)


def _title(record: Record) -> str:
    value = (
        record.fields.get(record.title_field) if record.title_field else record.fields.get("title")
    )
    if isinstance(value, dict):
        value = value.get("goal")
    return value if isinstance(value, str) else ""
