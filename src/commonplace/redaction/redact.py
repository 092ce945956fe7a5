"""The one door through which everything is written: secrets leave a text here, and its sense stays.

A secret becomes `[redacted:kind]`; what stands between `<private>` tags goes without a trace. Nothing here logs,
stores or returns the secret itself. No regex is compiled at import, since hooks pay for every millisecond.
"""

import re
from functools import cache
from typing import NamedTuple

from commonplace.redaction import table

# After this many rounds only text made to defeat us still yields something; it is then dropped as a whole.
ROUNDS_MAX = 6
QUOTED_MAX = 2000
# Whether a bare value is a secret shows within this many characters. Looking further each time a value is spared
# would take the square of a text's length.
JUDGED_MAX = 200
HEADER_MIN = 6
PASSWORD_MIN = 4
PASSWORD_LOOSE_MIN = 6
PASSPHRASE_WORDS_MAX = 10
LITERAL_MIN = 8
KEY_MIN = 8
KEY_LOOSE_MIN = 12
# What looks drawn by lot: how long, how many digits, how often letters and digits take turns.
RANDOM_MIN = 16
DIGITS_MIN = 2
REFERENCE_TURNS_MAX = 6
TURNS_MIN = 3
# `_name_end` looks 60 characters ahead for a digit, quotes included.
DIGIT_WITHIN = 50

NAME_WORDS = ("token", "secret", "key", "pass", "auth", "cred", "pwd", "_pat")


class Redaction(NamedTuple):
    """What was taken out and where; never the value."""

    kind: str
    field: str


class _Span(NamedTuple):
    start: int
    end: int
    kind: str


def suspicious(line: str) -> bool:
    """Whether *line*, a text or its JSON encoding, may hold a secret; False is certain.

    Each test is for something that JSON encoding keeps: it only ever puts backslashes before quotes and
    backslashes, and writes control characters as a backslash and letters.
    """
    lowered = line.lower()
    for word in NAME_WORDS:
        if word in lowered and _has_name(lowered, word):
            return True
    if "@" in line and table.URL_KEY in line:
        return True
    if "<" in line and "<private" in lowered:
        return True
    if "%" in line and table.SAS_KEY in line:
        return True
    if " -" in line and _has_command(line):
        return True
    return _has_token(line)


def redact_text(text: str) -> tuple[str, list[str]]:
    """*text* without its secrets, and the kinds found, in order."""
    kinds: list[str] = []
    for _ in range(ROUNDS_MAX):
        spans = _merged(_spans(text)) if suspicious(text) else []
        if not spans:
            return text, kinds
        kinds += [span.kind for span in spans]
        text = _cut(text, spans)
    return _marker("secret"), [*kinds, "secret"]


def redact(fields: dict[str, object]) -> tuple[dict[str, object], list[Redaction]]:
    """*fields* without secrets at any depth; the same object when there are none."""
    found: list[Redaction] = []
    clean = _redact_dict(fields, "", found)
    return (clean, found) if found else (fields, [])


# Walking the fields


def _redact_dict(fields: dict[str, object], path: str, found: list[Redaction]) -> dict[str, object]:
    clean: dict[str, object] = {}
    announced = ""
    for key, value in fields.items():
        if not isinstance(key, str):
            clean[key] = _redact_value(value, f"{path}{key}", "", found)
            continue
        safe_key, kinds = redact_text(key)
        field = f"{path}{safe_key}"
        found += [Redaction(kind, field) for kind in kinds]
        if key == "value" and announced:
            clean[_unused(safe_key, clean)] = _redact_announced(value, field, announced, found)
        else:
            clean[_unused(safe_key, clean)] = _redact_value(value, field, key, found)
        # As in Kubernetes: {"name": "DB_PASSWORD", "value": …}, one right after the other.
        announced = (
            value if key in {"name", "key"} and isinstance(value, str) and _kind_of(value) else ""
        )
    return clean


def _redact_announced(value: object, field: str, name: str, found: list[Redaction]) -> object:
    if isinstance(value, int | float):
        return _redact_number(value, field, name, found)
    clean = _redact_value(value, field, "", found)
    kind = _kind_of(name)
    if isinstance(clean, str) and _is_secret_value(clean, kind, name, _framed_form(name)):
        found.append(Redaction(kind, field))
        return _marker(kind)
    return clean


