"""Records: every kind as a typed value; a line to a record and back.

A record keeps the JSON object it was read from, so that fields nobody here knows survive a round trip in their
order. The classes below name and check the fields we do know. The standard library alone: this module is on the
path of every hook and of `commonplace log` (docs/decisions/0002-records-without-msgspec.md).
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from commonplace.errors import RecordInvalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

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
ID_CHARS_MAX = 200
REPO_BYTES_MAX = 120
TAGS_MAX = 64
# A reader takes longer lines than a writer may make (`line_bytes_max`): other programs write too.
LINE_READ_BYTES_MAX = 64 << 20
# Whoever walks a record may use a function call a level; Python allows some hundreds.
DEPTH_MAX = 64

# Device names Windows gives a meaning of their own, with any extension; a log named so could not be cloned there.
_WINDOWS_DEVICES = frozenset(
    [
        "con",
        "conin$",
        "conout$",
        "prn",
        "aux",
        "nul",
        *(port + n for port in ("com", "lpt") for n in "123456789¹²³"),
    ],
)


class Link(NamedTuple):
    """A typed, weighted edge to another record."""

    to: str
    rel: str
    w: float


class Rate(NamedTuple):
    """`success_rate`: how often it worked, of how many times."""

    worked: int
    tried: int

    def __str__(self) -> str:
        return f"{self.worked}/{self.tried}"


_NOTHING: Mapping[str, Any] = MappingProxyType({})


# --- Fields: what a kind's attribute may hold ---------------------------------------------------------------------


class _Field:
    """One known field of a kind. Reading an absent one gives its default."""

    __slots__ = ("check", "check_read", "default", "name", "required")

    def __init__(
        self,
        check: Callable[[Any], None],
        default: object,
        *,
        required: bool,
        check_read: Callable[[Any], None] | None = None,
    ) -> None:
        self.check = check
        # What is read may come from a newer version: a choice we do not know is no damage.
        self.check_read = check_read or check
        self.default = default
        self.required = required
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, record: Record | None, owner: type | None = None) -> Any:  # noqa: ANN401
        if record is None:
            return self
        value = record.fields.get(self.name)
        return self.default if value is None else value


def _check_text(value: object) -> None:
    if not isinstance(value, str):
        raise ValueError(f"must be text, not {_json_type(value)}")


def _check_filled_text(value: object) -> None:
    _check_text(value)
    assert isinstance(value, str)
    if not value.strip():
        raise ValueError("is empty")


def _check_texts(value: object) -> None:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError("must be a list of texts")


def _check_tags(value: object) -> None:
    _check_texts(value)
    assert isinstance(value, list)
    if len(value) > TAGS_MAX:
        raise ValueError(f"has {len(value)} entries, over {TAGS_MAX}")


def _check_list(value: object) -> None:
    if not isinstance(value, list):
        raise ValueError(f"must be a list, not {_json_type(value)}")


def _check_mapping(value: object) -> None:
    if not isinstance(value, dict):
        raise ValueError(f"must be an object, not {_json_type(value)}")


def _check_number(value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"must be a number, not {_json_type(value)}")
    if not -_NUMBER_MAX <= value <= _NUMBER_MAX:
        raise ValueError("is a number too large to reckon with")


def _check_share(value: object) -> None:
    _check_number(value)
    assert isinstance(value, int | float)
    if not 0 <= value <= 1:
        raise ValueError("must lie between 0 and 1")


def _check_count(value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError("must be a whole number, 0 or more")


def _check_rate(value: object) -> None:
    parse_rate(value)


def _check_time(value: object) -> None:
    to_utc(value)


def _check_links(value: object) -> None:
    _check_links_read(value)
    assert isinstance(value, list)
    for link in value:
        if link.get("w") is not None and not 0 <= link["w"] <= 1:
            raise ValueError("has a link whose `w` does not lie between 0 and 1")


def _check_links_read(value: object) -> None:
    _check_list(value)
    assert isinstance(value, list)
    for link in value:
        if not isinstance(link, dict) or not isinstance(link.get("to"), str):
            raise ValueError('must be a list of objects like {"to": ID, "rel": "related_to"}')
        if not isinstance(link.get("rel", link.get("relation", "")), str):
            raise ValueError("has a link whose `rel` is not text")
        if link.get("w") is not None:
            _check_number(link["w"])


def _check_anything(_value: object) -> None:
    """A payload is the caller's own."""


