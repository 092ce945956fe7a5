"""Pairs from documents: headings, questions, symptoms, long notes, changelogs."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from tools.train_retriever.pair import Pair, pair, squeeze
from tools.train_retriever.sections import Section, sections
from tools.train_retriever.words import (
    as_question,
    content_words,
    first_sentence,
    in_other_words,
    key_words,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Mapping

    from tools.train_retriever.archives import File

DOCUMENTS = frozenset(("md", "mdx", "rst", "txt", "html", "htm"))
LONG_NOTE = 900
_CHANGES = re.compile(r"(change|history|news|release|whatsnew|what_s_new)[^/]*$", re.IGNORECASE)
_TROUBLE = re.compile(
    r"faq|troubleshoot|common[-_ ](issue|problem|error)|known[-_ ]issue|gotcha|howto|how-to|recipes?|tips",
    re.IGNORECASE,
)
_ERROR = re.compile(
    r"\b(error|exception|warning|cannot|can't|could not|couldn't|fail(s|ed|ure)?|not found|unable|invalid|undefined|unknown|missing|denied|refused|"
    r"timed? ?out|traceback|deprecated|unexpected|does not|doesn't|not work(ing)?|crash(es)?|E\d{3,5}|ERR_\w+|W\d{3,5})\b|^-W|(Error|Exception|Warning)\b"
)
_EMPTY = re.compile(
    r"^(see also|references?|notes?|contents|index|table of contents|overview|introduction|license|contributing|examples?|usage|parameters|returns?|"
    r"installation|install|installing|api|misc(ellaneous)?|unreleased|links?|authors?|changelog|todo|options|description|summary|features?|"
    r"v?\d+[\d.]*.*)$",
    re.IGNORECASE,
)


_NOTICE = re.compile(
    r"hereby granted|all rights reserved|licen[cs]ed under the|without warranty|redistributions? (?:of|in)",
    re.IGNORECASE,
)


def document_pairs(
    files: list[File], source: str, topic: str, chance: random.Random, functions: Mapping[str, str]
) -> Iterator[Pair]:
    found: list[tuple[str, list[Section]]] = []
    rst_sources = any("/_sources/" in file.path for file in files)
    for file in files:
        if file.ending in DOCUMENTS or "." not in file.path.rpartition("/")[2]:
            if rst_sources and file.ending == "html":
                continue
            found.append(
                (
                    file.path,
                    sections(
                        file.path.removesuffix(".txt")
                        if file.path.endswith(".rst.txt")
                        else file.path,
                        file.text,
                    ),
                )
            )
    counts: Counter[str] = Counter()
    for _path, parts in found:
        for part in parts:
            counts.update({word.lower() for word in content_words(part.body[:1_500])})
    for path, parts in found:
        if _CHANGES.search(path):
            for part in parts:
                yield from _change_pairs(part, source, topic, chance, functions)
        else:
            for part in parts:
                yield from filter(None, _section_pairs(path, part, source, topic, chance, counts))
            yield from filter(None, [_page_pair(parts, source, topic, chance)])


def _section_pairs(
    path: str, part: Section, source: str, topic: str, chance: random.Random, counts: Counter[str]
) -> Iterator[Pair | None]:
    heading, body = part.heading, part.body
    if not _says_something(heading, body):
        return
    plain = bool(_EMPTY.match(heading)) or len(heading) < 4
    above = part.headings[-2] if len(part.headings) > 1 else topic
    if _ERROR.search(heading) and not plain:
        yield pair("error", heading, body, source)
        sentence, rest = first_sentence(body)
        if len(rest) > 120 and 30 < len(sentence) < 300:
            yield pair("error", in_other_words(sentence, chance), f"{heading}\n{rest}", source)
        yield from _codes_in(body, heading, source, chance)
        return
    if heading.endswith("?") or (
        _TROUBLE.search(path + " ".join(part.headings[:-1])) and not plain
    ):
        yield pair(
            "question",
            in_other_words(heading, chance) if chance.random() < 0.3 else heading,
            body,
            source,
        )
        if not heading.endswith("?"):
            yield pair(
                "question", as_question(heading, topic, chance), f"{heading}\n{body}", source
            )
        return
    dice = chance.random()
    if not plain and dice < 0.45:
        yield pair(
            "heading",
            heading if above == topic or chance.random() < 0.5 else f"{above}: {heading}",
            body,
            source,
        )
    elif not plain and dice < 0.75:
        yield pair(
            "question",
            as_question(heading, topic, chance),
            body if chance.random() < 0.5 else f"{heading}\n{body}",
            source,
        )
    else:
        sentence, rest = first_sentence(body)
        if len(rest) > 200 and 30 < len(sentence) < 250 and chance.random() < 0.5:
            yield pair("heading", in_other_words(sentence, chance), rest, source)
        elif len(body) > 250:
            yield pair("note", key_words(body, counts, chance), body, source)


def _says_something(heading: str, body: str) -> bool:
    if _NOTICE.search(body) or _SIGNATURE.match(heading):
        return False
    return sum(c.isalpha() for c in body) >= 60 and len(content_words(body[:400])) >= 8


_SIGNATURE = re.compile(r"(?:pub |unsafe |const )*(?:fn|impl|type|struct|trait) ")
_SHOWN = re.compile(
    r"^[ >#$/]*(?:\S+:\d+(?::\d+)?: )?((?:error|warning|Error|TypeError|ValueError|[A-Z]\w+Error)(?:\[\w+\])?: .{10,200})$",
    re.MULTILINE,
)


def _codes_in(body: str, heading: str, source: str, chance: random.Random) -> Iterator[Pair | None]:
    """An error message that the section quotes, without its own line in the answer."""
    for match in list(_SHOWN.finditer(body))[:2]:
        yield pair(
            "error",
            match[1],
            f"{heading}\n{body.replace(match[0], '')}" if chance.random() < 0.5 else body,
            source,
        )


def _page_pair(parts: list[Section], source: str, topic: str, chance: random.Random) -> Pair | None:
    """A short question, and the long note that answers it."""
    parts = [part for part in parts if not _EMPTY.match(part.heading)]
    length = sum(len(part.body) for part in parts)
    if len(parts) < 2 or length < LONG_NOTE:
        return None
    title = parts[0].headings[0]
    # The model reads the beginning only: the question is about something in it.
    starts = [sum(len(before.body) for before in parts[:number]) for number in range(4)]
    inner = chance.choice(
        [part for part, start in zip(parts, starts, strict=False) if start < LONG_NOTE]
    )
    question = as_question(inner.heading, title if title != inner.heading else topic, chance)
    text = "\n\n".join(
        f"{'#' * len(part.headings)} {part.heading}\n{part.body}" for part in parts[:6]
    )
    return pair("note", question, text, source)


_BULLET = re.compile(r"^ {0,4}[-*+•] (.+(?:\n(?! {0,4}[-*+•] |\n|#).+)*)", re.MULTILINE)
_NUMBER = re.compile(
    r"\(?\[?(?:GH-|gh-|bpo-|#|:\w+:`)\d+`?\]?\)?|\bhttps?://\S+|\bby @\S+|@[\w-]+|\b[0-9a-f]{7,40}\b|\[\]\(\)|\(\s*[,)]"
)


def _change_pairs(
    part: Section, source: str, topic: str, chance: random.Random, functions: Mapping[str, str]
) -> Iterator[Pair]:
    entries = [squeeze(_NUMBER.sub("", entry)) for entry in _BULLET.findall(part.body)]
    version = next((h for h in reversed(part.headings) if re.search(r"\d+\.\d+", h)), part.heading)
    for entry in entries:
        if not 30 <= len(entry) <= 1_500:
            continue
        sentence, rest = first_sentence(entry)
        names = [
            name
            for name in re.findall(r"`+\.?([A-Za-z_][\w.]+)(?:\(\))?`+", entry)
            if name.rpartition(".")[2] in functions
        ]
        found = None
        if names and chance.random() < 0.7:
            found = pair(
                "changelog",
                in_other_words(entry, chance),
                functions[names[0].rpartition(".")[2]],
                source,
            )
        elif len(rest) > 80:
            found = pair(
                "changelog", in_other_words(sentence, chance), f"{topic} {version}: {rest}", source
            )
        elif len(entries) > 1 and chance.random() < 0.25:
            words = " ".join(entry.split()[:14]).rstrip(".,;")
            asked = chance.choice(
                ("when was this changed: {}", "{}", "which version: {}", "what happened to {}")
            ).format(in_other_words(words, chance))
            start = max(0, entries.index(entry) - 2)
            found = pair(
                "changelog",
                asked,
                f"{topic} {version}\n" + "\n".join(f"- {e}" for e in entries[start : start + 6]),
                source,
            )
        if found:
            yield found
