"""Write skills where agents look for them, such as `.claude/skills/` or `.agents/skills/`.

An exported `SKILL.md` is always valid, and says by a digest in its metadata what was exported. So
a later export replaces what nobody has changed, and leaves alone what somebody has.
"""

from __future__ import annotations

import os
import re
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from commonplace.errors import FolderRefused, HomeUnusable, SkillRefused
from commonplace.files import atomic
from commonplace.files.plain import read_named, read_small
from commonplace.files.walk import walk
from commonplace.index.document import without_placeholders
from commonplace.redaction.text import redact_text
from commonplace.skills.format import left_out_fields, valid_name, valid_text
from commonplace.skills.store import of_homes, read

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from commonplace.recaller import Recaller
    from commonplace.skills.store import Skill

FILE = "SKILL.md"
DIGEST = "commonplace-digest"
FILES_MAX = 200
DEPTH_MAX = 4
FILE_BYTES_MAX = 4 << 20
_DIGEST_LINE = re.compile(rf'^  {DIGEST}: "[0-9a-f]*"\n'.encode(), re.MULTILINE)


class Exported(NamedTuple):
    """What became of one skill: `written`, `unchanged`, or why it was `left`."""

    name: str
    path: Path
    result: str
    reason: str = ""
    left_out: Sequence[str] = ()  # Fields of its front matter that the format does not have.
    unfilled: bool = False  # Whether lines of the template were left out: nobody replaced them.


def choose(memory: Recaller, names: Sequence[str] = ()) -> list[Skill]:
    """Return the skills to export: all of trusted homes, or those of *names*.

    Raises if one of them is in a home that is not trusted: an agent would follow it.
    """
    if not names:
        return of_homes(memory, untrusted=False)
    found = [read(memory, name) for name in dict.fromkeys(names)]
    for skill in found:
        if not skill.trusted:
            raise SkillRefused(
                skill.name,
                "is in a home that is not trusted, and is not exported",
                "`commonplace trust` trusts that home, after you have read its skills",
            )
    return found


def export(skills: Sequence[Skill], folder: Path, *, force: bool = False) -> list[Exported]:
    """Write *skills* into *folder*, one folder each; with *force*, over what somebody changed."""
    target = folder.expanduser().absolute()
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise FolderRefused(target, "it is a symbolic link, or no folder")
    try:
        target = target.resolve()  # Of what is written below it, no part may be a link.
        done: list[Exported] = []
        for skill in skills:
            name = valid_name(skill.name)
            if any(one.name == name for one in done):
                reason = f"another skill is exported as `{name}`: rename one of them"
                done.append(Exported(skill.name, target / name, "left", reason))
            else:
                done.append(_export(skill, name, target / name, force=force))
    except (OSError, HomeUnusable) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        why = f"`{cause.filename}`: {cause.strerror}" if isinstance(cause, OSError) else str(error)
        raise FolderRefused(target, why) from error
    return done


def _export(skill: Skill, name: str, folder: Path, *, force: bool) -> Exported:
    files = _files_of(skill)
    found = _there(folder)
    done = Exported(
        name,
        folder / FILE,
        "written",
        left_out=left_out_fields(skill.text),
        unfilled=without_placeholders(skill.text) != skill.text,
    )
    if found == files:
        return done._replace(result="unchanged")
    is_ours = not found or _digest(found) == _named_digest(found.get(FILE, b""))
    if not is_ours and not force:
        reason = "somebody changed it there; `--force` replaces it"
        return done._replace(result="left", reason=reason)
    # `SKILL.md` comes last: until then the folder has the old digest, or none.
    for path in sorted(files, key=lambda path: path == FILE):
        mode = 0o700 if _is_executable(skill.path.parent / path) else 0o600
        atomic.write(folder / path, [files[path]], mode=mode)
    if is_ours:
        for path in found.keys() - files.keys():
            (folder / path).unlink()
    return done


def _files_of(skill: Skill) -> dict[str, bytes]:
    """Return the files of an exported skill by their paths: `SKILL.md`, and those beside it."""
    files = _below(skill.path.parent)
    text = without_placeholders(redact_text(skill.text)[0])
    files[FILE] = valid_text(skill.name, text, {DIGEST: ""}).encode("utf-8", "replace")
    files[FILE] = valid_text(skill.name, text, {DIGEST: _digest(files)}).encode("utf-8", "replace")
    return files


def _below(folder: Path) -> dict[str, bytes]:
    """Return the files beside a `SKILL.md`, redacted if they are texts. Links are left out."""
    found: dict[str, bytes] = {}
    for path in walk(folder, depth_max=DEPTH_MAX, skip_deeper=True):
        name = path.relative_to(folder).as_posix()
        is_hidden = any(part.startswith(".") for part in name.split("/"))
        if name == FILE or is_hidden or path.is_symlink() or not path.is_file():
            continue
        if len(found) >= FILES_MAX:
            raise SkillRefused(
                folder.name, f"has over {FILES_MAX} files", "move what agents do not need out of it"
            )
        raw = read_small(path, FILE_BYTES_MAX)
        try:
            found[name] = redact_text(raw.decode("utf-8"))[0].encode("utf-8")
        except UnicodeDecodeError:
            found[name] = raw  # A picture or a program.
    return found


def _there(folder: Path) -> dict[str, bytes]:
    """Return the files at the place of an export, as they are."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise OSError(None, "it is a symbolic link, or no folder", str(folder))
    return {
        path.relative_to(folder).as_posix(): read_named(path, FILE_BYTES_MAX)
        for path in walk(folder, depth_max=DEPTH_MAX, skip_deeper=True)
        if path.is_file()
    }


def _digest(files: Mapping[str, bytes]) -> str:
    """Return the digest of *files*, without the one that the `SKILL.md` among them names."""
    digest = blake2b(digest_size=12)
    for path in sorted(files):
        content = _DIGEST_LINE.sub(b"", files[path]) if path == FILE else files[path]
        digest.update(f"{path}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def _named_digest(raw: bytes) -> str:
    found = _DIGEST_LINE.search(raw)
    return found[0].decode().partition('"')[2].partition('"')[0] if found else ""


def _is_executable(path: Path) -> bool:
    return os.access(path, os.X_OK)