def _text(*, required: bool = False) -> Any:  # noqa: ANN401
    return _Field(_check_filled_text if required else _check_text, "", required=required)


def _choice(options: Sequence[str]) -> Any:  # noqa: ANN401
    def check(value: object) -> None:
        if value not in options:
            raise ValueError(f"is `{value}`, not one of {', '.join(options)}")

    return _Field(check, "", required=True, check_read=_check_text)


def _of(
    check: Callable[[Any], None],
    default: object = None,
    *,
    required: bool = False,
    check_read: Callable[[Any], None] | None = None,
) -> Any:  # noqa: ANN401
    return _Field(check, default, required=required, check_read=check_read)


# --- Kinds --------------------------------------------------------------------------------------------------------


class Record:
    """One line of the log: a value that is never edited; a later record with the same id may replace it."""

    __slots__ = ("fields", "redactions")
    known: ClassVar[dict[str, _Field]] = {}
    prefix: ClassVar[str] = "rec"
    # The fields an id is made from, and the one whose words make it readable.
    identity: ClassVar[tuple[str, ...]] = ()
    title_field: ClassVar[str] = ""
    # Its times besides `timestamp`, which are written in UTC as well.
    times: ClassVar[tuple[str, ...]] = ()

    id: str = _text(required=True)
    kind: str = _text(required=True)
    timestamp: str = _of(_check_time, "", required=True)
    agent_id: str = _text()
    repo: str = _text()
    tags: Sequence[str] = _of(_check_tags, ())
    meta: Mapping[str, Any] = _of(_check_mapping, _NOTHING)
    links: Sequence[Mapping[str, Any]] = _of(_check_links, (), check_read=_check_links_read)

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields
        # What the door took out as this was written: kinds and fields, never a value.
        self.redactions: tuple[Any, ...] = ()

    def __init_subclass__(cls) -> None:
        cls.known = {
            name: field for base in reversed(cls.__mro__) for name, field in _fields_of(base)
        }

    @property
    def edges(self) -> tuple[Link, ...]:
        """`links` as typed edges; `relation` is what seed 001 calls `rel`."""
        return tuple(
            Link(
                link["to"],
                link.get("rel") or link.get("relation") or "related_to",
                _weight(link.get("w")),
            )
            for link in self.links
        )

    @property
    def sources(self) -> tuple[str, ...]:
        """The ids of the records this one was derived from."""
        return tuple(edge.to for edge in self.edges if edge.rel == "derived_from")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and self.fields == other.fields

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"


def _weight(value: float | None) -> float:
    return 1.0 if value is None else float(min(max(value, 0), 1))


def _fields_of(cls: type) -> list[tuple[str, _Field]]:
    return [(name, value) for name, value in vars(cls).items() if isinstance(value, _Field)]


Record.known = dict(_fields_of(Record))


class Lesson(Record):
    """What was learned: an error and its remedy, a solution, a pattern (seeds 000 and 003)."""

    __slots__ = ()
    prefix = "les"
    identity = ("context", "command", "lesson")
    title_field = "lesson"
    event_type: str = _choice(EVENT_TYPES)
    context: str = _text()
    command: str = _text()
    lesson: str = _text(required=True)
    success_rate: str = _of(_check_rate, "")


