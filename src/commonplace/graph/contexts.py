"""Saved contexts: the frames of a task, and those that were saved before.

A task has one record of the kind `context` in a repository (`context_logs.py`). Saving adds a
version of it, unless the same agent has just saved the same frames in the same session; recalling
returns versions, the newest first.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.compose.frames import KEYS, SAVE_FORMAT, SAVE_KIND, as_blocks
from commonplace.errors import RecordInvalid, UsageError
from commonplace.graph.arguments import check_number, check_text
from commonplace.graph.bloom import NODES_MAX
from commonplace.graph.context_logs import (
    TASK_ID_CHARS_MAX,
    check_task,
    ids_by_log,
    log_to_save,
    logs_named,
)
from commonplace.index import topics
from commonplace.index.ports import Filter
from commonplace.recall import graph
from commonplace.recall.visibility import shown_cards
from commonplace.records import Context, to_utc
from commonplace.records.nodes import names_of
from commonplace.vocabulary import LIMIT_MAX

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from commonplace.index.ports import Reader
    from commonplace.recall.hits import Address
    from commonplace.recaller import Recaller
    from commonplace.records import Record

SCOPES = ("task", "session", "repo", "agent")
K = 32
# A save that is sent again is looked for among so many versions.
VERSIONS_MAX = 100
SPARE = 4
FRAMES_MAX = 64
TRIES_MAX = 100
# The type of a version that `build_context` saved: its frames repeat what the memory has.
BUILT = "built"


class SavedContext(NamedTuple):
    """One version of the context of a task."""

    id: str
    task_id: str
    timestamp: str
    agent_id: str
    repo: str
    session: str
    # Blocks with `kind`, `format` and `data`.
    frames: list[dict[str, Any]]
    # The ids of the nodes in it, if `build_context` made it.
    nodes: list[str]
    is_built: bool
    # Its number among the versions of the task.
    version: int = 1
    # Whether saving has written it: the same frames twice are one version.
    is_new: bool = False
    # The id that the client gave the save.
    save_id: str = ""
    # What the client that built it has measured; not kept with it.
    covered: bool | None = None
    drift: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it as other programs see it."""
        return {
            "id": self.id,
            "task_id": self.task_id,
            "version": self.version,
            "timestamp": self.timestamp,
            "agent_id": self.agent_id,
            "repo": self.repo,
            "session": self.session,
            "built": self.is_built,
            "save_id": self.save_id,
            "frames": self.frames,
        }

    def frame(self, kind: str) -> Any:  # noqa: ANN401 (any JSON)
        """Return the content of the first frame of *kind*; "" if there is none."""
        return next((one.get("data") for one in self.frames if one.get("kind") == kind), "")


def save_context(
    memory: Recaller,
    task_id: str,
    frames: Sequence[Mapping[str, Any]] | Mapping[str, Any],
    *,
    session: str = "",
    repo: str = "",
    nodes: Sequence[str] = (),
    is_built: bool = False,
) -> SavedContext:
    """Add a version of the context of *task_id*, and return it.

    *frames* are blocks with `kind`, `format` and `data`, or an object with the keys of frames. If
    they are those of the latest version, or one of the last versions has the id of this save,
    nothing is written. Raises `RecordInvalid`.
    """
    about, blocks = _about_save(check_frames(frames))
    is_built = is_built or about.is_built
    log = log_to_save(memory, repo, _logs_having(memory, task_id) if not repo else ())
    given, ident = _context_in_use(memory, task_id, log)
    for _try in range(TRIES_MAX):
        latest = _latest(memory, ident)
        if latest is not None and (known := _with_save_id(memory, latest, about.id)) is not None:
            return known
        entry = memory.prepare(
            {
                **given,
                "frames": blocks,
                "timestamp": to_utc(memory.now()),
                "meta": {
                    # A line that repeats an older one of the same second would be no version.
                    "version": 1 if latest is None else _saved(latest.record).version + 1,
                    **({"session": session} if session else {}),
                    **({"nodes": [*nodes, *about.nodes][:NODES_MAX]} if is_built else {}),
                    **({"save": about.id} if about.id else {}),
                },
                **({"event_type": BUILT} if is_built else {}),
            }
        )
        if latest is not None and _says_the_same(latest.record, entry.record):
            return _saved(latest.record)
        place = (memory.trusted_home(), entry.record.repo) if latest is None else latest.place
        if memory.append_together({place: [entry]}, partial(_is_latest, memory, ident, latest)):
            return _saved(entry.record)._replace(
                is_new=True, covered=about.covered, drift=about.drift
            )
    raise UsageError("other processes keep saving contexts of this task", "try again")


