"""Excerpts: whole units within a budget, fences that are closed, the fix before the cause."""

from __future__ import annotations

import re
from itertools import count

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from commonplace.compose import tokens
from commonplace.compose.excerpt import excerpt
from commonplace.compose.unit_cutting import MORE
from commonplace.compose.unit_layout import show_unit
from commonplace.compose.unit_scores import Wanted, asks_why
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


class Counted:
    """Replaces each match by the same words and the next number."""

    def __init__(self, words: str) -> None:
        self._words = words
        self._count = 0

    def __call__(self, _match: re.Match[str]) -> str:
        self._count += 1
        return f"{self._words} {self._count}"


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


@given(TEXTS, st.integers(16, 300), st.sampled_from(["first", "item paragraph", ""]))
@example("- an item\n```\n- an item\n```\n```\nFix: do it.", 16, "first")
def test_every_unit_is_whole_or_followed_by_a_sign(text: str, limit: int, question: str) -> None:
    numbers = count()
    text = re.sub(r"[a-z]{2,}\b", lambda word: f"{word[0]}{next(numbers)}", text.replace(MORE, ""))
    found = " ".join(shown(question, limit, text, may_cut=False).split())
    for unit in units_of(text):
        words = " ".join(show_unit(unit, unit.of(text)).split())
        first = re.search(r"\b[a-z]{2,}\d+\b", words)
        # No unit begins without going on to its end.
        if first and re.search(rf"\b{first[0]}\b", found):
            assert words in found or MORE in found


@given(TEXTS, st.integers(16, 300))
def test_units_of_one_section_keep_their_order(text: str, limit: int) -> None:
    numbered = re.sub("Some words of a paragraph", Counted("Paragraph number"), text)
    found = shown("paragraph", limit, f"# One\n\n{numbered}")

    places = [int(number) for number in re.findall(r"Paragraph number (\d+)", found)]
    assert places == sorted(places)


@given(st.text("abc -\"'$|&;\\/{}()*", min_size=3, max_size=60).map(str.strip).filter(len))
def test_code_is_shown_exactly_as_it_is_stored(command: str) -> None:
    text = f"# A\n\nIntro.\n\n## Fix\n\nRun this:\n\n```sh\n{command}\n  {command}\n```\n"
    lines = [line.removeprefix("   ") for line in shown("run", 200, text).split("\n")]

    assert lines[lines.index("```sh") + 1 :][:2] == [command, f"  {command}"]


def test_a_note_that_fits_is_shown_whole() -> None:
    found = shown("the worker is killed by a large file", 400)

    assert all(part in found for part in ("SIGKILL", "POLL_S = 15", "yield first", "other.md"))
    assert found.index("Problem:") < found.index("Root cause:") < found.index("Solution")


def test_of_several_fixes_the_one_that_answers_comes_with_its_code() -> None:
    found = shown("the worker is killed by a large file", 95)

    assert "Split files over 50 MB" in found
    assert "yield first, min(first + pages, total)" in found
    assert "Split large files:" in found
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


def test_emphasis_and_code_that_a_cut_leaves_open_are_closed() -> None:
    words = " ".join(f"word{number}" for number in range(60))
    for start, closed in (("**Never", "**"), ("Run `make", "`"), ("**Use `x`", "**")):
        found = shown("never run make", 40, f"{start} {words}")

        assert found.endswith(f"{closed} {MORE}"), found


def test_what_introduces_a_block_never_stands_alone() -> None:
    text = "Intro words.\n\nThese are the rules of the cache:\n\n" + "\n".join(
        f"- rule {n} {'word ' * 30}" for n in range(5)
    )
    found = shown("rules of the cache", 90, text)

    assert "rules of the cache:" in found
    assert "rule " in found.partition("rules of the cache:")[2]


LONG_ITEM = (
    "1. **Reserve the port first.** Ask the broker for a port before the server starts, "
    "and keep the lease. " + "The lease ends when the process does, which takes a while. " * 12
)


