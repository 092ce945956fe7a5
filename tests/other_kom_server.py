"""A memory server that is not ours: the seven tools over a dictionary, written with the SDK alone.

Its names, the shape of its results and what it leaves out differ from ours, as they may.

    python other_kom_server.py [--names short|dotted|meta] [--text]
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

DOTTED = {
    "search_memory": "kom.memory.v1.search_memory",
    "upsert_memory": "kom.memory.v1.upsert_memory",
    "recall_context": "kom.memory.v1.recall_context",
    "save_context": "kom.memory.v1.save_context",
    "project_snapshot": "kom.meta.v1.project_snapshot",
    "export_encrypted": "kom.local.v1.backup.export_encrypted",
    "import_encrypted": "kom.local.v1.backup.import_encrypted",
}


class Store:
    """What the server keeps. A node is found by the words that it shares with a question."""

    def __init__(self) -> None:
        self.nodes: dict[str, dict[str, Any]] = {}
        self.contexts: list[dict[str, Any]] = []
        self.upserts = 0
        self.refuses: set[str] = set()

    def check(self, tool: str) -> None:
        if tool in self.refuses:
            raise ToolError(f"{tool} is switched off")

    def search(self, query: str, k: int, types: list[str]) -> list[dict[str, Any]]:
        self.check("search_memory")
        wanted = set(query.lower().split())
        scored = [
            (len(wanted & words(node)), ident)
            for ident, node in self.nodes.items()
            if not types or node.get("type") in types
        ]
        best = sorted((-score, ident) for score, ident in scored if score)
        return [self.nodes[ident] for _score, ident in best[:k]]

    def upsert(self, nodes: list[dict[str, Any]], *, merge: bool) -> list[str]:
        self.check("upsert_memory")
        self.upserts += 1
        for node in nodes:
            old = self.nodes.get(node["id"], {}) if merge else {}
            self.nodes[node["id"]] = {**old, **node}
        return [node["id"] for node in nodes]

    def save(self, task_id: str, frames: list[dict[str, Any]]) -> str:
        self.check("save_context")
        ident = f"ctx-{len(self.contexts) + 1}"
        self.contexts.append({"id": ident, "task_id": task_id, "frames": frames})
        return ident

    def recall(self, scope: str, ident: str, k: int) -> list[dict[str, Any]]:
        self.check("recall_context")
        found = [one for one in self.contexts if scope != "task" or one["task_id"] == ident]
        return found[::-1][:k]


def words(node: dict[str, Any]) -> set[str]:
    text = json.dumps([node["id"], node.get("label"), node.get("payload"), node.get("tags")])
    plain = "".join(char if char.isalnum() else " " for char in text.lower())
    return {*plain.split(), node["id"]}


def build(store: Store, names: str = "short", *, is_text: bool = False) -> MCPServer:
    server = MCPServer("other")

    def add(function: Any) -> None:
        short = function.__name__
        name = {"short": short, "dotted": DOTTED[short], "meta": f"x{len(short)}_{short[0]}"}[names]
        server.add_tool(
            function,
            name=name,
            meta={"com.example/id": DOTTED[short]} if names == "meta" else None,
            structured_output=not is_text,
        )

    def search_memory(
        query: str, k: int = 10, filters: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        types = (filters or {}).get("types", [])
        hits = [{"node": node, "score": 0.5} for node in store.search(query, k, types)]
        return {"hits": hits}

    def upsert_memory(nodes: list[dict[str, Any]], merge: bool = False) -> dict[str, Any]:
        ids = store.upsert(nodes, merge=merge)
        return {"ids": ids}

    def recall_context(scope: str, id: str, k: int = 5) -> dict[str, Any]:  # noqa: A002
        found = store.recall(scope, id, k)
        return {"items": found}

    def save_context(task_id: str, frames: list[dict[str, Any]]) -> dict[str, Any]:
        ident = store.save(task_id, frames)
        return {"id": ident}

    def project_snapshot(include_memory: bool = True) -> dict[str, Any]:
        return {"snapshot": f"snap-{len(store.nodes)}", "memory": include_memory}

    def export_encrypted(selection: str, out: str) -> dict[str, Any]:
        return {"out": out, "selection": selection}

    def import_encrypted(pack: str) -> dict[str, Any]:
        return {"imported": 0, "pack": pack}

    for function in (
        search_memory,
        upsert_memory,
        recall_context,
        save_context,
        project_snapshot,
        export_encrypted,
        import_encrypted,
    ):
        add(function)
    return server


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--names", default="short", choices=("short", "dotted", "meta"))
    parser.add_argument("--text", action="store_true")
    options = parser.parse_args()
    build(Store(), options.names, is_text=options.text).run()


if __name__ == "__main__":
    main()
