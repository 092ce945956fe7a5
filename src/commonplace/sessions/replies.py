"""Replies: what a hook prints so that the agent reads a text as context, in that agent's form."""

from __future__ import annotations

import json

from commonplace import agents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from commonplace.sessions.events import Event


def context_reply(event: Event, text: str) -> str:
    """Return the reply with *text* for the agent; "" if it reads none or there is no text."""
    reader = agents.find(event.host)
    if not reader.own_replies_always:
        reader = agents.find(event.agent)
    form = {"start": reader.start_reply, "prompt": reader.prompt_reply}.get(event.kind)
    return json.dumps(form(event.called, text), ensure_ascii=False) if text and form else ""