def test_of_a_long_item_the_sentence_that_states_the_fix_is_shown() -> None:
    found = shown(
        "port taken", 70, f"# Ports\n\n## Solution\n\nTwo things help:\n\n{LONG_ITEM}\n2. Wait."
    )

    assert "Two things help:\n   1. **Reserve the port first.** Ask the broker" in found
    assert f" {MORE}" in found
    assert not re.search(r"\w …", found)  # It is cut at a sentence.


def test_a_part_that_goes_on_in_the_next_one_reads_as_one_paragraph() -> None:
    words = "The cache is cleared by the nightly job of the build server. " * 8
    found = shown("cache", 400, f"{words.strip()}\n\nAnd more.")

    assert words.strip() in found


def test_the_statement_of_the_fix_comes_first_then_its_code_then_the_cause() -> None:
    text = (
        "# Slow start\n\n## Root cause\n\nEvery start reads the whole registry.\n\n"
        f"## Investigation\n\n{'We looked at many things on the way. ' * 20}\n\n"
        "## Solution\n\nKeep the registry in a cache.\n\n```sh\nwarm --cache\n```\n"
    )
    found = shown("slow start reads the registry", 70, text)

    places = [found.index(one) for one in ("Keep the registry", "warm --cache", "Every start")]
    assert places == sorted(places)
    assert "Root cause:" in found
    assert "many things" not in found


def test_a_heading_is_shown_below_which_one_it_stands_only_once() -> None:
    found = shown("poll split", 150)

    assert "Solution > Poll less often:" in found
    assert "\n   Split large files:" in found


def test_the_sentence_that_must_be_shown_is_shown_before_what_says_more_about_the_question() -> (
    None
):
    stated = "Coverage must be at least 85 percent on changed lines."
    text = (
        "# CI\n\nUse more workers: tests and coverage of tests took an hour.\n\n"
        + "The runners were cleaned, the cache was cleared, and the flaky jobs were started anew. "
        * 4
        + stated
        + " The check of it is a job."
    )
    wanted = Wanted(query_terms("which coverage of tests do we require"), lambda _term: 1.0)

    found = [
        excerpt(text, units_of(text), one, "CI", 40)
        for one in (wanted, wanted._replace(statement=stated))
    ]

    assert [stated in one for one in found] == [False, True]


def test_what_goes_on_after_the_title_has_no_sign() -> None:
    words = "The cache of the runner is cleared by the nightly job of the build server. "
    text = f"{words}{'It starts at two and reads every folder of the old releases. ' * 6}"
    wanted = Wanted(query_terms("cache"), lambda _term: 1.0)
    found = excerpt(text, units_of(text), wanted, words.strip(), 400)

    assert MORE not in found


def test_the_items_of_a_list_stay_below_what_introduces_them() -> None:
    text = (
        f"{'Words about other things. ' * 30}\n\nNotes:\n\n- The port is open.\n- Use the port.\n\n"
        "Run the port check."
    )
    found = shown("port", 60, text)

    assert found.index("Notes:") < found.index("- The port") < found.index("- Use the port")


def test_what_is_left_out_between_two_units_of_a_section_is_marked() -> None:
    text = (
        "# T\n\n## Fix\n\nClear the cache.\n\n"
        f"{'Something else that is long. ' * 20}\n\nRestart the cache server."
    )
    found = shown("cache", 45, text)

    start, end = places_in(found, "Clear the cache.", "Restart the cache server.")
    assert found[start:end].count(MORE) == 1


def test_a_status_an_address_and_tags_alone_are_not_shown() -> None:
    text = "Use the new key.\n\nClosed\n\nsomebody@example.org\n\n#ci #keys\n\nsrc/a.py, src/b.py\n\nRotate it."
    found = shown("key", 100, text)

    assert "Use the new key." in found
    assert "Rotate it." in found
    assert not re.search("Closed|example|#ci|src/", found)