class Episode(Record):
    """The trace of one task (seed 001)."""

    __slots__ = ()
    prefix = "ep"
    identity = ("task_id", "timestamp", "context")
    title_field = "context"
    task_id: str = _text(required=True)
    duration_seconds: float = _of(_check_number, 0)
    context: Mapping[str, Any] = _of(_check_mapping, _NOTHING)
    action_log: Sequence[Mapping[str, Any]] = _of(_check_list, ())
    outcome: str = _text()
    errors_encountered: Sequence[Mapping[str, Any]] = _of(_check_list, ())
    artifacts_produced: Sequence[str] = _of(_check_texts, ())
    git_commit: str = _text()


class Pattern(Record):
    """Knowledge cut loose from single episodes, with its evidence (seed 001)."""

    __slots__ = ()
    prefix = "pat"
    identity = ("pattern",)
    title_field = "pattern"
    times = ("last_used",)
    pattern: str = _text(required=True)
    category: str = _text()
    conditions: Sequence[str] = _of(_check_texts, ())
    correct_approach: str = _text()
    incorrect_approach: str = _text()
    confidence: float = _of(_check_share, 0.0)
    source_episodes: Sequence[str] = _of(_check_texts, ())
    usage_count: int = _of(_check_count, 0)
    last_used: str = _of(_check_time, "")

    @property
    def sources(self) -> tuple[str, ...]:
        return (*super().sources, *self.source_episodes)


class AntiPattern(Record):
    """What fails, why, and how to avoid it (seed 001)."""

    __slots__ = ()
    prefix = "anti"
    identity = ("what_fails", "why", "prevention")
    title_field = "what_fails"
    what_fails: str = _text(required=True)
    why: str = _text()
    prevention: str = _text()
    source: str = _text()

    @property
    def sources(self) -> tuple[str, ...]:
        return (*super().sources, *([self.source] if self.source else []))


class Node(Record):
    """A point of the graph (seed 002): fact, concept, snippet, tool, persona or task."""

    __slots__ = ()
    prefix = ""  # A node's id starts with its kind: `fact-…`, `snippet-…`.
    identity = ("type", "label", "payload")
    title_field = "label"
    type: str = _text()
    label: str = _text(required=True)
    payload: Any = _of(_check_anything)
    children: Mapping[str, str] = _of(_check_mapping, _NOTHING)
    stats: Mapping[str, Any] = _of(_check_mapping, _NOTHING)


class Handoff(Record):
    """What one agent leaves for the next (seed 001)."""

    __slots__ = ()
    prefix = "handoff"
    identity = ("from_agent", "to_agent", "timestamp", "context")
    title_field = "to_agent"
    from_agent: str = _text(required=True)
    to_agent: str = _text(required=True)
    context: Mapping[str, Any] = _of(_check_mapping, _NOTHING)


class Ledger(Record):
    """An agent's checkpoint; its latest version is where the agent stands (seed 001)."""

    __slots__ = ()
    prefix = "ledger"
    identity = ("agent_id",)
    title_field = "agent_id"
    times = ("last_checkpoint",)
    last_checkpoint: str = _of(_check_time, "")
    tasks_completed: int = _of(_check_count, 0)
    current_task: str = _text()
    state: Mapping[str, Any] = _of(_check_mapping, _NOTHING)
    context: Mapping[str, Any] = _of(_check_mapping, _NOTHING)


class Context(Record):
    """The saved frames of a task (seed 002)."""

    __slots__ = ()
    prefix = "ctx"
    identity = ("task_id",)
    title_field = "task_id"
    task_id: str = _text(required=True)
    frames: Sequence[Mapping[str, Any]] = _of(_check_list, ())


class Feedback(Record):
    """One outcome of using a record. Each is a record of its own, so that counts add up when logs merge."""

    __slots__ = ()
    prefix = "fb"
    identity = ("of", "outcome", "agent_id", "timestamp")
    title_field = "outcome"
    of: str = _text(required=True)
    outcome: str = _choice(OUTCOMES)


