"""Edits: for each kind of description in `agents/parts.py`, how it gets into a file and out again.

All are functions of the file's text; `None` is a file that does not exist. A text that cannot be
edited raises `NotEditable`.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from commonplace.agents.parts import (
    HookCall,
    HookEntries,
    Instructions,
    OwnFile,
    ServerEntry,
    TomlServerEntry,
)
from commonplace.files import marked_section
from commonplace.files.marked_section import NotEditable
from commonplace.setup import jsonc, launch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from commonplace.agents import Agent
    from commonplace.agents.parts import JsonObject, Part
    from commonplace.setup.launch import Programs

SERVER = "commonplace"
# `other`: there is an entry that setup has not written. It is left as it is.
Presence = Literal["", "ours", "other"]


class Edit(Protocol):
    """One agent's part in one file."""

    def add(self, text: str | None) -> str | None: ...
    def remove(self, text: str | None) -> str | None: ...
    def presence(self, text: str | None) -> Presence: ...


def edit_for(agent: Agent, part: Part, programs: Programs) -> Edit:
    """Return the edit that writes *part* of *agent*."""
    match part.content:
        case HookEntries() as entries:
            return HooksEdit(agent.name, hooks(agent, entries, programs.hook), entries.version)
        case ServerEntry(key, entry):
            arguments = launch.server_arguments(agent.name)
            return ServerEdit(agent.name, key, entry(programs.main, arguments))
        case TomlServerEntry(table):
            return TomlServerEdit(agent.name, table, _toml_server(agent.name, table, programs))
        case Instructions(text):
            return InstructionsEdit(agent.name, text)
        case OwnFile(content):
            return OwnFileEdit(content(programs.hook))


def hooks(agent: Agent, entries: HookEntries, program: str) -> dict[str, JsonObject]:
    """Return what is added to the list of each event: a handler, or a group with one."""
    found: dict[str, JsonObject] = {}
    for event in entries.events:
        # The start of a session also starts the server.
        is_start = agent.kind_of(event.name) == "start"
        arguments = launch.hook_arguments(agent.name, ensure=is_start)
        handler = entries.handler(
            HookCall(
                program,
                arguments,
                line=launch.shell_line(program, arguments),
                powershell_line=launch.shell_line(program, arguments, powershell=True),
                timeout_s=event.timeout_s,
                waits=event.waits,
            )
        )
        matcher = {"matcher": event.matcher} if event.matcher else {}
        found[event.name] = {**matcher, "hooks": [handler]} if entries.grouped else handler
    return found


def _toml_server(agent: str, table: str, programs: Programs) -> str:
    # JSON's notation of strings and of lists of strings is valid TOML.
    command = json.dumps(programs.main, ensure_ascii=False)
    arguments = json.dumps(launch.server_arguments(agent), ensure_ascii=False)
    return f"[{table}.{SERVER}]\ncommand = {command}\nargs = {arguments}\n"


@dataclass(frozen=True, slots=True)
class HooksEdit:
    """Calls of our hook in a JSON file: under `hooks`, a list of handlers or groups by event."""

    agent: str
    events: dict[str, JsonObject]
    version: int | None = None  # The `version` that a new file must state.

    @property
    def _line_keys(self) -> list[str]:
        """The keys of a handler that may hold a command line: the usual and the agent's own."""
        handlers = (
            event["hooks"][0] if "hooks" in event else event for event in self.events.values()
        )
        own = [
            key
            for handler in handlers
            for key, value in handler.items()
            if isinstance(value, str) and launch.is_hook_line(value, self.agent)
        ]
        return list(dict.fromkeys([*launch.LINE_KEYS, *own]))

    def _is_ours(self, handler: object) -> bool:
        return launch.is_hook(handler, self.agent, self._line_keys)

    def add(self, text: str | None) -> str | None:
        root = _object(text)
        is_new = self.version is not None and (root is None or not root.members)
        for event, handler in self.events.items():
            text = self._add_event(text, ("hooks", event), handler)
        if is_new and text is not None:
            text = jsonc.with_member(text, (), "version", self.version)
        return text

    def _add_event(self, text: str | None, path: tuple[str, str], handler: JsonObject) -> str:
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
        ours = self._own_handlers(handlers, path)
        if not ours:
            return jsonc.with_member(text, path, None, handler)
        for own_path in ours:
            wanted = handler["hooks"][0] if "hooks" in handler else handler
            text = _update(text, own_path, wanted, [*self._line_keys, "args"])
        return text

    def remove(self, text: str | None) -> str | None:
        root = _object(text)
        paths = self._own_paths(root)
        if text is None or root is None or not paths:
            return text
        if self.version is not None and [one.key for one in root.members] == ["hooks", "version"]:
            rest = _remove(text, paths)
            if rest is None or jsonc.find(_object(rest), ("hooks",)) is None:
                # Only the version would be left. It follows the hooks, so it was added with them.
                paths = [*paths, ("version",)]
        return _remove(text, paths)

    def presence(self, text: str | None) -> Presence:
        return "ours" if self._own_paths(_object(text)) else ""

    def _own_paths(self, root: jsonc.Node | None) -> list[jsonc.Path]:
        """Return the paths of our handlers, in order; of the group if it has no others."""
        hooks = jsonc.find(root, ("hooks",))
        events = (
            {str(one.key): one.node for one in hooks.members}
            if hooks and isinstance(hooks.value, dict)
            else {}
        )
        paths: list[jsonc.Path] = []
        for event, node in events.items():
            path = ("hooks", event)
            ours = self._own_handlers(node, path)
            for index in dict.fromkeys(own_path[2] for own_path in ours):
                is_mixed = any(not self._is_ours(one) for one in _group(node, index))
                paths += (
                    [own_path for own_path in ours if own_path[2] == index]
                    if is_mixed
                    else [(*path, index)]
                )
        return paths

    def _own_handlers(self, handlers: jsonc.Node, path: tuple[str, str]) -> list[jsonc.Path]:
        paths: list[jsonc.Path] = []
        for index, one in enumerate(handlers.value if isinstance(handlers.value, list) else ()):
            if self._is_ours(one):
                paths.append((*path, index))
            inner = one.get("hooks") if isinstance(one, dict) else None
            for number, handler in enumerate(inner if isinstance(inner, list) else ()):
                if self._is_ours(handler):
                    paths.append((*path, index, "hooks", number))
        return paths


