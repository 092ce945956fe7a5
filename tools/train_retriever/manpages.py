"""Pairs from manual pages: what a page is for, and what its options do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tools.train_retriever.pair import Pair, pair, squeeze
from tools.train_retriever.words import as_question, first_sentence, in_other_words

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from tools.train_retriever.archives import File

_PAGE = re.compile(r"/man[1-8]/[^/]+\.[1-8][a-z]*$")


def manual_pairs(files: list[File], source: str, chance: random.Random) -> Iterator[Pair]:
    for file in files:
        if _PAGE.search(file.path):
            yield from filter(None, _page(file, source, chance))


def _page(file: File, source: str, chance: random.Random) -> Iterator[Pair | None]:
    program = file.path.rpartition("/")[2].rpartition(".")[0]
    summary = ""
    for heading, lines in _parts(file.text):
        body = _plain(lines)
        if heading.upper() == "NAME":
            summary = squeeze(body).rpartition(" - ")[2].rpartition("\u2014")[2][:200]
            continue
        if heading.upper() == "DESCRIPTION" and summary:
            yield pair("option", in_other_words(summary, chance), f"{program}\n{body}", source)
        elif (
            heading.upper()
            not in ("SYNOPSIS", "SEE ALSO", "AUTHORS", "AUTHOR", "COPYRIGHT", "HISTORY")
            and len(body) > 150
        ):
            title = heading.capitalize()
            yield pair("question", as_question(title, program, chance), body, source)
        for term, text in _items(lines):
            sentence, rest = first_sentence(text)
            if len(rest) > 60 and chance.random() < 0.6:
                yield pair(
                    "option", in_other_words(sentence, chance), f"{program} {term}: {rest}", source
                )
            elif len(text) > 60 and chance.random() < 0.5:
                yield pair(
                    "option",
                    in_other_words(sentence, chance),
                    f"{program}: {summary}\n{term}: {text}",
                    source,
                )
            else:
                yield pair("option", f"{program} {term}", text, source)


def _parts(text: str) -> Iterator[tuple[str, list[str]]]:
    heading, lines = "", list[str]()
    for line in text.split("\n"):
        match = re.match(r'^\.S[HShs] +"?([^"]+)"?$', line)
        if match:
            if heading:
                yield heading, lines
            heading, lines = _marks(match[1]), []
        else:
            lines.append(line)
    if heading:
        yield heading, lines


def _items(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Terms with their text: `.TP` and `.IP` of the man macros, `.It` of mdoc."""
    term, body, waiting = "", list[str](), False
    for line in [*lines, ".TP"]:
        start = re.match(r'^\.(TP|IP|It)\b *"?([^"]*)', line)
        if start:
            text = _plain(body)
            if term and len(term) < 80 and len(text) > 30:
                yield term, text
            term, body, waiting = "", [], start[1] == "TP"
            if start[1] == "IP":
                term = _marks(start[2])
            elif start[1] == "It":
                term = _macro(start[2])
        elif waiting and line.strip() and not re.match(r"^\.(?:PD|sp|\\\")", line):
            term, waiting = _marks(re.sub(r"^\.[A-Z]+ +", "", line)), False
        elif re.match(r"^\.(?:PP|LP|P|RE|El|SS)\b", line):
            body.append("")
        else:
            body.append(line)


def _plain(lines: list[str]) -> str:
    out = []
    for line in lines:
        if line.startswith(('.\\"', "'\\\"")):
            continue
        macro = re.match(r"^[.']([A-Za-z]{1,2})\b *(.*)$", line)
        if macro and macro[1] in ("PP", "P", "LP", "Pp", "sp", "TP", "IP", "br"):
            out.append("\n")
        elif macro and macro[1] in ("B", "I", "BR", "IR", "RB", "RI", "BI", "IB"):
            out.append(_marks(macro[2].replace('"', "")))
        elif macro and macro[1][0].isupper() and macro[1][1:].islower():
            out.append(_macro(macro[2], macro[1]))
        elif not line.startswith((".", "'")):
            out.append(_marks(line))
    return re.sub(
        r" ?\n ?", "\n", re.sub(r" +", " ", re.sub(r"\n{2,}", "\n\n", " ".join(out)))
    ).strip()


def _macro(text: str, name: str = "") -> str:
    words = text.replace('"', "").split()
    out, flag = [], name == "Fl"
    for word in words:
        if word == "Fl":
            flag = True
        elif word in (
            "Ar",
            "Cm",
            "Op",
            "Xo",
            "Xc",
            "Ns",
            "Pa",
            "Em",
            "Sy",
            "Ql",
            "Dq",
            "Sq",
            "Ic",
            "Va",
            "Dv",
            "Ev",
            "Er",
            "Nm",
            "Li",
            "Xr",
            "Aq",
            "No",
        ):
            continue
        else:
            out.append(f"-{word}" if flag else word)
            flag = False
    return _marks(" ".join(out))


def _marks(text: str) -> str:
    text = re.sub(r"\\f(?:\[[^\]]*\]|\([A-Z]{2}|.)|\\s[-+]?\d", "", text)
    text = re.sub(r"\\\((?:lq|rq|dq|aq|oq|cq)|\\\*\(..|\\\[[^\]]*\]", '"', text)
    return (
        re.sub(
            r"\\[&,/|^%cde]|\\m\[[^\]]*\]",
            "",
            text.replace("\\-", "-").replace("\\(em", "—").replace("\\(bu", ""),
        )
        .replace("\\", "")
        .strip()
    )
