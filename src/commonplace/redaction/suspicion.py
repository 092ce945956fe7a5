"""The quick test whether a line may contain a secret; only such lines are searched for one."""

from __future__ import annotations

from itertools import pairwise

from commonplace.redaction import table
from commonplace.redaction.drawn_runs import may_hold_drawn_run
from commonplace.redaction.names import FOREIGN_WORDS, KEY_OWNERS, NAME_WORDS, TOLD_GAP
from commonplace.redaction.places import PASSWORD_OPTIONS, PLACES, REGIONS
from commonplace.redaction.table import compile_pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# The rest of a secret's name after one of NAME_WORDS, with room for a value, in a line in lower
# case. It must accept everything that `assignments` finds, also where JSON has put backslashes
# before quotes.
_NAME_END = (
    r"(?:word|wd|d|code|phrase|orization|entials?)?(?:[_-]*(?:data|base))?[_.-]*"
    r"(?:(?: [\[(][\w*. @-]{0,40}[\])])?[\"'`\\\]) ]*[:=>]|</key>|[\"'\\]++, ?[\"'\\]|s?\([\"'\\]"
    r"|[\\\"',\snrt]*+value|[\"'\\]++ ?\{"
    r"|(?: [\w:-]{1,20}=[\"'\\]{1,3}[\w.-]{1,40}[\"'\\]{1,3}){1,3}>"
    r"|:?\*\*|(?: (?:is|was|to|of))?:? {1,12}[\"'`\\]*[^\s\"'`\\]{0,60}[0-9]"
    rf"|{TOLD_GAP})"
)
# After `password` in prose, a long word may be one without a digit.
_PASS_END = (
    rf"{_NAME_END}|[a-z_.-]{{0,12}}+(?: (?:is|was|to|of))?:? {{1,12}}[\"'`\\]*[^\s\"'`\\]{{10}}"
)
# The rest after `key` of a name whose owner proves nothing: only a random value makes it a secret.
_KEY_END = r"[\"'`\\\]) ]*+[:=,]{0,2}>?[\"'`\\ ]*+[a-z0-9+/=_.~-]{16}"
_NAME_CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789_-"
# Looking this far back from a word of a name finds `api key` and `--db-secret`.
_OWNER_CHARS_MAX = 20
_FLAG_CHARS_MAX = 80

_KEYS = [
    *(key for rule in (*table.LINES, *table.COOKIES) for key in rule.keys),
    *(key for place in PLACES for key in place.keys),
    *(key for region in REGIONS for key in region.keys),
]
_OPTION_KEYS = [
    *(row.key for row in table.COMMANDS),
    *(key for key in _KEYS if key.startswith(" -") and key not in PASSWORD_OPTIONS),
]
# `mkdir -p src` is far more common than a password after `-p`.
_LONG_ARGUMENT = r" -(?:p|P|pw|passwd) [\"'\\]*[^\s\"'\\/:|;&<>$]{8}"
# Keys that are no whole words are searched for one by one, so there should be few.
_PART_KEYS = ("ookie", "8Q~", "<<<", "]:", ":*:", "AKIA", "ASIA", "-us")
# Other keys by their longest word. One split of a line and one look-up for each of its words takes
# far less time than a search for each of some hundred keys.
_WORD_BYTES = bytes(byte if bytes([byte]).isalnum() else ord(" ") for byte in range(256))
_KEYS_OF_WORD: dict[bytes, list[str]] = {}
for _key in _KEYS:
    if _key not in _PART_KEYS and not _key.startswith(" -"):
        _word = max(_key.lower().encode().translate(_WORD_BYTES).split(), key=len)
        _KEYS_OF_WORD.setdefault(_word, []).append(_key)
_KEY_WORDS = frozenset(_KEYS_OF_WORD)
# Those with `pass` in them need no search of their own.
_FOREIGN_ASCII = [word for word in FOREIGN_WORDS if word.isascii() and "pass" not in word]
_FOREIGN_PASS = [word for word in FOREIGN_WORDS if "pass" in word]
_WEBHOOK_KEYS = [key for rule in table.WEBHOOKS for key in rule.keys]
_URL_KEYS = [key for rule in table.URLS for key in rule.keys]
_SIGNATURE_KEY = "sig="

# every access token has a run of RUN_MIN of these characters, and little else has.
_RUN_CHARACTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
_RUN_CLASSES = bytes(ord("x" if byte in _RUN_CHARACTERS else " ") for byte in range(256))
_RUN = b"x" * table.RUN_MIN
_ACCESS_TOKEN_KEYS = [
    key.encode() for rule in (*table.ACCESS_TOKENS, *table.PREFIXED) for key in rule.keys
]
# The keys by their first two characters: most runs are ruled out by these.
_KEYS_OF_PAIR: dict[tuple[int, int], list[bytes]] = {}
for _token_key in _ACCESS_TOKEN_KEYS:
    _KEYS_OF_PAIR.setdefault((_token_key[0], _token_key[1]), []).append(_token_key)