def _redact_number(value: float, field: str, name: str, found: list[Redaction]) -> object:
    kind = _kind_of(name)
    if not kind or isinstance(value, bool) or not _is_secret_number(str(value), kind):
        return value
    found.append(Redaction(kind, field))
    return _marker(kind)


def _redact_value(value: object, field: str, name: str, found: list[Redaction]) -> object:
    if isinstance(value, str):
        clean, kinds = _redact_named(value, name)
        found += [Redaction(kind, field) for kind in kinds]
        return clean
    if isinstance(value, int | float):
        return _redact_number(value, field, name, found)
    if isinstance(value, dict):
        return _redact_dict(value, f"{field}.", found)
    if isinstance(value, list | tuple):
        return [_redact_value(item, f"{field}[{i}]", name, found) for i, item in enumerate(value)]
    return value


def _redact_named(text: str, name: str) -> tuple[str, list[str]]:
    clean, kinds = redact_text(text)
    kind = _kind_of(name)
    if kind and _is_secret_value(clean, kind, name, "quoted"):
        return _marker(kind), [*kinds, kind]
    return clean, kinds


def _kind_of(name: str) -> str:
    return name_kind(name) if _ident().fullmatch(name) else ""


def _unused(key: str, taken: dict[str, object]) -> str:
    # Two secret keys may become one name; the second must not push out the first one's value.
    candidate, n = key, 2
    while candidate in taken:
        candidate, n = f"{key}~{n}", n + 1
    return candidate


# Finding


def _spans(text: str) -> list[_Span]:
    lowered = text.lower()
    spans = _private_spans(text) if "<private" in lowered else []
    if _has_run(text):
        spans += _token_spans(text)
    if table.PEM_KEY in text:
        spans += _matches(text, "private-key", table.PEM)
    if table.SAS_KEY in text:
        spans += _matches(text, "azure-sas", table.SAS)
    if table.URL_KEY in text and "@" in text:
        spans += _url_spans(text)
    if any(word in lowered for word in NAME_WORDS):
        spans += _named_spans(text)
    if " -" in text:
        spans += _command_spans(text)
    return spans


def _matches(text: str, kind: str, pattern: str) -> list[_Span]:
    return [_Span(m.start(), m.end(), kind) for m in _compiled(pattern).finditer(text)]


def _token_spans(text: str) -> list[_Span]:
    spans = []
    for kind, keys, pattern in table.RULES:
        if any(key in text for key in keys):
            # A match must also be one that `suspicious` sees, which passes over runs that no lot would draw.
            found = (m for m in _compiled(pattern).finditer(text) if _has_token(m[0]))
            spans += [_Span(*m.span(m.lastindex or 0), kind) for m in found]
    if any(key in text for key in table.WEBHOOK_KEYS):
        spans += _matches(text, "webhook", table.WEBHOOK)
    return spans


def _url_spans(text: str) -> list[_Span]:
    passwords = (
        _Span(m.start(1), m.end(1), "url-password")
        for m in _compiled(table.URL_WITH_LOGIN).finditer(text)
        if not _is_stand_in(m[1])
        and m[1].lower() not in {"password", "pass", "passwd", "pw", "pwd", "secret", "token"}
    )
    tokens = (
        _Span(m.start(1), m.end(1), "url-token")
        for m in _compiled(table.URL_WITH_USER).finditer(text)
        if _is_random(m[1])
    )
    return [*passwords, *tokens]


def _private_spans(text: str) -> list[_Span]:
    spans, depth, start = [], 0, 0
    for tag in _compiled(r"<(/?)private(?:\s[^<>]{0,200})?>", re.IGNORECASE | re.ASCII).finditer(
        text
    ):
        if not tag[1]:
            start = start if depth else tag.start()
            depth += 1
        elif depth:
            depth -= 1
            if not depth:
                spans.append(_Span(start, tag.end(), "private"))
    if depth:
        spans.append(_Span(start, len(text), "private"))
    return spans


def _named_spans(text: str) -> list[_Span]:
    spans = _framed_spans(text)
    at = 0
    while m := _assignment().search(text, at):
        span = _named_span(text, m)
        # What was taken for a value may itself be `name=value`, so the search goes on inside it.
        at = span.end if span else m.end("name")
        if span:
            spans.append(span)
    return spans