def _context_in_use(memory: Recaller, task_id: str, log: str) -> tuple[dict[str, Any], str]:
    """Return the fields that say whose context it is, and the id of its record.

    A task that has contexts by the other of its names keeps that one.
    """
    found = []
    for name in names_of("task", check_task(task_id)):
        given = {"kind": "context", "task_id": name, "repo": log}
        ident = memory.prepare({**given, "frames": []}).record.id
        if _latest(memory, ident) is not None:
            return given, ident
        found.append((given, ident))
    return found[0]


class _Save(NamedTuple):
    """What a client says about a save."""

    id: str = ""
    is_built: bool = False
    nodes: Sequence[str] = ()
    covered: bool | None = None
    drift: float | None = None


def _about_save(blocks: list[dict[str, Any]]) -> tuple[_Save, list[dict[str, Any]]]:
    """Return what the block for that says about the save, and the other blocks."""
    rest = []
    about = _Save()
    for block in blocks:
        if (block["kind"], block.get("format")) != (SAVE_KIND, SAVE_FORMAT):
            rest.append(block)
            continue
        data = block["data"] if isinstance(block["data"], dict) else {}
        ident, nodes = data.get("id"), data.get("nodes")
        if not isinstance(ident, str) or not 0 < len(ident) <= TASK_ID_CHARS_MAX:
            raise RecordInvalid("frames", f"has a block `{SAVE_KIND}` without an `id`")
        named = [one for one in nodes if isinstance(one, str)] if isinstance(nodes, list) else []
        covered, drift = data.get("covered"), data.get("drift")
        about = _Save(
            ident,
            data.get("built") is True,
            named,
            covered if isinstance(covered, bool) else None,
            float(drift) if isinstance(drift, int | float) and 0 <= drift <= 1 else None,
        )
    if not rest:
        raise RecordInvalid("frames", "is empty", "there is nothing to save")
    return about, rest


def _with_save_id(memory: Recaller, latest: _Latest, save_id: str) -> SavedContext | None:
    """Return the version that this save made before: its answer was lost, or came too late."""
    if not save_id:
        return None
    with memory.engine().reading() as readers:
        reader = readers[latest.place[0]]
        for record in reader.newest_versions(latest.record.id, VERSIONS_MAX):
            if record.meta.get("save") == save_id:
                return _saved(record)
    return None


def _says_the_same(one: Record, other: Record) -> bool:
    """Whether the frames are the same, of one agent and session, and both are its own or built."""
    names = ("frames", "event_type", "agent_id")
    return all(one.fields.get(name) == other.fields.get(name) for name in names) and (
        one.meta.get("session") == other.meta.get("session")
    )


def recall_context(
    memory: Recaller, scope: str = "task", ident: str = "", k: int = K, repo: str = ""
) -> list[SavedContext]:
    """Return the last *k* saved contexts of a task, session, repository or agent, newest first.

    Without *ident*, a repository or agent is the one in use. With *repo*, only those of that
    repository; one that nothing was written to yet has none. Homes that the user does not trust
    are left out.
    """
    if check_text("the scope", scope) not in SCOPES:
        raise UsageError(f"there is no scope `{scope}`", f"choose among {', '.join(SCOPES)}")
    check_number("k", k, 1, LIMIT_MAX)
    check_text(f"the id of the {scope}", ident)
    if scope in ("task", "session") and not ident.strip():
        raise UsageError(f"the id of the {scope} is missing", f"say which {scope}")
    if scope == "task":
        wanted = list(chain.from_iterable(ids_by_log(memory, ident, repo).values()))
        with memory.engine().reading() as readers:
            return _read(memory, readers, k, wanted)[:k]
    if scope == "repo":
        named = ident or repo
        logs = logs_named(memory, named) if named else memory.scope().here()
        return _of_topics(memory, [topics.of_repository(log) for log in dict.fromkeys(logs)], k)
    who = ident or memory.agent_id
    topic = topics.of_session(who) if scope == "session" else topics.of_agent(who)
    return _of_topics(memory, [topic], k, frozenset(logs_named(memory, repo)) if repo else None)