def test_an_unclosed_fence_and_a_fence_in_a_fence_leave_none_open() -> None:
    text = "# A\n\n## Fix\n\n````md\n```sh\nls\n```\n````\n\n```py\n# no heading\nx = 1\n\n## Next\n\nWords.\n"
    for limit in range(20, 80, 6):
        lines = shown("fix", limit, text).split("\n")
        opened = ""
        for line in lines:
            mark = re.match(r"\s*(`{3,})", line)
            if mark and not opened:
                opened = mark[1]
            elif opened and line.strip() == opened:
                opened = ""
        assert not opened


def test_a_table_and_a_diagram_are_whole_or_absent() -> None:
    table = "| a | b |\n|---|---|\n" + "\n".join(f"| row {n} | x |" for n in range(6))
    diagram = "```\n+---+    +---+\n| a | -> | b |\n+---+    +---+\n```"
    text = f"# T\n\nFirst words.\n\n{table}\n\n{diagram}\n\nLast words."
    for limit in range(20, 90, 5):
        found = shown("row a b", limit, text, may_cut=False)
        assert found.count("| row") in (0, 6)
        assert found.count("+---+    +---+") in (0, 2)


PROXY = """The importer stopped on Tuesday with a message that nobody had seen before.

```
proxyconnect tcp: connection refused
```

The new image has no proxy any more.

Remove the variable from the unit and reload:

```sh
systemctl daemon-reload && systemctl restart importer
```
"""


def test_what_stands_earlier_in_the_text_begins_its_own_line() -> None:
    for limit in range(40, 90, 4):
        found = shown("importer proxyconnect tcp connection refused", limit, PROXY)

        fences = [line for line in found.split("\n") if "```" in line]
        assert all(line.strip() in ("```", "```sh") for line in fences), found
        assert len(fences) % 2 == 0


SEVERAL = """# Problems of the build

## Problem 1: exec format error

The image was made for one platform.

### Fix

Build for both platforms:

```sh
docker buildx build --platform linux/amd64,linux/arm64 .
```

## Problem 2: no space left on device

The runners keep the cache of every branch.

### Fix

Prune what is older than three days:

```sh
docker buildx prune --force --filter until=72h
```

## Problem 3: too many requests

Pulls without a login are limited.

### Fix

Log in on the runner:

```sh
docker login --username ci
```
"""


def test_words_that_only_a_heading_has_choose_what_stands_below_it() -> None:
    for question, fix in (
        ("no space left on device during docker build", "docker buildx prune"),
        ("docker build: exec format error", "docker buildx build"),
        ("docker pull: too many requests", "docker login"),
    ):
        assert fix in shown(question, 50, SEVERAL)


def test_a_heading_that_stands_under_several_others_is_shown_with_the_one_above_it() -> None:
    found = shown("no space left on device", 90, SEVERAL)

    order = places_in(
        found, "Problem 2: no space left on device", "Fix:\n   Prune", "docker buildx"
    )
    assert order == sorted(order)
    assert not re.search("Problem [13]|Build for|Log in", found)


def test_labels_in_several_sections_are_shown_below_their_headings() -> None:
    text = (
        "# The VPN\n\n## Names are not found\n\nFix: set the domain on the link.\n\n"
        "## Connection drops every hour\n\nFix: add the new cipher to the client file.\n\n"
        f"## Log\n\n{'We looked at many things. ' * 30}\n"
    )
    found = shown("connection drops every hour", 50, text)

    assert "Connection drops every hour:\n   Fix: add the new cipher" in found
    assert "Names are not found" not in found  # Another problem.


STEPS = "# Setup\n\n## Steps\n\n" + "\n".join(
    f"{number}. Do {word} with `tool --{word} --quietly --and --carefully`"
    for number, word in enumerate(("one", "two", "three", "four", "five", "six"), start=1)
)


def test_a_list_of_which_not_all_items_are_shown_says_so_at_both_ends() -> None:
    start, end = shown("setup", 70, STEPS), shown("do five", 30, STEPS)

    assert "1. Do one" in start
    assert "6. Do six" not in start
    assert start.endswith(f"\n   {MORE}")
    assert f"Steps:\n   {MORE}\n   5. Do five" in end
    assert end.endswith(f"\n   {MORE}")
    assert MORE not in shown("setup", 300, STEPS)