def _framed_spans(text: str) -> list[_Span]:
    """Values whose name stands in a tag, in a pair of fields, or in a word order of its own."""
    spans = []
    for key, pattern in table.FRAMES:
        if key in text:
            for m in _compiled(pattern).finditer(text):
                kind = name_kind(m["name"])
                if kind and _is_secret_value(
                    m["value"], kind, m["name"], _framed_form(m["name"], key)
                ):
                    spans.append(_Span(m.start("value"), m.end("value"), kind))
    return spans


def _framed_form(name: str, key: str = "") -> str:
    return "sure" if name.isupper() or key in table.SURE_FRAMES else "literal"


def _named_span(text: str, m: re.Match[str]) -> _Span | None:
    group = m.lastgroup or ""
    name, kind = m["name"], name_kind(m["name"])
    if not kind or text.endswith("://", 0, m.start()):
        return None
    start, end = m.span(group)
    in_query = m.start() > 0 and text[m.start() - 1] in "?&"
    if group == "bare":
        end = _bare_end(text, start, start + JUDGED_MAX, in_query=in_query)
    form = _form(group, m["gap"], name)
    if form == "tight" and _is_outside_code(text, m.start(), end, name):
        form = "literal"
    if not _is_secret_value(text[start:end], kind, name, form):
        return None
    if end == start + JUDGED_MAX:
        end = _bare_end(text, start, len(text), in_query=in_query)
    return _Span(start, end, kind)


def _is_outside_code(text: str, start: int, end: int, name: str) -> bool:
    """Whether `name=value` is written as in a shell or a file of properties, where a bare word is a value."""
    if not _compiled(r"[.!?]?(?:[\s;&\"'`\\]|\Z)").match(text, end):
        return False
    before = text[max(0, start - 80) : start]
    owner = _compiled(r"[\w.-]*\Z").search(before)
    assert owner, "an empty owner is found at the end of any text"
    lead = before[: owner.start()]
    if owner[0] and not owner[0].endswith("."):
        return False
    if owner[0].split(".")[0] in _OBJECTS or lead.endswith(
        ("(", ",", ", ", "[", "{", "$", ">", ")", "@", "]")
    ):
        return False
    if owner[0] or len(_words(name)) > 1:
        return True
    # A bare `password=` must have the line, or its part of a connection string, to itself.
    return bool(_compiled(r"(?:^|[\n;]|\\n)\s*(?:export |set )?\Z").search(lead[-20:])) and bool(
        _compiled(r"\s*(?:[\n;]|\Z)").match(text, end)
    )


def _bare_end(text: str, start: int, limit: int, *, in_query: bool) -> int:
    stop = _compiled(r"[\s\"'`\\,;&]" if in_query else r"[\s\"'`\\,;]").search(text, start, limit)
    if not stop and limit < len(text):
        return limit
    end = stop.start() if stop else len(text)
    while end > start and text[end - 1] in ".:?)}":
        end -= 1
    return end


def _form(group: str, gap: str, name: str) -> str:
    """How sure the writing is that a value follows: quoted, header, sure (`NAME=x`, `--name x`), then less."""
    if name.startswith("--"):
        return "sure" if group == "bare" else "quoted"
    if not any(mark in gap for mark in ":="):
        return "prose"
    if group == "header":
        return "header"
    if group != "bare":
        return "quoted"
    if "=" not in gap or " " in gap:
        return "loose"
    return "sure" if name.isupper() else "tight"


_COMMAND_KEYS = [key for key, _, _ in table.COMMANDS]


def _has_command(line: str) -> bool:
    # Most dashes are between words, and then no command need be looked for.
    if line.count(" -") == line.count(" - "):
        return False
    return any(key in line for key in _COMMAND_KEYS)


def _command_spans(text: str) -> list[_Span]:
    spans = []
    for key, kind, lead in table.COMMANDS:
        if key in text:
            found = _compiled(lead + table.ARGUMENT).finditer(text)
            values = [(m[m.lastgroup or 0], m.span(m.lastgroup or 0)) for m in found]
            spans += [_Span(*span, kind) for value, span in values if not _is_stand_in(value)]
    return spans


