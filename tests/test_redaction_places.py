"""Places of secrets: the example of every row, and two lists of formats and of clean lines."""

from __future__ import annotations

import json
import random
import re
import string
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from commonplace.redaction import suspicion, table
from commonplace.redaction.places import PLACES, REGIONS, Place, Region
from commonplace.redaction.suspicion import may_hold_secret
from commonplace.redaction.text import redact_text
from fake_secrets import MIXED

if TYPE_CHECKING:
    from collections.abc import Iterator

DATA = Path(__file__).parent / "data"
DRAWN_EACH = 20
WORDS = [
    "maple",
    "tiger",
    "ocean",
    "rocket",
    "silver",
    "garden",
    "winter",
    "falcon",
    "purple",
    "dragon",
    "summer",
    "coffee",
    "pirate",
    "monkey",
    "castle",
    "planet",
    "violet",
    "thunder",
]
ALPHABETS = {
    "al": MIXED,
    "pwa": MIXED,
    "hex": "0123456789abcdef",
    "HEX": "0123456789ABCDEF",
    "up": string.ascii_uppercase + string.digits,
    "lo": string.ascii_lowercase + string.digits,
    "lol": string.ascii_lowercase,
    "let": string.ascii_letters,
    "b64": MIXED + "+/",
    "b32": string.ascii_uppercase + "234567",
    "url": MIXED + "-_",
    "dig": string.digits,
}


def draw(kind: str, length: int, lot: random.Random) -> str:
    match kind:
        case "pw":
            return draw_password(lot)
        case "phrase":
            return " ".join(lot.choices(WORDS, k=length))
        case "uuid":
            digits = "".join(lot.choices(ALPHABETS["hex"], k=32))
            return "-".join(digits[a:b] for a, b in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32)))
    return "".join(lot.choices(ALPHABETS[kind], k=length))


def draw_password(lot: random.Random) -> str:
    """Return a password as people make them up, or as one of three generators does."""
    made_up = f"{lot.choice(WORDS).title()}{lot.randrange(100, 9999)}{lot.choice('!#%*?')}"
    marked = lot.choice(MIXED) + "".join(lot.choices(MIXED + "!#%^*-_+", k=14))
    mixed, lower = (draw(kind, lot.randrange(10, 17), lot) for kind in ("al", "lo"))
    return lot.choice(
        [made_up, *(f"{value}{lot.randrange(10)}" for value in (marked, mixed, lower))]
    )


def fill(format_: str, lot: random.Random) -> tuple[str, list[str]]:
    """Return *format_* with values drawn, and those of them that are secrets."""
    secrets = []

    def value(match: re.Match[str]) -> str:
        drawn = draw(match[2], int(match[3] or 0), lot)
        if not match[1]:
            secrets.append(drawn)
        return drawn

    text = re.sub(r"«(~?)(\w+)(?::(\d+))?»", value, format_)
    return text, secrets


def formats(name: str) -> list[str]:
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    return [
        line.replace("\\n", "\n") if "BEGIN" in line else line
        for line in lines[1:]
        if line[0] != "#"
    ]


def to_json(text: str) -> str:
    return json.dumps({"lesson": text}, ensure_ascii=False)


def planted() -> Iterator[tuple[str, str, str]]:
    lot = random.Random(7)
    for format_ in formats("secret_formats.txt"):
        for _ in range(DRAWN_EACH):
            text, secrets = fill(format_, lot)
            yield from ((format_, text, secret) for secret in secrets)


def test_at_most_one_planted_secret_in_a_hundred_stays() -> None:
    cases = list(planted())

    missed = [text for _, text, secret in cases if secret in redact_text(text)[0]]

    assert len(cases) > 8000
    assert len(missed) <= len(cases) / 100, missed


