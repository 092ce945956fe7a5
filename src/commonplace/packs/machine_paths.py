"""Replace paths of this machine in texts that leave it: they name its user and help nobody else."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from commonplace.records import slug

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

# The folders of users on Linux, macOS and Windows, whoever they are.
_OF_USERS = r"(?:/home/|/Users/|/root(?=/)|\b[A-Za-z]:[\\/]+Users[\\/]+)"
_NAME = r"[^\s/\\:\"'`<>|*?,;()\[\]{}]*"
_OF_USERS_NEEDLES = ("/home/", "/Users/", "Users", "/root/")
_USER = "~"
_SLUG_CHARS_MAX = 200
_REPOSITORY = "."


class MachinePaths:
    """Replaces the folder of the repository by `.` and those of users by `~`."""

    def __init__(self, user: Path, repository: Path | None, others: Iterable[Path] = ()) -> None:
        known = {str(path): _USER for path in (user, *others)}
        if repository is not None:
            known[str(repository)] = _REPOSITORY
        # A path of one part, such as `/`, is no path of a user.
        self._known = {path: new for path, new in known.items() if len(path) > len("/xx")}
        longest = sorted(self._known, key=len, reverse=True)
        self._words = [words for path in longest if (words := slug(path, _SLUG_CHARS_MAX))]
        ends = {path.replace("\\", "/").rstrip("/").rpartition("/")[2] for path in longest}
        self._needles = [*_OF_USERS_NEEDLES, *filter(None, ends), *self._words]
        named = "|".join(re.escape(path) + r"(?![\w-])" for path in longest)
        whole = f"(?P<known>{named})|" if named else "(?P<known>(?!))|"
        self._pattern = re.compile(rf"(?<![\w.~])(?:{whole}{_OF_USERS}{_NAME})")

    def may_be_in(self, line: str) -> bool:
        """Whether a line of JSON may hold a path to replace: a quick test."""
        return any(needle in line for needle in self._needles)

    def replace_in_id(self, ident: object) -> object:
        """Return an id without the words of a known path: ids are made from texts.

        The same id becomes the same, so what refers to it still does.
        """
        if isinstance(ident, str):
            for words in self._words:
                if words in ident:
                    ident = ident.replace(words, "").replace("--", "-").strip("-") or ident
        return ident

    def replace(self, value: Any) -> Any:  # noqa: ANN401 (JSON)
        """Return a JSON value with the paths in its texts replaced."""
        if isinstance(value, str):
            return self._pattern.sub(lambda found: self._new(found["known"]), value)
        if isinstance(value, dict):
            return {self.replace(key): self.replace(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.replace(item) for item in value]
        return value

    def _new(self, known: str | None) -> str:
        return self._known[known] if known else _USER