def _merged(spans: list[_Span]) -> list[_Span]:
    """Overlapping spans as one, under the kind found first: rules go from the particular to the general."""
    merged: list[_Span] = []
    rank = {id(span): i for i, span in enumerate(spans)}
    best = 0
    for span in sorted(spans, key=lambda span: span.start):
        if not merged or span.start >= merged[-1].end:
            merged.append(span)
            best = rank[id(span)]
            continue
        kind = span.kind if rank[id(span)] < best else merged[-1].kind
        best = min(best, rank[id(span)])
        merged[-1] = _Span(merged[-1].start, max(merged[-1].end, span.end), kind)
    return merged


def _cut(text: str, spans: list[_Span]) -> str:
    pieces: list[str] = []
    at = 0
    for span in spans:
        pieces.append(text[at : span.start])
        at = span.end
        if span.kind != "private":
            pieces.append(_marker(span.kind))
        elif text[at : at + 1] in {" ", ""} and (span.start == 0 or text[span.start - 1] == " "):
            # One of the two spaces around the gap goes with it.
            at += 1
    if spans[-1].kind == "private" and at > len(text):
        pieces[-1] = pieces[-1].removesuffix(" ")
    return "".join([*pieces, text[at:]])


def _marker(kind: str) -> str:
    return f"[redacted:{kind}]"


# Runs: what nearly every token has and little else

_RUN = b"x" * table.RUN_MIN
_TOKEN_CHARACTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
_RUN_TABLE = bytes(120 if byte in _TOKEN_CHARACTERS else 32 for byte in range(256))
_ALL_KEYS = [key.encode() for rule in table.RULES for key in rule.keys]
_PLAIN_KEYS = [key for key in _ALL_KEYS if b"_" not in key and b"-" not in key]
_JOINED_KEYS = [key for key in _ALL_KEYS if b"_" in key or b"-" in key]


def _has_run(text: str) -> bool:
    return _RUN in text.encode("utf-8", "replace").translate(_RUN_TABLE)


def _has_token(line: str) -> bool:
    # Mapping bytes to classes turns "20 of these in a row" into a search for a literal, ten times as quick as a regex.
    encoded = line.encode("utf-8", "replace")
    classes = encoded.translate(_RUN_TABLE)
    start = classes.find(_RUN)
    if start < 0:
        return False
    while start >= 0:
        end = classes.find(b" ", start)
        end = len(classes) if end < 0 else end
        if _holds_key(encoded[start:end], encoded[max(0, start - table.KEY_LEAD) : end]):
            return True
        start = classes.find(_RUN, end)
    return any(key in line for key in table.WEBHOOK_KEYS)


def _holds_key(run: bytes, run_and_lead: bytes) -> bool:
    # Hashes and UUIDs, then long plain names: most runs are one of these, and the keys would be tried in vain.
    if not run.strip(b"0123456789abcdef-"):
        return b"earer " in run_and_lead or b"v1.0-" in run_and_lead
    if run.islower() and run.replace(b"_", b"").replace(b"-", b"").isalpha():
        return False
    for key in _PLAIN_KEYS:
        if key in run_and_lead:
            return True
    if b"_" in run_and_lead or b"-" in run_and_lead:
        for key in _JOINED_KEYS:
            if key in run_and_lead:
                return True
    return False


# Names: what a secret is called


def _word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_KEY_OWNERS = r"api|access|private|secret|auth|account|signing|encryption|master|service|app|ssh|deploy|license"
_NAME_WORD = rf"(?:pass|pwd|secret|token|(?:{_KEY_OWNERS})[_-]{{0,3}}key|auth|cred|_pat)"
_KEY_OWNER_LIST = tuple(_KEY_OWNERS.split("|"))
_PASS_OWNERS = _word_set(
    "db database mysql postgres pg user smtp mail email redis admin root ftp ssh login sudo mongo amqp "
    "http proxy basic auth my bind become vault ldap keystore truststore vpn wifi default rabbitmq sa neo4j registry "
    "docker jenkins nexus artifactory sonar elastic gpg backup svc"
)
# What a member is set on in code: `self.password=password`.
_OBJECTS = _word_set(
    "self this cls req request res response user account form state props ctx context app config settings args opts "
    "options params data body values event window process module exports client session"
)
# Tokens of a grammar, a page or a design are no secrets.
_TOKEN_OWNERS_HARMLESS = _word_set(
    "eos bos pad unk mask sep cls next page stop special continuation design cancellation cancel first "
    "last per syntax start end prev previous color"
)
_HEADS = (
    ("password", "password"),
    ("passwd", "password"),
    ("passphrase", "password"),
    ("pwd", "password"),
    ("apikey", "api-key"),
    ("secretkey", "secret"),
    ("accesskey", "access-key"),
    ("privatekey", "private-key"),
    ("accountkey", "access-key"),
    ("secret", "secret"),
    ("token", "token"),
    ("credential", "credential"),
    ("credentials", "credential"),
)


