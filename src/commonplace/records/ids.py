"""Ids: made from a record's content, so that the same content has the same id; or given."""

from __future__ import annotations

from commonplace.records.json_text import encode_sorted, type_name

# `hashlib` has the same function, and loads OpenSSL as well: 3 ms of every `commonplace log`.
try:
    from _blake2 import blake2b
except ImportError:  # Only CPython has this module.
    from hashlib import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    from commonplace.records.kinds import Record

__all__ = [
    "ID_CHARS_MAX",
    "blake2b",
    "check_id",
    "id_in_repo",
    "keyed_id",
    "make_id",
    "make_key",
    "slug",
]

ID_CHARS_MAX = 200
KEY_CHARS_MAX = 60

_HASH_BYTES = 7
_SLUG_CHARS_MAX = 28
_WORDS_ONLY = bytes(byte if bytes([byte]).isalnum() else ord(" ") for byte in range(256))


def make_id(record: Record) -> str:
    """Return a readable id that depends on the content of *record* alone."""
    fields = record.fields
    parts = [_normalize(fields.get(name)) for name in record.identity]
    content = "\x1f".join([record.kind, record.repo, *parts])
    digest = _hash(content, _HASH_BYTES)
    title = fields.get(record.title_field)
    if isinstance(title, dict):
        title = title.get("goal")
    words = slug(title, _SLUG_CHARS_MAX) if isinstance(title, str) else ""
    prefix = record.prefix or record.kind
    return f"{prefix}-{words}-{digest}" if words else f"{prefix}-{digest}"


def id_in_repo(ident: str, repo: str) -> str:
    """Return another id for a record of *repo*, if *ident* is that of another repository's record.

    Programs that count (`ep-2026-01-06-001`) give the same ids in every repository.
    """
    ending = f"-{_hash(repo, 3)}"
    return ident[: ID_CHARS_MAX - len(ending)] + ending


def slug(text: str, chars_max: int) -> str:
    """Return the first ASCII words of *text* that fit into *chars_max*, joined by hyphens."""
    words = text[: 2 * chars_max].lower().encode("ascii", "replace").translate(_WORDS_ONLY).split()
    joined = b"-".join(words)
    if len(joined) > chars_max:
        joined = joined[: chars_max + 1].rpartition(b"-")[0] or joined[:chars_max]
    return joined.decode("ascii")


def make_key(type_name: str, text: str) -> str:
    """Return the key of what was learned, as Beads makes it: type and first 60 characters, a slug.

    Two texts with one key are two versions of one thing.
    """
    start = text[:KEY_CHARS_MAX]
    words = slug(start, KEY_CHARS_MAX)
    # What is not ASCII is not in the slug: a hash tells such texts apart.
    parts = [type_name, words, "" if words and start.isascii() else _hash(_normalize(start), 4)]
    return "-".join(part for part in parts if part)


def keyed_id(key: str, repo: str) -> str:
    """Return the id of the record with *key* in *repo*; other repositories may use the same key."""
    ident = f"{key}-{_hash(repo, 3)}"
    try:
        check_id(ident)
    except ValueError:
        return f"learned-{_hash(key, _HASH_BYTES)}-{_hash(repo, 3)}"
    return ident


def _hash(text: str, size: int) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).hexdigest()


def check_id(value: object) -> None:
    """Raise `ValueError` unless *value* can be the id of a record."""
    if not isinstance(value, str):
        raise ValueError(f"must be text, not {type_name(value)}")
    if len(value) > ID_CHARS_MAX:
        raise ValueError(f"has {len(value)} characters, over {ID_CHARS_MAX}")
    if not (value.isascii() and value.isprintable()) or any(char in value for char in ' "\\'):
        raise ValueError(
            "may contain only ASCII letters, digits and punctuation; no spaces, quotes or"
            " backslashes"
        )
    if value.startswith("-"):
        raise ValueError("may not start with `-`, which a command line reads as an option")


def _normalize(value: object) -> str:
    """Return *value* as text without differences in case, spacing and Unicode composition."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else encode_sorted(value)
    if not text.isascii():
        from unicodedata import normalize  # noqa: PLC0415 (a large table, rarely needed)

        text = normalize("NFC", text)
    return " ".join(text.casefold().split())