def test_of_a_long_table_the_row_that_is_asked_for_is_shown_below_the_names_of_the_columns() -> (
    None
):
    rows = [
        f"| {code} | reason {code} | run `dt fix{code} --all --now` |" for code in range(10, 30)
    ]
    text = "\n".join(["| Code | Meaning | What to do |", "|---|---|---|", *rows])
    found = shown("deploy tool exit code 23", 60, f"# Exit codes\n\n{text}")

    assert "| Code | Meaning | What to do |\n   |---|---|---|\n" in found
    assert rows[13] in found
    assert f"\n   {MORE}\n   | 2" in found


def test_what_holds_the_code_of_an_error_comes_before_advice_about_other_things() -> None:
    steps = "\n".join(f"{n}. Upload build number {n} to the store." for n in range(1, 6))
    text = (
        f"# Release checklist\n\nSteps, in this order:\n\n{steps}\n\n> Never release on a Friday.\n\n"
        "If the store rejects it with `ITMS-90683: Missing purpose string`, add the key to Info.plist.\n"
    )
    found = shown("ITMS-90683: Missing purpose string", 36, text)

    assert "add the key to Info.plist" in found


def test_the_sentence_that_states_the_fix_is_shown_with_the_beginning_of_long_code() -> None:
    code = "\n".join(f"step {number} of the script" for number in range(40))
    text = (
        f"# Slow start\n\n## Fix\n\nKeep the registry in a cache:\n\n```sh\n{code}\n```\n\n"
        "## Root cause\n\nEvery start reads the whole registry again.\n"
    )
    found = shown("slow start reads the registry", 70, text)

    assert "Fix:\n   Keep the registry in a cache:\n   ```sh\n   step 0 of the script\n" in found
    assert f"```\n   {MORE}" in found


def test_advice_that_begins_with_where_it_holds_comes_before_a_transcript() -> None:
    transcript = "\n".join(f"$ locale -a  # locale of LC_CTYPE, try {n}" for n in range(8))
    text = (
        f"Debugging the locale of the container.\n\n```console\n{transcript}\n```\n\n"
        "The image has none. In the Dockerfile use C.UTF-8 instead:\n\n```\nENV LANG=C.UTF-8\n```\n"
    )
    for limit in (60, 80, 100, 110):
        assert "ENV LANG=C.UTF-8" in shown("locale: cannot set LC_CTYPE", limit, text)


def test_a_script_is_cut_before_a_loop_that_does_not_fit() -> None:
    start = "\n".join(f"export NAME_{number}=1" for number in range(4))
    loop = "\n".join(f"  ssh host{number} restart the signer" for number in range(12))
    text = f"```sh\n{start}\nfor host in $HOSTS; do\n{loop}\ndone\necho done\n```"
    for limit in range(60, 120, 5):
        lines = [line.strip() for line in shown("restart", limit, text).split("\n")]
        assert ("for host in $HOSTS; do" in lines) == ("done" in lines)
        assert "export NAME_3=1" in lines


def test_a_script_of_one_loop_is_cut_between_statements() -> None:
    body = "\n".join(f"  if check {n}; then\n    restart {n}\n  fi" for n in range(20))
    found = shown("restart", 60, f"```sh\nfor host in $HOSTS; do\n{body}\ndone\n```")

    assert found.count("then") == found.count("  fi\n")


@pytest.mark.parametrize(
    ("problem", "cause", "fix"),
    [
        ("问题", "原因", "解决方案"),
        ("Problem", "Ursache", "Lösung"),
        ("Problema", "Causa", "Solución"),
        ("Problème", "Cause", "Solution"),
    ],
)
def test_the_fix_is_found_below_headings_of_other_languages(
    problem: str, cause: str, fix: str
) -> None:
    text = (
        f"# Export\n\n## {problem}\n\n`Export` fails, the export is broken.\n\n## {cause}\n\n`export` reads it.\n\n"
        f"## {fix}\n\nWrite `utf-8-sig`.\n\n## Log\n\n{'Export words. ' * 40}\n"
    )
    found = shown("export fails", 40, text)

    assert found.index("utf-8-sig") < found.index("reads it")


