"""The table of commands: a module and a line of help for each. `load` imports the module."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable, Mapping, Sequence


class Entry(NamedTuple):
    """A row of the table: the module below `cli/`, and the line that `--help` shows."""

    module: str
    help: str


class Command(NamedTuple):
    """One command: its help, the arguments it takes, and what it does."""

    help: str
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]
    examples: Sequence[str] = ()
    # Whether a value may start with a dash though it is no flag.
    dashed_values: bool = False


class Group(NamedTuple):
    """Several commands under one name, such as `notes read` and `notes write`."""

    help: str
    commands: Mapping[str, Command]
    # The command that runs when none is named; without one, the help is shown.
    default: str = ""


# The groups of `commonplace --help`, in its order.
SECTIONS: dict[str, dict[str, Entry]] = {
    "write": {
        "log": Entry("log", "Write down a lesson and print its id"),
        "feedback": Entry("feedback", "Report how using a memory went"),
        "forget": Entry("forget", "Hide a record, or remove it for good"),
        "inbox": Entry("inbox", "Decide on what was proposed to be remembered"),
        "edit": Entry("edit", "Change some fields of a record and keep the others"),
        "tag": Entry("tag", "Add tags to a record, or remove some"),
        "notes": Entry("notes", "Read and write an agent's own notes"),
    },
    "ask": {
        "recall": Entry("recall", "Find the few memories that help, best first"),
        "search": Entry("recall", "The same as `recall`"),
        "list": Entry("list_", "List records, the newest first"),
        "tags": Entry("tags", "List the tags, and how many records have each"),
        "why": Entry("why", "Explain why a memory is, or is not, in an answer"),
        "show": Entry("show", "Show a record, with the feedback on it"),
        "history": Entry("history", "Show every version of a record, oldest first"),
        "stats": Entry("stats", "Count memories, the work of recent days, or saved tokens"),
    },
    "learn": {
        "episode": Entry("episode", "Record what happened in a task, whole or step by step"),
        "learnings": Entry("learnings", "List errors with what solved them, by day"),
        "consolidate": Entry("consolidate", "Make patterns of what several tasks have in common"),
        "link": Entry("link", "Say how two records relate to each other"),
        "unlink": Entry("unlink", "Remove a link between two records"),
        "links": Entry("links", "Show what a record is linked with"),
        "resolve": Entry("resolve", "Decide which of two contradicting records holds"),
        "skill": Entry("skill", "List, make, check and export skills"),
        "ledger": Entry("ledger", "Keep what an agent is doing, and resume it"),
        "handoff": Entry("handoff", "Hand work over to another agent, and accept it"),
        "brief": Entry("brief", "Show what is known before a task: patterns, mistakes, skills"),
        "context": Entry("context", "Build the frames of a prompt from memory, within a budget"),
        "continuity": Entry("continuity", "Keep the relevant memories in an agent's CONTINUITY.md"),
        "node": Entry("node", "Write and read nodes of the graph, and show them as a tree"),
        "graph": Entry("graph", "Draw nodes and their links"),
    },
    "agents and servers": {
        "setup": Entry("setup", "Connect agents to the memory, or disconnect them"),
        "mcp": Entry("mcp", "Serve the memory to one agent over stdio (MCP)"),
        "serve": Entry("serve", "Serve the memory to every agent of this home over HTTP"),
        "token": Entry("token", "Manage the access tokens that agents send to the server"),
        "preamble": Entry("preamble", "Print what belongs into an agent's system prompt"),
    },
    "homes and files": {
        "init": Entry("init", "Make a home in this repository, or the user's home"),
        "trust": Entry("trust", "Trust the home that a repository brought"),
        "where": Entry("where", "Show which home is in use here, and why"),
        "repos": Entry("repos", "List, name, join, archive and delete the logs of this home"),
        "pack": Entry("pack", "Install, share and remove packs of knowledge"),
        "import": Entry("import_", "Import what another system remembers"),
        "export": Entry("export", "Print all records, or write them as another system's files"),
    },
    "upkeep": {
        "config": Entry("config", "Show and change settings"),
        "backup": Entry("backup", "Write this home to one file, or restore it from one"),
        "snapshot": Entry("snapshot", "Keep what the memory holds now, compare it, restore it"),
        "sync": Entry("sync", "Pull, merge and push this home with git"),
        "index": Entry("index", "Show, rebuild or complete the search index"),
        "scan": Entry("scan", "Find secrets in this home, and remove them"),
        "doctor": Entry("doctor", "Check this home, and which agents are connected"),
        "maintain": Entry("maintain", "Rotate, embed and trim: keep this home small and complete"),
    },
}
COMMANDS = {name: entry for section in SECTIONS.values() for name, entry in section.items()}


def load(name: str) -> Command | Group:
    """Return the command or group called *name*; this imports its module."""
    entry = COMMANDS[name]
    module = import_module(f"commonplace.cli.{entry.module}")
    if hasattr(module, "COMMANDS"):
        return Group(entry.help, module.COMMANDS, getattr(module, "DEFAULT", ""))
    return Command(
        entry.help,
        module.add_arguments,
        module.run,
        getattr(module, "EXAMPLES", ()),
        getattr(module, "DASHED_VALUES", False),
    )
