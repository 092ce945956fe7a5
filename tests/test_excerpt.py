"""Excerpts: whole units within a budget, fences that are closed, the fix before the cause."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from commonplace.compose import tokens
from commonplace.compose.excerpt import MORE, Wanted, excerpt
from commonplace.index.terms import query_terms
from commonplace.index.units import units_of
from test_units import TEXTS

NOTE = """# The worker dies

## Problem

The worker is killed by the kernel when a large file arrives.

```text
signal 9 (SIGKILL)
```

## Root cause

The whole file is read into memory.

## Solution

### Poll less often

Poll every 15 seconds.

```python
# settings.py
POLL_S = 15
```

### Split large files

Split files over 50 MB into chunks of 20 pages, and read one after the other.

```python
# worker.py
def chunks(path, pages=20):
    total = page_count(path)
    for first in range(0, total, pages):
        yield first, min(first + pages, total)
```

## Related

- [another](other.md)
"""


def shown(question: str, tokens_max: int, text: str = NOTE, *, may_cut: bool = True) -> str:
    wanted = Wanted(query_terms(question), lambda _term: 1.0)
    title = "The worker dies" if text is NOTE else "A title"
    return excerpt(text, units_of(text), wanted, title, tokens_max, may_cut=may_cut)


@given(TEXTS, st.integers(16, 300), st.sampled_from(["first item", "indented", ""]))
def test_the_budget_holds_and_every_fence_is_closed(text: str, limit: int, question: str) -> None:
    found = shown(question, limit, text)

    assert tokens.count(found) <= limit
    lines = "\n".join(line.removeprefix("   ") for line in f"{found}\n\nafter".split("\n"))
    blocks = MarkdownIt("commonmark").enable("table").parse(lines)
    assert blocks[-2].content == "after" or "after" in blocks[-2].content.split("\n")


@given(TEXTS, st.integers(16, 300))
def test_what_is_not_cut_has_whole_units(text: str, limit: int) -> None:
    found = shown("first", limit, text, may_cut=False)

    assert MORE not in found or MORE in text


def test_a_note_that_fits_is_shown_whole() -> None:
    found = shown("the worker is killed by a large file", 400)

    assert all(part in found for part in ("SIGKILL", "POLL_S = 15", "yield first", "other.md"))
    assert found.index("Problem:") < found.index("Root cause:") < found.index("Solution")


def test_of_several_fixes_the_one_that_answers_comes_with_its_code() -> None:
    found = shown("the worker is killed by a large file", 95)

    assert "Split files over 50 MB" in found
    assert "yield first, min(first + pages, total)" in found
    assert "Solution: Split large files:" in found
    assert "POLL_S" not in found
    assert "POLL_S = 15" in shown("poll interval in seconds", 90)


def test_the_fix_stands_before_the_cause() -> None:
    found = shown("why is the whole large file read into memory", 125)

    assert found.index("Split files") < found.index("The whole file is read")
    assert "Root cause:" in found


def test_the_only_unit_is_cut_at_a_statement_and_the_fence_is_closed() -> None:
    body = "\n".join(f"def f{n}():\n    return {n}" for n in range(40))
    found = shown("f0", 60, f"```python\n{body}\n```")

    assert found.startswith("A title\n   ```python\n   def f0():\n")
    code, _fence, rest = found.rpartition("```")
    assert rest.strip() == MORE
    assert code.rstrip().split("\n")[-1].strip().startswith("return")


def test_the_only_unit_is_cut_at_a_sentence() -> None:
    found = shown(
        "thing", 40, "- It says a thing that matters. " * 1 + "And more of that thing. " * 60
    )

    assert found.endswith(f". {MORE}")


def test_what_introduces_a_block_never_stands_alone() -> None:
    text = "Intro words.\n\nThese are the rules of the cache:\n\n" + "\n".join(
        f"- rule {n} {'word ' * 30}" for n in range(5)
    )
    found = shown("rules of the cache", 90, text)

    assert "rules of the cache:" in found
    assert "rule " in found.partition("rules of the cache:")[2]
