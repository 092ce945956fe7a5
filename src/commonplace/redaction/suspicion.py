"""The quick test whether a line may contain a secret; only such lines are searched for one."""

from __future__ import annotations

from commonplace.redaction import table
from commonplace.redaction.names import FOREIGN_WORDS, KEY_OWNERS, NAME_WORDS
from commonplace.redaction.table import compile_pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# The rest of a secret's name after one of NAME_WORDS, with room for a value, in a line in lower
# case. It must accept everything that `assignments` finds, also where JSON has put backslashes
# before quotes.
_NAME_END = (
    r"(?:word|wd|phrase|orization|entials?)?(?:[_-]*(?:data|base))?[_.-]*"
    r"(?:(?: \[[\w*. -]{0,40}\])?[\"'`\\\]) ]*[:=>]|[\\\"',\snrt]*+value"
    r"|(?: (?:is|was|to|of))? [\"'`\\]*[^\s\"'`\\]{0,60}[0-9])"
)
# Looking this far back from a word of a name finds `api key` and `--db-secret`.
_OWNER_CHARS_MAX = 20
_FLAG_CHARS_MAX = 80

_LINE_KEYS = [key for rule in (*table.LINES, *table.COOKIES) for key in rule.keys]
_COMMAND_KEYS = [
    *(rule.key for rule in table.COMMANDS),
    *(key for key in _LINE_KEYS if key.startswith(" -")),
]
_WORD_KEYS = [key for key in _LINE_KEYS if not key.startswith(" -")]
_FOREIGN_ASCII = [word for word in FOREIGN_WORDS if word.isascii()]
_WEBHOOK_KEYS = [key for rule in table.WEBHOOKS for key in rule.keys]
_URL_KEYS = [key for rule in table.URLS for key in rule.keys]
_SIGNATURE_KEY = "sig="

# every access token has a run of RUN_MIN of these characters, and little else has.
_RUN_CHARACTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
_RUN_CLASSES = bytes(ord("x" if byte in _RUN_CHARACTERS else " ") for byte in range(256))
_RUN = b"x" * table.RUN_MIN
_ACCESS_TOKEN_KEYS = [key.encode() for rule in table.ACCESS_TOKENS for key in rule.keys]
_PLAIN_KEYS = [key for key in _ACCESS_TOKEN_KEYS if b"_" not in key and b"-" not in key]
_JOINED_KEYS = [key for key in _ACCESS_TOKEN_KEYS if b"_" in key or b"-" in key]
# The end of each of those at one of its joints, with the joint: most runs are ruled out by these.
_JOINTS = frozenset(
    key[at - 2 : at + 1] for key in _JOINED_KEYS for at in [max(key.rfind(b"_"), key.rfind(b"-"))]
)
# Only these are before a run that looks like a hash.
_HEX_KEYS = (b"earer ", b"v1.0-", b"pat")
# A line with more runs than this is searched for each key once before further runs are.
_FEW_RUNS = 8


def may_hold_secret(line: str) -> bool:
    """Whether *line*, a text or its JSON encoding, may contain a secret; False is certain.

    Each test looks for something that JSON encoding keeps: it only puts backslashes before quotes
    and backslashes, and writes control characters as a backslash and letters.
    """
    lowered = line.lower()
    if _has_any_name(lowered):
        return True
    if "@" in line and any(key in line for key in _URL_KEYS):
        return True
    if "<" in line and "<private" in lowered:
        return True
    if "%" in line and _SIGNATURE_KEY in line:
        return True
    if (" -" in line and _has_command(line)) or _has_one(line, _WORD_KEYS):
        return True
    return has_access_token(line)


def has_run(text: str) -> bool:
    """Whether *text* has a run of characters that is long enough for an access token."""
    return _RUN in text.encode("utf-8", "replace").translate(_RUN_CLASSES)


def has_access_token(line: str) -> bool:
    """Whether a long run of characters in *line* has the key of an access token in or before it."""
    # Mapping bytes to two classes turns "20 of these in a row" into a search for a literal, ten
    # times as fast as a regex.
    encoded = line.encode("utf-8", "replace")
    classes = encoded.translate(_RUN_CLASSES)
    start = classes.find(_RUN)
    if start < 0:
        return False
    plain, joined = _PLAIN_KEYS, _JOINED_KEYS
    runs = 0
    while start >= 0:
        end = classes.find(b" ", start)
        end = len(classes) if end < 0 else end
        before = max(0, start - table.KEY_LEAD)
        if _has_key(encoded[start:end], encoded[before:end], plain, joined):
            return True
        runs += 1
        if runs == _FEW_RUNS:
            plain = [key for key in plain if key in encoded]
            joined = [key for key in joined if key in encoded]
        start = classes.find(_RUN, end)
    return any(key in line for key in _WEBHOOK_KEYS)


def _has_key(run: bytes, run_and_lead: bytes, plain: list[bytes], joined: list[bytes]) -> bool:
    # Most runs are hashes, UUIDs or long plain names, in which there is no key to look for.
    if not run.strip(b"0123456789abcdef-"):
        return any(key in run_and_lead for key in _HEX_KEYS)
    if run.islower() and run.replace(b"_", b"").replace(b"-", b"").isalpha():
        return False
    for key in plain:
        if key in run_and_lead:
            return True
    return _has_joint(run_and_lead) and any(key in run_and_lead for key in joined)


def _has_joint(run: bytes) -> bool:
    for joint in (b"_", b"-"):
        at = run.find(joint)
        while at >= 0:
            if run[max(0, at - 2) : at + 1] in _JOINTS:
                return True
            at = run.find(joint, at + 1)
    return False


def _has_any_name(lowered: str) -> bool:
    for word in NAME_WORDS:
        if word in lowered and _has_name(lowered, word):
            return True
    return _has_one(lowered, _FOREIGN_ASCII if lowered.isascii() else FOREIGN_WORDS)


def _has_one(line: str, keys: Sequence[str]) -> bool:
    # A loop takes half the time of `any`, and every line pays for it.
    for key in keys:  # noqa: SIM110
        if key in line:
            return True
    return False


def _has_name(lowered: str, word: str) -> bool:
    """Whether some *word* in *lowered* ends the name of a secret that a value may follow."""
    if word == "_pat" and lowered.count("_pat") == lowered.count("_path"):
        return False
    if (word == "key" and "private key" in lowered) or "setx" in lowered:
        return True
    if word == "pass" and "login" in lowered and ("machine" in lowered or "default" in lowered):
        return True
    at = lowered.find(word)
    while at >= 0:
        end = at + len(word)
        if word != "key" or _has_key_owner(lowered, at):
            if compile_pattern(_NAME_END).match(lowered, end):
                return True
            flag = lowered.rfind("--", max(0, at - _FLAG_CHARS_MAX), at)
            if flag >= 0 and " " not in lowered[flag:at]:
                return True
        at = lowered.find(word, end)
    return False


def _has_key_owner(lowered: str, at: int) -> bool:
    before = lowered[max(0, at - _OWNER_CHARS_MAX) : at]
    return before.rstrip(" _.-").endswith(KEY_OWNERS)


def _has_command(line: str) -> bool:
    # Most dashes are between words, and then there is no option of a command.
    if line.count(" -") == line.count(" - "):
        return False
    return _has_one(line, _COMMAND_KEYS)
