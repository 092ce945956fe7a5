"""Answer what `recall`, `brief` and `context build` ask: in the command, or in the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commonplace.memory import Memory
    from commonplace.recall.query import Narrowing


def answer(memory: Memory, request: Mapping[str, Any]) -> Any:  # noqa: ANN401 (what JSON can hold)
    """Return what the command prints: an answer, a brief, a context, the latest, or counts."""
    if request["want"] == "brief":
        names = ("goal", "task_id", "action", "files", "tokens")
        return memory.before_task(**{name: request[name] for name in names}).as_dict()
    if request["want"] == "context":
        names = ("query", "task", "budget_tokens", "hops", "save")
        return memory.build_context(**{name: request[name] for name in names}).explained()
    narrowing = cast(
        "Narrowing",
        {**request["narrowing"], "repo": request["repo"], "all_repos": request["all_repos"]},
    )
    if request["want"] == "counts":
        return memory.stats(query=memory.query(**narrowing))
    if request["want"] == "recent":
        return [hit.as_dict() for hit in memory.recent(request["count"], **narrowing)]
    return memory.recall(request["text"], **narrowing).as_dict()
