"""Replace paths of this machine in texts that leave it: they name its user and help nobody else."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

# The folders of users on Linux, macOS and Windows, whoever they are.
_OF_USERS = r"(?:/home/|/Users/|/root(?=/)|\b[A-Za-z]:[\\/]+Users[\\/]+)"
_NAME = r"[^\s/\\:\"'`<>|*?,;()\[\]{}]*"
_USER = "~"
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
        named = "|".join(re.escape(path) + r"(?![\w-])" for path in longest)
        whole = f"(?P<known>{named})|" if named else "(?P<known>(?!))|"
        self._pattern = re.compile(rf"(?<![\w.~])(?:{whole}{_OF_USERS}{_NAME})")

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
