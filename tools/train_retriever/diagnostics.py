"""Pairs from the tables and documents of linters and compilers: a message, and why and how to mend it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tools.train_retriever.pair import Pair, pair, squeeze
from tools.train_retriever.sections import clean_heading, html_to_markdown, strip_front_matter
from tools.train_retriever.words import first_sentence, in_other_words

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from tools.train_retriever.archives import File

_RULE_PAGE = re.compile(
    r"/(?:docs?(?:/src)?/rules?|rules?/[\w-]+|doc|checks)/([\w@-]+|README)\.(?:md|mdx)$",
    re.IGNORECASE,
)
_VALUES = ("foo", "'name'", "3", "Widget", "x", "value", "'a'", "bar")


def diagnostic_pairs(files: list[File], source: str, chance: random.Random) -> Iterator[Pair]:
    pages = {}
    for file in files:
        match = _RULE_PAGE.search(file.path)
        if match:
            name = match[1] if match[1].lower() != "readme" else file.path.split("/")[-2]
            pages[name] = _page_text(file.text)
    for name, text in pages.items():
        yield from filter(None, _rule_page(name, text, source, chance))
    for file in files:
        if (
            file.ending in ("js", "ts", "mjs")
            and "/rules/" in file.path
            and not file.path.endswith(".d.ts")
        ):
            yield from filter(None, _rule_code(file, pages, source, chance))
        elif file.ending == "rs" and "/// ## What it does" in file.text:
            yield from filter(None, _ruff(file.text, source, chance))
        elif file.path.endswith(".html") and re.search(
            r"/error_codes/E\d+\.html$|/error-index\.html$", file.path
        ):
            yield from filter(None, _rust_errors(file.text, source, chance))


def _page_text(text: str) -> str:
    text = re.sub(r"<!--.*?-->", "", strip_front_matter(text), flags=re.DOTALL)
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text)).strip()


def _filled(message: str, chance: random.Random) -> str:
    return squeeze(
        re.sub(
            r"\$?\{\{?[^{}]*\}\}?|%[sd]",
            lambda _m: chance.choice(_VALUES),
            message.replace("\\", ""),
        )
    )


def _rule_page(name: str, text: str, source: str, chance: random.Random) -> Iterator[Pair | None]:
    title, _, body = text.partition("\n")
    body = body.strip()
    if len(body) < 120:
        return
    paragraphs = [
        p for p in re.split(r"\n\s*\n", body) if re.match(r"[A-Z`*>💼]", p.strip()) and len(p) > 40
    ]
    first = first_sentence(paragraphs[0])[0] if paragraphs else ""
    described = re.search(r"\(`[\w@/-]+`\)|[\w@/-]+", title)
    plain = clean_heading(title.strip("# "))
    if described and len(plain.split()) > 2:
        yield pair("error", plain, body, source)
    if 25 < len(first) < 300:
        yield pair("error", in_other_words(first, chance), body.replace(first, "", 1), source)
        yield pair(
            "error",
            f"{name}: {first}" if chance.random() < 0.5 else name.replace("-", " "),
            body,
            source,
        )
    for code in re.findall(r"```\w*[^\n]*\n(.{30,400}?)```", body, re.DOTALL)[:1]:
        yield pair(
            "error", f"why is this reported: {squeeze(code)}", body.replace(code, "…", 1), source
        )


_MESSAGES = re.compile(r"messages\s*[:=]\s*\{(.{10,3000}?)\n\s*\}", re.DOTALL)
_STRING = re.compile(
    r"""^\s*['"]?[\w-]+['"]?\s*:\s*(?:\(.*?\)\s*=>\s*)?\n?\s*(["'`])(.{15,300}?)\1""", re.MULTILINE
)
_DESCRIPTION = re.compile(r"""description\s*:\s*\n?\s*(["'`])(.{15,300}?)\1""")


def _rule_code(
    file: File, pages: dict[str, str], source: str, chance: random.Random
) -> Iterator[Pair | None]:
    name = re.sub(r"\.\w+$", "", file.path.rpartition("/")[2])
    name = file.path.split("/")[-2] if name == "index" else name
    description = _DESCRIPTION.search(file.text)
    messages = _MESSAGES.search(file.text)
    if not messages:
        return
    page = pages.get(name)
    for _quote, message in _STRING.findall(messages[1])[:4]:
        query = _filled(message, chance)
        if chance.random() < 0.3:
            query = f"{chance.randint(1, 300)}:{chance.randint(1, 40)} error {query} {name}"
        if page:
            yield pair("error", query, page, source)
        elif description:
            yield pair(
                "error",
                query,
                f"{name}: {description[2]}\n"
                + "\n".join(m for _q, m in _STRING.findall(messages[1])),
                source,
            )


_RUFF = re.compile(
    r"((?:^///[^\n]*\n)+)(?:#\[[^\n]*\n)*pub(?:\(crate\))? struct (\w+)(.*?)^impl \w*Violation for \2(.*?)^}",
    re.MULTILINE | re.DOTALL,
)


def _ruff(text: str, source: str, chance: random.Random) -> Iterator[Pair | None]:
    for comment, name, _body, implementation in _RUFF.findall(text):
        doc = re.sub(r"^/// ?", "", comment, flags=re.MULTILINE).strip()
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()
        for message in re.findall(r'"((?:[^"\\]|\\.){15,300})"', implementation)[:3]:
            query = _filled(message, chance)
            yield pair(
                "error",
                query if chance.random() < 0.6 else f"{query} ({words.replace(' ', '-')})",
                doc,
                source,
            )
        what = re.search(r"## What it does\n(.+?)\n\n## Why is this bad\?\n(.+)", doc, re.DOTALL)
        if what:
            yield pair(
                "error", in_other_words(squeeze(what[1]), chance), f"{words}\n{what[2]}", source
            )
        example = re.search(r"## Example\n+```python\n(.{20,400}?)```", doc, re.DOTALL)
        if example:
            yield pair(
                "error", f"{words} {squeeze(example[1])}", doc.replace(example[1], "…\n"), source
            )


def _rust_errors(text: str, source: str, chance: random.Random) -> Iterator[Pair | None]:
    plain = html_to_markdown(text)
    for part in re.split(r"(?m)^#+ (?:Error code )?(?=E\d{4})", plain)[1:]:
        code, body = part[:5], part[5:].strip()
        sentence, rest = first_sentence(body.removeprefix("¶").strip())
        if len(rest) < 80:
            continue
        yield pair("error", f"error[{code}]: {sentence}", rest, source)
        yield pair("error", in_other_words(sentence, chance), f"{code}\n{rest}", source)
        for example in re.findall(r"```\n(.{30,500}?)```", rest, re.DOTALL)[:1]:
            yield pair(
                "error",
                f"rustc error in: {squeeze(example)}",
                f"{code} {sentence}\n{rest.replace(example, '…')}",
                source,
            )
