"""Words or random characters: tells a text that people wrote from one that was drawn at random."""

from functools import cache
from operator import getitem

from commonplace.redaction.table import compile_pattern

# How much likelier a letter follows another in a word than at random, in bits plus 5: 26 rows of
# 26 digits, a to z. Counted over the words in the Python standard library, each weighted by the
# logarithm of its count.
FOLLOWS = (
    b"2565235151376615176744334174446332652733641564623152"
    b"6243632650664373254753213163358432722533631564522231"
    b"5366444231255734377624453162346632811633732655612140"
    b"5243835660154653066453301372248212703443720545421130"
    b"5465545111265864156614130471437311513311751553811131"
    b"5344845271262544347443513163358321712623731255432161"
    b"7524821160345267025451113062666572514434532267442121"
    b"3466244141456756175564531172347324603622651756523150"
    b"3323221322141543145191311173548342614454630566432140"
    b"5253733561443356236762324162437316712433641665523252"
    b"5554644150166746176721011182419321701243531343112210"
    b"7344642671243663266422320054647534612553471348332443"
    b"3454643351155657147634423361239413611333631334312133"
)
_ZERO_BITS = ord("5")
# Fewer letters than this prove little: only a mix of cases that no word has shows that they are
# random.
WORD_LETTERS_MIN = 12
WORD_BITS_MIN = 5

_NOT_LETTERS = bytes(byte for byte in range(128) if not bytes([byte]).isalpha())


def reads_as_words(text: str) -> bool:
    """Whether the letters of *text* may be words, as in a name, rather than random."""
    if not text.isascii():
        return True
    letters = len(text.encode().translate(None, _NOT_LETTERS))
    if letters < WORD_LETTERS_MIN:
        return not _is_mixed_case(text) or word_bits(text) >= 0
    return word_bits(text) >= WORD_BITS_MIN


def is_slug(text: str) -> bool:
    """Whether *text* is words and numbers joined by dashes and the like, as people name things."""
    parts = r"[A-Za-z]+[0-9]{0,2}(?:[-_./:](?:[A-Za-z]+[0-9]{0,2}|[0-9]+))+"
    return bool(compile_pattern(parts).fullmatch(text)) and reads_as_words(text)


def count_switches(text: str) -> int:
    """Return how often letters and digits of *text* alternate; in words they rarely do."""
    return len(compile_pattern(r"(?<=[0-9])(?=[A-Za-z])|(?<=[A-Za-z])(?=[0-9])").findall(text))


def count_digits(text: str) -> int:
    if text.isascii():
        return sum(map(text.count, "0123456789"))
    return sum(map(str.isdigit, text))


def word_bits(text: str) -> int:
    """Return how much likelier *text*, in ASCII, is written in words than random, in bits."""
    raw = text.encode("ascii")
    scores = _pair_scores(_is_mixed_case(text))
    following = raw[1:]
    total = sum(map(getitem, map(scores.__getitem__, raw), following))
    return total - _ZERO_BITS * len(following)


@cache
def _pair_scores(mixed_case: bool) -> list[bytes]:
    """Return the scores of pairs: `[first character][second character]`, each plus `_ZERO_BITS`."""
    none, minus_two = bytes([_ZERO_BITS]), bytes([_ZERO_BITS - 2])
    # In a name, digits come at the end of a word; in random text they come anywhere.
    digits = 10 * (minus_two if mixed_case else none)
    scores = [128 * none] * 128
    for index in range(26):
        follows = FOLLOWS[26 * index : 26 * index + 26]
        upper = bytes(score - mixed_case for score in follows)
        lower = bytes(score + mixed_case for score in follows)
        for letter, to_upper in ((ord("A") + index, upper), (ord("a") + index, 26 * minus_two)):
            # ASCII has 48 characters before the digits, 7, 6 and 5 after each group.
            groups = (48 * none, digits, 7 * none, to_upper, 6 * none, lower, 5 * none)
            scores[letter] = b"".join(groups)
    return scores


def _is_mixed_case(text: str) -> bool:
    return not (text.islower() or text.isupper())
