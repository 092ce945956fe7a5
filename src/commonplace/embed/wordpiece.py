"""BERT's uncased WordPiece tokenizer, which turns a text into the ids that MiniLM was trained on.

It needs only the standard library. It never recognises special tokens: a text with `[SEP]` has a
bracket, a word and a bracket.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

CACHED_WORDS_MAX = 50_000
SEARCHES_MAX = 150
MARKS = 2  # `[CLS]` and `[SEP]`, which every text has.
WORD_CHARACTERS_MAX = 100  # BERT's own limit: a longer word is unknown as a whole.

# BERT drops these control characters, while str.split() would split a word at them. Both agree on
# all other white space.
_DROPPED_BEFORE_SPLIT = dict.fromkeys([0x0B, 0x0C, *range(0x1C, 0x20), 0x85])
_ASCII_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),  # BERT's table starts this block 0x100 late, so the ids do too.
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


class Vocabulary:
    """The pieces of a `vocab.txt`: one a line, its id the line's number from 0.

    A dictionary of them takes 9 ms to make, and searching the file for one piece 0.03 ms. So the
    pieces of one question are searched for, and more are looked up in a dictionary.
    """

    def __init__(self, file: bytes) -> None:
        self._lines = b"\n" + file.rstrip(b"\n") + b"\n"
        self._searches = 0
        self._ids: dict[str, int] | None = None

    def id_of(self, piece: str) -> int | None:
        """Return the id of *piece*; `None` if it is not in the vocabulary."""
        if self._ids is None:
            if self._searches < SEARCHES_MAX:
                self._searches += 1
                start = self._lines.find(b"\n" + piece.encode(errors="surrogatepass") + b"\n")
                return None if start < 0 else self._lines.count(b"\n", 0, start)
            pieces = self._lines[1:-1].decode().split("\n")
            self._ids = {piece: number for number, piece in enumerate(pieces)}
        return self._ids.get(piece)


class WordPiece:
    """Cuts texts into the pieces of a vocabulary, and caches the words that it has cut."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._unknown = self._mark("[UNK]")
        self._start = self._mark("[CLS]")
        self._end = self._mark("[SEP]")
        self._cache: dict[str, tuple[int, ...]] = {}

    @classmethod
    def load(cls, path: Path) -> WordPiece:
        """Read a `vocab.txt`."""
        return cls(Vocabulary(path.read_bytes()))

    def _mark(self, name: str) -> int:
        found = self._vocabulary.id_of(name)
        if found is None:
            raise KeyError(name)
        return found

    def encode(self, text: str, pieces_max: int) -> list[int]:
        """Return the ids of *text* between `[CLS]` and `[SEP]`, at most *pieces_max* in all."""
        assert pieces_max >= MARKS, "the start and the end are always there"
        ids = [self._start]
        cache = self._cache
        for word in text.translate(_DROPPED_BEFORE_SPLIT).split():
            pieces = cache.get(word)
            if pieces is None:
                pieces = self._cut_and_cache(word)
            ids += pieces
            if len(ids) >= pieces_max:
                break
        del ids[pieces_max - 1 :]
        ids.append(self._end)
        return ids

    def _cut_and_cache(self, word: str) -> tuple[int, ...]:
        if len(self._cache) >= CACHED_WORDS_MAX:
            self._cache.clear()
        pieces = tuple(piece for part in _parts(_normalise(word)) for piece in self._pieces(part))
        if len(word) <= WORD_CHARACTERS_MAX:
            self._cache[word] = pieces
        return pieces

    def _pieces(self, word: str) -> list[int]:
        """Return the longest piece at the start of *word*, then that of the rest, and so on."""
        if len(word) > WORD_CHARACTERS_MAX:
            return [self._unknown]
        pieces: list[int] = []
        id_of = self._vocabulary.id_of
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                piece = id_of(prefix + word[start:end])
                if piece is not None:
                    break
            else:
                return [self._unknown]
            pieces.append(piece)
            start = end
        return pieces


def _normalise(word: str) -> str:
    """Return *word* in lower case, without accents and controls, with spaces around ideographs."""
    if word.isascii() and word.isprintable():
        return word.lower()
    kept = (character for character in word if not _is_control(character))
    apart = "".join(
        f" {character} " if _is_ideograph(character) else character for character in kept
    )
    bare = (c for c in unicodedata.normalize("NFD", apart) if unicodedata.category(c) != "Mn")
    # One character at a time: on a whole word, str.lower() would use the final sigma, unlike BERT.
    return "".join(character.lower() for character in bare)


def _parts(text: str) -> list[str]:
    if text.isalnum():
        return [text]
    return "".join(
        f" {character} " if _is_punctuation(character) else character for character in text
    ).split()


def _is_punctuation(character: str) -> bool:
    return character in _ASCII_PUNCTUATION or unicodedata.category(character).startswith("P")


def _is_control(character: str) -> bool:
    # Unassigned code points (Cn) stay, so an older Python's Unicode tables do not change the ids.
    return character == "\ufffd" or unicodedata.category(character) in {"Cc", "Cf", "Co", "Cs"}


def _is_ideograph(character: str) -> bool:
    return any(first <= ord(character) <= last for first, last in _IDEOGRAPHS)