def test_of_no_format_more_than_a_fifth_stays() -> None:
    missed: dict[str, int] = {}
    for format_, text, secret in planted():
        missed[format_] = missed.get(format_, 0) + (secret in redact_text(text)[0])

    assert [format_ for format_, count in missed.items() if count > DRAWN_EACH / 5] == []


def test_what_is_found_is_suspicious_as_text_and_in_json() -> None:
    for _, text, _ in planted():
        if redact_text(f"note:\n{text}\nand so on")[1]:
            assert may_hold_secret(f"note:\n{text}\nand so on"), text
            assert may_hold_secret(to_json(f"note:\n{text}\nand so on")), text


def test_at_most_one_clean_line_in_a_thousand_is_changed() -> None:
    lot = random.Random(3)
    lines = [fill(format_, lot)[0] for format_ in formats("clean_lines.txt") for _ in range(10)]

    changed = [line for line in lines if redact_text(line)[1]]

    assert len(lines) > 3000
    assert len(changed) <= len(lines) / 1000, changed


ROWS: list[Place | Region] = [*PLACES, *REGIONS]
ROW_IDS = [f"{i}-{row.kind}-{row.keys[0]}" for i, row in enumerate(ROWS)]


def example(text: str) -> tuple[str, str]:
    """Return the example *text* with a secret in it, and the secret."""
    own = text[text.index("«") + 1 : text.index("»")]
    secret = own or ("x7Kq2mVp9Rt4" * 4)[:40]
    return text.replace(f"«{own}»", secret), secret


@pytest.mark.parametrize("row", ROWS, ids=ROW_IDS)
def test_the_example_of_a_place_is_redacted_and_the_text_around_it_stays(
    row: Place | Region,
) -> None:
    text, secret = example(row.example)

    clean, kinds = redact_text(f"first\n{text}\nlast")

    assert secret not in clean
    assert kinds
    assert clean.startswith("first\n")
    assert clean.endswith("\nlast")


REDACT_REPEATED = """
import json, sys
from commonplace.redaction.text import redact_text
for unit in json.load(sys.stdin):
    redact_text(unit * (10_000 // len(unit)))
"""


def test_no_repetition_of_an_example_or_its_beginning_hangs() -> None:
    """A text that an expression can read in many ways takes it minutes, others milliseconds."""
    units: list[str] = []
    for row in ROWS:
        text, secret = example(row.example)
        units += filter(None, (text, text[: text.index(secret)], f"{text} ", *row.keys))

    subprocess.run(
        [sys.executable, "-c", REDACT_REPEATED],
        input=json.dumps(units).encode(),
        timeout=240,
        check=True,
    )


@pytest.mark.parametrize("row", ROWS, ids=ROW_IDS)
def test_every_key_of_a_place_is_whole_words_or_listed_apart(row: Place | Region) -> None:
    assert any(key in row.example for key in row.keys)
    for key in row.keys:
        assert key in suspicion._PART_KEYS or key.startswith(" -") or re.search("[A-Za-z0-9]", key)


@pytest.mark.parametrize(
    "rule", table.PREFIXED, ids=[f"{rule.kind}-{rule.keys[0]}" for rule in table.PREFIXED]
)
def test_a_token_is_known_by_its_prefix_and_length(rule: table.Rule) -> None:
    characters, length = re.search(r"\[([^\]]+)\]\{(\d+),\}$", rule.pattern).groups()  # type: ignore[union-attr]
    alphabet = "".join(c for c in MIXED + "_-" if re.match(f"[{characters}]", c))
    body = "".join(random.Random(rule.kind).choices(alphabet, k=int(length)))
    body = ("7" + ("Q" if "Q" in alphabet else "a") + body)[: int(length)]
    for key in rule.keys:
        assert redact_text(f"use {key}{body} now") == (
            f"use [redacted:{rule.kind}] now",
            [rule.kind],
        )
        assert may_hold_secret(to_json(f"\n{key}{body}"))
        assert rule.kind not in redact_text(f"use {key}{body[:-1]} now")[1]
