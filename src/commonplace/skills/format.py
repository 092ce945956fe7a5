"""A skill as text: the Agent Skills format, what of a text breaks it, and how to write a valid one.

A skill is a folder with a `SKILL.md`: front matter with at most six fields, then Markdown.
"""

from __future__ import annotations

import json
import re
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace import frontmatter
from commonplace.characters import remove_hidden
from commonplace.compose import tokens
from commonplace.index.document import SKILL_PLACEHOLDERS
from commonplace.records import slug

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NAME_CHARS_MAX = 64
DESCRIPTION_CHARS_MAX = 1024
COMPATIBILITY_CHARS_MAX = 500
LINES_MAX = 500
TOKENS_MAX = 5000
FIELDS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
# In `metadata`: the steps that a skill was proposed for, so that they are not proposed again.
STEPS = "commonplace-steps"
SECTIONS = ("Prerequisites", "Steps", "Common Errors & Fixes", "Exit Criteria")
# Of a text without a description, so many characters become one.
_DERIVED_CHARS_MAX = 300
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_FIELD = re.compile(r"^( *)([A-Za-z_][\w.-]*|\"[^\"\\]+\"|'[^']+') *:(?: +(.*)|)$")
_BLOCK = re.compile(r"^[|>][+-]?\d?$")
_DOUBLE = re.compile(r'"(?:[^"\\]|\\(?:["\\/nrt ]|x[0-9A-Fa-f]{2}|u[0-9A-Ca-c][0-9A-Fa-f]{3}))*"')
_SINGLE = re.compile(r"'(?:[^']|'')*'")
# A value that begins with one of these, or holds `: ` or ` #`, is no plain text in YAML.
_NOT_PLAIN = re.compile(r"^[-?:,\[\]{}#&*!|>'\"%@`=~<]|: |:$| #|\t")
_NOT_YAML = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Readers of YAML take these for something else than text.
_RESERVED = frozenset(["true", "false", "null", "yes", "no", "on", "off", "y", "n"])
_HEADING = re.compile(r"^#{1,6}\s+(.*)$")
_BULLET = re.compile(r"^(?:[-*+]|\d+[.)])\s+")


class Finding(NamedTuple):
    """What is wrong with a skill; without *is_error*, what could be better."""

    text: str
    is_error: bool = True


def why_no_name(name: str) -> str:
    """Return why *name* cannot be the name of a skill; "" if it can."""
    if not name:
        return "is empty"
    if len(name) > NAME_CHARS_MAX:
        return f"has {len(name)} characters, over {NAME_CHARS_MAX}"
    if not _NAME.fullmatch(name):
        return f"is `{name}`: only a-z, 0-9 and single hyphens between them are allowed"
    return ""


def check(folder: str, text: str) -> list[Finding]:
    """Return what is wrong with the text of the skill in *folder*, and what could be better."""
    fields, body = frontmatter.split(text)
    if fields is None:
        found = [Finding("has no front matter: `---`, `name`, `description`, `---` come first")]
    else:
        found = [Finding(reason) for reason in _wrong_fields(folder, fields, text)]
    headings = {title.casefold() for line in body.split("\n") if (title := _heading(line))}
    found += [
        Finding(f"has no section `## {section}`", is_error=False)
        for section in SECTIONS
        if section.casefold() not in headings
    ]
    if kept := [line for line in body.split("\n") if line.strip() in SKILL_PLACEHOLDERS]:
        told = ", ".join(f"`{line.strip()}`" for line in kept)
        found.append(Finding(f"has lines that are still the template's: {told}", is_error=False))
    if body.count("\n") >= LINES_MAX or tokens.count(body) > TOKENS_MAX:
        found.append(Finding(f"is over {LINES_MAX} lines or {TOKENS_MAX:,} tokens", is_error=False))
    return found


