"""Split developer text into search terms.

Words are stemmed; identifiers, paths and flags are kept whole and in parts; CJK text is split into
pairs of characters. The same function is used for documents and queries.
"""

from __future__ import annotations

import re
from itertools import chain
from zlib import crc32

from commonplace.index.stemmer import stem

TERM_CHARS_MAX = 80
# How many runs are cached with their terms, which takes about 30 MB.
KNOWN_MAX = 100_000
# Increase this with any change below: an index made with other terms is rebuilt.
VERSION = 1

# A run of word characters, with the characters that join paths, dotted names, flags, versions and
# addresses.
_RUN = re.compile(r"[^\W_][\w]*(?:[.\-/:@+#\\]+\w+)*|\w+(?:[.\-/:@+#\\]+\w+)*")
# Compiled by the first word that needs it: that takes a millisecond.
_CJK = r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+"
# A part ends at anything that is not a letter or digit, and at the case changes of camelCase.
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_MIXED = re.compile(r"[a-z][A-Z]|[A-Za-z]\d|\d[A-Za-z]|[._\-/:@+#\\]")

STOP_WORDS = frozenset(
    [
        "a",
        "about",
        "after",
        "again",
        "all",
        "also",
        "an",
        "and",
        "any",
        "are",
        "as",
        "at",
        "be",
        "because",
        "been",
        "before",
        "being",
        "both",
        "but",
        "by",
        "can",
        "could",
        "did",
        "do",
        "does",
        "doing",
        "down",
        "during",
        "each",
        "few",
        "for",
        "from",
        "further",
        "had",
        "has",
        "have",
        "having",
        "he",
        "her",
        "here",
        "hers",
        "him",
        "his",
        "how",
        "i",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "itself",
        "just",
        "me",
        "more",
        "most",
        "my",
        "no",
        "nor",
        "not",
        "of",
        "off",
        "on",
        "once",
        "only",
        "or",
        "other",
        "our",
        "out",
        "over",
        "own",
        "s",
        "same",
        "she",
        "should",
        "so",
        "some",
        "such",
        "t",
        "than",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "those",
        "through",
        "to",
        "too",
        "under",
        "until",
        "up",
        "us",
        "very",
        "was",
        "we",
        "were",
        "what",
        "when",
        "where",
        "which",
        "while",
        "who",
        "whom",
        "why",
        "will",
        "with",
        "would",
        "you",
        "your",
    ],
)


def terms(text: str) -> list[str]:
    """Return the terms of *text*, in their order, with repeats."""
    return list(chain.from_iterable(map(_TERMS_OF_RUN.__getitem__, _RUN.findall(text))))


def term_set(text: str) -> frozenset[str]:
    """Return the terms of *text*, each once."""
    return frozenset(chain.from_iterable(map(_TERMS_OF_RUN.__getitem__, set(_RUN.findall(text)))))


def term_hash(term: str) -> int:
    """Return a 32-bit hash of *term*, which the index stores for each term of a document."""
    return crc32(term.encode("utf-8", "surrogatepass"))


# A name of three parts must not count four times as much as a word (bench/quality.py).
WHOLE_WEIGHT = 0.6
PART_WEIGHT = 0.5


def query_terms(text: str) -> dict[str, float]:
    """Return the terms of a question with their weights.

    An identifier, which gives several terms, counts about as much as one word.
    """
    weights: dict[str, float] = {}
    for run in _RUN.findall(text):
        found = _TERMS_OF_RUN[run]
        for place, term in enumerate(found):
            weight = 1.0 if len(found) == 1 else WHOLE_WEIGHT if place == 0 else PART_WEIGHT
            weights[term] = weights.get(term, 0.0) + weight
    return weights


class _TermsOfRun(dict[str, tuple[str, ...]]):
    """A cache of the terms of runs, computed when first needed."""

    def __missing__(self, run: str) -> tuple[str, ...]:
        found = tuple(_make_terms(run))
        if len(self) >= KNOWN_MAX:
            self.clear()
        if len(run) <= TERM_CHARS_MAX:  # Long runs such as Base64 rarely come again.
            self[run] = found
        return found


_TERMS_OF_RUN = _TermsOfRun()


def _make_terms(run: str) -> list[str]:
    if not run.isascii() and re.search(_CJK, run):
        return _cjk_terms(run)
    lowered = run.lower()
    if not _MIXED.search(run):
        return [] if lowered in STOP_WORDS else [stem(lowered[:TERM_CHARS_MAX])]
    # `getUserById`, `no-cache`, `config/prod.yaml`, `E0308`, `18.2.0`: the whole, each segment, and
    # the parts.
    whole = lowered.strip("._-/:@+#\\")
    segments = re.split(r"[/:@#\\]+", whole) if re.search(r"[/:@#\\]", whole) else []
    parts = [part.lower() for part in _PART.findall(run)]
    found = dict.fromkeys([whole, *segments] if len(parts) > 1 else [whole])
    found |= dict.fromkeys(
        stem(part)
        for part in parts
        if part not in STOP_WORDS and (len(part) > 1 or not part.isdigit())
    )
    return [term[:TERM_CHARS_MAX] for term in found if term and term not in STOP_WORDS]


def _cjk_terms(run: str) -> list[str]:
    """Return pairs of adjacent characters for CJK text, and the usual terms for the rest."""
    found: list[str] = []
    at = 0
    for match in re.finditer(_CJK, run):
        if rest := run[at : match.start()]:
            found += terms(rest)
        text = match.group()
        found += [text[index : index + 2] for index in range(len(text) - 1)] or [text]
        at = match.end()
    if rest := run[at:]:
        found += terms(rest)
    return found