def _has_name(lowered: str, word: str) -> bool:
    """Whether some *word* in *lowered* ends a secret's name that a value may follow."""
    if word == "_pat" and lowered.count("_pat") == lowered.count("_path"):
        return False
    if (word == "key" and "private key" in lowered) or "setx" in lowered:
        return True
    if word == "pass" and "login" in lowered and ("machine" in lowered or "default" in lowered):
        return True
    at = lowered.find(word)
    while at >= 0:
        end = at + len(word)
        if word != "key" or lowered[max(0, at - 20) : at].rstrip(" _.-").endswith(_KEY_OWNER_LIST):
            if _name_end().match(lowered, end):
                return True
            flag = lowered.rfind("--", max(0, at - 80), at)
            if flag >= 0 and " " not in lowered[flag:at]:
                return True
        at = lowered.find(word, end)
    return False


def name_kind(name: str) -> str:
    """The kind of secret that *name* announces, or an empty string."""
    words = ["", "", *_words(name)]
    owner, last = words[-2:]
    if last == "key" and owner in _KEY_OWNER_LIST:
        is_aws = "secret" in words and ("aws" in words or owner == "access")
        return (
            "aws-secret-key"
            if is_aws
            else {"api": "api-key", "secret": "secret"}.get(owner, "access-key")
        )
    if last == "pass" and owner in _PASS_OWNERS:
        return "password"
    if last in {"auth", "authorization"}:
        return "authorization"
    if last == "token" and owner in _TOKEN_OWNERS_HARMLESS:
        return ""
    # A "pat" is a personal access token when it is joined to its owner.
    last = "token" if name.lower().endswith("_pat") else last
    return next((kind for head, kind in _HEADS if last.endswith(head)), "")