def test_a_line_of_tags_and_stray_html_are_not_shown() -> None:
    text = "<details>\n\nUse the new key.\n\nandroid, web-view, ci\n\n</details>\n\nRotate it, Docker, kind."
    found = shown("key", 100, text)

    assert found == "A title\n   Use the new key.\n   Rotate it, Docker, kind."


def test_a_word_in_the_title_does_not_make_a_fix_of_everything() -> None:
    intro = "There were three on the new arm64 runners, and each of them has a cause of its own."
    title = "# Problems of the build and how each was fixed"
    text = SEVERAL.replace("# Problems of the build", f"{title}\n\n{intro}")
    found = shown("docker build: exec format error on the arm64 runner", 78, text)

    assert "docker buildx build" in found
    assert intro not in found


ITEMS_WITH_CODE = """# The still

Fix:

1. Drain it.

   ```sh
   # close the valve first
   still drain --all
   ```

2. Fill it. {more}

    ~~~
    still fill ```
    ~~~

- Then wait.
"""


@pytest.mark.parametrize("more", ["", "Fill it slowly, up to the mark on the side of it. " * 8])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_code_in_a_list_item_keeps_its_place_in_the_item(more: str, ends: str) -> None:
    found = shown("the still", 400, ITEMS_WITH_CODE.format(more=more).replace("\n", ends))

    code = "1. Drain it.\n\n      ```sh\n      # close the valve first\n      still drain --all\n      ```"
    assert code in found
    assert "\n       ````\n       still fill ```\n       ````\n" in found
    assert "\n   - Then wait." in found
    assert ">" not in found


@pytest.mark.parametrize(
    "item", ["1. Drain it.\n   ```\n   still drain\n", "- a\n\n  ```\n  b\n  ```\n\n  # c\n"]
)
def test_an_item_with_an_open_fence_or_a_heading_is_quoted(item: str) -> None:
    found = shown("drain", 100, f"# The still\n\n{item}")

    assert "\n   > " in found
    assert "\n   # c" not in found


STILL = """# The still stays cold

Observed: the panel shows `E41 burner locked` and the pump is silent.

```
E41 burner locked, pump silent, panel code 7
```

**Fix**: bleed the gas line, then light the burner:

```sh
gas bleed --line 2
burner light
```

Never open the drain while the pump runs: the seal bursts.

**Related**: a "yeast sensor offline" lamp is another matter: pair the sensor with channel 9.
"""


def places_in(found: str, *words: str) -> list[int]:
    return [found.index(one) for one in words]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("yeast sensor offline lamp", "pair the sensor with channel 9"),
        ("open drain while pump runs, seal bursts", "Never open the drain"),
        ("E41 burner locked pump silent panel", "burner light"),
        ("the still stays cold", "bleed the gas line"),
    ],
)
def test_what_is_asked_for_is_shown_wherever_it_stands(question: str, answer: str) -> None:
    assert answer in shown(question, 80, STILL)


def test_a_table_comes_with_what_introduces_it_and_is_for_the_same() -> None:
    text = (
        f"# The still\n\n{'It was cold on Monday and we looked at the panel of it. ' * 6}\n\n"
        "Switches to set:\n\n| switch | value |\n|---|---|\n| S1 | on |\n| S2 | off |\n\n"
        f"{'Later it was warm again on Tuesday. ' * 6}\n"
    )
    found = shown("which switches to set", 60, text)

    assert "Switches to set:\n   | switch | value |" in found
    assert "| S2 | off |" in found
    # Without room for both, the table says more than the line above it.
    assert "| S2 | off |" in shown("cold on Monday panel", 60, text)


