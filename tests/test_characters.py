"""Characters that cannot be seen: which ones go, and which stay where a script or an emoji needs them."""

from __future__ import annotations

from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.characters import holds_terminal_codes, may_hold_hidden, remove_hidden

KEPT_CONTROLS = "\t\n\r"
# Where a joiner or a selector may be: letters that are joined, emoji, ideographs.
CHANGING = "\u200c\u200d\ufe00\ufe0f\U000e0101\u180b\u180e"
ODD = f"a {CHANGING}\u200b\u061c\U000e0041\x1b[3m\u1820\u4e00\u0628\u0915\U0001f469\U0001f4bb\U0001f3fb"


@given(st.text(st.characters(max_codepoint=127)))
def test_ascii_hides_only_control_characters(text: str) -> None:
    controls = {char for char in text if category(char) == "Cc"} - set(KEPT_CONTROLS)

    assert may_hold_hidden(text) is bool(controls)


@given(st.text() | st.text(alphabet=ODD))
def test_what_is_left_holds_nothing_hidden(text: str) -> None:
    clean = remove_hidden(text)

    hidden = {char for char in clean if category(char) in ("Cc", "Cf")}
    # Signs of Arabic and other scripts that are printed, though Unicode counts them as format.
    assert all(
        char in KEPT_CONTROLS + CHANGING or char.isalnum() or _is_printed_sign(char)
        for char in hidden
    )
    assert remove_hidden(clean) == clean
    assert clean == text or may_hold_hidden(text)


def _is_printed_sign(char: str) -> bool:
    return (
        "\u0600" <= char <= "\u08ff"
        or char in "\U000110bd\U000110cd"
        or "\U00013430" <= char <= "\U0001345f"
    )


@given(st.text(alphabet=CHANGING, min_size=2).map(lambda text: f"a{text}b"))
def test_a_message_in_joiners_and_selectors_does_not_survive(text: str) -> None:
    assert len(remove_hidden(text)) <= 3


@pytest.mark.parametrize(
    "text",
    [
        "👩‍💻 👨‍👩‍👧‍👦 👩🏽‍💻 ❤️‍🔥 🏳️‍🌈 1️⃣ ☎︎",
        "می‌خواهم",  # Persian: "I want", with a non-joiner.
        "क्‍ष श्री ශ්‍රී ന്‍",
        "葛\U000e0100飾区",
        "Ünïcode: naïve café, 数据库 λόγος → 🚀\ttab\nline\r\nend\xa0",
    ],
)
def test_scripts_and_emoji_keep_what_they_need(text: str) -> None:
    assert remove_hidden(text) == text


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("a\u200bb\u2060c\ufeff", "abc"),
        ("abc\u202etxt.exe", "abctxt.exe"),
        ("run \U000e0041\U000e0042now", "run now"),
        ("a\u200db\u200cc", "abc"),
        ("\x1b[31mred\x1b[0m \x9b31m\x85", "red 31m"),
        ("a" + "\ufe01\ufe02" * 9, "a\ufe01"),
        ("🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "🏴"),
    ],
)
def test_the_rest_goes(text: str, rest: str) -> None:
    assert remove_hidden(text) == rest


@pytest.mark.parametrize(
    ("text", "holds"), [("\x07", True), ("\x7f", True), ("a\tb\r\n", False), ("\u200b\x85", False)]
)
def test_terminal_codes_are_those_of_ascii(text: str, holds: bool) -> None:
    assert holds_terminal_codes(text) is holds
