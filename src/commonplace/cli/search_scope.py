"""Which logs a question is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.errors import UsageError

if TYPE_CHECKING:
    from commonplace.where.repository import Repository


def logs_of(here: Repository) -> list[str]:
    """The logs of this repository: under its own name, and under the plain one that scripts use."""
    return list(dict.fromkeys((here.name, here.short)))


def logs_to_search(here: Repository, repo: str | None, *, all_repos: bool) -> list[str] | None:
    """The log that was named, else those of this repository; `None` stands for all logs."""
    if all_repos:
        if repo is not None:
            raise UsageError("`--repo` and `--all-repos` exclude each other", "give one of them")
        return None
    return logs_of(here) if repo is None else [repo]
