"""Titles of long memories: from front matter, headings, or the first line; never from code."""

from __future__ import annotations

import pytest

from commonplace.compose.titles import title_of
from commonplace.index.units import units_of

COMMENT = "```sh\n# rinse the tank first\nmake brew\n```"


def title(text: str) -> str:
    return title_of(text, units_of(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"## The brewery stops\n\nIt stops.\n\n{COMMENT}\n", "The brewery stops"),
        (f"### The brewery stops ###\n\n{COMMENT}\n", "The brewery stops"),
        (f"It stops.\n\n{COMMENT}\n\nThen wait.", "It stops."),
        (f"{COMMENT}\n\nThen wait.", "Then wait."),
        (f"{COMMENT}\n", ""),
        (f"````md\n{COMMENT}\n````\n\n# The brewery\n\nIt stops.", "The brewery"),
        ("The brewery\n===========\n\nIt stops.", "The brewery"),
        ("It stops.\n\n# The brewery\n\nIt has two tanks.", "The brewery"),
    ],
)
def test_a_title_is_a_heading_of_any_level_but_never_a_line_of_code(
    text: str, expected: str
) -> None:
    assert title(text) == expected


@pytest.mark.parametrize("heading", ["## Problem", "## Root cause", "# Fix 2:"])
def test_a_heading_that_only_names_a_part_is_no_title(heading: str) -> None:
    assert title(f"{heading}\n\nThe tank leaks.\n\nMore.") == "The tank leaks."


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ('Brewery: "tank is full"', 'Brewery: "tank is full"'),
        ('"Tank" is not "kettle"', '"Tank" is not "kettle"'),
        ('The "kettle"', 'The "kettle"'),
        ('"The tank is full"', "The tank is full"),
        ("'", "'"),
    ],
)
def test_only_quotation_marks_around_all_of_a_title_are_left_out(
    heading: str, expected: str
) -> None:
    assert title(f"# {heading}\n\nOpen the valve.") == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("title: A full tank\nsubject: brewing", "A full tank"),
        ("subject: brewing\nname: 'The tank'", "The tank"),
        ("subject: brewing / tanks", "brewing / tanks"),
        ("kind: note\ntags: [brewing]", "The valve"),
        ("title:\nkind: note", "The valve"),
    ],
)
def test_front_matter_gives_the_title_without_its_key(fields: str, expected: str) -> None:
    assert title(f"---\n{fields}\n---\n\n# The valve\n\nOpen it.") == expected
