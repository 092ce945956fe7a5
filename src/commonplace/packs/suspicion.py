"""Text in a pack that reads like instructions to a model rather than knowledge.

Nothing is refused for it: a page about HTML has comments, and a page about prompts quotes them. The
user sees what was found before they trust the pack.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple
from unicodedata import normalize

from commonplace.characters import may_hold_hidden, remove_hidden
from commonplace.foreign import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_EXCERPT_CHARS = 80
_ABOUT = r"(?:all |any |every |the |your |my |these |those |of )*"
_BEFORE = r"(?:previous|prior|preceding|earlier|above|former|existing|original|other|system)"
_RULES = r"(?:instructions?|prompts?|messages?|rules?|directions?|guidelines?|context|commands?)"
_PATTERNS = {
    "instruction": re.compile(
        rf"\b(?:ignore|disregard|forget|override|bypass|do not follow|stop following)\b[\s,:]+"
        rf"(?:{_ABOUT}(?:{_BEFORE}[\s,]+)+{_ABOUT}{_RULES}"
        # Those of the reader, or all there are: other rules may be those of any program.
        rf"|(?:all|any|every)\s+{_ABOUT}(?:instructions?|prompts?|guidelines?)\b"
        rf"|{_ABOUT}your\s+(?:\w+\s+)?{_RULES}\b|{_ABOUT}{_RULES}\s+(?:above|before|so far)\b)"
        rf"|\b(?:ignore|disregard|forget)\s+{_ABOUT}(?:previous|prior|preceding|above)"
        rf"\s*(?:[.!;,]|$|(?:text|words|content|and|then)\b)"
        # A command for the reader to run before it does its work.
        r"|\b(?:important|attention|note to (?:the )?(?:ai|agent|assistant|model))\b\W{0,3}.{0,20}"
        r"\byou (?:must|need to|have to|should)\b"
        rf"|\b(?:ignore|disregard|forget) (?:everything|anything|what)\b.{{0,20}}"
        rf"\b(?:above|before|said|told)\b"
        r"|\byou are now\b|\bfrom now on,? you\b|\bnew (?:system )?instructions?\s*:"
        r"|\b(?:reveal|print|show|repeat|leak)\b.{0,20}\bsystem prompt\b|\bjailbreak\b"
        r"|\b(?:do not|don't|never) (?:tell|inform|mention (?:this|it) to|show (?:this|it) to)"
        r" (?:the )?(?:user|human|operator)\b"
        r"|\bwithout (?:asking|telling|informing) the (?:user|human|operator)\b",
        re.IGNORECASE,
    ),
    "tool call": re.compile(
        r"<\|[\w-]+\|>|\[/?INST\]|\[/?[A-Z]+(?:_[A-Z]+)+\]\s*[\[{]|<<SYS>>|<function=[^<>]{1,200}>|</function>"
        r"|</?(?:antml:)?(?:tool_call|tool_use|tool_result|function_calls?|function_results?|invoke|"
        r"parameter|system|system-reminder|assistant|human|thinking)\b[^<>]{0,200}>"
        r'|"(?:tool_calls|function_call|tool_use)"\s*:|```\s*tool_(?:code|call)'
        r'|"name"\s*:\s*"[^"]{1,80}"\s*,\s*"(?:arguments|parameters|input)"\s*:\s*\{',
        re.IGNORECASE,
    ),
    "HTML comment": re.compile(r"<!--.*?(?:-->|$)", re.DOTALL),
    "turn of a conversation": re.compile(
        r"^\s*(?:system|assistant|human)\s*:\s", re.IGNORECASE | re.MULTILINE
    ),
}


# Cyrillic and Greek letters that look like Latin ones.
_LOOKALIKES = str.maketrans("аеіоруѕсхһԁɡοανικ", "aeiopyscxhdgoavik")


# A quick test of a whole line: without any of these, no pattern matches. In JSON any
# character may be escaped, control characters are, and a quote within a text has a backslash.
_SUSPECT = re.compile(
    rb"ignor|disregard|forget|overrid|bypass|follow|from now|are now|instruct|prompt|jailbreak"
    rb"|important|attention|note to|user|human|operator|assistant|system|<|\[\\?/?inst"
    rb"|[A-Z]_[A-Z]+\]|tool_|function_call"
    rb'|(?:arguments|parameters|input)\\"|\\[ubf]|[\x7f-\xff]',
    re.IGNORECASE,
)


class Flag(NamedTuple):
    """What is suspicious in a record: the field, what it looks like, and some of its text."""

    id: str
    field: str
    what: str
    excerpt: str


def may_be_suspicious(line: bytes) -> bool:
    """Whether `flags` might find something in the record of a line of JSON: a quick test."""
    return _SUSPECT.search(line) is not None


def flags(fields: Mapping[str, Any]) -> Iterator[Flag]:
    """Yield what reads like instructions in a record, before it is cleaned."""
    ident = one_line(str(fields.get("id", "")))
    for name, text in _texts("", fields):
        if may_hold_hidden(text) and remove_hidden(text) != text:
            yield Flag(ident, name, "hidden characters", _excerpt(remove_hidden(text), 0))
        # To a model, letters of another width are the same words.
        plain = text if text.isascii() else normalize("NFKC", text).translate(_LOOKALIKES)
        for what, pattern in _PATTERNS.items():
            if found := pattern.search(plain):
                yield Flag(ident, name, what, _excerpt(plain, found.start()))


def _excerpt(text: str, start: int) -> str:
    return one_line(text[start : start + 4 * _EXCERPT_CHARS])[:_EXCERPT_CHARS]


def _texts(name: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield "a key", str(key)
            yield from _texts(f"{name}.{key}" if name else str(key), item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(name, item)
