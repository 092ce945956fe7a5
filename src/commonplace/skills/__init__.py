"""Skills: procedures, each a folder `skills/<name>/` of a home with a `SKILL.md` in it.

`format.py` reads, checks and writes the text; `store.py` keeps the files of homes; `export.py`
writes them where agents look for skills; `proposals.py` finds what agents do again and again, and
`wording.py` says what several episodes have in common.
"""

from commonplace.skills.format import (
    DESCRIPTION_CHARS_MAX,
    Finding,
    check,
    steps_of,
    template,
    why_no_name,
    with_description,
)
from commonplace.skills.store import Skill, create, find, of_homes, read

__all__ = [
    "DESCRIPTION_CHARS_MAX",
    "Finding",
    "Skill",
    "check",
    "create",
    "find",
    "of_homes",
    "read",
    "steps_of",
    "template",
    "why_no_name",
    "with_description",
]
