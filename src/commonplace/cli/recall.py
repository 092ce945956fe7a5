"""`commonplace recall`: ask, list the latest, count; the answer as text or JSON. No typer, no rich: agents call it."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from commonplace.cli import plain
from commonplace.cli.open_memory import opened
from commonplace.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commonplace.engine import Answer
    from commonplace.memory import Memory
    from commonplace.recall.hits import Hit


NUMBER_DIGITS_MAX = 9


def recall(options: Mapping[str, str | bool]) -> int:
    """Answer what *options* ask, and print it."""
    home = options.get("home")
    with opened(str(home) if home else None) as memory:
        memory.engine(for_one_query=True)
        if options.get("stats"):
            print_stats(
                memory.stats(repos_asked(memory, options)), as_json=bool(options.get("json"))
            )
        elif options.get("recent"):
            _print_recent(memory, options)
        else:
            _print_answer(memory, options)
    return 0


def _print_answer(memory: Memory, options: Mapping[str, str | bool]) -> None:
    if "query" not in options:
        raise UsageError(
            "a question is needed", 'e.g. `commonplace recall "npm install fails with EACCES"`'
        )
    found = memory.recall(
        str(options["query"]),
        **_narrowing(memory, options),
        files=_list(options, "files") or (),
        limit=_number(options, "limit", 5),
        tokens_max=_number(options, "tokens", 500),
        as_of=str(options["as_of"]) if "as_of" in options else None,
        cutoff=not options.get("no_cutoff"),
    )
    if options.get("json"):
        print(json.dumps(as_json(found), ensure_ascii=False))
    else:
        print(plain(found.text))
        if options.get("explain"):
            _explain(found)
        if not found.hits:
            _hint(memory, options)
    for note in found.notes:
        print(f"note: {note}", file=sys.stderr)


def as_json(found: Answer) -> dict[str, Any]:
    """The answer as JSON: hits with their reasons, the text, its cost."""
    return {
        "hits": [hit_as_json(hit) for hit in found.hits],
        "text": found.text,
        "tokens": found.tokens,
        "considered": found.considered,
        "notes": found.notes,
    }


def hit_as_json(hit: Hit) -> dict[str, Any]:
    return {
        "id": hit.id,
        "kind": hit.kind,
        "repo": hit.repo,
        "timestamp": hit.timestamp,
        "score": hit.score,
        "text": hit.text,
        "success_rate": str(hit.rate) if hit.rate else None,
        "marks": list(hit.marks),
        "record": {**hit.record.fields, "usage_count": hit.uses},
        "why": hit.why.as_dict() if hit.why else {},
    }


def _explain(found: Answer) -> None:
    for hit in found.hits:
        reasons = "  ".join(
            f"{name} {value:g}" for name, value in (hit.why.as_dict() if hit.why else {}).items()
        )
        print(f"{hit.score:.4f}  {hit.id}\n        {reasons}", file=sys.stderr)
    print(f"{found.considered} candidates, {found.tokens} tokens", file=sys.stderr)


def _hint(memory: Memory, options: Mapping[str, str | bool]) -> None:
    if not options.get("all_repos") and "repo" not in options:
        print(
            f"hint: only `{memory.repository.name}` was searched; `--all-repos` searches every log",
            file=sys.stderr,
        )


def _print_recent(memory: Memory, options: Mapping[str, str | bool]) -> None:
    if "query" in options:
        raise UsageError("`--recent` takes no question", "leave one of them out")
    hits = memory.recent(_number(options, "recent", 5), **_narrowing(memory, options))
    if options.get("json"):
        print(json.dumps([hit_as_json(hit) for hit in hits], ensure_ascii=False))
        return
    for hit in hits:
        print(
            plain(
                f"[{hit.timestamp[:10]}] {hit.text}  ({hit.record.agent_id or hit.kind}) {hit.id}"
            )
        )
    if not hits:
        print("No memories match.")
        _hint(memory, options)


def print_stats(stats: dict[str, Any], *, as_json: bool) -> None:
    """Counts, as text or JSON."""
    if as_json:
        print(json.dumps(stats, ensure_ascii=False))
        return
    print(f"{stats['records']} records, {stats['archived']} more in the archive")
    for name in ("repos", "kinds", "types"):
        for value, count in stats[name].items():
            print(f"  {name[:-1]:5} {value:40} {count}")


def repos_asked(memory: Memory, options: Mapping[str, str | bool]) -> list[str] | None:
    """A name given, or this repository: under its own name and under the plain one that scripts give it."""
    if options.get("all_repos"):
        if "repo" in options:
            raise UsageError("`--repo` and `--all-repos` exclude one another", "give one of them")
        return None
    if "repo" in options:
        return [str(options["repo"])]
    return list(dict.fromkeys((memory.repository.name, memory.repository.short)))


def _narrowing(memory: Memory, options: Mapping[str, str | bool]) -> dict[str, Any]:
    """What the flags leave of the memory, as `Memory.recall` and `Memory.recent` take it."""
    return {
        "repo": repos_asked(memory, options),
        "kinds": _list(options, "kind"),
        "types": _list(options, "type"),
        "tags": _list(options, "tag"),
        "agent": str(options["agent"]) if "agent" in options else None,
        "since": str(options["since"]) if "since" in options else None,
        "archived": bool(options.get("all")),
    }


def _list(options: Mapping[str, str | bool], name: str) -> list[str] | None:
    if name not in options:
        return None
    return [part.strip() for part in str(options[name]).split(",") if part.strip()]


def _number(options: Mapping[str, str | bool], name: str, default: int) -> int:
    given = str(options.get(name, default))
    if not (given.isascii() and given.isdecimal()) or len(given) > NUMBER_DIGITS_MAX:
        raise UsageError(f"`--{name}` is `{given}`, not a whole number")
    return int(given)
