"""Values: whether what follows the name of a secret can be the secret itself."""

from __future__ import annotations

from commonplace.redaction.names import FOREIGN_WORDS, NAME_WORDS, word_set
from commonplace.redaction.table import compile_pattern
from commonplace.redaction.words import (
    count_digits,
    count_switches,
    is_slug,
    reads_as_words,
    word_bits,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from commonplace.redaction.table import Form

HEADER_MIN = 6
PASSWORD_MIN = 4
PASSWORD_LOOSE_MIN = 6
PASSPHRASE_WORDS_MIN = 3
PASSPHRASE_WORDS_MAX = 10
LITERAL_MIN = 8
KEY_MIN = 8
DRAWN_MAX = 100
MIXED_MIN = 10
KEY_LOOSE_MIN = 12
# What looks random: its length, how many digits, how often letters and digits alternate.
RANDOM_MIN = 16
DIGITS_MIN = 2
SWITCHES_MIN = 3
# `may_hold_secret` looks 60 characters ahead for a digit, quotes included.
DIGIT_WITHIN = 50
# A reference to a secret alternates less often than this.
REFERENCE_SWITCHES_MAX = 6

# Words that are no secret by themselves: types, states, and names of secrets.
_VALUE_WORDS = word_set(
    "str string text bytes int number bool boolean none null nil undefined true false any object "
    "optional required missing invalid hidden empty unset never password passwd pass pw pwd secret "
    "token key value todo changeme redacted masked filtered omitted removed yes no env environment "
    "prompt file keyring secretstr bearer basic oauth jwt expired"
)
# One of these anywhere makes a value a placeholder.
_PLACEHOLDER_WORDS = word_set("your example placeholder changeme dummy fake todo redacted xxx xxxx")
# Words of a message about a password, never of a passphrase.
_MESSAGE_WORDS = word_set(
    "a an and are at be can cannot do does enter for from has have in incorrect invalid is it "
    "least min missing must no not of or password passwords please required set should the to too "
    "use wrong you your"
)
# Words of a label or a note about a password, beyond those of a message.
_LABEL_WORDS = word_set(
    "account after again all always any as base because before but by character characters chars "
    "change check clear code confirm contain contains current default email empty error exactly "
    "expired field first forgot hash hashed hidden if input into length letter letters log login "
    "long longer maximum may mismatch minimum more name never new none number off old on one only "
    "optional per plain prompt read reset same see shown sign some stored string symbol text than "
    "that then this type until update user username using via we when where which will with "
    "without"
)
# Words that only end like the name of a secret.
_KEY_ENDS = word_set("monkey turkey donkey whiskey jockey hockey lackey compass bypass overpass")
# A plain word that says what a password is like, or that code uses for one.
_STATE_WORDS = word_set(
    "argument bytearray cleartext database disabled enabled encoded encrypted external generated "
    "hardcoded incorrect inherited managed nullable nvarchar parameter plaintext protected "
    "provided required settings something supplied unchanged undefined variable whatever"
)
# A URL's password that is only the word for it, as in documentation.
_URL_PASSWORD_WORDS = word_set("password pass passwd pw pwd secret token")
_SCHEMES = ("bearer", "basic", "token", "digest")
_MARKS = "{}()<>[]@&*#|!%$?.,:;=/\"'`"

# A password as people make them up: with a mark, or a word and some digits.
_MADE_UP = r"[^\s.]*[!@#$%^&*+?~][^\s.]*|[A-Z][a-z]{3,}[0-9]{3,}"
# Words with a number, numbers with a unit, names of standards, files and commits.
_NUMBERED = (
    r"[A-Za-z]+[-_.]?[0-9]{1,3}[a-z]*|[0-9]+(?:[-_.][0-9]+)*[-_.]?[A-Za-z-]+|[A-Z]+-?[0-9]+"
    r"|[a-z0-9_-]*(?:\.[a-z0-9_-]+)+|[0-9a-f]{7,12}"
)

# A mark at the start proves nothing, since passwords begin with any; the whole value must be the
# reference.
_REPETITION = r".{0,3}(.)\1{2,}.{0,3}"  # xxxx, ....
_STAND_IN = (
    r"\[redacted:[a-z-]{1,40}\][.,;:!?)}]*"  # our own marker
    r"|(?:\$[{(]|\{\{|[#%@]\{|%\().*"  # ${X}, $(x), {{ x }}, #{x}, %{x}, %(x)s
    r"|(?:[^\w$%{<]*+(?:\$[A-Z_][A-Z0-9_]*+|\$[a-z_][a-z0-9_]*+|\$[0-9@?*#]|%\w+(?:\([\w:.]+\))?%|%[a-z]"
    r"|\{[^\s{}]*\}|<[^<>]+>))+\W*"  # $X, %X%, %env(X)%, {x} and <x> with punctuation around them
    r"|<[a-z-]+|\[[\w .-]+\]|\{[a-z_.]*"
    r"|[A-Za-z_][\w.]*\("  # a call, cut at its first quote or bracket
    rf"|{_REPETITION}"
    r"|\w+://.*|[A-Za-z]:\\.*"
    r"|sha[0-9]+[:-].*|md5:.*"
    r"|v?[0-9]+(?:\.[0-9]+)+.*"  # versions
    # A pod of Kubernetes, which draws the ends of names from consonants and some digits.
    r"|[a-z][a-z0-9-]{0,60}-[bcdfghjklmnpqrstvwxz2456789]{8,10}"
    r"(?:-[bcdfghjklmnpqrstvwxz2456789]{5})?"
    r"|\W*"
)
# A reference, if it is made of words: process.env.TOKEN, $this->password, getToken(),
# os.environ["X"], a path.
_NAME = r"[A-Za-z_]\w*"
_REFERENCE = (
    rf"[@&*!(\[{{$%]{{0,2}}{_NAME}(?:(?:\??\.|::|->){_NAME})+[)\]}}]*"
    rf"|\${_NAME}(?:[:/.-]{_NAME})*"
    rf"|[@&*!(\[{{$%]{{0,2}}(?:{_NAME}(?:\??\.|::|->))*[A-Za-z_]\w{{2,}}"
    r"[(\[][\w\s.,*&:()\[\]{}=>+$/-]*"
    r"|@?(?:(?:~|\.{1,2})/[\w.-]+(?:/[\w.-]+)*/?|/?[\w.-]+(?:/[\w.-]+)+/?)"
)


def is_secret_value(value: str, kind: str, name: str, form: Form) -> bool:
    """Whether *value*, written in *form* after *name*, is a secret of *kind*."""
    if kind == "authorization" and form == "quoted" and " " in value:
        return _is_authorization_header(value)
    # The quick test comes first: a text may have a value every few characters.
    if not _may_be_secret(value, kind, name, form) or is_stand_in(value):
        return False
    return not (name.isupper() and name.endswith("PWD") and value.startswith(("/", "~")))


def _may_be_secret(value: str, kind: str, name: str, form: Form) -> bool:
    if kind == "key":
        return _is_unnamed_key(value, name, form)
    if form == "prose":
        return is_random(value) or (kind in {"password", "secret"} and is_drawn(value))
    if form == "header":
        return _is_header(value, kind)
    if kind == "password":
        return _is_password(value, name, form)
    return _is_key(value, form) and not (kind == "authorization" and is_slug(value))


def is_secret_number(digits: str, kind: str) -> bool:
    """Whether a number after the name of a secret of *kind* is that secret."""
    digits_min = PASSWORD_MIN if kind == "password" else KEY_MIN
    return len(digits) >= digits_min and not is_stand_in(digits)


def is_url_password(value: str) -> bool:
    """Whether *value*, between the colon and the `@` of a URL, is a real password."""
    return not is_stand_in(value) and value.lower() not in _URL_PASSWORD_WORDS


def is_random(value: str) -> bool:
    """Whether letters and digits of *value* alternate as in no word or name."""
    if (
        len(value) < RANDOM_MIN
        or not compile_pattern(r"[A-Za-z0-9+/=_.~-]+").fullmatch(value)
        or is_stand_in(value)
    ):
        return False
    return (
        count_digits(value[:DIGIT_WITHIN]) > 0
        and count_digits(value) >= DIGITS_MIN
        and count_switches(value) >= SWITCHES_MIN
    )


def is_token_like(value: str) -> bool:
    """Whether *value* has letters and digits, and is no name or path."""
    return (
        len(value) >= KEY_MIN
        and 0 < count_digits(value) < len(value)
        and not is_slug(value)
        and any(map(str.isalpha, value))
    )


def is_cookie(value: str) -> bool:
    """Whether the *value* of a cookie is random, with digits or without."""
    plain = value.replace("%", "-")
    is_mixed = len(plain) >= RANDOM_MIN and not (plain.islower() or plain.isupper())
    return is_random(plain) or (is_mixed and not reads_as_words(plain) and not is_stand_in(plain))


def is_stand_in(value: str) -> bool:
    """Whether *value* only stands for a secret: a marker, reference, placeholder, type or path."""
    # Of the shapes, only a repetition has no marks, and most secrets have none either.
    is_unmarked = value.isascii() and value.isalnum()
    if compile_pattern(_REPETITION if is_unmarked else _STAND_IN).fullmatch(value):
        return True
    if (
        not is_unmarked
        and compile_pattern(_REFERENCE).fullmatch(value)
        and count_switches(value) < REFERENCE_SWITCHES_MAX
        and (value.islower() or value.isupper() or reads_as_words(value))
    ):
        return True
    words = compile_pattern(r"[a-z]+").findall(value.lower())
    if not _PLACEHOLDER_WORDS.isdisjoint(words):
        return True
    return _VALUE_WORDS.issuperset(words) and not count_digits(value)


def _is_header(value: str, kind: str) -> bool:
    # `Authorization: Bearer x` is sure of its x; `token=token x` is two words of code or prose.
    return len(value) >= HEADER_MIN if kind == "authorization" else _is_key(value, "tight")


def _is_authorization_header(value: str) -> bool:
    scheme, _, rest = value.partition(" ")
    return scheme.lower() in _SCHEMES and len(rest) >= HEADER_MIN and not is_stand_in(rest)


def _is_password(value: str, name: str, form: Form) -> bool:
    if _has_space(value):
        return form == "quoted" and _is_passphrase(value, name)
    if form in {"quoted", "sure"}:
        return len(value) >= PASSWORD_MIN
    if len(value) < PASSWORD_LOOSE_MIN:
        return False
    core = value.strip(_MARKS)
    if not core.replace("_", "").replace("-", "").isalpha():
        is_camel_case = compile_pattern(r"[a-z]+(?:[A-Z][a-z]+)+[0-9]").fullmatch(core)
        return not (is_camel_case and reads_as_words(core))
    return not reads_as_words(core) or (form == "literal" and _is_plain_password(value))


def is_drawn(value: str) -> bool:
    """Whether *value* is a password that was drawn or made up, and no word of prose or name."""
    core = value.rstrip(".,;:!?)")
    if not LITERAL_MIN <= len(core) <= DRAWN_MAX or is_stand_in(core):
        return False
    if not core.isascii() or not compile_pattern(r"[^\s()\[\]{}<>/=:\\\"'`,;|]+").fullmatch(core):
        return False
    is_random_case = not (core.islower() or core.isupper()) and not reads_as_words(core)
    if core.isdigit() or not count_digits(core):
        return is_random_case and len(core) >= MIXED_MIN
    if is_random_case or compile_pattern(_MADE_UP).fullmatch(value.rstrip(".,;:)")):
        return True
    is_name = compile_pattern(_NUMBERED).fullmatch(core) or is_slug(core)
    return not is_name and (count_switches(core) >= SWITCHES_MIN or word_bits(core) < 0)


def is_phrase(value: str) -> bool:
    """Whether *value* is a few plain words that are no message."""
    return _is_passphrase(value, "")


def _is_unnamed_key(value: str, name: str, form: Form) -> bool:
    """Whether *value* is the key of something unknown: random, and no hash or identifier."""
    if form == "prose" or not is_random(value):
        return False
    is_hash = compile_pattern(r"(?:[A-Za-z]+[-_.])*(?:[0-9a-f-]+|[0-9A-F-]+)").fullmatch(value)
    return (name.isupper() and "_" in name) if is_hash else not (value.islower() or value.isupper())


def _is_passphrase(value: str, name: str) -> bool:
    words = value.lower().split()
    if not PASSPHRASE_WORDS_MAX >= len(words) > 1 or not _MESSAGE_WORDS.isdisjoint(words):
        return False
    # After a name in lower case there may be a label or a message, rarely without these words.
    return (
        name.isupper()
        or name.startswith("--")
        or (
            len(words) >= PASSPHRASE_WORDS_MIN
            and _LABEL_WORDS.isdisjoint(compile_pattern(r"[a-z]+").findall(value.lower()))
            and not any(map(_has_name_word, words))
            and value[-1] not in ".:?!…"
        )
    )


def _has_name_word(word: str) -> bool:
    return word not in _KEY_ENDS and any(part in word for part in (*NAME_WORDS, *FOREIGN_WORDS))


def _is_plain_password(value: str) -> bool:
    """Whether a plain word, where there is no code, is a password rather than the name of one."""
    lowered = value.lower()
    return (
        len(value) >= LITERAL_MIN
        and value.replace("-", "").isalpha()
        and not any(word in lowered for word in (*NAME_WORDS, "user", "word"))
        and lowered not in _STATE_WORDS
    )


def _is_key(value: str, form: Form) -> bool:
    length_min = KEY_LOOSE_MIN if form == "loose" else KEY_MIN
    if len(value) < length_min or _has_space(value):
        return False
    digits = count_digits(value)
    if digits == len(value) or (form == "loose" and is_slug(value)):
        return False
    if digits >= (DIGITS_MIN if form == "loose" else 1):
        return True
    return (
        len(value) >= KEY_LOOSE_MIN
        and not (value.islower() or value.isupper())
        and not reads_as_words(value)
    )


def _has_space(value: str) -> bool:
    return value.split() != [value]