_PAIRS = frozenset(_KEYS_OF_PAIR)
# Only these are before a run that looks like a hash.
_HEX_KEYS = (b"earer ", b"v1.0-", b"pat")


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
    if ("<" in line and "<private" in lowered) or ("%" in line and _SIGNATURE_KEY in line):
        return True
    if (" -" in line and _has_command(line)) or _has_one(line, _PART_KEYS):
        return True
    return _has_key_word(line, lowered) or has_access_token(line)


def has_run(text: str, length: int = table.RUN_MIN) -> bool:
    """Whether *text* has a run of *length* characters as access tokens have them."""
    return b"x" * length in text.encode("utf-8", "replace").translate(_RUN_CLASSES)


def has_access_token(line: str) -> bool:
    """Whether a long run of characters in *line* has the key of an access token in or before it."""
    # Mapping bytes to two classes turns "20 of these in a row" into a search for a literal, ten
    # times as fast as a regex.
    encoded = line.encode("utf-8", "replace")
    classes = encoded.translate(_RUN_CLASSES)
    start = classes.find(_RUN)
    if start < 0:
        return False
    while start >= 0:
        end = classes.find(b" ", start)
        end = len(classes) if end < 0 else end
        before = max(0, start - table.KEY_LEAD)
        if _has_key(encoded[start:end], encoded[before:end]):
            return True
        start = classes.find(_RUN, end)
    return any(key in line for key in _WEBHOOK_KEYS)


def _has_key(run: bytes, run_and_lead: bytes) -> bool:
    # Most runs are hashes, UUIDs or long plain names, in which there is no key to look for.
    if not run.strip(b"0123456789abcdef-"):
        return any(key in run_and_lead for key in _HEX_KEYS)
    if run.islower() and run.replace(b"_", b"").replace(b"-", b"").isalpha():
        return False
    if may_hold_drawn_run(run):
        return True
    pairs = _PAIRS.intersection(pairwise(run_and_lead))
    return any(key in run_and_lead for pair in pairs for key in _KEYS_OF_PAIR[pair])


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
    if word == "pass" and (_has_one(lowered, _FOREIGN_PASS) or _may_be_netrc(lowered)):
        return True
    name_end = compile_pattern(_PASS_END if word in {"pass", "pw"} else _NAME_END)
    key_end = compile_pattern(_KEY_END)
    at = lowered.find(word)
    while at >= 0:
        end = at + len(word)
        if word == "key" and not _has_key_owner(lowered, at):
            if key_end.match(lowered, end):
                return True
        elif name_end.match(lowered, end) or _is_flag(lowered, at):
            return True
        at = lowered.find(word, end)
    return False


def _may_be_netrc(lowered: str) -> bool:
    return "login" in lowered and ("machine" in lowered or "default" in lowered)


def _is_flag(lowered: str, at: int) -> bool:
    """Whether the name that goes on at *at* begins with a dash, as an option of a command."""
    before = lowered[max(0, at - _FLAG_CHARS_MAX) : at]
    name = before[len(before.rstrip(_NAME_CHARACTERS)) :]
    # In JSON, a line end before it is a backslash and a letter.
    return name.startswith(("-", "n-", "r-", "t-"))


def _has_key_owner(lowered: str, at: int) -> bool:
    before = lowered[max(0, at - _OWNER_CHARS_MAX) : at]
    return before.rstrip(" _.-").endswith(KEY_OWNERS)


def _has_command(line: str) -> bool:
    # Most dashes are between words, and then there is no option of a command.
    if line.count(" -") == line.count(" - "):
        return False
    if _has_one(line, _OPTION_KEYS):
        return True
    return _has_one(line, PASSWORD_OPTIONS) and bool(compile_pattern(_LONG_ARGUMENT).search(line))


def _has_key_word(line: str, lowered: str) -> bool:
    """Whether *line* has a key of some place of secrets."""
    return any(_has_one(line, _KEYS_OF_WORD[word]) for word in _key_words(lowered))


def find_keys(text: str) -> set[str]:
    """Return the keys of commands, lines, cookies, places and regions that *text* has."""
    keys = {key for word in _key_words(text.lower()) for key in _KEYS_OF_WORD[word]}
    keys.update(_PART_KEYS, (*_OPTION_KEYS, *PASSWORD_OPTIONS) if " -" in text else ())
    return {key for key in keys if key in text}


def find_token_keys(text: str) -> set[str]:
    """Return the keys of access tokens that *text* has."""
    pairs = _PAIRS.intersection(pairwise(text.encode("utf-8", "replace")))
    keys = (key.decode() for pair in pairs for key in _KEYS_OF_PAIR[pair])
    return {key for key in keys if key in text}


def _key_words(lowered: str) -> frozenset[bytes]:
    words = lowered.encode("utf-8", "replace").translate(_WORD_BYTES).split()
    if "\\" in lowered:
        # In JSON, the letter of an escaped line end would become part of the word after it.
        for escape in ("\\n", "\\r", "\\t"):
            lowered = lowered.replace(escape, " ")
        words += lowered.encode("utf-8", "replace").translate(_WORD_BYTES).split()
    return _KEY_WORDS.intersection(words)