@dataclass(frozen=True, slots=True)
class ServerEdit:
    """Our MCP server in a JSON file: an entry in the object *key*."""

    agent: str
    key: str
    entry: JsonObject

    def add(self, text: str | None) -> str | None:
        root = _object(text)
        if text is None or root is None:
            return jsonc.with_root(text, self.key, {SERVER: self.entry})
        servers = jsonc.find(root, (self.key,))
        if servers is None:
            return jsonc.with_member(text, (), self.key, {SERVER: self.entry})
        if not isinstance(servers.value, dict):
            raise NotEditable(f"its `{self.key}` is not an object")
        match self.presence(text):
            case "":
                return jsonc.with_member(text, (self.key,), SERVER, self.entry)
            case "ours":
                return _update(text, (self.key, SERVER), self.entry, ["command", "args"])
        return text

    def remove(self, text: str | None) -> str | None:
        if text is None or self.presence(text) != "ours":
            return text
        return jsonc.without(text, (self.key, SERVER))

    def presence(self, text: str | None) -> Presence:
        entry = jsonc.find(_object(text), (self.key, SERVER))
        if entry is None:
            return ""
        return "ours" if launch.is_server(entry.value, self.agent) else "other"


@dataclass(frozen=True, slots=True)
class TomlServerEdit:
    """Our MCP server in a TOML file: a marked section at its end."""

    agent: str
    table: str
    body: str

    def add(self, text: str | None) -> str | None:
        if self.presence(text) == "other":
            return text
        after = marked_section.add(text, marked_section.HASH, self.body, self.agent)
        try:
            tomllib.loads(after)
        except tomllib.TOMLDecodeError:
            raise NotEditable(
                f"its `{self.table}` is closed (an inline table): nothing can be added"
            ) from None
        return after

    def remove(self, text: str | None) -> str | None:
        if text is None or self.presence(text) != "ours":
            return text
        return marked_section.remove(text, marked_section.HASH, self.agent)

    def presence(self, text: str | None) -> Presence:
        servers = _toml_tables(text or "").get(self.table)
        if marked_section.find(text or "", marked_section.HASH):
            return "ours"
        return "other" if isinstance(servers, dict) and SERVER in servers else ""


@dataclass(frozen=True, slots=True)
class InstructionsEdit:
    """Lines for the agent in a Markdown file, in a section that several agents may share."""

    agent: str
    body: str

    def add(self, text: str | None) -> str | None:
        return marked_section.add(text, marked_section.MARKDOWN, self.body, self.agent)

    def remove(self, text: str | None) -> str | None:
        if text is None:
            return None
        return marked_section.remove(text, marked_section.MARKDOWN, self.agent)

    def presence(self, text: str | None) -> Presence:
        section = marked_section.find(text or "", marked_section.MARKDOWN)
        return "ours" if section and self.agent in section.names else ""


@dataclass(frozen=True, slots=True)
class OwnFileEdit:
    """A file that is ours as a whole; its first line identifies it."""

    content: str

    def add(self, text: str | None) -> str | None:
        if self.presence(text) == "other":
            raise NotEditable("it is not one of ours")
        return self.content

    def remove(self, text: str | None) -> str | None:
        return None if self.presence(text) == "ours" else text

    def presence(self, text: str | None) -> Presence:
        if text is None:
            return ""
        first_line, own_first_line = (one.partition("\n")[0] for one in (text, self.content))
        return "ours" if first_line.strip() == own_first_line else "other"


def _object(text: str | None) -> jsonc.Node | None:
    root = jsonc.parse(text) if text else None
    if root is not None and not isinstance(root.value, dict):
        raise NotEditable("it does not hold an object")
    return root


def _group(event: jsonc.Node, index: str | int) -> list[object]:
    """Return the handlers of a group; a handler without a group is one by itself."""
    one = event.members[int(index)].node.value
    inner = one.get("hooks") if isinstance(one, dict) else None
    return inner if isinstance(inner, list) else [one]


def _update(text: str, path: jsonc.Path, wanted: JsonObject, keys: list[str]) -> str:
    """Return *text* with *keys* of our entry at *path* as *wanted*; other keys stay."""
    node = jsonc.find(jsonc.parse(text), path)
    assert node is not None, "the caller has found it"
    assert isinstance(node.value, dict), "entries of ours are objects"
    command = {key: wanted[key] for key in keys if key in wanted}
    if "async" in wanted:  # Entries of earlier versions have none; one that you changed stays.
        command["async"] = node.value.get("async", wanted["async"])
    if all(node.value.get(key) == value for key, value in command.items()):
        return text
    return jsonc.with_value(text, path, {**node.value, **command})


def _remove(text: str, paths: list[jsonc.Path]) -> str | None:
    """Return *text* without the values at *paths*, removed from last to first."""
    rest: str | None = text
    for path in reversed(paths):
        assert rest is not None, "it holds the value at another path"
        rest = jsonc.without(rest, path)
    return rest


def _toml_tables(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise NotEditable(f"it is not TOML: {error}") from None