def _wrong_fields(folder: str, fields: Mapping[str, Any], text: str) -> Iterator[str]:
    yield from _wrong_yaml(text)
    for field in ("name", "description"):
        if not isinstance(fields.get(field), str) or not fields[field].strip():
            yield f"has no `{field}` in its front matter"
    name, description = (_as_text(fields.get(field)) for field in ("name", "description"))
    if name.strip():
        if reason := why_no_name(name):
            yield f"has a `name` that {reason}"
        if name != folder:
            yield f"has the `name` {name}, but its folder is `{folder}`"
    if len(description) > DESCRIPTION_CHARS_MAX:
        yield f"has a `description` of {len(description):,} characters, over 1,024"
    yield from _wrong_other_fields(fields)


def _wrong_other_fields(fields: Mapping[str, Any]) -> Iterator[str]:
    for unknown in sorted(fields.keys() - set(FIELDS)):
        yield f"has the field `{unknown}`, which is not one of {', '.join(FIELDS)}"
    for field in ("license", "compatibility", "allowed-tools"):
        if field in fields and not isinstance(fields[field], str):
            yield f"has a `{field}` that is no text"
    if len(str(fields.get("compatibility", ""))) > COMPATIBILITY_CHARS_MAX:
        yield f"has a `compatibility` of over {COMPATIBILITY_CHARS_MAX} characters"
    metadata = fields.get("metadata", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        yield "has a `metadata` that is no list of `name: text`"


def _wrong_yaml(text: str) -> Iterator[str]:
    """Yield what our reader takes and other readers of YAML refuse."""
    front = text[: len(text) - len(frontmatter.split(text)[1])].replace("\r\n", "\n")
    lines = front.rstrip("\n").split("\n")[1:]
    closing = next(at for at, line in enumerate(lines) if line.rstrip() in ("---", "..."))
    if lines[closing].rstrip() != "---" or any("---" in line for line in lines[:closing]):
        yield "has `---` inside its front matter, or does not end it with `---`"
    if _NOT_YAML.search(front):
        yield "has a character in its front matter that YAML does not allow"
    seen = set[str]()
    block_indent = -1
    for line in lines[:closing]:
        indent = len(line) - len(line.lstrip(" "))
        if not line.strip() or (block_indent >= 0 and indent > block_indent):
            continue
        block_indent = -1
        found = _FIELD.match(line)
        if found is None:
            yield f"has a line in its front matter that is no `name: value`: {line.strip()[:60]}"
            continue
        name, value = found[2].strip("\"'"), (found[3] or "").strip()
        if not indent and name in seen:
            yield f"has the field `{name}` twice"
        seen.add("" if indent else name)
        if _BLOCK.match(value):
            block_indent = indent
        elif value and not _is_scalar(value):
            yield f'has a `{name}` that needs quotes: `{name}: "…"`'


def _is_scalar(value: str) -> bool:
    if value[0] in "\"'":
        return bool((_DOUBLE if value[0] == '"' else _SINGLE).fullmatch(value))
    return not _NOT_PLAIN.search(value)


def describe(text: str) -> tuple[str, str]:
    """Return the title and the description of the skill *text*, with or without front matter."""
    fields, body = frontmatter.split(text)
    title, about = _title_and_start(body)
    given = (fields or {}).get("description")
    return title, " ".join(given.split()) if isinstance(given, str) and given.strip() else about


def _title_and_start(body: str) -> tuple[str, str]:
    """Return the title, and the title with the first lines after it, as a description."""
    lines = [line.strip() for line in remove_hidden(body).split("\n")]
    lines = [line for line in lines if line and not line.startswith(("```", "---"))]
    if not lines:
        return "", ""
    title = (_heading(lines[0]) or lines[0]).removeprefix("Skill:").strip() or lines[0]
    about = title
    for line in lines[1:]:
        heading = _heading(line)
        part = f"{heading}:" if heading else _BULLET.sub("", line)
        joint = " " if about.endswith((":", ".")) else "; " if not heading else ". "
        if len(about) + len(joint) + len(part) > _DERIVED_CHARS_MAX:
            break
        about += joint + part
    return title, about.rstrip(" :")


def _heading(line: str) -> str:
    found = _HEADING.match(line.strip())
    return found[1].strip() if found else ""


def valid_name(folder: str) -> str:
    """Return the name that a skill in *folder* has when it is exported."""
    if not why_no_name(folder):
        return folder
    digest = blake2b(folder.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return slug(folder, NAME_CHARS_MAX) or f"skill-{digest}"


def valid_text(folder: str, text: str, metadata: Mapping[str, str] | None = None) -> str:
    """Return *text* as a valid `SKILL.md`: the six fields, quoted where needed, and the body.

    What is missing is derived from the title and the first lines; other fields are left out.
    """
    fields, body = frontmatter.split(text)
    given = fields or {}
    name = valid_name(folder)
    about = _clean(describe(text)[1]) or name
    own = given.get("metadata")
    kept = {k: v for k, v in own.items() if isinstance(v, str)} if isinstance(own, dict) else {}
    chosen = {
        "name": name,
        "description": _cut(about, DESCRIPTION_CHARS_MAX),
        "license": _as_text(given.get("license")),
        "compatibility": _cut(_as_text(given.get("compatibility")), COMPATIBILITY_CHARS_MAX),
        "metadata": {**kept, **(metadata or {})},
        "allowed-tools": _as_text(given.get("allowed-tools")),
    }
    return "\n".join([*_front_lines(chosen), "", body.strip("\r\n"), ""])


def steps_of(text: str) -> str:
    """Return the steps that the skill was proposed for; "" if a person wrote it."""
    metadata = (frontmatter.split(text)[0] or {}).get("metadata")
    return _as_text(metadata.get(STEPS)) if isinstance(metadata, dict) else ""


def left_out_fields(text: str) -> list[str]:
    """Return the fields of the front matter that `valid_text` leaves out."""
    return sorted((frontmatter.split(text)[0] or {}).keys() - set(FIELDS))


def _front_lines(fields: Mapping[str, Any]) -> Iterator[str]:
    yield "---"
    for name, value in fields.items():
        if isinstance(value, dict):
            lines = [f"  {_key(key)}: {_quoted(text)}" for key, text in value.items()]
            yield from [f"{name}:", *lines] if lines else []
        elif value:
            yield f"{name}: {_plain_or_quoted(value) if name == 'name' else _quoted(value)}"
    yield "---"


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z_][\w.-]*", key, re.ASCII) else _quoted(key)


def _plain_or_quoted(name: str) -> str:
    is_plain = name[0].isalpha() and name not in _RESERVED
    return name if is_plain else _quoted(name)


def _quoted(text: str) -> str:
    return json.dumps(_clean(text), ensure_ascii=False)


def _clean(text: str) -> str:
    """Return *text* in one line, with only what every reader of front matter takes."""
    # A row of hyphens would end the front matter for a reader that looks for `---` alone.
    return re.sub("-{3,}", "—", _NOT_YAML.sub("", " ".join(remove_hidden(text).split())))


def _as_text(value: object) -> str:
    if isinstance(value, list):
        return " ".join(str(item) for item in value)
    return value if isinstance(value, str) else ""


def _cut(text: str, chars_max: int) -> str:
    return text if len(text) <= chars_max else text[: chars_max - 1].rstrip() + "…"


def template(name: str, description: str) -> str:
    """Return the text of a new skill, with the sections that every skill has."""
    title = name.replace("-", " ").capitalize()
    parts = [f"# Skill: {title}"]
    parts += [f"## {head}\n{line}" for head, line in zip(SECTIONS, SKILL_PLACEHOLDERS, strict=True)]
    return valid_text(name, f"---\ndescription: {_quoted(description)}\n---\n" + "\n\n".join(parts))


def with_description(name: str, text: str, description: str = "") -> str:
    """Return *text* as the valid skill *name*; *description* replaces the one it has."""
    if not description.strip():
        return valid_text(name, text)
    fields, body = frontmatter.split(text)
    front = {**(fields or {}), "description": _clean(description)}
    return valid_text(name, "\n".join([*_front_lines(front), body]))