def _logs_having(memory: Recaller, task_id: str) -> list[str]:
    """Return the logs with contexts of a task, if it is not known in which repository we are."""
    if memory.repository.known:
        return []
    ids = ids_by_log(memory, task_id)
    with memory.engine().reading() as readers:
        shown = _shown_keys(memory, readers, list(chain.from_iterable(ids.values())))
    found = {ident for keys in shown.values() for ident in keys}
    return [log for log, some in ids.items() if not found.isdisjoint(some)]


def check_frames(frames: object) -> list[dict[str, Any]]:
    """Return *frames* as blocks. Raises `RecordInvalid` for what is no frames."""
    if isinstance(frames, Mapping):
        unknown = [name for name in frames if name not in KEYS]
        if unknown:
            raise RecordInvalid(
                "frames", f"has the key `{unknown[0]}`", f"the keys are {', '.join(KEYS)}"
            )
        found = as_blocks(dict(frames))
    elif isinstance(frames, list | tuple):
        found = [_check_block(number, one) for number, one in enumerate(frames, 1)]
    else:
        raise RecordInvalid(
            "frames", "is no list of frames", "a frame is an object with `kind` and `data`"
        )
    if not found:
        raise RecordInvalid("frames", "is empty", "there is nothing to save")
    if len(found) > FRAMES_MAX:
        raise RecordInvalid("frames", f"has over {FRAMES_MAX} frames")
    return found


def _check_block(number: int, block: object) -> dict[str, Any]:
    if not isinstance(block, Mapping):
        raise RecordInvalid(f"frames, entry {number}", "is no object")
    kind = block.get("kind")
    if not isinstance(kind, str) or not kind.strip():
        raise RecordInvalid(f"frames, entry {number}", "has no `kind`", "such as `episodic`")
    if "data" not in block:
        raise RecordInvalid(f"frames, entry {number}", "has no `data`")
    return dict(block)


class _Latest(NamedTuple):
    """The current version of a context."""

    record: Record
    # The number of its home, and its log.
    place: tuple[int, str]
    key: int


def _latest(memory: Recaller, ident: str) -> _Latest | None:
    """Return the current version of a context in the nearest trusted home that has it."""
    with memory.engine().reading() as readers:
        for home, keys in _shown_keys(memory, readers, [ident]).items():
            for key, record in readers[home].records(list(keys.values())).items():
                return _Latest(record, (home, readers[home].cards([key])[key].log), key)
    return None


def _is_latest(memory: Recaller, ident: str, known: _Latest | None) -> bool:
    """Whether nobody has saved a version meanwhile."""
    now = _latest(memory, ident)
    return (now and (now.place, now.key)) == (known and (known.place, known.key))


def of_task(
    memory: Recaller, readers: Sequence[Reader], task_id: str, k: int, built_max: int
) -> list[SavedContext]:
    """Return the last *k* contexts of a task that agents saved, and the last that were built.

    A task may have been built hundreds of times: those would hide what agents saved.
    """
    wanted = list(chain.from_iterable(ids_by_log(memory, task_id).values()))
    saved = _read(memory, readers, k, wanted, BUILT)
    built = [one for one in _read(memory, readers, built_max, wanted) if one.is_built]
    found = [*saved[:k], *built[:built_max]]
    return sorted(found, key=lambda one: (one.timestamp, one.id, one.version), reverse=True)


def _of_topics(
    memory: Recaller, names: Sequence[str], k: int, logs: Collection[str] | None = None
) -> list[SavedContext]:
    """Return the newest *k* versions of contexts of some topics, in *logs*, that are not hidden."""
    with memory.engine().reading() as readers:
        wanted = k + SPARE
        while True:
            found: dict[Address, Record] = {}
            is_all = True
            for home, reader in enumerate(readers):
                for name in names:
                    keys = reader.newest_of_topic(name, wanted, versions=True)
                    is_all = is_all and len(keys) < wanted
                    found |= {(home, key): one for key, one in reader.records(keys).items()}
            kept = _newest_shown(memory, readers, found, logs)
            if len(kept) >= k or is_all:
                return kept[:k]
            wanted *= 4  # Many are hidden, or of other repositories.


