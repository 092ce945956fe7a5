"""Names of repositories and agents: each is also the name of a file or folder on every system."""

from __future__ import annotations

from commonplace.records.json_text import quoted, type_name

REPO_BYTES_MAX = 120

_FORBIDDEN = '/\\:*?"<>|'
# Windows reserves these names, with any extension; a log with such a name could not be cloned
# there.
_WINDOWS_DEVICES = frozenset(
    [
        *("con", "conin$", "conout$", "prn", "aux", "nul"),
        *(port + n for port in ("com", "lpt") for n in "123456789¹²³"),
    ],
)
# Names that passed before: a bulk write gives the same one a million times.
_valid_names: set[str] = set()
_VALID_NAMES_MAX = 1000


def check_repo_name(value: object) -> str:
    """Return *value* if it can name a log file on every system and stays inside its folder.

    Raises `ValueError` otherwise.
    """
    if not isinstance(value, str):
        raise ValueError(f"must be text, not {type_name(value)}")
    if value in _valid_names:
        return value
    if not value.strip():
        raise ValueError("is empty")
    size = len(value.encode("utf-8", "surrogatepass"))
    if size > REPO_BYTES_MAX:
        raise ValueError(f"has {size} bytes, over {REPO_BYTES_MAX}")
    if (
        not value.isprintable()
        or value != value.strip()
        or any(char in value for char in _FORBIDDEN)
    ):
        raise ValueError(
            f"is {quoted(value)}: a name may not contain slashes, control characters or any of"
            ' : * ? " < > |, nor start or end with a space'
        )
    if value[0] in ".-" or value[-1] == ".":
        raise ValueError(
            f"is `{value}`: a name may not start with a dot or a hyphen, nor end with a dot"
        )
    if value.partition(".")[0].lower() in _WINDOWS_DEVICES:
        raise ValueError(f"is `{value}`, which Windows reserves for a device")
    if len(_valid_names) < _VALID_NAMES_MAX:
        _valid_names.add(value)
    return value
