"""The English stemmer: `running` and `runs` are both `run`.

Tantivy brings Snowball's stemmer as compiled code, which is why it is used here. It opens no index,
and any engine may call this.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tantivy

STEMS_MAX = 20_000


@lru_cache(maxsize=STEMS_MAX)
def stem(word: str) -> str:
    """Return the stem of *word*, which is in lower case."""
    stems: list[str] = _analyzer().analyze(word)
    return stems[0] if stems else word


@cache
def _analyzer() -> tantivy.TextAnalyzer:
    import tantivy  # noqa: PLC0415 (commands that stem nothing need not load it)

    return (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.raw())
        .filter(tantivy.Filter.stemmer("english"))
        .build()
    )