def test_the_first_of_several_solutions_by_preference_is_not_left_out() -> None:
    text = (
        "# The still\n\n## Cause\n\nIt is old.\n\n## Solutions, in order of preference\n\n"
        "### A. Clean it\n\n```sh\nstill clean --all --twice --with-soap\n```\n\n"
        "### B. Replace the burner\n\nOrder one for the still, and wait.\n\n"
        "### C. Wait\n\nWait for the still until Friday.\n"
    )
    assert "still clean" in shown("the still", 50, text)
    assert "Order one" in shown("replace the burner", 50, text)


SECTIONS = """# Two faults of the still

Both were seen on Monday.

## Burner

The burner lacks gas, since line 2 holds air.

Fix: bleed line 2.

## Pump

The pump is silent, since its fuse blew.

Fix: put in fuse F3.
"""


def test_of_several_problems_the_one_that_is_asked_for_is_shown_below_its_heading() -> None:
    text = f"{SECTIONS}\n## History\n\n{'It was built long ago. ' * 40}\n"
    found = shown("the pump is silent", 110, text)

    order = places_in(found, "Pump:", "fuse blew", "fuse F3")
    assert order == sorted(order)
    assert "built long ago" not in found


def test_the_problem_that_is_asked_for_comes_before_another_that_says_nearly_as_much() -> None:
    text = f"{SECTIONS}\n## History\n\n{'It was built long ago. ' * 40}\n"
    found = shown("the pump is silent, and the burner", 110, text)

    order = places_in(found, "Pump:", "fuse F3", "Burner:", "holds air", "bleed line")
    assert order == sorted(order)


@pytest.mark.parametrize("heading", ["Not the fix", "Not a solution"])
def test_what_is_not_the_fix_does_not_come_before_it(heading: str) -> None:
    text = f"# The still\n\n## {heading}\n\nHeat the still with a torch.\n\n## Fix\n\nBleed the line.\n"
    found = shown("still", 20, text)

    assert "Bleed the line" in found
    assert "torch" not in found


LONG = "It was looked at for a long time, and nothing else was found on that day. " * 3


def test_who_asks_why_is_told_the_cause() -> None:
    text = (
        f"# Slow start\n\n## Root cause\n\nThe registry is read at every start. {LONG}\n\n"
        f"## Fix\n\nKeep the registry in a cache. {LONG}\n\n## Result\n\nTwo seconds.\n"
    )
    asked = Wanted(query_terms("slow start"), lambda _term: 1.0)
    for asks, first in ((False, "Keep the registry"), (True, "The registry is read")):
        wanted = asked._replace(asks_why=asks)
        found = excerpt(text, units_of(text), wanted, "Slow start", 40)
        assert first in found
    assert asks_why("all reads hang, db idle – why?")
    assert asks_why("what causes the second restart")
    assert not asks_why("why not restart it: how do I do that")


def test_a_fence_around_nothing_is_not_shown_and_an_unfinished_sentence_keeps_its_code() -> None:
    text = f"# Still\n\nThe still needs a register.\n\n```\n```\n\n{LONG}\n\nThen we run\n\n    boil --now\n\nand wait.\n"
    for limit in (20, 30, 40, 60, 80, 100):
        found = shown("still needs a register, boil", limit, text)
        assert "```\n   ```" not in found
        assert "Then we run" not in found or "boil --now" in found


@pytest.mark.parametrize(
    "code",
    [
        "static void configure(void)\n{\n" + "    write(REGISTER, 1);\n" * 30 + "}",
        "with rows as (\n    select a\n    from b\n),\n" + "more as (\n    select c\n),\n" * 20,
        "class Kettle:\n" + "    def boil(self):\n        self.heat(1)\n" * 20,
        "+------+   AXI    +------+\n| M7   |----------| RAM  |\n" * 20,
    ],
)
def test_code_of_which_no_whole_statements_fit_is_left_out(code: str) -> None:
    text = (
        f"# Still\n\nThe still needs a register that is set at its start.\n\nIt is this:\n\n"
        f"```\n{code}\n```\n\nWithout it the still stays cold.\n"
    )
    found = shown("still needs a register", 80, text)

    assert "```" not in found
    assert "The still needs a register" in found