class LinkRecord(Record):
    """An edge stated after both its ends were written."""

    __slots__ = ()
    prefix = "link"
    identity = ("of", "rel", "to")
    title_field = "rel"
    of: str = _text(required=True)
    to: str = _text(required=True)
    rel: str = _choice(RELATIONS)
    w: float = _of(_check_share, 1.0, check_read=_check_number)


class Forget(Record):
    """Hides a record and what derives from it."""

    __slots__ = ()
    prefix = "forget"
    identity = ("of",)
    of: str = _text(required=True)
    reason: str = _text()


KINDS: dict[str, type[Record]] = {
    "lesson": Lesson,
    "episode": Episode,
    "pattern": Pattern,
    "anti_pattern": AntiPattern,
    "fact": Node,
    "concept": Node,
    "snippet": Node,
    "tool": Node,
    "persona": Node,
    "task": Node,
    "handoff": Handoff,
    "ledger": Ledger,
    "context": Context,
    "feedback": Feedback,
    "link": LinkRecord,
    "forget": Forget,
}


# --- Making, reading and writing ----------------------------------------------------------------------------------


def make(given: Mapping[str, Any], *, now: datetime, repo: str, agent_id: str) -> Record:
    """The record that *given* describes: times in UTC, defaults filled in, checked, with its id.

    A field of ours that is `None` counts as absent. Raises `RecordInvalid`.
    """
    kind = given.get("kind") or "lesson"
    cls = KINDS.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise RecordInvalid("kind", f"is `{kind}`, not one of {', '.join(KINDS)}")
    fields: dict[str, Any] = {
        "id": "",
        "kind": kind,
        "timestamp": "",
        "agent_id": agent_id,
        "repo": repo,
    }
    known = cls.known
    fields |= {
        name: value for name, value in given.items() if value is not None or name not in known
    }
    fields["timestamp"] = _checked("timestamp", to_utc, fields["timestamp"] or now)
    for name in cls.times:
        if fields.get(name) is not None:
            fields[name] = _checked(name, to_utc, fields[name])
    fields["repo"] = _checked("repo", checked_repo, fields["repo"] or repo)
    if fields["id"]:
        _checked("id", check_id, fields["id"])
    record = cls(fields)
    _check_written(record, made=not fields["id"])
    if not fields["id"]:
        fields["id"] = _checked("record", made_id, record)
    return record


def _check_written(record: Record, *, made: bool) -> None:
    """Raise `RecordInvalid` for the first field that does not hold what its kind says.

    With *made*, the id is still to be made, so its absence is no fault.
    """
    fields = record.fields
    name = ""
    try:
        for name, field in record.known.items():
            value = fields.get(name)
            if value is None:
                if field.required:
                    raise ValueError("is missing")
            elif not (made and name == "id"):
                field.check(value)
    except ValueError as error:
        raise RecordInvalid(name, str(error)) from None


def _checked(name: str, function: Callable[[Any], Any], value: object) -> Any:  # noqa: ANN401
    try:
        return function(value)
    except ValueError as error:
        raise RecordInvalid(name, str(error)) from None


def from_line(raw: bytes) -> Record:
    """The record in one line of a log. Raises `ValueError` with the reason when it holds none.

    A kind nobody here knows is a plain `Record`: a newer version wrote it, and it is kept.
    """
    fields = decode(raw)
    cls = (
        KINDS.get(fields.get("kind", ""), Record) if isinstance(fields.get("kind"), str) else Record
    )
    for name, field in cls.known.items():
        value = fields.get(name)
        if value is not None:
            try:
                field.check_read(value)
            except ValueError as error:
                raise ValueError(f"`{name}` {error}") from None
        elif field.required:
            raise ValueError(f"`{name}` is missing")
    return cls(fields)


