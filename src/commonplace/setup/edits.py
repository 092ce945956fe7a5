"""What is done to one file for one agent: `put` into its text, `taken` out of it again, and whether it is `there`.

All are functions of the text. `None` is a file that is not there. A text that cannot be edited raises `NotEditable`.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from commonplace.setup import jsonc, launch, marked
from commonplace.setup.jsonc import NotEditable

SERVER = "commonplace"
# `other`: the place is taken by something that setup has not written, and is left to it.
Found = Literal["", "ours", "other"]


class Edit(Protocol):
    """One agent's part in one file."""

    def put(self, text: str | None) -> str | None: ...
    def taken(self, text: str | None) -> str | None: ...
    def found(self, text: str | None) -> Found: ...


@dataclass(frozen=True, slots=True)
class Hooks:
    """Calls of our hook in a JSON file: under `hooks`, a list an event, of handlers or of groups of handlers."""

    agent: str
    events: dict[str, dict[str, Any]]
    version: int | None = None  # What a new file must say besides.

    def put(self, text: str | None) -> str | None:
        root = _object(text)
        alone = self.version is not None and (root is None or not root.members)
        for event, handler in self.events.items():
            text = self._put(text, ("hooks", event), handler)
        if alone and text is not None:
            text = jsonc.with_member(text, (), "version", self.version)
        return text

    def _put(self, text: str | None, path: tuple[str, str], handler: dict[str, Any]) -> str:
        root = _object(text)
        if text is None or root is None:
            return jsonc.with_root(text, path[0], {path[1]: [handler]})
        hooks = jsonc.find(root, path[:1])
        if hooks is None:
            return jsonc.with_member(text, (), path[0], {path[1]: [handler]})
        if not isinstance(hooks.value, dict):
            raise NotEditable("its `hooks` is not an object")
        handlers = jsonc.find(hooks, path[1:])
        if handlers is None:
            return jsonc.with_member(text, path[:1], path[1], [handler])
        if not isinstance(handlers.value, list):
            raise NotEditable(f"its `hooks.{path[1]}` is not a list")
        ours = self._ours(handlers, path)
        if not ours:
            return jsonc.with_member(text, path, None, handler)
        for place in ours:
            text = _updated(text, place, handler["hooks"][0] if "hooks" in handler else handler)
        return text

    def taken(self, text: str | None) -> str | None:
        places = self._places(_object(text))
        root = _object(text)
        if text is None or root is None or not places:
            return text
        if self.version is not None and [one.key for one in root.members] == ["hooks", "version"]:
            rest = _without(text, places)
            if rest is None or jsonc.find(_object(rest), ("hooks",)) is None:
                # Nothing but the version would be left, which came with the hooks: behind them.
                places = [*places, ("version",)]
        return _without(text, places)

    def found(self, text: str | None) -> Found:
        return "ours" if self._places(_object(text)) else ""

    def _places(self, root: jsonc.Node | None) -> list[jsonc.Path]:
        """Where our handlers are, in order: whole groups where nobody else's handler is in them."""
        hooks = jsonc.find(root, ("hooks",))
        events = (
            {str(one.key): one.node for one in hooks.members}
            if hooks and isinstance(hooks.value, dict)
            else {}
        )
        places: list[jsonc.Path] = []
        for event, node in events.items():
            path = ("hooks", event)
            ours = self._ours(node, path)
            for index in dict.fromkeys(place[2] for place in ours):
                mixed = any(not launch.is_hook(one, self.agent) for one in _handlers(node, index))
                places += (
                    [place for place in ours if place[2] == index] if mixed else [(*path, index)]
                )
        return places

    def _ours(self, handlers: jsonc.Node, path: tuple[str, str]) -> list[jsonc.Path]:
        places: list[jsonc.Path] = []
        for index, one in enumerate(handlers.value if isinstance(handlers.value, list) else ()):
            if launch.is_hook(one, self.agent):
                places.append((*path, index))
            inner = one.get("hooks") if isinstance(one, dict) else None
            for number, handler in enumerate(inner if isinstance(inner, list) else ()):
                if launch.is_hook(handler, self.agent):
                    places.append((*path, index, "hooks", number))
        return places


