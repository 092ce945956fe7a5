"""The agents by name. `cli/app.py` lists them in its help; everything else uses `agents.all()`."""

from __future__ import annotations

from commonplace import agents

AGENTS = {agent.name: agent for agent in agents.all()}