def _newest_shown(
    memory: Recaller,
    readers: Sequence[Reader],
    found: Mapping[Address, Record],
    logs: Collection[str] | None,
) -> list[SavedContext]:
    """Return those of *found* that may be shown, the newest first."""
    shown = _shown_keys(memory, readers, list({record.id for record in found.values()}))
    kept = [
        (one.timestamp, one.version, address, one)
        for address, record in found.items()
        if record.id in shown.get(address[0], ())
        for one in [_saved(record)]
        if logs is None or one.repo in logs
    ]
    hidden = _hidden(memory, readers, {ident for *_order, one in kept for ident in one.nodes})
    kept.sort(key=lambda one: one[:3], reverse=True)
    return [one for *_order, one in kept if hidden.isdisjoint(one.nodes)]


def _read(
    memory: Recaller,
    readers: Sequence[Reader],
    k: int,
    ids: Sequence[str],
    without_type: str = "",
) -> list[SavedContext]:
    """Return at least *k* versions of each context, the newest first, as far as there are any."""
    shown = _shown_keys(memory, readers, ids)

    def read(limit: int) -> tuple[list[SavedContext], bool]:
        found: list[tuple[str, str, int, SavedContext]] = []
        for home, keys in shown.items():
            for ident in keys:
                versions = readers[home].newest_versions(ident, limit, without_type)
                for place, record in enumerate(versions):
                    if isinstance(record, Context):
                        one = _saved(record)
                        found.append((one.timestamp, ident, -place, one))
        hidden = _hidden(memory, readers, {ident for *_order, one in found for ident in one.nodes})
        found.sort(key=lambda one: one[:3], reverse=True)
        kept = [one for *_order, one in found if hidden.isdisjoint(one.nodes)]
        return kept, len(kept) < len(found)

    found, is_some_hidden = read(k)
    # Those that repeat a forgotten memory were left out: a few more are read.
    return read(k + SPARE)[0] if is_some_hidden else found


def _hidden(memory: Recaller, readers: Sequence[Reader], ids: set[str]) -> set[str]:
    """Return those of *ids* that were forgotten: a context that repeats them is hidden, too."""
    untrusted = frozenset(n for n, home in enumerate(memory.homes) if not memory.trusts(home))
    return ids - graph.shown(readers, ids, untrusted).keys() if ids else set()


def _shown_keys(
    memory: Recaller, readers: Sequence[Reader], ids: Sequence[str]
) -> dict[int, dict[str, int]]:
    """Return the contexts of each trusted home that may be shown: id and key."""
    untrusted = frozenset(n for n, home in enumerate(memory.homes) if not memory.trusts(home))
    filter_ = Filter(
        kinds=frozenset(["context"]),
        archived=True,
        untrusted=untrusted,
        without_homes=untrusted,
        reader=memory.agent_id,
    )
    found: dict[int, dict[str, int]] = {}
    for home, reader in enumerate(readers):
        if home in untrusted:
            continue
        cards = reader.cards(list(reader.keys(ids).values())).values()
        shown = shown_cards(readers, home, cards, filter_)
        if shown:
            found[home] = {card.id: card.key for card in shown}
    return found


def _saved(record: Record) -> SavedContext:
    fields, meta = record.fields, record.meta
    frames = fields.get("frames")
    nodes, version = meta.get("nodes"), meta.get("version")
    return SavedContext(
        record.id,
        str(fields.get("task_id", "")),
        record.timestamp,
        record.agent_id,
        record.repo,
        str(meta.get("session") or ""),
        [dict(one) for one in frames if isinstance(one, dict)] if isinstance(frames, list) else [],
        [str(one) for one in nodes] if isinstance(nodes, list) else [],
        fields.get("event_type") == BUILT,
        version if isinstance(version, int) else 1,
        save_id=str(meta.get("save") or ""),
    )
