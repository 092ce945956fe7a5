"""The facts of several homes as one: the nearest home's version of a record is the current one."""

from __future__ import annotations

from commonplace.rules.order import Stamp
from commonplace.rules.standing import Facts, Support

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence


class SeveralHomes:
    """The facts of *homes*, the nearest first.

    Of an id that several homes have, the nearest one's line is current. What any of them says about
    other records holds for all: forgetting, feedback and links reach from one home into another.
    """

    def __init__(self, homes: Sequence[Facts]) -> None:
        self._homes = homes

    def stamps(self, ids: Collection[str]) -> dict[str, Stamp]:
        found: dict[str, Stamp] = {}
        for number, home in enumerate(self._homes):
            wanted = [ident for ident in ids if ident not in found]
            for ident, stamp in home.stamps(wanted).items() if wanted else ():
                found[ident] = _of_home(number, stamp)
        return found

    def forgets(self, ids: Collection[str]) -> dict[str, list[Stamp]]:
        found: dict[str, list[Stamp]] = {}
        for number, home in enumerate(self._homes):
            for ident, stamps in home.forgets(ids).items():
                found.setdefault(ident, []).extend(_of_home(number, stamp) for stamp in stamps)
        return found

    def supports(self, ids: Collection[str]) -> Iterator[Support]:
        yield from self._current_statements(lambda home: home.supports(ids))

    def superseders(self, ids: Collection[str]) -> Iterator[Support]:
        yield from self._current_statements(lambda home: home.superseders(ids))

    def _current_statements(self, ask: Callable[[Facts], Iterable[Support]]) -> Iterator[Support]:
        """Yield the statements of current lines, if no nearer home has the line's id."""
        for number, home in enumerate(self._homes):
            stated = list(ask(home))
            nearer = {one.by for one in stated}
            for other in self._homes[:number] if nearer else ():
                known = other.stamps(nearer)
                stated = [one for one in stated if one.by not in known]
            yield from stated


def _of_home(number: int, stamp: Stamp) -> Stamp:
    """Return *stamp* with a log name that differs from those of other homes."""
    return stamp._replace(log=f"{number}/{stamp.log}")
