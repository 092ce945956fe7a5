"""Which parts a text is made of, and what is shown of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.compose import tokens
from commonplace.compose.excerpt import excerpt
from commonplace.compose.parts import Part, part_of_text
from commonplace.compose.unit_scores import Wanted
from commonplace.index.terms import query_terms
from commonplace.index.units import units_of

if TYPE_CHECKING:
    from collections.abc import Iterator

PADDING = "It was looked at for a long time, and nothing else was found on that day. " * 4

FAULTS = f"""# Faults of the brewery

## The kettle stays cold in the morning

Its fuse blows when both heaters start. {PADDING}

Start them in turn:

```sh
heater start --one-after-the-other
```

## Valves close while the tank fills

The float sticks. Clean it with vinegar, and oil the hinge.

## Labels come off bottles in the cellar

Glue needs a dry bottle. {PADDING}
"""


def shown(question: str, tokens_max: int, text: str) -> str:
    wanted = Wanted(query_terms(question), lambda _term: 1.0)
    return excerpt(text, units_of(text), wanted, "A title", tokens_max)


def whole(text: str) -> Part:
    units = units_of(text)
    return part_of_text(text, units, range(len(units)))


def leaves(part: Part) -> Iterator[int]:
    for one in part.parts:
        yield from leaves(one)
    if not part.parts:
        yield from part.numbers


def test_sections_about_several_matters_are_parts_of_their_own() -> None:
    found = whole(FAULTS)

    assert len(found.parts) == 3
    assert not found.is_one


@pytest.mark.parametrize(
    "text",
    [
        "# A fault\n\n## Symptoms\n\nCold.\n\n## Cause\n\nA fuse.\n\n## Fix\n\nA new one.\n",
        "# A fault\n\n## What happened then\n\nCold.\n\n## Why it blew\n\nA.\n\n## What we did\n\nB.\n",
        "# A fault\n\n## The kettle was cold\n\nIt was.\n\n## We looked at fuses\n\nAll.\n\n## Fix\n\nOne.\n",
        "**Problem.** It is cold.\n\n**Cause.** A fuse.\n\n**Fix.** A new one.\n",
        "It is cold.\n\nA fuse blew.\n\nPut in a new one.\n",
    ],
)
def test_symptom_cause_and_fix_are_one_matter(text: str) -> None:
    assert whole(text).is_one


@pytest.mark.parametrize(
    "text",
    [
        "**Kettle.** It is cold.\n\nA fuse.\n\n**Floor.** It is wet.\n\nA leak.\n",
        "Q: It is cold.\n\nA: A fuse.\n\nQ: It is wet.\n\nA: A leak.\n",
        "Kettle stays cold\n: A fuse.\n\nFloor is wet\n: A leak.\n",
        "# Faults\n\n- **Kettle stays cold**: a fuse.\n- **Floor is wet**: a leak.\n",
    ],
)
def test_bold_words_labels_terms_and_items_begin_parts_where_there_are_no_headings(
    text: str,
) -> None:
    found = whole(text)

    assert len(found.parts) == 2
    assert not found.is_one


def test_the_problem_that_is_asked_for_is_shown_whole_and_alone() -> None:
    found = shown("valves close while filling", 120, FAULTS)

    assert "Valves close while the tank fills:\n   The float sticks. Clean it" in found
    assert "fuse" not in found
    assert "Glue" not in found


def test_of_a_problem_that_is_too_long_what_it_says_to_do_is_shown() -> None:
    text = FAULTS.replace(PADDING, "It was cold for a long time. ", 1)
    found = shown("the kettle stays cold", 60, text)

    assert "heater start" in found
    assert "vinegar" not in found


def test_the_message_that_a_problem_quotes_makes_room_for_its_fix() -> None:
    trace = "\n".join(f"goroutine {number} [chan send]: brew.go:{number}" for number in range(9))
    text = (
        f"Memory of the kettle grows. All of it hangs here:\n\n```\n{trace}\n```\n\n"
        "Nobody reads the channel. Give it room:\n\n```go\nch := make(chan beer, 1)\n```\n\n"
        f"Second finding, not related: the floor is wet. {PADDING}\n\n"
        f"Third: the lamp is dark. {PADDING}\n"
    )
    found = shown("goroutine hangs in chan send, memory grows", 90, text)

    assert "make(chan beer, 1)" in found
    assert "goroutine 7" not in found


def test_the_beginning_of_a_block_that_does_not_fit_is_better_than_none_of_it() -> None:
    script = "\n".join(f"brew --step {number} --slowly --with-care" for number in range(60))
    text = f"# Brewing\n\nBrew with this script, which was tested:\n\n```sh\n{script}\n```\n\nDrink it.\n"
    found = shown("how do we brew", 150, text)

    assert "brew --step 3" in found
    assert "…" in found
    assert tokens.count(found) <= 150


@given(st.text(alphabet="#*Q:- ab\n1.`", max_size=300))
def test_every_unit_is_in_one_part_and_parts_are_in_the_order_of_the_text(text: str) -> None:
    found = list(leaves(whole(text)))

    # What only introduces several parts is in none of them.
    assert found == sorted(set(found))
    assert set(found) <= set(range(len(units_of(text))))


def test_lines_in_brackets_begin_matters_of_their_own() -> None:
    text = (
        f"[kettle stays cold]\nThe fuse blows when both heaters start. {PADDING}\n\n"
        "[valves close early]\nThe float sticks. Clean it with vinegar.\n\n"
        f"[labels come off]\nGlue needs a dry bottle. {PADDING}\n"
    )
    found = shown("why do the valves close", 60, text)

    assert "[valves close early]\n   The float sticks. Clean it with vinegar." in found
    assert "fuse" not in found


def test_if_the_part_that_answers_says_nothing_of_what_to_do_others_are_shown_too() -> None:
    text = (
        "# The still\n\n## What does error E7 on the display of the still mean?\n\n"
        "Error E7 is the sensor of the still.\n\n"
        f"## So what is to be set?\n\nSet the sensor of the still to mode 2. {PADDING}\n\n"
        f"## Who built it?\n\nNobody knows. {PADDING}\n"
    )
    found = shown("error E7 on the display of the still", 80, text)

    assert "Error E7 is the sensor" in found
    assert "Set the sensor of the still to mode 2." in found
