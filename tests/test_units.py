"""The units of a text: whole blocks as CommonMark has them, each once, in their order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.index.units import Unit, _end_of_front_matter, dump, load, units_of

LINES = st.sampled_from(
    [
        "", "", "# One", "## Two: more", "Some words of a paragraph.", "Run this:", "- an item",
        "  inside it", "1. first", "```", "```python", "~~~", "# a comment", "    indented()",
        "| a | b |", "|---|---|", "| 1 | 2 |", "> quoted", "<!-- hidden -->", "---", "Fix: do it.",
    ]
)  # fmt: skip
TEXTS = st.lists(LINES, max_size=25).map("\n".join) | st.text(max_size=80)


def kinds_and_texts(text: str) -> list[tuple[str, str]]:
    return [(unit.kind, unit.of(text)) for unit in units_of(text)]


@given(TEXTS)
def test_units_are_in_order_whole_and_none_is_empty(text: str) -> None:
    units = units_of(text)

    end = 0
    for number, unit in enumerate(units):
        assert end <= unit.start < unit.end <= len(text)
        assert unit.of(text).strip()
        assert unit.lead < number
        end = unit.end
    assert load(dump(units)) == units


@given(TEXTS)
def test_no_word_outside_of_headings_and_comments_is_lost(text: str) -> None:
    covered = set(range(_end_of_front_matter(text)))
    units = units_of(text)
    for unit in units:
        covered |= set(range(unit.start, unit.end))
    lost = "".join(char if at not in covered else "\0" for at, char in enumerate(text))
    # A line above one of dashes may be a title.
    titles = {title for unit in units for title in unit.headings}
    for title in titles:
        lost = lost.replace(title, "")
    for word in ("paragraph", "item", "inside", "first", "indented", "quoted"):
        assert word not in lost


def test_records_between_lines_of_dashes_are_units_and_no_headings() -> None:
    record = "kind: lesson\nproblem: {0} stays cold\nfix: light {0}"
    text = "\n---\n".join(record.format(one) for one in ("the still", "the kettle", "the oven"))

    assert [unit.of(text) for unit in units_of(text)] == text.split("\n---\n")
    assert not any(unit.headings for unit in units_of(text))
    for short in ("Use pnpm.\n---\nUse uv.\n---\n", "use pnpm\n---\nuse uv\n---\n"):
        assert [unit.of(short) for unit in units_of(short)] == short.split("\n")[::2][:2]
    assert kinds_and_texts("Title\n---\n- an item") == [("item", "- an item")]
    fields = "# Stills\n\n---\ntags: a\ndate: b\n---\n\n"
    assert kinds_and_texts(f"{fields}Text.") == [("paragraph", "Text.")]
    assert len(units_of(f"{fields}tags: c\ndate: d\n")) == 2
    framed = "".join(f"---\nKind: gotcha\nFix: {one}\n---\n\n" for one in "abcd")
    assert [unit.of(framed)[-1] for unit in units_of(framed)] == ["a", "b", "c", "d"]
    assert len(units_of("---\nSome words of a paragraph.\n---\nand more")) == 2
    assert len(units_of("---\ntags: a\n---\n")) == 1
    short = "Why?\n\n---\nDeploys fail (see ops)\n---\nTokens expire\n---\nNobody knows"
    assert [unit.of(short) for unit in units_of(short)] == short.replace("\n\n", "\n").split(
        "\n---\n"
    )
    assert not any(unit.headings for unit in units_of(short))


def test_a_drawing_without_a_fence_is_one_block_of_code() -> None:
    drawing = (
        "            +------+   AXI    +--------+\n   CPU --D$-|  M7  |----------| D1 RAM |\n"
        "            +--+---+          +--------+\n               | TCM               | bridge\n"
        "            +------+          +--------+"
    )
    text = f"The buses:\n\n{drawing}\n\nSo DMA1 needs D2."

    units = units_of(text)
    assert kinds_and_texts(text)[1] == ("code", drawing)
    assert [unit.lead for unit in units] == [-1, 0, -1]


def test_a_sentence_around_code_belongs_to_it() -> None:
    text = "We turned on, in every service,\n\n```\na: true\n```\n\n(since 3.3). It helped."
    assert [unit.lead for unit in units_of(text)] == [-1, 0, 1]
    other = "It is on.\n\n```\na: true\n```\n\nThe rest is as before."
    assert [unit.lead for unit in units_of(other)] == [-1, -1, -1]


def test_code_with_comments_that_look_like_headings_is_one_unit() -> None:
    text = "## Fix\n\nRun this:\n\n```sh\n# first\n\n## second\nmake\n```\n\nDone."
    units = units_of(text)

    assert [unit.kind for unit in units] == ["paragraph", "code", "paragraph"]
    assert units[1].of(text) == "```sh\n# first\n\n## second\nmake\n```"
    assert {unit.headings for unit in units} == {("Fix",)}
    assert [unit.lead for unit in units] == [-1, 0, -1]


def test_a_fence_within_a_longer_fence_is_code() -> None:
    text = "````md\n```sh\nls\n```\n````\n\nafter"
    assert kinds_and_texts(text) == [("code", text.partition("\n\n")[0]), ("paragraph", "after")]


def test_a_fence_that_is_never_closed_ends_before_the_next_heading() -> None:
    text = "# A\n\n```\nls\n\nmore\n\n# B\n\nwords\n"
    units = units_of(text)

    assert [(unit.kind, unit.headings) for unit in units] == [
        ("code", ("A",)),
        ("paragraph", ("B",)),
    ]
    assert units[0].of(text) == "```\nls\n\nmore"


def test_tables_items_with_what_is_in_them_and_diagrams() -> None:
    text = "| a |\n|---|\n| 1 |\n\n- one\n\n  more of it\n- two\n\n```text\n+--+\n|  |\n+--+\n```"
    assert kinds_and_texts(text) == [
        ("table", "| a |\n|---|\n| 1 |"),
        ("item", "- one\n\n  more of it"),
        ("item", "- two"),
        ("code", "```text\n+--+\n|  |\n+--+\n```"),
    ]


@pytest.mark.parametrize("front", ["", "---\ntitle: x\n---\n"])
def test_a_label_begins_a_unit_and_front_matter_is_none(front: str) -> None:
    text = f"{front}The cache was stale. Fix: clear it. Then start."
    assert kinds_and_texts(text) == [
        ("paragraph", "The cache was stale."),
        ("paragraph", "Fix: clear it. Then start."),
    ]


def test_a_long_paragraph_is_several_units_at_sentences() -> None:
    text = "It says a thing. " * 100
    units = units_of(text)

    assert len(units) > 1
    assert [unit.kind for unit in units] == ["paragraph", *["rest"] * (len(units) - 1)]
    assert all(unit.of(text).endswith("thing.") and unit.end - unit.start <= 280 for unit in units)


def test_units_of_a_text_without_markup_are_its_paragraphs() -> None:
    assert units_of("one\n\ntwo") == [Unit("paragraph", 0, 3), Unit("paragraph", 5, 8)]


def test_a_long_item_is_its_sentences_and_what_is_within_it() -> None:
    long = "It holds for every port of the server that is open. " * 8
    text = f"Do this:\n\n1. **First.** {long}\n\n   ```sh\n   ls\n   ```\n\n   - inner\n2. second"
    units = units_of(text)

    kinds = [unit.kind for unit in units]
    item, last = kinds.index("item"), len(kinds) - 1
    assert kinds == ["paragraph", "item", *["rest"] * (last - 4), "code", "item", "item"]
    own = kinds.index("code") - 1
    assert [unit.lead for unit in units] == [-1, 0, *[-1] * (own - item), own, own, 0]
    assert units[last].of(text) == "2. second"


def test_only_the_last_sentence_of_a_long_paragraph_introduces_what_follows() -> None:
    words = "The server reads every file of the folder when it starts, which takes long. " * 2
    text = f"{words}Read it once:\n\n```sh\nwarm\n```"
    units = units_of(text)

    assert units[units[-1].lead].of(text) == "Read it once:"


def test_a_line_in_bold_introduces_what_stands_below_it() -> None:
    units = units_of("**Use the cache.**\n\nIt is warm.\n\nOther words.")

    assert [unit.lead for unit in units] == [-1, 0, -1]


def test_a_line_with_a_colon_below_an_item_is_not_a_part_of_it() -> None:
    text = "Scope:\n- one\n- two\nTests:\n- three"
    units = units_of(text)

    assert [unit.of(text) for unit in units] == ["Scope:", "- one", "- two", "Tests:", "- three"]
    assert [unit.lead for unit in units] == [-1, 0, 0, -1, 3]


@pytest.mark.parametrize("word", ["e.g.", "i.e.", "vs."])
def test_an_abbreviation_ends_no_sentence(word: str) -> None:
    text = f"Use one of the servers, {word} Redis or another that keeps its keys in memory. " * 5
    assert not any(unit.of(text).startswith("Redis") for unit in units_of(text))


@given(TEXTS.filter(lambda text: "\r" not in text))
def test_a_text_with_the_line_ends_of_windows_has_the_same_code_and_headings(text: str) -> None:
    other = text.replace("\n", "\r\n")

    # A paragraph that is longer by a few characters may be divided.
    assert blocks_of(other) == blocks_of(text)


def blocks_of(text: str) -> list[tuple[str, tuple[str, ...]]]:
    found = [(unit.of(text).replace("\r\n", "\n"), unit) for unit in units_of(text)]
    return [(code, unit.headings) for code, unit in found if unit.kind == "code"]


def test_a_fence_with_the_line_ends_of_windows_is_closed() -> None:
    text = (
        "---\r\ntitle: x\r\n---\r\n# A\r\n\r\n```sh\r\nls\r\n```\r\n\r\n## Fix\r\n\r\nUse it.\r\n"
    )

    assert kinds_and_texts(text) == [("code", "```sh\r\nls\r\n```"), ("paragraph", "Use it.")]


def test_a_fence_that_is_never_closed_ends_before_a_heading_whatever_is_fenced_later() -> None:
    for info in ("", "sh"):
        text = (
            f"# A\n\n```\nError: locked\n\n## Fix\n\nRelease it:\n\n```{info}\nunlock\n```\n\n"
            "## Next\n\nWords.\n"
        )
        assert [(unit.of(text), unit.headings[-1]) for unit in units_of(text)] == [
            ("```\nError: locked", "A"),
            ("Release it:", "Fix"),
            (f"```{info}\nunlock\n```", "Fix"),
            ("Words.", "Next"),
        ]


def test_a_fence_that_is_never_closed_ends_where_another_is_opened() -> None:
    text = "```\nfirst\n\n```sh\nsecond\n```\n\nWords."

    assert kinds_and_texts(text) == [
        ("code", "```\nfirst"),
        ("code", "```sh\nsecond\n```"),
        ("paragraph", "Words."),
    ]


@pytest.mark.parametrize(
    "code",
    [
        "```py\nx = 1\n\n# A comment\ny = 2\n```",
        "```markdown\n# My skill\n\n## Steps\n\nDo it.\n```",
        "```\n# Title\n\n## Problem\n\nWords.\n```",
        "````md\n# My skill\n\n```sh\nmake\n```\n````",
    ],
)
def test_a_fence_that_is_closed_holds_what_looks_like_headings(code: str) -> None:
    text = f"- ```sh\n  ls\n  ```\n\n{code}\n\n```sh\nls\n```\n\nWords."

    assert ("code", code) in kinds_and_texts(text)
    assert kinds_and_texts(text)[-1] == ("paragraph", "Words.")


def test_a_wide_colon_introduces_what_follows() -> None:
    assert [unit.lead for unit in units_of("先写入：\n\n```\nls\n```")] == [-1, 0]


def test_front_matter_behind_another_line_is_no_heading() -> None:
    text = "Locks of the state\n\n---\ntitle: Locks\ntags: [a, b]\n---\n\nUnlock it.\n"

    assert all(not unit.headings for unit in units_of(text))
