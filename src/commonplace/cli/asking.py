"""Ask the home's server, if one runs, or else the memory, opened in this process.

Either gives the same answer, in its JSON form.
"""

from __future__ import annotations

import json
import os

import commonplace
from commonplace.files.plain import read_small
from commonplace.served import ASK_PATH, find_server, nearest_home, send, state_folder
from commonplace.vocabulary import QUERY_CHARS_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from commonplace.embed.early import EarlyQuestion

# A server that does not answer in this time is not waited for.
SERVER_S_MAX = 2.0
REPLY_BYTES_MAX = 64 << 20
CONFIG_BYTES_MAX = 1 << 20


def ask(home: str | None, request: dict[str, Any]) -> Any:  # noqa: ANN401 (its JSON)
    """Return the answer to *request*, as `commonplace.ask` takes it."""
    found = ask_server(home, request)
    return ask_memory(home, request) if found is None else found


def ask_server(home: str | None, request: dict[str, Any]) -> Any:  # noqa: ANN401 (its JSON)
    """Return the answer of the home's server; `None` if there is no server that can give it."""
    try:
        cwd = os.getcwd()
    except OSError:
        return None
    if home:
        home = os.path.join(cwd, os.path.expanduser(home))
    server = find_server(state_folder(home or nearest_home(cwd, os.environ), os.environ))
    if server is None:
        return None
    names = ("HOME", "USERPROFILE", "COMMONPLACE_HOME")
    request = {
        **request,
        "version": commonplace.__version__,
        "agent": os.environ.get("COMMONPLACE_AGENT"),
        "home": home or None,
        "cwd": cwd,
        "environment": {name: os.environ[name] for name in names if name in os.environ},
    }
    body = json.dumps(request).encode()
    reply = send(server, "POST", ASK_PATH, body, SERVER_S_MAX, REPLY_BYTES_MAX)
    return json.loads(reply) if reply else None


def ask_memory(home: str | None, request: dict[str, Any]) -> Any:  # noqa: ANN401 (see above)
    """Return the answer of the memory itself, opened in this process."""
    # Before all imports: another process embeds the question meanwhile.
    early = _start_early(home, (request.get("text") or "")[:QUERY_CHARS_MAX])
    try:
        # These load the libraries of the index. A server answers in a third of that time.
        from commonplace.ask import answer  # noqa: PLC0415
        from commonplace.cli.open_memory import open_memory  # noqa: PLC0415

        with open_memory(home) as memory:
            memory.engine(for_one_query=True, early=early)
            return answer(memory, request)
    finally:
        if early is not None:
            early.close()


def _start_early(home: str | None, text: str) -> EarlyQuestion | None:
    """Have the question embedded by another process, unless the home may want another embedder."""
    try:
        folder = os.path.expanduser(home) if home else nearest_home(os.getcwd(), os.environ)
        if b"embedder" in read_small(os.path.join(folder, "config.toml"), CONFIG_BYTES_MAX):
            return None
    except OSError:
        pass  # There is none, or whoever opens the home says what is wrong with it.
    if not text:
        return None
    from commonplace.embed.early import EarlyQuestion  # noqa: PLC0415

    return EarlyQuestion.start(text)
