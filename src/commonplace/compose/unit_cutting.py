"""As much of a unit as fits: cut where a statement, a row or a sentence ends, and `…` says so."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from typing import TYPE_CHECKING

from commonplace.compose import tokens
from commonplace.foreign import block, longer_fence, render
from commonplace.index.units import CODE, SENTENCE, TABLE, Unit, is_drawn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

INFO_CHARS_MAX = 20
# The names of the columns, and the line below them.
TABLE_HEAD_LINES = 2
# A row that answers this much worse than the best one is not shown beside it.
ROW_SHARE_MIN = 0.3
# Of a block of code, less than this share and fewer lines than these say nothing: it begins with
# what the rest needs.
STATEMENTS_SHARE_MIN, STATEMENTS_MIN = 0.3, 4
# Of what fits, the share that is shown at least if it ends before a blank line.
SECTION_SHARE_MIN = 0.5
MORE = "…"
FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_CODE_SPAN = re.compile(r"(`+)(?:(?!`).)+\1", re.DOTALL)
# What ends a block or goes on with it.
_ENDS_BLOCK = re.compile(
    r"\s*(?:done|fi|esac|end|else|elif|except|finally|catch|then|do|EOF|and|or)\b|\s*[)\]}{|.]"
)
_GOES_ON = (",", "\\", "|", "&&", "=", "(", "[", "{", ":")
_COMMENT = re.compile(r"\s*(?:#|//|--\s|/?\*)")
_INFO = re.compile(r"[\w.+#-]*")


def code_of(text: str) -> tuple[str, list[str]]:
    """Return the language and the lines of a block of code, whichever way it was marked."""
    lines = render(text, is_code=True).split("\n")
    fence = FENCE.match(lines[0])
    if fence is None:
        margin = min((len(one) - len(one.lstrip()) for one in lines if one.strip()), default=0)
        return "", [line[margin:] for line in lines]
    margin = len(lines[0]) - len(lines[0].lstrip())
    info = _INFO.match(lines[0][fence.end() :].strip())
    closes = (
        len(lines) > 1 and lines[-1].strip().startswith(fence[1]) and not lines[-1].strip("`~ ")
    )
    held = lines[1:-1] if closes else lines[1:]
    language = info.group()[:INFO_CHARS_MAX] if info else ""
    return language, [one[margin:] if not one[:margin].strip() else one for one in held]


def fenced(info: str, lines: Sequence[str]) -> str:
    text = "\n".join(lines).strip("\n")
    fence = longer_fence(text, "```")
    return f"{fence}{info}\n{text}\n{fence}"


def part_of(
    unit: Unit,
    text: str,
    tokens_max: int,
    weigh: Callable[[Sequence[str]], list[float]],
    *,
    is_alone: bool = False,
) -> str:
    """Return as much of a unit as fits: of a table the best rows, of others the beginning.

    That is cut where a statement or a sentence ends. If nothing else is shown, code is cut at any
    line.
    """
    if unit.kind == TABLE:
        return _best_rows(text.split("\n"), tokens_max, weigh)
    if unit.kind == CODE:
        info, lines = code_of(text)
        kept = _longest(
            len(lines), lambda count: f"{fenced(info, lines[:count])}\n{MORE}", tokens_max
        )
        end = 0 if not kept or is_drawn(lines) else _end_of_statements(lines, kept)
        if is_alone:
            end = end or _end_within(lines, kept) or kept
        whole = _without_last_comment(lines[:end])
        return f"{fenced(info, whole)}\n{MORE}" if whole else ""
    for glue, parts in (("\n", text.split("\n")), (" ", SENTENCE.split(text))):

        def show(count: int, glue: str = glue, parts: Sequence[str] = parts) -> str:
            return with_more(block(glue.join(parts[:count])))

        kept = _longest(len(parts), show, tokens_max)
        if kept:
            return show(kept)
    short = tokens.cut(block(text), tokens_max)
    return with_more(short.removesuffix(MORE).rstrip()) if short.endswith(MORE) else short


def _best_rows(
    lines: Sequence[str], tokens_max: int, weigh: Callable[[Sequence[str]], list[float]]
) -> str:
    """Return the names of the columns, and the rows that answer best, in their order."""
    rows = lines[TABLE_HEAD_LINES:]
    found = ""
    kept: list[int] = []
    weights = weigh(rows)
    for number in sorted(range(len(rows)), key=lambda row: (-weights[row], row)):
        if weights[number] < max(weights) * ROW_SHARE_MIN:
            break
        shown = list(lines[:TABLE_HEAD_LINES])
        wider = sorted([*kept, number])
        for before, row in pairwise([-1, *wider]):
            shown += [MORE, rows[row]] if row > before + 1 else [rows[row]]
        if wider[-1] < len(rows) - 1:
            shown.append(MORE)
        text = block("\n".join(shown))
        if tokens.count(text) > tokens_max:
            break
        kept, found = wider, text
    return found


def with_more(text: str) -> str:
    """Return a text that goes on with `…` behind it; open emphasis and code are closed."""
    prose = _CODE_SPAN.sub("", text)
    for mark in ("`", "**"):
        if prose.count(mark) % 2:
            text += mark
    return f"{text} {MORE}"


def _longest(count: int, show: Callable[[int], str], tokens_max: int) -> int:
    """Return how many parts fit, fewer than *count*; of a very long text, most are not tried."""
    kept = 0
    while kept + 1 < count and tokens.count(show(kept + 1)) <= tokens_max:
        kept += 1
    return kept


def _end_of_statements(lines: Sequence[str], count: int) -> int:
    """Return how many of the first *count* lines are whole statements; 0 if too few are.

    A statement ends before a line with the least margin, outside of brackets.
    """
    least = min((margin_of(one) for one in lines if one.strip()), default=0)
    enough = min(STATEMENTS_MIN, math.ceil(STATEMENTS_SHARE_MIN * len(lines)))
    ends = [
        end
        for end in range(count, enough - 1, -1)
        if _begins_statement(lines[end])
        and margin_of(lines[end]) <= least
        and _ends_statement(lines[:end])
    ]
    for end in ends:
        if not lines[end - 1].strip() and end >= count * SECTION_SHARE_MIN:
            return end
    return ends[0] if ends else 0


def _end_within(lines: Sequence[str], count: int) -> int:
    """Return how many of the first *count* lines end with a statement of an inner block."""
    ends = range(count, 0, -1)
    return next(
        (
            end
            for end in ends
            if _begins_statement(lines[end])
            and lines[end - 1].strip()
            and margin_of(lines[end]) <= margin_of(lines[end - 1])
        ),
        0,
    )


def _without_last_comment(lines: Sequence[str]) -> Sequence[str]:
    """Return *lines* without comments at their end, which are about what is left out."""
    end = len(lines)
    while end and (not lines[end - 1].strip() or _COMMENT.match(lines[end - 1])):
        end -= 1
    return lines[:end] or lines


def _ends_statement(lines: Sequence[str]) -> bool:
    """Whether nothing in *lines* is open: a bracket, a list, a line that goes on."""
    text = "\n".join(lines).rstrip()
    return not text.endswith(_GOES_ON) and all(
        text.count(opens) <= text.count(closes) for opens, closes in ("()", "[]", "{}")
    )


def _begins_statement(line: str) -> bool:
    return bool(line.strip()) and not _ENDS_BLOCK.match(line)


def margin_of(line: str) -> int:
    return len(line) - len(line.lstrip())
