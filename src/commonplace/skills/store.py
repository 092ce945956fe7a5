"""The skills of homes: list, read, find and create them.

A skill of a home that the user does not trust is listed with a mark, and is never used by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from commonplace.characters import remove_hidden
from commonplace.errors import SkillNotFound, SkillRefused, unusable
from commonplace.files import atomic
from commonplace.files.lock import hold
from commonplace.files.plain import read_small
from commonplace.index.terms import query_terms, term_set
from commonplace.notes import NOTE_BYTES_MAX
from commonplace.records import check_repo_name
from commonplace.redaction.text import redact_text
from commonplace.skills.format import describe, why_no_name
from commonplace.where import homes
from commonplace.where.home import SKILL_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from commonplace.recaller import Recaller
    from commonplace.where.home import Home

# What a word of the question counts where it is found.
_IN_NAME, _IN_DESCRIPTION, _IN_TEXT = 4.0, 2.0, 1.0
# A skill that shares less than this share of the question's words is not about it.
_SHARE_MIN = 0.25


class Skill(NamedTuple):
    """A skill of a home. Its name is that of its folder."""

    name: str
    title: str
    description: str
    text: str
    path: Path
    trusted: bool


def of_homes(memory: Recaller, *, untrusted: bool = True) -> list[Skill]:
    """Return the skills of all homes by name; of one name, that of the nearest trusted home."""
    by_trust = sorted(memory.homes, key=lambda home: not memory.trusts(home))
    found: dict[str, Skill] = {}
    for home in by_trust:
        if untrusted or memory.trusts(home):
            for name in _names(home):
                found.setdefault(name, _read(home, name, trusted=memory.trusts(home)))
    return [found[name] for name in sorted(found)]


def read(memory: Recaller, name: str) -> Skill:
    """Return the skill called *name*, also of a home that is not trusted."""
    by_trust = sorted(memory.homes, key=lambda home: not memory.trusts(home))
    for home in by_trust:
        if name in _names(home):
            return _read(home, name, trusted=memory.trusts(home))
    raise SkillNotFound(name)


def _names(home: Home) -> list[str]:
    """Return the names of the skills in *home*; a link is none."""
    try:
        folders = list(home.skills_folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise unusable(home.skills_folder, error) from error
    return [
        folder.name
        for folder in folders
        if not folder.name.startswith(".")
        and not folder.is_symlink()
        and not home.skill(folder.name).is_symlink()
        and home.skill(folder.name).is_file()
    ]


def _read(home: Home, name: str, *, trusted: bool) -> Skill:
    path = home.skill(name)
    try:
        text = read_small(path, SKILL_BYTES_MAX).decode("utf-8", "replace")
    except OSError as error:
        raise unusable(path, error) from error
    title, description = describe(text)
    return Skill(name, title, description, text, path, trusted)


def find(skills: Sequence[Skill], text: str, limit: int = 5) -> list[tuple[Skill, float]]:
    """Return the skills that share words with *text*, best first, each with its score from 0 to 1.

    A word counts more in the name or the description than in the text.
    """
    wanted = query_terms(text)
    total = sum(wanted.values())
    scored: list[tuple[Skill, float]] = []
    for skill in skills:
        weights = dict.fromkeys(term_set(skill.text), _IN_TEXT)
        weights |= dict.fromkeys(term_set(f"{skill.title} {skill.description}"), _IN_DESCRIPTION)
        weights |= dict.fromkeys(term_set(skill.name.replace("-", " ")), _IN_NAME)
        shared = {term: weight for term, weight in wanted.items() if term in weights}
        if total and sum(shared.values()) >= _SHARE_MIN * total:
            score = sum(weight * weights[term] for term, weight in shared.items())
            scored.append((skill, score / (total * _IN_NAME)))
    return sorted(scored, key=lambda one: (-one[1], one[0].name))[:limit]


def create(home: Home, name: str, text: str, *, overwrite: bool = False) -> Path:
    """Write the skill *name* with *text*, redacted, and return its file.

    Raises `SkillRefused` for a name or text that is not allowed, and if there is such a skill,
    unless it is to *overwrite*.
    """
    _check_name(name)
    if "\x00" in text:
        raise SkillRefused(name, "would hold a NUL character", "skills are text")
    try:
        raw = redact_text(remove_hidden(text))[0].encode("utf-8")
    except UnicodeEncodeError:
        raise SkillRefused(name, "would not be valid UTF-8", "skills are text") from None
    if not raw.strip():
        raise SkillRefused(name, "would be empty", "give it a text")
    if len(raw) > NOTE_BYTES_MAX:
        raise SkillRefused(
            name,
            f"would have {len(raw):,} bytes, over {NOTE_BYTES_MAX:,}",
            "an agent reads a skill whole: split it",
        )
    homes.make(home)
    path = home.skill(name)
    with hold(home.skills_lock):
        # A file of any kind there is somebody's, and a link is not followed.
        if path.is_symlink() or path.parent.is_symlink() or (path.exists() and not path.is_file()):
            raise SkillRefused(name, "is a link or no file, which is left alone", "choose another")
        if path.is_file() and not overwrite:
            raise SkillRefused(
                name,
                "is there already",
                f"`commonplace skill show {name}` shows it; `--force` replaces it",
            )
        atomic.replace(path, [raw])
    return path


def _check_name(name: str) -> None:
    if reason := why_no_name(name):
        raise SkillRefused(name, f"has a name that {reason}")
    try:
        check_repo_name(name)
    except ValueError as error:
        raise SkillRefused(name, f"has a name that {error}") from None
    if kinds := redact_text(name)[1]:
        raise SkillRefused("…", f"has a secret in its name ({kinds[0]})", "choose another name")