def _words(name: str) -> list[str]:
    return [
        word.lower() for word in _compiled(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+").findall(name)
    ]


# Values: what could be the secret itself

_VALUE_WORDS = _word_set(
    "str string text bytes int number bool boolean none null nil undefined true false any object optional "
    "required missing invalid hidden empty unset never password passwd pass pw pwd secret token key value todo "
    "changeme redacted masked filtered omitted removed yes no env environment prompt file keyring secretstr bearer "
    "basic oauth jwt expired"
)
_PLACEHOLDER_WORDS = _word_set(
    "your example placeholder changeme dummy fake todo redacted xxx xxxx"
)
# Words of a message about a password, never of a passphrase.
_MESSAGE_WORDS = _word_set(
    "a an and are at be can cannot do does enter for from has have in incorrect invalid is it least min missing must "
    "no not of or password passwords please required set should the to too use wrong you your"
)
# A bare word that says what a password is like, or stands for one in code.
_STATE_WORDS = _word_set(
    "argument cleartext database disabled enabled encoded encrypted external generated hardcoded incorrect inherited "
    "managed parameter plaintext protected provided required settings something supplied unchanged undefined variable "
    "whatever"
)
_MARKS = "{}()<>[]@&*#|!%$?.,:;=/\"'`"


def _is_secret_value(value: str, kind: str, name: str, form: str) -> bool:
    if kind == "authorization" and form == "quoted" and " " in value:
        return _is_credential_header(value)
    if _is_stand_in(value) or (
        name.isupper() and name.endswith("PWD") and value.startswith(("/", "~"))
    ):
        return False
    if form in {"header", "prose"}:
        return _is_random(value) if form == "prose" else _is_header(value, kind)
    if kind == "password":
        return _is_password(value, name, form)
    return _is_key_like(value, form) and not (kind == "authorization" and _is_slug(value))


def _is_header(value: str, kind: str) -> bool:
    # `Authorization: Bearer x` is sure of its x; `token=token x` is two words of code or prose.
    return len(value) >= HEADER_MIN if kind == "authorization" else _is_key_like(value, "tight")


def _is_secret_number(digits: str, kind: str) -> bool:
    return len(digits) >= (PASSWORD_MIN if kind == "password" else KEY_MIN) and not _is_stand_in(
        digits
    )


def _is_credential_header(value: str) -> bool:
    scheme, _, rest = value.partition(" ")
    return (
        scheme.lower() in {"bearer", "basic", "token", "digest"}
        and len(rest) >= HEADER_MIN
        and not _is_stand_in(rest)
    )


def _is_stand_in(value: str) -> bool:
    """Whether *value* only stands for a secret: a marker, a reference, a placeholder, a type, a path, a checksum."""
    if _compiled(_STAND_IN).fullmatch(value):
        return True
    if (
        _compiled(_REFERENCE).fullmatch(value)
        and _turns(value) < REFERENCE_TURNS_MAX
        and _is_written(value)
    ):
        return True
    words = _compiled(r"[a-z]+").findall(value.lower())
    if not _PLACEHOLDER_WORDS.isdisjoint(words):
        return True
    return _VALUE_WORDS.issuperset(words) and not any(c.isdigit() for c in value)


def _is_written(reference: str) -> bool:
    return reference.islower() or reference.isupper() or table.is_wordy(reference)


# A mark at the start proves nothing, since passwords begin with any; the whole value must be the reference.
_STAND_IN = (
    r"\[redacted:[a-z-]{1,40}\][.,;:!?)}]*"  # ours
    r"|(?:\$[{(]|\{\{|[#%@]\{|%\().*"  # ${X}, $(x), {{ x }}, #{x}, %{x}, %(x)s
    r"|(?:[^\w$%{<]*+(?:\$[A-Z_][A-Z0-9_]*+|\$[a-z_][a-z0-9_]*+|\$[0-9@?*#]|%\w+%|%[a-z]|\{[^\s{}]*\}|<[^<>]+>))+\W*"
    r"|<[a-z-]+|\[[\w .-]+\]|\{[a-z_.]*"
    r"|[A-Za-z_][\w.]*\("  # a call, cut at its first quote or bracket
    r"|.{0,3}(.)\1{2,}.{0,3}"  # xxxx, ....
    r"|\w+://.*|[A-Za-z]:\\.*"
    r"|sha[0-9]+[:-].*|md5:.*"
    r"|v?[0-9]+(?:\.[0-9]+)+.*"  # versions
    # A pod of Kubernetes; it draws the ends of names from consonants and some digits.
    r"|[a-z][a-z0-9-]{0,60}-[bcdfghjklmnpqrstvwxz2456789]{8,10}(?:-[bcdfghjklmnpqrstvwxz2456789]{5})?"
    r"|\W*"
)
# What is a reference when it is made of words: process.env.TOKEN, $this->password, getToken(), os.environ["X"], a path.
_NAME = r"[A-Za-z_]\w*"
_REFERENCE = (
    rf"[@&*!(\[{{$%]{{0,2}}{_NAME}(?:(?:\??\.|::|->){_NAME})+[)\]}}]*"
    rf"|\${_NAME}(?:[:/.-]{_NAME})*"
    rf"|[@&*!(\[{{$%]{{0,2}}(?:{_NAME}(?:\??\.|::|->))*[A-Za-z_]\w{{2,}}[(\[][\w\s.,*&:()\[\]{{}}=>+$/-]*"
    r"|@?(?:(?:~|\.{1,2})/[\w.-]+(?:/[\w.-]+)*/?|/?[\w.-]+(?:/[\w.-]+)+/?)"
)


def _is_password(value: str, name: str, form: str) -> bool:
    if any(c.isspace() for c in value):
        return (
            form == "quoted" and (name.isupper() or name.startswith("--")) and _is_passphrase(value)
        )
    if form in {"quoted", "sure"}:
        return len(value) >= PASSWORD_MIN
    if len(value) < PASSWORD_LOOSE_MIN:
        return False
    core = value.strip(_MARKS)
    if not core.replace("_", "").replace("-", "").isalpha():
        return not (
            _compiled(r"[a-z]+(?:[A-Z][a-z]+)+[0-9]?").fullmatch(core) and table.is_wordy(core)
        )
    return not table.is_wordy(core) or (form == "literal" and _is_literal(value))


def _is_passphrase(value: str) -> bool:
    words = value.lower().split()
    return PASSPHRASE_WORDS_MAX >= len(words) > 1 and _MESSAGE_WORDS.isdisjoint(words)


def _is_literal(value: str) -> bool:
    """Whether a plain word, where code would not stand, is a password rather than the name of one."""
    lowered = value.lower()
    return (
        len(value) >= LITERAL_MIN
        and value.replace("-", "").isalpha()
        and not any(word in lowered for word in (*NAME_WORDS, "user", "word"))
        and lowered not in _STATE_WORDS
    )


def _is_key_like(value: str, form: str) -> bool:
    length_min = KEY_LOOSE_MIN if form == "loose" else KEY_MIN
    if len(value) < length_min or any(c.isspace() for c in value):
        return False
    digits = sum(c.isdigit() for c in value)
    if digits == len(value) or (form == "loose" and _is_slug(value)):
        return False
    if digits >= (DIGITS_MIN if form == "loose" else 1):
        return True
    return (
        len(value) >= KEY_LOOSE_MIN
        and not (value.islower() or value.isupper())
        and not table.is_wordy(value)
    )


def _is_slug(value: str) -> bool:
    """Whether *value* is words and numbers joined by dashes and the like, as people name things."""
    return bool(
        _compiled(r"[A-Za-z]+[0-9]{0,2}(?:[-_./:](?:[A-Za-z]+[0-9]{0,2}|[0-9]+))+").fullmatch(value)
    ) and (table.is_wordy(value))


def _is_random(value: str) -> bool:
    """Whether *value* looks drawn by lot: letters and digits in turn, as no word or name has them."""
    if (
        len(value) < RANDOM_MIN
        or not _compiled(r"[A-Za-z0-9+/=_.~-]+").fullmatch(value)
        or _is_stand_in(value)
    ):
        return False
    if not any(c.isdigit() for c in value[:DIGIT_WITHIN]):
        return False
    return _turns(value) >= TURNS_MIN and sum(c.isdigit() for c in value) >= DIGITS_MIN


def _turns(value: str) -> int:
    return len(_compiled(r"(?<=[0-9])(?=[A-Za-z])|(?<=[A-Za-z])(?=[0-9])").findall(value))


# Regexes, each compiled when first needed


@cache
def _compiled(pattern: str, flags: int = re.ASCII) -> re.Pattern[str]:
    return re.compile(pattern, flags)


@cache
def _ident() -> re.Pattern[str]:
    return re.compile(r"[\w.-]{1,80}", re.ASCII)


@cache
def _name_end() -> re.Pattern[str]:
    """The rest of a secret's name after one of NAME_WORDS, with room for a value, in a lower-cased line.

    It must let through all that `_assignment` finds, also where JSON has put backslashes before quotes.
    """
    return re.compile(
        r"(?:word|wd|phrase|orization|entials?)?[_.-]*"
        r"(?:(?: \[[\w*. -]{0,40}\])?[\"'`\\\]) ]*[:=>]|[\\\"',\snrt]*+value"
        r"|(?: (?:is|was|to|of))? [\"'`\\]*[^\s\"'`\\]{0,60}[0-9])",
        re.ASCII,
    )


@cache
def _assignment() -> re.Pattern[str]:
    value = (
        rf"\"(?P<double>(?:[^\"\\\n]|\\.){{1,{QUOTED_MAX}}})\"|'(?P<single>(?:[^'\\\n]|\\.){{1,{QUOTED_MAX}}})'"
        rf"|\\+[\"'](?P<escaped>[^\"'\\\n]{{1,{QUOTED_MAX}}})\\+[\"']"
        rf"|`(?P<ticked>[^`\\\n]{{1,{QUOTED_MAX}}})`"
        r"|(?:bearer|basic|token|digest) (?P<header>[^\s\"'`\\,;]+)"
        r"|\\*[\"'`]?(?P<bare>[^\s\"'`\\,;])"
    )
    return re.compile(
        rf"(?<![\w-])(?P<name>secret access key|(?:{_KEY_OWNERS}) key|(?=[\w-]{{0,60}}?{_NAME_WORD})[\w-]{{1,80}})"
        r"(?P<gap>(?: \[[\w*. -]{0,40}\])?\\*[\"'`]?[\])]? {0,4}[:=]{1,2}>? {0,4}|(?: (?:is|was|to|of|=))? )"
        rf"(?:{value})",
        re.ASCII | re.IGNORECASE,
    )
