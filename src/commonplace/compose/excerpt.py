"""An excerpt of a long memory: the part of its text that answers a question.

If all of it fits, all of it is shown. Else the text is taken apart where its author took it apart,
and of its parts the one is shown that says most of the question: whole, in its order, below its
heading. Others stand behind it if there is room and they say at least a third as much. Of a part
that does not fit, what answers is shown and what belongs to that. `…` stands for all that is left
out.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from commonplace.compose.part_filling import fill, fix_sections, says_what_to_do
from commonplace.compose.parts import part_of_text
from commonplace.compose.unit_layout import Page, says_something
from commonplace.compose.unit_scores import score_units, weigh_lines
from commonplace.index.units import TABLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from commonplace.compose.parts import Part
    from commonplace.compose.unit_scores import Wanted
    from commonplace.index.units import Unit

# A longer table is shown by the rows that answer.
TABLE_SHARE_MAX = 0.5
# Of what the best part says of the question, the share that another one needs beside it. To stand
# beside the best is not enough (`unit_scores.BESIDE_WEIGHT`).
BESIDE_SHARE_MIN = 0.35
# If nothing that is shown says what to do, and this share of the room is left, other parts are
# shown, too.
ROOM_SHARE = 0.3
# They need this share of what the best part says of the question.
ADDED_SHARE_MIN = 0.2


def excerpt(
    text: str,
    units: Sequence[Unit],
    wanted: Wanted,
    title: str,
    tokens_max: int,
    *,
    may_cut: bool = False,
) -> str:
    """Return what of *text* fits in *tokens_max*, with *title* above it; "" if nothing does.

    With *may_cut*, the beginning of the best unit if none fits whole.
    """
    body = [number for number, unit in enumerate(units) if says_something(unit, text, title)]
    page = Page(text, units, title)
    # What is shown of a unit is hardly shorter than the unit.
    is_short = sum(units[number].end - units[number].start for number in body) <= 5 * tokens_max
    if is_short and page.fits(body, tokens_max):
        return page.show(body)
    if not body:
        return ""
    weigh = partial(weigh_lines, wanted=wanted)
    for number in body:
        if units[number].kind == TABLE:
            # Its other rows are about something else, and it is rarely read as a whole.
            page.shorten_table(number, int(TABLE_SHARE_MAX * tokens_max), weigh)
    scores = score_units(text, units, body, wanted)
    choice = Choice(page, scores, wanted, tokens_max)
    chosen = choice.of(part_of_text(text, units, body))
    if chosen:
        return page.show(chosen)
    best = max(body, key=lambda number: scores[number])
    return page.show_part(best, tokens_max, weigh) if may_cut else ""


class Choice:
    """The choice of what is shown of one text."""

    def __init__(
        self, page: Page, scores: Mapping[int, float], wanted: Wanted, tokens_max: int
    ) -> None:
        self._page = page
        self._scores = scores
        self._weigh = partial(weigh_lines, wanted=wanted)
        self._asks_why = wanted.asks_why
        self._tokens_max = tokens_max

    def of(self, part: Part) -> list[int]:
        """Return the units of *part* that are shown, in the order in which they are."""
        whole = self._with_leads(part)
        if self._fits(whole):
            return sorted(whole)
        rest = {number for number in whole if not self._page.is_message(number)}
        if rest and len(rest) < len(whole) and self._fits(rest):
            return sorted(rest)
        if part.is_one or not part.parts:
            return self._fill(part)
        order = sorted(part.parts, key=self._score, reverse=True)
        least = BESIDE_SHARE_MIN * self._score(order[0])
        first = self.of(order[0])
        chosen = set(first)
        for one in order[1:]:
            if self._score(one) >= least:
                chosen = self._beside(one, chosen)
        if part.is_list:
            return sorted(chosen)
        least = ADDED_SHARE_MIN * self._score(order[0])
        for one in order[1:]:
            if self._score(one) >= least and not says_what_to_do(self._page, chosen):
                chosen = self._add(one, chosen)
        # What the question is about comes first, and what else there is behind it.
        return first + sorted(chosen - set(first))

    def _fill(self, part: Part) -> list[int]:
        """Return as much of one matter as fits, in the order of the text, but its fix first."""
        units = self._page.units
        chosen = fill(
            self._page,
            part,
            self._scores,
            self._tokens_max,
            self._weigh,
            asks_why=self._asks_why,
        )
        leads = part.is_named and not self._asks_why
        fixes = fix_sections(units, part.numbers) if leads else set()
        return sorted(chosen, key=lambda one: (units[one].headings not in fixes, one))

    def _beside(self, part: Part, chosen: set[int]) -> set[int]:
        """Return *chosen* with all of *part*, or with its best part, if that fits."""
        wider = chosen | self._with_leads(part)
        if self._fits(wider):
            return wider
        if part.is_one or not part.parts:
            return chosen
        return self._beside(max(part.parts, key=self._score), chosen)

    def _add(self, part: Part, chosen: set[int]) -> set[int]:
        """Return *chosen* with as much of *part* as there is room for, if there is much."""
        room = self._tokens_max - self._page.tokens_of(sorted(chosen))
        if room < ROOM_SHARE * self._tokens_max or chosen & set(part.numbers):
            return chosen
        wider = self._beside(part, chosen)
        if wider == chosen:
            wider = chosen | fill(
                self._page, part, self._scores, room, self._weigh, asks_why=self._asks_why
            )
        return wider if self._fits(wider) else chosen

    def _with_leads(self, part: Part) -> set[int]:
        return {*part.numbers} | self._page.leads(part.numbers[0])

    def _score(self, part: Part) -> float:
        return max(self._scores[number] for number in part.numbers)

    def _fits(self, numbers: AbstractSet[int]) -> bool:
        return self._page.fits(numbers, self._tokens_max)
