"""What an erasure will remove, written down before it removes anything.

A process that is killed half-way leaves this file, and any later one can finish the work with it
alone. It names the ids, because lines and counts are found by them and the user gives one to try
again; an id has a few words of its record at most. Of the texts it keeps only traces.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace import records
from commonplace.erasure.traces import Trace, traces_of
from commonplace.errors import HomeUnusable, unusable
from commonplace.files import atomic
from commonplace.files.plain import read_all
from commonplace.log import read
from commonplace.log.fold import fold
from commonplace.rules import SeveralHomes, is_gone, is_statement, spread, standings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from commonplace.where.home import Home

# Sessions and candidates hold the start of a text at least this far, even where they cut it.
_START_CHARS = 48
# Fields that records of one repository, task or moment have in common.
_NOT_CONTENT = frozenset([
    "id", "kind", "timestamp", "agent_id", "repo", "tags", "links", "of", "to", "rel", "w",
    "event_type", "outcome", "success_rate", "task_id", "category", "type", "source",
    "source_episodes", "children", "stats", "last_used", "last_checkpoint", "from_agent",
    "to_agent", "git_commit",
])  # fmt: skip


class Intent(NamedTuple):
    """The erasure of *id*: the records that go, these with the statements on them, and traces.

    *texts* are traces of what only these records say, *starts* of its first words.
    """

    id: str
    records: frozenset[str]
    ids: frozenset[str]
    texts: frozenset[Trace]
    starts: frozenset[Trace]

    def plus(self, other: Intent) -> Intent:
        """Return both together: a plan and what an interrupted run left."""
        return Intent(
            self.id,
            self.records | other.records,
            self.ids | other.ids,
            self.texts | other.texts,
            self.starts | other.starts,
        )

    def save(self, home: Home) -> None:
        """Write the intent to the home, durably. Nothing may be removed before."""
        atomic.replace(_path(home, self.id), [json.dumps(self._asdict(), default=sorted).encode()])

    def remove(self, home: Home) -> None:
        """Remove the intent from the home: the erasure is finished there."""
        path = _path(home, self.id)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise unusable(path, error) from error


def plan(homes: Sequence[Home], ident: str, logs: Iterable[Path]) -> Intent:
    """Return the intent to erase *ident* from *homes*, whose log files are *logs*."""
    erased, gone = reach([home for home in homes if home.trusted] or homes, ident)
    theirs, others = _texts_by_owner(logs, gone)
    texts = {text for text in theirs - others if not _is_time(text)}
    starts = {start for text in texts for start in _starts(text)}
    starts -= {start for text in others for start in _starts(text)}
    return Intent(ident, frozenset(erased), frozenset(gone), traces_of(texts), traces_of(starts))


def pending(homes: Iterable[Home]) -> list[Intent]:
    """Return the erasures that have begun in *homes* and are not finished."""
    found: dict[str, Intent] = {}
    for home in homes:
        for path in files(home):
            intent = _read(path)
            before = found.get(intent.id)
            found[intent.id] = intent if before is None else before.plus(intent)
    return list(found.values())


def files(home: Home) -> list[Path]:
    """Return the files of the intents in *home*."""
    return sorted(home.erasures_folder.glob("*.json"))


def reach(homes: Iterable[Home], ident: str) -> tuple[set[str], set[str]]:
    """Return *ident* with its dependents in all homes; and these with the statements on them."""
    folds = [fold(home)[0] for home in homes]
    everything: set[str] = set()
    # One step in all homes at a time: what rests on a record may be in another home each time.
    spread(
        {ident},
        lambda ids: (one for folded in folds for one in folded.dependents(ids)),
        everything,
    )
    statements = {
        one
        for folded in folds
        for one in everything
        if one in folded and is_statement(folded.current(one).kind)
    }
    return everything - statements | {ident}, everything


def count_visible_dependents(homes: Sequence[Home], ident: str) -> int:
    """Return how many records that are not hidden yet rest on *ident*."""
    dependents = reach(homes, ident)[0] - {ident}
    if not dependents:
        return 0
    facts = SeveralHomes([fold(home)[0] for home in homes])
    return sum(not is_gone(standing) for standing in standings(dependents, facts).values())


def _path(home: Home, ident: str) -> Path:
    digest = blake2b(ident.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return home.erasures_folder / f"{digest}.json"


def _read(path: Path) -> Intent:
    try:
        fields: dict[str, Any] = json.loads(read_all(path))
        return Intent(
            fields["id"],
            frozenset(fields["records"]),
            frozenset(fields["ids"]),
            *(frozenset(Trace(*trace) for trace in fields[name]) for name in ("texts", "starts")),
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        raise HomeUnusable(
            path,
            "it does not describe an erasure",
            "delete it, then run `commonplace forget ID --erase` again",
        ) from None


def _texts_by_owner(logs: Iterable[Path], gone: set[str]) -> tuple[set[str], set[str]]:
    """Return the texts in the content of the erased records, and all texts of the others."""
    theirs: set[str] = set()
    others: set[str] = set()
    for found in chain.from_iterable(map(read.parse, logs)):
        if isinstance(found, read.Damage):
            continue
        record = found[1]
        if record.id in gone:
            theirs.update(
                text
                for name, value in record.fields.items()
                if name not in _NOT_CONTENT
                for text in _texts(value)
            )
        else:
            others.update(_texts(record.fields))
    return theirs, others


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def _starts(text: str) -> set[str]:
    """Return the start of a text as it is, and as a session writes it: in one line."""
    return {text[:_START_CHARS], " ".join(text[: 4 * _START_CHARS].split())[:_START_CHARS]}


def _is_time(text: str) -> bool:
    try:
        return bool(records.to_utc(text))
    except ValueError:
        return False
