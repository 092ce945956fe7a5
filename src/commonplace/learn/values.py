"""Whether two sentences say the same of different values: another port, version, flag or path."""

from __future__ import annotations

import re

from commonplace.index.stemmer import stem

_NEGATION = re.compile(
    r"(?i)\b(?:not?|never|don'?t|do not|doesn'?t|avoid|without|instead of|isn'?t|cannot|can'?t|"
    r"must not|stop|disable[ds]?|remove[ds]?)\b"
)
# A number, a version, a flag, a name in backquotes: what a rule states a value with.
_VALUE = re.compile(r"`[^`]+`|--?[A-Za-z][\w-]*(?:=\S+)?|\bv?\d+(?:[.:]\d+)*\w*\b")
_WORD = re.compile(r"[A-Za-z]+")
_NAME = re.compile(r"[\w.@/+#-]*\w")
# Verbs and the like: one in place of the other says the same of the same thing.
_COMMON = frozenset(
    ["a", "an", "the", "add", "added", "adding", "apply", "call", "called", "change", "changed",
     "do", "did", "execute", "fix", "fixed", "in", "into", "install", "installed", "make", "made",
     "my", "on", "our", "pass", "passed", "put", "ran", "run", "running", "set", "switch",
     "switched", "that", "this", "to", "use", "used", "using", "via", "was", "with", "your"]
)  # fmt: skip
# Two sentences with this many names exchanged are about two things; with more, they are just two.
_EXCHANGED_MAX = 2


def differ_in_value(one: str, other: str) -> bool:
    """Whether the sentences are alike but for a value each, or but for a negation.

    `use port 8080` and `use port 9090` differ; so do `use X` and `never use X`, and `start redis
    first` and `start postgres first`. A value that only one of them states is more detail.
    """
    if bool(_NEGATION.search(one)) != bool(_NEGATION.search(other)):
        return _rest(_NEGATION.sub(" ", one)) == _rest(_NEGATION.sub(" ", other))
    values, others = _values(one), _values(other)
    if (values - others) and (others - values) and _rest(one) == _rest(other):
        return True
    return _have_names_exchanged(one, other)


def _have_names_exchanged(one: str, other: str) -> bool:
    """Whether they are word for word the same but for a name or two: `start redis`, `start db`."""
    words, others = (_NAME.findall(text.lower()) for text in (one, other))
    if len(words) != len(others):
        return False
    pairs = [pair for pair in zip(words, others, strict=True) if pair[0] != pair[1]]
    if not 0 < len(pairs) <= min(_EXCHANGED_MAX, len(words) - 2):
        return False
    return not any(_COMMON & {*pair} or stem(pair[0]) == stem(pair[1]) for pair in pairs)


def _values(text: str) -> set[str]:
    return {value.strip("`").lower() for value in _VALUE.findall(text)}


def _rest(text: str) -> list[str]:
    """Return the words beside the values, in their order."""
    return [word.lower() for word in _WORD.findall(_VALUE.sub(" ", text))]
