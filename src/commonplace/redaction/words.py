"""Words or random characters: tells a text that people wrote from one that was drawn at random."""

from itertools import pairwise

from commonplace.redaction.table import compiled

# How much likelier a letter follows another in a word than at random, in bits, plus FOLLOWS_ZERO:
# 26 rows of 26 digits, a to z. Counted over the words in the Python standard library, each weighted
# by the logarithm of its count.
FOLLOWS_ZERO = 5
_FOLLOWS = (
    "2565235151376615176744334174446332652733641564623152"
    "6243632650664373254753213163358432722533631564522231"
    "5366444231255734377624453162346632811633732655612140"
    "5243835660154653066453301372248212703443720545421130"
    "5465545111265864156614130471437311513311751553811131"
    "5344845271262544347443513163358321712623731255432161"
    "7524821160345267025451113062666572514434532267442121"
    "3466244141456756175564531172347324603622651756523150"
    "3323221322141543145191311173548342614454630566432140"
    "5253733561443356236762324162437316712433641665523252"
    "5554644150166746176721011182419321701243531343112210"
    "7344642671243663266422320054647534612553471348332443"
    "3454643351155657147634423361239413611333631334312133"
)
# Fewer letters than this prove little: only a mix of cases that no word has shows that they are
# random.
WORD_LETTERS_MIN = 12
WORD_BITS_MIN = 5


def reads_as_words(text: str) -> bool:
    """Whether the letters of *text* may be words, as in a name, rather than random."""
    if not text.isascii():
        return True
    letters = sum(c.isalpha() for c in text)
    if letters < WORD_LETTERS_MIN:
        return not _is_mixed_case(text) or word_bits(text) >= 0
    return word_bits(text) >= WORD_BITS_MIN


def is_slug(text: str) -> bool:
    """Whether *text* is words and numbers joined by dashes and the like, as people name things."""
    parts = r"[A-Za-z]+[0-9]{0,2}(?:[-_./:](?:[A-Za-z]+[0-9]{0,2}|[0-9]+))+"
    return bool(compiled(parts).fullmatch(text)) and reads_as_words(text)


def count_switches(text: str) -> int:
    """Return how often letters and digits of *text* alternate, which words rarely make them do."""
    return len(compiled(r"(?<=[0-9])(?=[A-Za-z])|(?<=[A-Za-z])(?=[0-9])").findall(text))


def word_bits(text: str) -> int:
    """Return how much likelier *text*, in ASCII, is written in words than random, in bits."""
    mixed = _is_mixed_case(text)
    bits = 0
    for one, two in pairwise(text):
        if not (one.isalpha() and two.isalpha()):
            # In a name, digits come at the end of a word; in random text anywhere.
            bits -= 2 * (mixed and one.isalpha() and two.isdigit())
        elif one.islower() and two.isupper():
            bits -= 2
        else:
            # The low five bits of a letter, of either case, are its place in the alphabet.
            bits += int(_FOLLOWS[(ord(one) & 31) * 26 + (ord(two) & 31) - 27]) - FOLLOWS_ZERO
            bits += mixed and (-1 if two.isupper() else 1)
    return bits


def _is_mixed_case(text: str) -> bool:
    return not (text.islower() or text.isupper())
