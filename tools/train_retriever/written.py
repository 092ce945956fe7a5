"""Pairs that were written for this: questions as people ask them, in other words than the answers. `texts/` has them.

The pairs of packages are in the words of documents. These were written one by one, by a language model, and are published with the
project. A group is what belongs together: the turns of a conversation, the memories of a project, the parts of a note. Its texts are
about the same things, so they are hard negatives of each other.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commonplace.index.vector_passages import texts_to_embed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

FOLDER = Path(__file__).parent / "texts"
HELD_OUT_ONE_IN = 10
# Errors and asked passages are independent of each other; so many of one kind are a group.
OF_A_GROUP = 40


@dataclass
class Group:
    kind: str
    name: str
    pairs: list[tuple[str, str]] = field(default_factory=list)
    # Texts of the group that nothing asks for.
    others: list[str] = field(default_factory=list)


def is_held_out(name: str) -> bool:
    """Whether the group is measured with instead of trained on; all groups of one origin are, or none."""
    return zlib.crc32(name.partition("#")[0].encode()) % HELD_OUT_ONE_IN == 0


def read_groups(answers: Mapping[str, str], folder: Path = FOLDER) -> list[Group]:
    """All groups below *folder*; *answers* has the texts of packages that were asked about, by their digests."""
    found = []
    for path in sorted(folder.glob("*.jsonl")):
        kind = path.stem.partition("-")[0]
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        if kind == "asked":
            rows = [{**row, "text": answers.get(row["digest"], "")} for row in rows]
        found += [group for group in _READERS[kind](path.stem, rows) if group.pairs]
    return found


def digest_of(text: str) -> str:
    """What names a text of a package, so that the text itself need not be here."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _talk(name: str, sessions: list[dict[str, Any]]) -> Iterator[Group]:
    for number, session in enumerate(sessions):
        turns = [f"{speaker}: {text}" for speaker, text in session["turns"]]
        # A memory of a conversation may be a turn alone, with its date, or with the one beside it.
        forms = (
            turns,
            [f"[{session['date']}] {turn}" for turn in turns],
            ["\n".join(turns[at - at % 2 : at - at % 2 + 2]) for at in range(len(turns))],
        )
        for form_number, form in enumerate(forms):
            group = Group("talk", f"{name} {session['group']}#{number} {form_number}")
            for question in session["questions"]:
                places = question["turn"]
                for at in places if isinstance(places, list) else [places]:
                    group.pairs.append((question["ask"], form[at]))
            answers = {text for _ask, text in group.pairs}
            group.others = [text for text in dict.fromkeys(form) if text not in answers]
            yield group


def _memory(name: str, projects: list[dict[str, Any]]) -> Iterator[Group]:
    for number, project in enumerate(projects):
        yield Group(
            "memory",
            f"{name} {project['group']}#{number}",
            [(ask, one["text"]) for one in project["memories"] for ask in one["ask"]],
        )


def _errors(name: str, rows: list[dict[str, Any]]) -> Iterator[Group]:
    for start in range(0, len(rows), OF_A_GROUP):
        some = rows[start : start + OF_A_GROUP]
        yield Group(
            "errors",
            f"{name} {start}",
            [(ask, one["answer"]) for one in some for ask in (one["message"], one["ask"])],
            [near for one in some for near in one["near"]],
        )


def _notes(name: str, rows: list[dict[str, Any]]) -> Iterator[Group]:
    for start in range(0, len(rows), 8):
        group = Group("notes", f"{name} {start}")
        for row in rows[start : start + 8]:
            passages = texts_to_embed("", row["note"])
            right = set()
            for question in row["ask"]:
                place = _place_of(question["quote"], passages)
                if place is not None:
                    group.pairs.append((question["ask"], passages[place]))
                    right.add(place)
            group.others += [text for at, text in enumerate(passages) if at not in right]
        yield group


def _place_of(quote: str, passages: list[str]) -> int | None:
    wanted = _letters(quote)
    return next((at for at, text in enumerate(passages) if wanted in _letters(text)), None)


def _letters(text: str) -> str:
    return "".join(c for c in text.lower() if c.isalnum())


def _asked(name: str, rows: list[dict[str, Any]]) -> Iterator[Group]:
    found = [row for row in rows if row["text"]]
    for start in range(0, len(found), OF_A_GROUP):
        yield Group(
            "asked",
            f"{name} {start}",
            [(ask, row["text"]) for row in found[start : start + OF_A_GROUP] for ask in row["ask"]],
        )


_READERS: dict[str, Callable[[str, list[dict[str, Any]]], Iterator[Group]]] = {
    "talk": _talk,
    "memory": _memory,
    "errors": _errors,
    "notes": _notes,
    "asked": _asked,
}
