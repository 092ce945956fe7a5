"""Long random runs of letters and digits: tokens of vendors that no row of the table knows."""

from __future__ import annotations

from commonplace.redaction.spans import Span
from commonplace.redaction.table import compile_pattern
from commonplace.redaction.words import count_digits, count_switches, reads_as_words

# With its prefix, a run is at least this long; shorter ones are mostly identifiers.
LENGTH_MIN = 32
# Of it, this many letters and digits are unbroken.
UNBROKEN_MIN = 24
DIGITS_MIN = 3
SWITCHES_MIN = 5

# In a path or between the signs of base64, a run is the name of a file or a part of some data.
_RUN = (
    r"(?:(?<![A-Za-z0-9_+/=.~%@\\-])|(?<=\\[nrt]))"
    rf"[A-Za-z0-9_-]{{{LENGTH_MIN},}}"
    r"(?![A-Za-z0-9_+/=~%@-]|\.[A-Za-z0-9])"
)
_UNBROKEN = rf"[A-Za-z0-9]{{{UNBROKEN_MIN},}}"
# What is random and public: checksums, numbers in hex, public keys and certificates, mangled names
# of C++ and Rust, addresses in base58, identifiers of answers.
_PUBLIC = (
    r"sha[0-9]{1,3}[-_].*|(?:0x)?[0-9A-Fa-f_-]+|AAAA[BCE]3NzaC.*|MII.*|_+[ZR].*"
    r"|[1-9A-HJ-NP-Za-km-z]{43,44}|Qm[1-9A-HJ-NP-Za-km-z]{44}"
    r"|(?:chatcmpl|toolu|resp|call|msg|req|run|batch|file|thread|asst)[-_].*"
    r"|[A-Z]{1,4}_kwDO.*|RW[QRT].*"  # GitHub's own ids, public keys of minisign.
)
# What stands before something random that is public: `SHA256:`, `"kid": "`, `--id `, `ETag: `.
_PUBLIC_LEAD = (
    r"(?:base64,|(?:sha-?[0-9]{1,3}|md5)[:=-]"
    r"|(?:^|[^a-z])(?:id|kid|n|x5t|etag|sitekey|fingerprint|digest|checksum|hash|integrity|address"
    r"|commit|(?:node|file|sheet|doc|client|project|build|trace|request|session)_?id"
    r"|(?:public|pub|site)[_-]?key)[\"'\\]{0,3}[ :=]{1,3}(?:w/)?[\"'\\]{0,3})\Z"
)
_LEAD_CHARS = 40
_LINE_OF_DATA = r"[A-Za-z0-9+/=_-]{16,}"


def may_hold_drawn_run(run: bytes) -> bool:
    """Whether *run*, of letters, digits, `_` and `-`, may be drawn at random; False is certain."""
    return (
        len(run) >= LENGTH_MIN
        and not (run.islower() or run.isupper())
        and len(run.translate(None, b"0123456789")) <= len(run) - DIGITS_MIN
    )


def find_drawn_runs(text: str) -> list[Span]:
    """Return the runs of *text* that were drawn at random, and that are not known to be public."""
    return [
        Span(*match.span(), "token")
        for match in compile_pattern(_RUN).finditer(text)
        if _is_drawn(match[0])
        and not _is_announced_as_public(text, match.start())
        and not _is_line_of_data(text, match.start(), match.end())
    ]


def _is_drawn(run: str) -> bool:
    if compile_pattern(_PUBLIC).fullmatch(run):
        return False
    return any(
        not (part.islower() or part.isupper())
        and count_digits(part) >= DIGITS_MIN
        and count_switches(part) >= SWITCHES_MIN
        and not reads_as_words(part)
        for part in compile_pattern(_UNBROKEN).findall(run)
    )


def _is_announced_as_public(text: str, start: int) -> bool:
    lead = text[max(0, start - _LEAD_CHARS) : start].lower()
    return compile_pattern(_PUBLIC_LEAD).search(lead) is not None


def _is_line_of_data(text: str, start: int, end: int) -> bool:
    """Whether *text* from *start* to *end* is a line of base64 below or above another such line."""
    if not (text.endswith("\n", 0, start) and (end == len(text) or text[end] == "\n")):
        return False
    line = compile_pattern(_LINE_OF_DATA)
    before = text.rfind("\n", 0, start - 1) + 1
    return bool(
        line.fullmatch(text, before, start - 1)
        or (end < len(text) and line.fullmatch(text, end + 1, _line_end(text, end + 1)))
    )


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end
