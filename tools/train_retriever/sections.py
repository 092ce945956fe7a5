"""Divide a document into sections: Markdown, reStructuredText, HTML."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import NamedTuple

from tools.train_retriever.pair import squeeze


class Section(NamedTuple):
    headings: tuple[str, ...]  # From the title of the document down to its own.
    body: str

    @property
    def heading(self) -> str:
        return self.headings[-1]


def sections(path: str, text: str) -> list[Section]:
    ending = path.rpartition(".")[2].lower()
    if ending in ("html", "htm"):
        text = html_to_markdown(text)
    elif ending in ("rst", "txt") and re.search(r"^(.)\1{2,} *$", text, re.MULTILINE):
        text = rst_to_markdown(text)
    elif ending == "txt":
        return []
    return markdown_sections(text)


_FENCE = re.compile(r"^\s*(```+|~~~+)")
_ATX = re.compile(r"^(#{1,6})\s+(.+?)\s*#*$")


def markdown_sections(text: str) -> list[Section]:
    found: list[Section] = []
    stack: list[tuple[int, str]] = []
    lines: list[str] = []
    fence = ""

    def close() -> None:
        body = clean_body("\n".join(lines))
        if stack and body:
            found.append(Section(tuple(heading for _level, heading in stack), body))
        lines.clear()

    for line in strip_front_matter(text).split("\n"):
        mark = _FENCE.match(line)
        if mark:
            fence = "" if fence and mark[1].startswith(fence) else fence or mark[1]
        title = None if fence else _ATX.match(line)
        level = len(title[1]) if title else 0
        heading = title[2] if title else ""
        if not fence and not title and lines and re.fullmatch(r"=+|-{3,}", line.strip()):
            before = lines[-1].strip()
            if (
                before
                and not before.startswith(("|", "-", "*", ">"))
                and (len(lines) < 2 or not lines[-2].strip())
            ):
                level, heading = (1 if line.strip()[0] == "=" else 2), before
                lines.pop()
        if not heading:
            lines.append(line)
            continue
        close()
        stack = [entry for entry in stack if entry[0] < level]
        stack.append((level, clean_heading(heading)))
    close()
    return found


def strip_front_matter(text: str) -> str:
    return re.sub(r"\A---\n.*?\n---\n", "", text, count=1, flags=re.DOTALL)


def clean_heading(heading: str) -> str:
    heading = re.sub(r"<[^>]*>|\{#[^}]*\}|[*`¶]", "", heading)
    heading = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    heading = re.sub(r":[\w:+.-]+:(?=\S)", "", heading)
    heading = re.sub(r"^(?:[A-Z]?[\d.]+|Chapter \d+\.)\s+", "", heading)
    return squeeze(heading.replace("\\", ""))


def clean_body(text: str) -> str:
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)|\[!\[[^\n]*", "", text)
    text = re.sub(r"\[([^\]]+)\]\((?:[^()]|\([^)]*\))*\)", r"\1", text)
    text = re.sub(
        r"</?(?:a|p|div|span|br|img|details|summary|b|i|em|strong|sup|table|tr|td|th|tbody|thead)\b[^>]*>",
        "",
        text,
    )
    # The links to the pages before and after, and what a page of rustdoc says of itself.
    text = re.sub(r"\n[ |]*Prev +\|[^\n]*\n[^\n]*\n?\Z", "", text)
    text = re.sub(
        r"Expand description|\[\u2212\]|^ ?\d[\d.]+ · source.*$", "", text, flags=re.MULTILINE
    )
    return re.sub(r"\n{3,}", "\n\n", text).strip()


_UNDERLINE = re.compile(r"^([=\-~^\"'`#*+.:_<>])\1{2,} *$")


def rst_to_markdown(text: str) -> str:
    """Headings, code blocks and inline marks; enough for the sections, not a converter."""
    lines = text.split("\n")
    marks: list[str] = []
    out: list[str] = []
    number = 0
    while number < len(lines):
        line = lines[number]
        after = lines[number + 1] if number + 1 < len(lines) else ""
        over = (
            bool(_UNDERLINE.match(line))
            and number + 2 < len(lines)
            and lines[number + 2].rstrip() == line.rstrip()
        )
        if over and after.strip():
            mark = line[0] * 2
            heading, number = after.strip(), number + 3
        elif (
            line.strip()
            and line[0] != " "
            and _UNDERLINE.match(after)
            and len(after.rstrip()) >= len(line.rstrip()) - 1
        ):
            mark = after[0]
            heading, number = line.strip(), number + 2
        else:
            out.append(line)
            number += 1
            continue
        if mark not in marks:
            marks.append(mark)
        out.append("#" * min(6, marks.index(mark) + 1) + " " + heading)
    return _rst_inline("\n".join(out))


def _rst_inline(text: str) -> str:
    text = re.sub(
        r"^\.\. (?:_[^\n]*|index::[^\n]*|\|[^\n]*|(?:versionadded|versionchanged|image|figure|toctree|currentmodule|module|highlight|contents|include|seealso)::[^\n]*)(?:\n[ \t]+[^\n]*)*",
        "",
        text,
        flags=re.MULTILINE,
    )
    text = re.sub(
        r"^( *)\.\. (?:code-block|code|sourcecode|parsed-literal|highlight)::[^\n]*\n(?:\1 +:[^\n]*\n)*",
        r"\1\n",
        text,
        flags=re.MULTILINE,
    )
    text = re.sub(
        r"^( *)\.\. (note|warning|tip|important|hint|caution)::", r"\1\2:", text, flags=re.MULTILINE
    )
    text = re.sub(r"^ *\.\. [\w:-]+::", "", text, flags=re.MULTILINE)
    text = re.sub(r":[\w:+.-]+:`~?([^`<]+?)(?: <[^>`]*>)?`", r"`\1`", text)
    text = re.sub(r"`([^`<]+?) <[^>`]*>`__?", r"\1", text)
    return text.replace("``", "`").replace("::\n", ":\n")


class _Html(HTMLParser):
    """Text with headings, paragraphs, list items and code blocks marked as in Markdown."""

    _skip = frozenset(("script", "style", "nav", "footer", "head", "button", "svg"))

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.out: list[str] = []
        self._skipping = 0
        self._pre = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002  (as HTMLParser calls it)
        if tag in self._skip:
            self._skipping += 1
        elif re.fullmatch(r"h[1-6]", tag):
            self.out.append("\n\n" + "#" * int(tag[1]) + " ")
        elif tag == "pre":
            self._pre += 1
            self.out.append("\n\n```\n")
        elif tag in ("p", "div", "table", "section", "dt", "tr"):
            self.out.append("\n\n" if tag != "tr" else "\n")
        elif tag == "li":
            self.out.append("\n- ")
        elif tag == "dd":
            self.out.append("\n  ")
        elif tag == "br":
            self.out.append("\n")
        elif tag in ("td", "th"):
            self.out.append(" | ")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._skip:
            self._skipping = max(0, self._skipping - 1)
        elif re.fullmatch(r"h[1-6]", tag):
            self.out.append("\n\n")
        elif tag == "pre" and self._pre:
            self._pre -= 1
            self.out.append("\n```\n\n")

    def handle_data(self, data: str) -> None:
        if not self._skipping:
            self.out.append(data if self._pre else re.sub(r"\s+", " ", data))


def html_to_markdown(text: str) -> str:
    parser = _Html()
    parser.feed(text)
    return re.sub(r"\n[ \t]+\n", "\n\n", "".join(parser.out))
