"""Answers: which memories are in them, how much of each, and what stands beside it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.compose import tokens
from commonplace.compose.answer import compose
from commonplace.compose.unit_scores import Wanted
from commonplace.index.terms import query_terms
from commonplace.recall.consultation import name_others
from commonplace.recall.hits import Explanation, Hit
from commonplace.records.lines import from_line
from test_units import TEXTS

QUESTION = "the worker is killed by a large file"
NOTE = """# The worker dies

## Problem

The worker is killed by the kernel when a large file arrives, and users wait for ever.

## Root cause

The whole file is read into memory before it is split.

## Solution

Split files over 50 MB into chunks of 20 pages, and read one after the other.

```python
for first in range(0, total, 20):
    yield first, min(first + 20, total)
```

## Prevention

- Test with a file that is larger than the memory of the worker.
- Watch the memory of the worker.
"""
SHORT = "Limit the memory of a worker with `--max-memory 200000`."
FOREIGN = "Season a cast iron pan with linseed oil, thinly, and bake it for an hour at 230 degrees."
SEVERAL = f"{FOREIGN} Then let it cool in the oven, and do it again three times. " * 2


def hit(ident: str, lesson: str, relevance: float = 0.5, repo: str = "app", **more: Any) -> Hit:
    fields = {
        "id": ident,
        "kind": "lesson",
        "timestamp": "2026-01-01T00:00:00Z",
        "event_type": "error",
        "lesson": lesson,
        **more,
    }
    why = Explanation(1.0, 0.25, 0.5, {}, relevance)
    return Hit(from_line(json.dumps(fields).encode()), repo, 0.5, why)


def answer(*hits: Hit, limit: int = 300, question: str = QUESTION) -> str:
    return compose(hits, Wanted(query_terms(question), lambda _term: 1.0), limit).text


@given(st.lists(TEXTS.filter(str.strip), min_size=1, max_size=4), st.integers(30, 400))
def test_every_entry_has_its_id_and_the_limit_holds(texts: list[str], limit: int) -> None:
    hits = [hit(f"les-{number}", text) for number, text in enumerate(texts)]
    found = compose(hits, Wanted(query_terms("first item"), lambda _term: 1.0), limit)

    assert tokens.count(found.text) <= limit
    entries = re.findall(r"^\d+\. \[2026-01-01\]", found.text, re.MULTILINE)
    assert len(entries) == len(found.hits)
    assert all(f"[{one.id}]" in one.text for one in found.hits if limit >= 60)


def test_the_best_memory_is_whole_where_it_fits() -> None:
    whole = answer(hit("les-note", NOTE), hit("les-long", SEVERAL, 0.48), limit=230)

    assert all(one in whole for one in ("users wait", "before it is split", "yield first", "Watch"))


def test_a_second_memory_needs_to_be_relevant_enough() -> None:
    assert "les-pan" not in answer(hit("les-note", NOTE), hit("les-pan", SEVERAL, 0.05))
    assert "les-pan" in answer(hit("les-note", NOTE), hit("les-pan", SEVERAL, 0.5), limit=600)


@pytest.mark.parametrize("limit", [120, 160, 200, 300])
def test_a_short_lesson_in_second_place_is_never_crowded_out(limit: int) -> None:
    found = answer(hit("les-note", NOTE * 4), hit("les-short", SHORT, 0.3), limit=limit)

    assert "[les-note]" in found
    assert SHORT in found
    assert "[les-short]" in found


def test_lists_keep_their_lines_and_inline_code_its_spaces() -> None:
    found = answer(hit("les-a", "Do both:\n- stop the worker\n- start it again"))
    assert "Do both:\n   - stop the worker\n   - start it again" in found
    spaced = answer(hit("les-b", "The worker  needs `grep -e 'a  b' file`  first."))
    assert "The worker needs `grep -e 'a  b' file` first." in spaced


@given(st.text("abc -'$|&;\\/{}()*", min_size=1, max_size=40).map(str.strip).filter(len))
def test_a_command_is_shown_exactly_as_it_is_stored(command: str) -> None:
    found = answer(hit("les-a", "The worker is killed.", command=command))

    assert command in found


def test_fields_without_words_of_their_own_are_not_shown() -> None:
    found = answer(
        hit(
            "les-a",
            "Restart the worker.",
            status="closed",
            assignee="somebody@example.org",
            tags=["ci", "oom"],
            files=["src/a.py", "src/b.py"],
        )
    )

    assert not re.search("closed|example|oom|src/", found)


def test_entries_from_another_repository_name_it() -> None:
    here, there, anywhere = (
        hit("les-a", "One.", repo="app-12345678"),
        hit("les-b", "Two.", repo="shop"),
        hit("les-c", "Three.", repo="all-repositories"),
    )

    found = answer(*name_others([here, there, anywhere], "app"))
    assert "Two. (from the repository shop) [les-b]" in found
    assert "One. [les-a]" in found
    assert "Three. [les-c]" in found
    assert not any(one.names_repo for one in name_others([here, here], ""))
    assert all(one.names_repo for one in name_others([here, there], ""))


def test_a_long_first_line_is_cut_between_clauses_as_a_title() -> None:
    first = (
        "The installer of the plugin always cloned the default branch from the server, and the flag "
        f"for a folder takes only one that is on this machine {'and is not empty ' * 8}"
    )
    found = answer(
        hit("les-a", f"{first}\n\n## Fix\n\n{'Pass the branch. ' * 30}"),
        question="pass the branch",
        limit=120,
    )

    assert "cloned the default branch from the server …\n" in found


@pytest.mark.parametrize(
    "text",
    [
        'for f in *.log; do\n  gzip "$f"\ndone\nrm -f *.tmp',
        "Rebuild the search index:\n./manage.py stop_workers\n./manage.py rebuild_index --noinput",
        "Python 3.12: use\nmatch event:\n  case Click(): handle()\n  case _: pass\nfor events.",
        "make clean\nmake install",
        "Rotate the key. Then run this.\nexport KEY=1\nmake deploy",
    ],
)
def test_commands_without_a_fence_keep_their_lines(text: str) -> None:
    found = answer(hit("les-a", text), question=text)

    assert text.replace("\n", "\n   ") in found
    last = text.rpartition("\n")[2]
    assert f"{last}\n   [les-a]" in found or last == "for events."


def test_prose_that_was_wrapped_is_shown_in_one_line() -> None:
    text = (
        "The worker is killed by the kernel when a large file arrives, because\n"
        "it reads the whole file into memory. Limit it with `--max-memory 200`,\n"
        "and restart it."
    )
    assert " ".join(text.split()) in answer(hit("les-a", text))


@pytest.mark.parametrize(
    ("first", "title"),
    [
        (f"PROBLEM: The import stops at row 10,001. {'It binds four for each row. ' * 8}", "PROBLEM: The import stops at row 10,001."),
        (f'{{"level":"error","err":"etcdserver: request timed out, possibly{" of a node" * 20}"}}', '{"level":"error","err":"etcdserver: request timed out'),
        (f"Symptoms: it hangs at version 1.2 of the tool{' and again' * 20}", "Symptoms: it hangs at version 1.2 of the tool and"),
    ],
)  # fmt: skip
def test_a_title_is_no_label_and_is_not_cut_at_a_colon(first: str, title: str) -> None:
    text = f"{first}\n\n## Fix\n\n{'Pass the branch. ' * 30}"
    found = answer(hit("les-a", text), question="pass the branch", limit=130).split("\n")[2]

    assert title in found
    assert found.endswith((".", " …"))


@pytest.mark.parametrize("pad", range(4))
def test_no_limit_shows_less_than_a_lower_one(pad: int) -> None:
    code = f"```\nmake start{'.' * pad}\n```"
    text = f"# The worker dies\n\n## Fix\n\nStart it again.\n\n{code}\n\n## Log\n\n{FOREIGN * 9}"
    found = [answer(hit("les-a", text), limit=limit) for limit in range(30, 90)]

    for words in ("Start it again.", "make start"):
        first = next(place for place, one in enumerate(found) if words in one)
        assert all(words in one for one in found[first:])


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("# The still\n\nSymptom: it is cold.\n\nFix: light the burner.\n", ["The still", "Symptom: it is cold.", "Fix: light the burner."]),
        ("## The still\nSymptom: it is cold.\nFix: light the burner.\n", ["The still", "Symptom: it is cold.", "Fix: light the burner."]),
        ("The still\n=========\n\nLight the burner.", ["The still", "Light the burner."]),
        ("**Symptom:** it is cold.\r\n\r\n**Fix:** light it.", ["**Symptom:** it is cold.", "**Fix:** light it."]),
    ],
)  # fmt: skip
def test_a_short_note_with_a_heading_or_labels_keeps_its_lines(text: str, lines: list[str]) -> None:
    assert "\n   ".join(lines) + " [les-a]" in answer(hit("les-a", text), question="burner")


def test_a_short_lesson_of_one_paragraph_stays_one_line() -> None:
    found = answer(
        hit("les-a", "Fix: light the burner, and wait."), hit("les-b", "Still.\n\nCold.")
    )

    assert "1. [2026-01-01] Fix: light the burner, and wait. [les-a]" in found
    assert "2. [2026-01-01] Still. Cold. [les-b]" in found
