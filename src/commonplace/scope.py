"""Which logs a question is about. Every surface asks here, so that all have the same default.

Without a repository named, it is the one of the working directory; if nothing in it is relevant,
the best memory of another one is shown. A server that all folders share knows no working directory,
and searches all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from commonplace.errors import UsageError
from commonplace.log import names
from commonplace.where.repository import ALL_REPOSITORIES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from commonplace.where.aliases import Aliases
    from commonplace.where.home import Home
    from commonplace.where.repository import Repository


class Searched(NamedTuple):
    """The logs to search, `None` for all, and whether another repository may stand in."""

    logs: list[str] | None
    elsewhere: bool = False


class Scope:
    """The scopes of questions that come from the repository *here*."""

    def __init__(
        self,
        homes: Sequence[Home],
        aliases: Aliases,
        here: Repository,
        repos_of_records: Callable[[], Collection[str]],
    ) -> None:
        self._homes = homes
        self._aliases = aliases
        self._here = here
        # Records may name a repository that has no log: lines that another program wrote.
        self._repos_of_records = repos_of_records

    def choose(self, repo: str | Iterable[str] | None, *, all_repos: bool) -> Searched:
        """Return what a question searches that names *repo*, or all repositories, or neither."""
        if repo is not None:
            if all_repos:
                raise UsageError("`repo` and `all_repos` exclude each other", "give one of them")
            given = [repo] if isinstance(repo, str) else repo
            return Searched([log for name in given for log in self.named(name)])
        if all_repos or not self._here.known:
            return Searched(None)
        return Searched(self.here(), elsewhere=True)

    def here(self) -> list[str]:
        """Return the logs of this repository: by its full name, older ones, and the plain one.

        What several repositories have taught is true in this one, too.
        """
        logs = self._aliases.names_of(self._here.name)
        return list(dict.fromkeys([*logs, self._here.short, ALL_REPOSITORIES]))

    def named(self, name: str) -> list[str]:
        """Return the logs of a repository, given by its whole, plain or older name.

        Raises `RepoUnknown` with a suggestion if there is none.
        """
        found = names.logs_to_read(self._homes, name)
        if not found and name in (self._here.name, self._here.short):
            return self.here()  # Nothing has been written yet.
        if not found and name not in self._repos_of_records():
            raise names.unknown(self._homes, name)
        return found or [name]
