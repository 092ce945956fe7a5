"""Characters that a text should not hold, because no reader sees them.

Control characters command a terminal; bidirectional controls, zero-width and tag characters show a
person another text than a model reads. Nothing is lost without them, but for joiners and selectors
in scripts and emoji that are written with them. Those are kept where they belong.
"""

from __future__ import annotations

import re

# C0 but tab and line ends, DEL, and C1.
_CONTROL = r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
# Soft hyphen, grapheme joiner, fillers, zero-width spaces, bidirectional controls, invisible
# operators, byte order mark, annotation marks, and the plane of tags. Three flags (of England,
# Scotland and Wales) are written with tags: without them they are black flags.
_INVISIBLE = (
    r"\u00ad\u034f\u061c\u17b4\u17b5\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    r"\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff"
    r"\U000e01f0-\U000e0fff"
)
_JOINERS = r"\u200c\u200d"
_SELECTORS = r"\ufe00-\ufe0f"
_IDEOGRAPH_SELECTORS = r"\U000e0100-\U000e01ef"
_MONGOLIAN_SELECTORS = r"\u180b-\u180f"
_CHANGING = f"{_JOINERS}{_SELECTORS}{_IDEOGRAPH_SELECTORS}{_MONGOLIAN_SELECTORS}"
# Scripts in which a joiner changes how a word is written: Arabic, Syriac, N'Ko, those of India,
# Burmese, Khmer, Mongolian.
_JOINED_SCRIPTS = r"\u0600-\u0dff\u1000-\u109f\u1780-\u180a\u1810-\u18af\ufb50-\ufdff\ufe70-\ufefc"
_EMOJI = r"\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
_IDEOGRAPHS = r"\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"

# Compiled by the first text that needs it: that takes milliseconds, and every command starts here.
_SUSPECT = f"[{_CONTROL}{_INVISIBLE}{_CHANGING}]"
# A whole colour sequence of a terminal, or any single character.
_ALWAYS_HIDDEN = rf"\x1b\[[0-9;?]*[ -/]*[@-~]|[{_CONTROL}{_INVISIBLE}]"
# The places that joiners and selectors have: a selector after the character that it changes, a
# joiner after a letter of its scripts or between two emoji. Any other is removed: a row of them
# would be a message that no person sees.
_IN_PLACE_OR_NOT = (
    rf"([{_EMOJI}][{_SELECTORS}]?\u200d(?=[{_EMOJI}])|[{_JOINED_SCRIPTS}][{_JOINERS}]"
    rf"|[{_IDEOGRAPHS}][{_IDEOGRAPH_SELECTORS}]|[\u1820-\u18aa][{_MONGOLIAN_SELECTORS}]"
    rf"|[^{_CHANGING}][{_SELECTORS}])|[{_CHANGING}]"
)
_TERMINAL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def may_hold_hidden(text: str) -> bool:
    """Whether *text* has a character that `remove_hidden` might remove: a quick test."""
    if text.isascii():
        # The same test for most texts, and several times as fast as a search.
        if text.isprintable():
            return False
        return not text.replace("\n", "").replace("\t", "").replace("\r", "").isprintable()
    return re.search(_SUSPECT, text) is not None


def holds_terminal_codes(text: str) -> bool:
    """Whether *text* has ASCII control characters: colours of a terminal, or binary data."""
    return _TERMINAL.search(text) is not None


def remove_hidden(text: str) -> str:
    """Return *text* without control characters and characters that cannot be seen."""
    if not may_hold_hidden(text):
        return text
    # Compiled here, since few processes meet such a text: `re` keeps them.
    return re.sub(_IN_PLACE_OR_NOT, r"\1", re.sub(_ALWAYS_HIDDEN, "", text))
