"""The access token that every home has, for its user's clients over HTTP: `.state/server.token`.

Other access tokens (`access_tokens.py`) belong to one agent each, and only their hashes are kept.
This one is kept as it is, in a file that only the user can read, so that a client can be given it
at any time.
"""

from __future__ import annotations

import hmac
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING

from commonplace.files import atomic
from commonplace.files.plain import read_small
from commonplace.server.access_tokens import PREFIX

if TYPE_CHECKING:
    from pathlib import Path

    from commonplace.where.home import Home

BYTES_MAX = 200
RANDOM_BYTES = 32


class HomeToken:
    """The token of one home. Once its file is removed, the token is not valid any more."""

    def __init__(self, home: Home) -> None:
        self.path: Path = home.server_token_file

    def create(self) -> None:
        """Create the token unless there is one. The caller has claimed the home."""
        if not self._text():
            text = PREFIX + secrets.token_urlsafe(RANDOM_BYTES)
            with suppress(OSError):  # `replace` would keep the mode of a damaged file.
                self.path.unlink()
            atomic.replace(self.path, [text.encode() + b"\n"])

    def matches(self, text: str) -> bool:
        return bool(text) and hmac.compare_digest(text.encode(), self._text().encode())

    def _text(self) -> str:
        """Return the token; "" if there is none, or something else is in its file."""
        try:
            text = read_small(self.path, BYTES_MAX).decode("ascii").strip()
        except (OSError, ValueError):
            return ""
        return text if text.startswith(PREFIX) and len(text) > RANDOM_BYTES else ""
