"""The one exception of redaction: plain words after the name of a password stay where they are.

Most are no passwords (`password: required`), so whoever writes them is told instead.
"""

from __future__ import annotations

from commonplace.redaction.names import name_kind
from commonplace.redaction.table import compile_pattern
from commonplace.redaction.values import is_stand_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_NAMED_WORD = (
    r"(?<![\w-])([\w-]{0,40}(?:password|passwd|passphrase|pwd|pw)) ?([:=]) ?([a-z]{4,40})\b"
)


def find_plain_password(text: str) -> str:
    """Return the first `password=` of *text* that a plain word follows, or an empty string."""
    for match in compile_pattern(_NAMED_WORD).finditer(text.lower()):
        name, sign, word = match.groups()
        if name_kind(name) == "password" and not is_stand_in(word):
            return name + sign
    return ""


def plain_password_note(fields: Mapping[str, object], record_id: str) -> str:
    """Return what to tell whoever wrote the texts in *fields*, or an empty string."""
    texts = (value for value in fields.values() if isinstance(value, str))
    name = next(filter(None, map(find_plain_password, texts)), "")
    if not name:
        return ""
    return (
        f"`{name}` is followed by a plain word, which was stored as it is; if that is a password, "
        f"remove it with `commonplace forget --erase {record_id}`"
    )
