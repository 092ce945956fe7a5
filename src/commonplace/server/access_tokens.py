"""Bearer tokens of the server, each with an agent and scopes. Only their hashes are kept."""

from __future__ import annotations

import hmac
import json
import os
import secrets
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.errors import AccessTokenNotFound, UsageError, unusable
from commonplace.files import atomic
from commonplace.files.lock import hold
from commonplace.files.plain import read_small
from commonplace.records import check_repo_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commonplace.where.home import Home

SCOPES = ("read", "write", "admin")
SCOPES_DEFAULT = ("read", "write")
TOKENS_MAX = 1000
PREFIX = "cpb_"
TOKENS_BYTES_MAX = 1 << 20


class Token(NamedTuple):
    """The stored part of a token. A fast hash is enough, since the token has 256 random bits."""

    id: str
    agent: str
    scopes: tuple[str, ...]
    created: str
    sha256: str


class Tokens:
    """The tokens of one home, in `.state/tokens.json`. Servers read changes at the next request."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._path = home.access_tokens_file
        self._seen: tuple[int, ...] = ()
        self._tokens: list[Token] = []

    def add(self, agent: str, scopes: Iterable[str], created: str) -> tuple[Token, str]:
        """Create a token; return it and its text, which is not kept."""
        wanted = set(scopes)
        unknown = sorted(wanted - set(SCOPES))
        if unknown or not wanted:
            raise UsageError(
                f"there is no scope `{''.join(unknown[:1])}`", f"choose among {', '.join(SCOPES)}"
            )
        try:
            check_repo_name(agent)
        except ValueError as error:
            raise UsageError(f"`{agent}` is not a valid name for an agent: it {error}") from None
        # The scope `write` includes `read`, and `admin` includes both.
        reach = max(SCOPES.index(scope) for scope in wanted)
        text = PREFIX + secrets.token_urlsafe(32)
        token = Token(
            f"t-{secrets.token_hex(4)}", agent, SCOPES[: reach + 1], created, _digest(text)
        )
        with hold(self._home.access_tokens_lock):
            tokens = [*self.all(), token]
            if len(tokens) > TOKENS_MAX:
                raise UsageError(
                    f"there are {TOKENS_MAX} tokens already",
                    "revoke some that are not used any more",
                )
            self._put(tokens)
        return token, text

    def all(self) -> list[Token]:
        """Return all tokens, oldest first."""
        try:
            found = os.stat(self._path)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise unusable(self._path, error) from error
        seen = (found.st_ino, found.st_mtime_ns, found.st_size)
        if seen != self._seen:
            self._tokens = self._read()
            self._seen = seen
        return self._tokens

    def find(self, text: str) -> Token | None:
        """Return the token with this text."""
        digest = _digest(text)
        return next(
            (token for token in self.all() if hmac.compare_digest(token.sha256, digest)), None
        )

    def revoke(self, ident: str) -> Token:
        """Remove a token and return it; the server rejects it from its next request on."""
        with hold(self._home.access_tokens_lock):
            tokens = self.all()
            found = [token for token in tokens if ident and token.id.startswith(ident)]
            if len(found) != 1:
                raise AccessTokenNotFound(ident, len(found))
            self._put([token for token in tokens if token is not found[0]])
        return found[0]

    def _read(self) -> list[Token]:
        try:
            rows = json.loads(read_small(self._path, TOKENS_BYTES_MAX))
            if not isinstance(rows, list):
                raise TypeError
            return [_from_row(row) for row in rows]
        except OSError as error:
            raise unusable(self._path, error) from error
        except (ValueError, TypeError, KeyError):
            raise UsageError(
                f"`{self._path}` is damaged",
                "remove it and add the tokens again; until then every request is rejected",
            ) from None

    def _put(self, tokens: list[Token]) -> None:
        rows = [token._asdict() for token in tokens]
        atomic.replace(self._path, [json.dumps(rows, indent=1).encode()])


def _from_row(row: dict[str, Any]) -> Token:
    token = Token(**{**row, "scopes": tuple(row["scopes"])})
    if not all(isinstance(text, str) for text in (*token[:2], *token.scopes)) or not _is_digest(
        token.sha256
    ):
        raise TypeError
    return token


def _is_digest(value: object) -> bool:
    return isinstance(value, str) and value.isascii() and len(value) == len(_digest(""))


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()