@dataclass(frozen=True, slots=True)
class Server:
    """Our MCP server in a JSON file: an entry under *key*."""

    agent: str
    key: str
    entry: dict[str, Any]

    def put(self, text: str | None) -> str | None:
        root = _object(text)
        if text is None or root is None:
            return jsonc.with_root(text, self.key, {SERVER: self.entry})
        servers = jsonc.find(root, (self.key,))
        if servers is None:
            return jsonc.with_member(text, (), self.key, {SERVER: self.entry})
        if not isinstance(servers.value, dict):
            raise NotEditable(f"its `{self.key}` is not an object")
        match self.found(text):
            case "":
                return jsonc.with_member(text, (self.key,), SERVER, self.entry)
            case "ours":
                return _updated(text, (self.key, SERVER), self.entry)
        return text

    def taken(self, text: str | None) -> str | None:
        if text is None or self.found(text) != "ours":
            return text
        return jsonc.without(text, (self.key, SERVER))

    def found(self, text: str | None) -> Found:
        entry = jsonc.find(_object(text), (self.key, SERVER))
        if entry is None:
            return ""
        return "ours" if launch.is_server(entry.value, self.agent) else "other"


@dataclass(frozen=True, slots=True)
class TomlServer:
    """Our MCP server in Codex's `config.toml`: a marked section at its end."""

    agent: str
    body: str

    def put(self, text: str | None) -> str | None:
        if self.found(text) == "other":
            return text
        after = marked.with_section(text, marked.HASH, self.body, self.agent)
        try:
            tomllib.loads(after)
        except tomllib.TOMLDecodeError:
            raise NotEditable(
                "its `mcp_servers` is closed (an inline table): nothing can be added"
            ) from None
        return after

    def taken(self, text: str | None) -> str | None:
        return (
            marked.without_section(text, marked.HASH, self.agent)
            if text and self.found(text) == "ours"
            else text
        )

    def found(self, text: str | None) -> Found:
        servers = _tables(text or "").get("mcp_servers")
        if marked.find(text or "", marked.HASH):
            return "ours"
        return "other" if isinstance(servers, dict) and SERVER in servers else ""


@dataclass(frozen=True, slots=True)
class Words:
    """A few lines for the agent to read, in a Markdown file that may be read by others too."""

    agent: str
    body: str

    def put(self, text: str | None) -> str | None:
        return marked.with_section(text, marked.MARKDOWN, self.body, self.agent)

    def taken(self, text: str | None) -> str | None:
        return text if text is None else marked.without_section(text, marked.MARKDOWN, self.agent)

    def found(self, text: str | None) -> Found:
        section = marked.find(text or "", marked.MARKDOWN)
        return "ours" if section and self.agent in section.names else ""


@dataclass(frozen=True, slots=True)
class Whole:
    """A file that is ours from its first line on, which says so."""

    content: str

    def put(self, text: str | None) -> str | None:
        if self.found(text) == "other":
            raise NotEditable("it is not one of ours")
        return self.content

    def taken(self, text: str | None) -> str | None:
        return None if self.found(text) == "ours" else text

    def found(self, text: str | None) -> Found:
        if text is None:
            return ""
        return (
            "ours"
            if text.partition("\n")[0].strip() == self.content.partition("\n")[0]
            else "other"
        )


def _object(text: str | None) -> jsonc.Node | None:
    root = jsonc.parse(text) if text else None
    if root is not None and not isinstance(root.value, dict):
        raise NotEditable("it does not hold an object")
    return root


def _handlers(events: jsonc.Node, index: str | int) -> list[object]:
    """The handlers of a group; one that is in no group stands alone."""
    one = events.members[int(index)].node.value
    inner = one.get("hooks") if isinstance(one, dict) else None
    return inner if isinstance(inner, list) else [one]


def _updated(text: str, place: jsonc.Path, wanted: dict[str, Any]) -> str:
    """*text* with the command of the entry at *place* as it should be; what else the user has put there stays."""
    node = jsonc.find(jsonc.parse(text), place)
    assert node is not None, "it has just been found"
    assert isinstance(node.value, dict), "an entry of ours"
    command = {
        key: wanted[key] for key in ("command", "args", "bash", "powershell") if key in wanted
    }
    if all(node.value.get(key) == value for key, value in command.items()):
        return text
    return jsonc.with_value(text, place, {**node.value, **command})


def _without(text: str, places: list[jsonc.Path]) -> str | None:
    """*text* less what is at all *places*, the last one first: so the others stay where they are."""
    rest: str | None = text
    for place in reversed(places):
        assert rest is not None, "one more is in it"
        rest = jsonc.without(rest, place)
    return rest


def _tables(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise NotEditable(f"it is not TOML: {error}") from None
