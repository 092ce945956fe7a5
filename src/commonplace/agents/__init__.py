"""Coding agents: one module each, with everything that is particular to that agent.

An agent module is found by its name: `find("claude-code")` imports `claude_code.py` and no other,
because a hook without a server pays for every import. There is no list of agents to keep: a module
in this folder that defines `AGENT` is an agent. CONTRIBUTING.md shows how to add one.
"""

from __future__ import annotations

import os
from functools import lru_cache
from importlib import import_module

from commonplace.agents.agent import Agent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from types import ModuleType

__all__ = ["Agent", "all", "find", "find_host", "generic"]


@lru_cache(maxsize=64)
def find(name: str) -> Agent:
    """Return the agent with this name or alias; a generic one if no module has it."""
    agent = _agent_in(_import(name.replace("-", "_")))
    if agent is not None and agent.name == name:
        return agent
    return next((agent for agent in all() if name in agent.aliases), generic(name))


@lru_cache(maxsize=1)
def all() -> tuple[Agent, ...]:  # noqa: A001 (read as `agents.all()`)
    """Return every agent, in the order in which they are listed to users."""
    modules = (_import(name) for name in _module_names())
    found = [agent for module in modules if (agent := _agent_in(module)) is not None]
    return tuple(sorted(found, key=lambda agent: (agent.order, agent.name)))


def find_host(variables: Collection[str]) -> str:
    """Return the agent that runs the hook, by the *variables* that are set; "" if unknown."""
    hosts = [agent for agent in all() if not set(agent.host_variables).isdisjoint(variables)]
    return max(hosts, key=lambda agent: agent.host_priority).name if hosts else ""


def generic(name: str) -> Agent:
    """Return an unknown agent: it sends Claude Code's events and is sent no context."""
    return Agent(name, start_reply=None, prompt_reply=None, completion_report=None)


def _module_names() -> list[str]:
    # `pkgutil.iter_modules` imports `inspect`, which takes longer than importing every agent.
    files = (file for folder in __path__ for file in os.listdir(folder))
    return sorted({file.removesuffix(".py") for file in files if file.endswith(".py")})


def _import(module: str) -> ModuleType | None:
    # The name may come from a command line or a request: only a module of this folder is imported.
    if not module.isidentifier() or module.startswith("_"):
        return None
    path = f"{__name__}.{module}"
    try:
        return import_module(path)
    except ModuleNotFoundError as error:
        if error.name != path:
            raise
        return None


def _agent_in(module: ModuleType | None) -> Agent | None:
    agent = getattr(module, "AGENT", None)
    return agent if isinstance(agent, Agent) else None