def decode(raw: bytes) -> dict[str, Any]:
    """The JSON object in *raw*, or `ValueError` with the reason in plain words."""
    if len(raw) > LINE_READ_BYTES_MAX:
        raise ValueError(f"is longer than {LINE_READ_BYTES_MAX:,} bytes")
    try:
        text = raw.decode("utf-8")
        value = _DECODER.decode(text)
    except UnicodeDecodeError:
        raise ValueError("is not valid UTF-8") from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"is not JSON ({error})") from None
    if not isinstance(value, dict):
        raise ValueError(f"is not a JSON object but {_json_type(value)}")
    check_depth(value, text)
    if "\\" in text and ("\\ud" in text or "\\uD" in text):
        _refuse_surrogates(value)
    return value


def check_depth(fields: Mapping[str, Any], text: str) -> None:
    """Raise `ValueError` if *fields*, whose JSON is *text*, are nested over `DEPTH_MAX` levels deep."""
    if text.count("{") + text.count("[") <= DEPTH_MAX:
        return
    level: list[Any] = [fields]
    for _ in range(DEPTH_MAX):
        inner = (value.values() if isinstance(value, dict) else value for value in level)
        level = [
            value for values in inner for value in values if isinstance(value, dict | list | tuple)
        ]
        if not level:
            return
    raise ValueError(f"is nested over {DEPTH_MAX} levels deep")


def _refuse_surrogates(fields: Mapping[str, Any]) -> None:
    try:
        encode(fields).encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("is not valid UTF-8 (a lone surrogate)") from None


def encode(fields: Mapping[str, Any]) -> str:
    """One line of a log, without its newline; `ValueError` for what JSON cannot hold."""
    return _encoded(_ENCODER, fields)


def _encoded(encoder: json.JSONEncoder, value: object) -> str:
    try:
        return encoder.encode(value)
    except (TypeError, RecursionError) as error:
        raise ValueError(f"cannot be written as JSON: {error}") from None


def to_line(record: Record) -> bytes:
    """The line that `from_line` turns back into *record*, newline included."""
    return encode(record.fields).encode("utf-8") + b"\n"


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not -_NUMBER_MAX <= number <= _NUMBER_MAX:
        raise ValueError(f"{text[:20]} is too large a number")
    return number


_NUMBER_MAX = sys.float_info.max
_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_SORTING_ENCODER = json.JSONEncoder(sort_keys=True)


# --- Ids, names, times --------------------------------------------------------------------------------------------

_NOT_A_WORD = bytes(byte if chr(byte).isalnum() and byte < 128 else 32 for byte in range(256))
_SLUG_CHARS_MAX = 28
# Names already found good: a bulk write brings the same one a million times.
_REPOS_SEEN: set[str] = set()
_REPOS_SEEN_MAX = 1000


def made_id(record: Record) -> str:
    """A readable id made from the content, so that the same capture twice is one record."""
    fields = record.fields
    parts = [_normalised(fields.get(name)) for name in record.identity]
    content = "\x1f".join([record.kind, record.repo, *parts])
    digest = blake2b(content.encode("utf-8", "surrogatepass"), digest_size=7).hexdigest()
    title = fields.get(record.title_field)
    if isinstance(title, dict):
        title = title.get("goal")
    words = slug(title, _SLUG_CHARS_MAX) if isinstance(title, str) else ""
    prefix = record.prefix or record.kind
    return f"{prefix}-{words}-{digest}" if words else f"{prefix}-{digest}"


def slug(text: str, chars_max: int) -> str:
    """The ASCII words of *text*, joined by hyphens, whole words as far as they fit."""
    words = text[: 2 * chars_max].lower().encode("ascii", "replace").translate(_NOT_A_WORD).split()
    joined = b"-".join(words)
    if len(joined) > chars_max:
        joined = joined[: chars_max + 1].rpartition(b"-")[0] or joined[:chars_max]
    return joined.decode("ascii")


