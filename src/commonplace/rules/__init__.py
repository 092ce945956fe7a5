"""The rules: one meaning of "current", "hidden", "success rate" and "how many".

Pure functions over lines. The log's fold, the index, session start, import, export and the counts
all ask here, so that they cannot disagree:

- A later line with the same id replaces the earlier one. Within one log the later line is the one
  further down; between two logs, which have no common order, it is the one with the later time:
  `meta.edited` of an edit, else the timestamp.
- A record is hidden when it was forgotten and not written again since, when it rests on something
  forgotten (it was derived from it, or is feedback or a link about it), when another record
  supersedes it, or when it is another agent's note.
- The success rate is what the record states plus its feedback; each feedback id counts once.
- Feedback, links and forgetting are statements about records. They are not counted as records.
"""

from commonplace.rules.feedback import (
    MERGED_RATE,
    NO_FEEDBACK,
    Tally,
    add_feedback,
    is_doubted,
    rate,
    stated_rate,
    tally,
)
from commonplace.rules.fold import Fold, FoldedLine
from commonplace.rules.order import Stamp, is_after, newest, written_micros
from commonplace.rules.several import SeveralHomes
from commonplace.rules.standing import (
    Facts,
    Standing,
    Standings,
    Support,
    find_forgotten,
    is_forgotten,
    is_gone,
    is_private,
    spread,
    standings,
)
from commonplace.rules.statements import (
    DECIDING,
    HAS_CHILD,
    Edge,
    edges,
    is_statement,
    one_side,
    subjects,
)

__all__ = [
    "DECIDING",
    "HAS_CHILD",
    "MERGED_RATE",
    "NO_FEEDBACK",
    "Edge",
    "Facts",
    "Fold",
    "FoldedLine",
    "SeveralHomes",
    "Stamp",
    "Standing",
    "Standings",
    "Support",
    "Tally",
    "add_feedback",
    "edges",
    "find_forgotten",
    "is_after",
    "is_doubted",
    "is_forgotten",
    "is_gone",
    "is_private",
    "is_statement",
    "newest",
    "one_side",
    "rate",
    "spread",
    "standings",
    "stated_rate",
    "subjects",
    "tally",
    "written_micros",
]
