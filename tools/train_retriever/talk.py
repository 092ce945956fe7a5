"""Conversational pairs: who said what, asked later in other words.

There is hardly any conversation under a permissive licence, so turns are made of what is there: the prose of documents, said by two
people in turn, and changelog entries, said by those who made the change. The question names the speaker and a few of the words, some
of them replaced; the answer is the turn, alone or between its neighbours, short or long.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tools.train_retriever.pair import Pair, pair, squeeze
from tools.train_retriever.words import content_words, in_other_words, sentences

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from tools.train_retriever.archives import File

NAMES = ["Anna", "Ben", "Carla", "David", "Elena", "Felix", "Grace", "Hugo", "Iris", "Jonas", "Karin", "Leo", "Maya", "Nina", "Oscar", "Paula", "Quentin", "Rosa", "Sam", "Tara", "Uma", "Victor", "Wanda", "Xenia", "Yusuf", "Zoe", "Caroline", "Melanie", "John", "Maria", "Tim", "James", "Priya", "Chen", "Aisha", "Omar", "Luis", "Sofia", "user", "assistant"]  # fmt: skip
_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]


def talk_pairs(files: list[File], source: str, topic: str, chance: random.Random) -> Iterator[Pair]:
    for file in files:
        if file.ending == "yml" and "conversations:" in file.text:
            yield from filter(None, _corpus(file.text, source, chance))
        elif file.ending in ("md", "rst", "txt"):
            paragraphs = [squeeze(p) for p in re.split(r"\n\s*\n", file.text)]
            prose = [
                re.sub(r"\[([^\]]+)\]\([^)]*\)|:\w+:`([^`<]+)[^`]*`", r"\1\2", p)
                for p in paragraphs
                if _is_prose(p)
            ]
            for start in range(0, len(prose) - 3, 6):
                yield from filter(None, _session(prose[start : start + 6], source, topic, chance))
            yield from filter(None, _thanks(file.text, source, chance))


def _is_prose(paragraph: str) -> bool:
    if re.search(r"copyright|licen[cs]e|warranty|hereby", paragraph, re.IGNORECASE):
        return False
    letters = sum(c.isalpha() or c.isspace() for c in paragraph)
    return (
        60 < len(paragraph) < 1_400
        and letters > 0.88 * len(paragraph)
        and paragraph[0].isupper()
        and paragraph[-1] in ".!?"
    )


def _session(
    paragraphs: list[str], source: str, topic: str, chance: random.Random
) -> Iterator[Pair | None]:
    speakers = chance.sample(NAMES, 2)
    turns = []
    for number, paragraph in enumerate(paragraphs):
        parts = sentences(paragraph)
        # Some turns are long, for long turns are asked about as well.
        said = " ".join(parts if chance.random() < 0.4 else parts[: chance.randint(1, 3)])
        turns.append((speakers[number % 2], said))
    for number, (speaker, said) in enumerate(turns):
        if chance.random() < 0.5:
            continue
        about = _about(said, chance)
        if not about:
            continue
        other = speakers[0] if speaker == speakers[1] else speakers[1]
        asked = chance.choice(
            ("what did {s} say about {a}?", "who talked about {a}?", "when did {s} mention {a}?", "{a}", "did {s} bring up {a}?", "what was decided on {a}?",
             "what does {s} think of {a}?", "what did {s} tell {o} about {a}?", "we talked about {a}, what was it?", "what was said on {a} in {t}?")
        ).format(s=speaker, o=other, a=about, t=topic)  # fmt: skip
        first = max(0, number - 1) if chance.random() < 0.35 else number
        last = number + 2 if first < number else number + 1
        lines = [f"{who}: {text}" for who, text in turns[first:last]]
        if chance.random() < 0.4:
            lines.insert(
                0,
                f"[{chance.randint(1, 28)} {chance.choice(_MONTHS)} {chance.randint(2019, 2026)}]",
            )
        yield pair("talk", asked, "\n".join(lines), source)


def _about(said: str, chance: random.Random) -> str:
    """Two to five words in a row of one sentence, in other words where that can be."""
    parts = [part for part in sentences(said) if len(content_words(part)) >= 3]
    if not parts:
        return ""
    words = re.findall(r"[\w'-]+", chance.choice(parts))
    length = min(len(words), chance.randint(3, 7))
    start = chance.randint(0, len(words) - length)
    chosen = words[start : start + length]
    if len(content_words(" ".join(chosen))) < 2:
        chosen = content_words(said)[:4]
    return in_other_words(" ".join(chosen).lower(), chance)


_BY = re.compile(
    r"^ *[-*] +(.{25,250}?)[,. (]+(?:by|thanks to|contributed by|thanks,?) +@?([A-Z]?[\w-]{3,20}(?: [A-Z][\w-]+)?)\b",
    re.MULTILINE | re.IGNORECASE,
)


def _thanks(text: str, source: str, chance: random.Random) -> Iterator[Pair | None]:
    entries = _BY.findall(text)
    for number, (change, person) in enumerate(entries):
        words = in_other_words(
            squeeze(re.sub(r"\(?#\d+\)?|https?://\S+", "", change)).rstrip(".,("), chance
        )
        asked = chance.choice(
            (
                "who did this: {w}?",
                "what did {p} do about {w}?",
                "who worked on {w}?",
                "{w} - who was that?",
                "when did {p} {w}?",
            )
        )
        around = entries[max(0, number - 1) : number + 2]
        said = "\n".join(f"{who}: {squeeze(what)}" for what, who in around)
        yield pair(
            "talk",
            asked.format(p=person, w=words),
            said if chance.random() < 0.4 else f"{person}: {squeeze(change)}",
            source,
        )


def _corpus(text: str, source: str, chance: random.Random) -> Iterator[Pair | None]:
    for entry in re.split(r"(?m)^- - ", text)[1:]:
        turns = [squeeze(turn) for turn in re.split(r"(?m)^  - ", entry)]
        if len(turns) > 1:
            asker, teller = chance.sample(NAMES, 2)
            yield pair(
                "talk",
                turns[0],
                f"{teller}: {' '.join(turns[1:])}"
                if chance.random() < 0.5
                else f"{asker}: {turns[0]}\n{teller}: {turns[1]}",
                source,
            )