def _normalised(value: object) -> str:
    """Text as an id sees it: case, spacing and Unicode composition do not make another record."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else _encoded(_SORTING_ENCODER, value)
    if not text.isascii():
        from unicodedata import normalize  # noqa: PLC0415 (a large table, needed by few)

        text = normalize("NFC", text)
    return " ".join(text.casefold().split())


def check_id(value: object) -> None:
    if not isinstance(value, str):
        raise ValueError(f"must be text, not {_json_type(value)}")
    if len(value) > ID_CHARS_MAX:
        raise ValueError(f"has {len(value)} characters, over {ID_CHARS_MAX}")
    if (
        not value.isascii()
        or not value.isprintable()
        or " " in value
        or '"' in value
        or "\\" in value
    ):
        raise ValueError(
            "may hold ASCII letters, digits and punctuation only; no spaces, quotes or backslashes"
        )
    if value.startswith("-"):
        raise ValueError("may not start with `-`: a command line would take it for a flag")


def checked_repo(value: object) -> str:
    """*value*, if it can name a log file on every system; `ValueError` if it could reach outside the folder."""
    if not isinstance(value, str):
        raise ValueError(f"must be text, not {_json_type(value)}")
    if value in _REPOS_SEEN:
        return value
    if not value.strip():
        raise ValueError("is empty")
    size = len(value.encode("utf-8", "surrogatepass"))
    if size > REPO_BYTES_MAX:
        raise ValueError(f"has {size} bytes, over {REPO_BYTES_MAX}")
    if (
        not value.isprintable()
        or value != value.strip()
        or any(char in value for char in '/\\:*?"<>|')
    ):
        raise ValueError(
            f'is {value!r}: a name has no slashes, control characters, outer spaces or : * ? " < > |'
        )
    if value[0] in ".-" or value[-1] == ".":
        raise ValueError(
            f"is `{value}`: a name may not start with a dot or a hyphen, nor end with a dot"
        )
    if value.partition(".")[0].lower() in _WINDOWS_DEVICES:
        raise ValueError(f"is `{value}`, a device on Windows")
    if len(_REPOS_SEEN) < _REPOS_SEEN_MAX:
        _REPOS_SEEN.add(value)
    return value


def parse_rate(value: object) -> Rate:
    """`"X/Y"` as numbers; `ValueError` unless 0 ≤ X ≤ Y."""
    worked, slash, tried = value.partition("/") if isinstance(value, str) else ("", "", "")
    if not (slash and _is_number(worked) and _is_number(tried)):
        raise ValueError(f"is {value!r}, not of the form X/Y, e.g. 9/10")
    rate = Rate(int(worked), int(tried))
    if rate.worked > rate.tried:
        raise ValueError(f"is {value!r}: it cannot have worked more often than it was tried")
    return rate


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 9


def to_utc(value: object) -> str:
    """A time as RFC 3339 in UTC (`2026-01-31T09:30:00Z`); one without a zone counts as UTC."""
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError(f"is {value!r}, not a time such as 2026-01-31T09:30:00Z") from None
        # A week date or a time without colons may be as long; the marks stand in their places only in our own form.
        if len(value) == 20 and value[4::3] == "--T::Z":
            return value
    elif isinstance(value, datetime):
        moment = value
    else:
        raise ValueError(f"must be a time such as 2026-01-31T09:30:00Z, not {_json_type(value)}")
    try:
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"is {value!r}, outside the years 1 to 9999") from None
    return moment.replace(tzinfo=None).isoformat() + "Z"


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micros(timestamp: str) -> int:
    """Whole microseconds since 1970 of a timestamp that `to_utc` accepts: times to compare."""
    moment = datetime.fromisoformat(to_utc(timestamp))
    passed = moment - _EPOCH
    return (passed.days * 86_400 + passed.seconds) * 1_000_000 + passed.microseconds


def _json_type(value: object) -> str:
    names: dict[type, str] = {
        str: "text",
        bool: "true or false",
        int: "a number",
        float: "a number",
        list: "a list",
        dict: "an object",
        type(None): "null",
    }
    return names.get(type(value), type(value).__name__)
