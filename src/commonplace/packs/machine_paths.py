"""Replace paths of this machine in texts that leave it: they name its user and help nobody else."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from commonplace.records import slug

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

# The folders of users on Linux, macOS and Windows, whoever they are, also as other systems on the
# same machine see them.
_OF_USERS = (
    r"(?:(?:/var|/usr|/export|/System/Volumes/Data)?/(?:home|Users)/|(?:/var)?/root(?:home)?(?=/)"
    r"|(?:/mnt|/cygdrive|/host_mnt)?/[A-Za-z]/Users/|[A-Za-z]:[\\/]+Users[\\/]+"
    r"|[\\/]{2,}wsl(?:\$|\.localhost)[\\/]+[\w.-]+[\\/]+home[\\/]+)"
)
# A path begins where no other goes on, or right after an option of a command: `-I/home/me/include`.
_BEFORE = r"(?:(?<![\w.~])|(?P<option>(?<![\w.~/-])-[A-Za-z]\w{0,20}))"
_NAME = r"[^\s/\\:\"'`<>|*?,;()\[\]{}]*"
_OF_USERS_NEEDLES = ("/home/", "Users", "/root", "wsl")
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
        self._pattern = re.compile(rf"{_BEFORE}(?:{whole}{_OF_USERS}{_NAME})")

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
            return self._pattern.sub(self._new, value)
        if isinstance(value, dict):
            return {self.replace(key): self.replace(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.replace(item) for item in value]
        return value

    def _new(self, found: re.Match[str]) -> str:
        known = found["known"]
        return (found["option"] or "") + (self._known[known] if known else _USER)
