"""Records: every kind as a typed value; a line to a record and back; ids, names, times and rates.

Only the standard library is imported here: every hook and `commonplace log` load this package
(docs/decisions/0002-records-without-msgspec.md).
"""

from commonplace.records.fields import TAGS_MAX
from commonplace.records.ids import (
    ID_CHARS_MAX,
    check_id,
    id_in_repo,
    keyed_id,
    make_id,
    make_key,
    slug,
)
from commonplace.records.json_text import (
    DEPTH_MAX,
    LINE_READ_BYTES_MAX,
    check_depth,
    decode,
    encode,
)
from commonplace.records.kinds import (
    KINDS,
    AntiPattern,
    Context,
    Episode,
    Feedback,
    Forget,
    Handoff,
    Ledger,
    Lesson,
    Link,
    LinkRecord,
    Node,
    Pattern,
    Record,
)
from commonplace.records.lines import fill_identity, from_line, make, to_line
from commonplace.records.names import REPO_BYTES_MAX, check_repo_name
from commonplace.records.rates import Rate, parse_rate
from commonplace.records.times import micros, to_utc
from commonplace.vocabulary import EVENT_TYPES, OUTCOMES, RELATIONS

__all__ = [
    "DEPTH_MAX",
    "EVENT_TYPES",
    "ID_CHARS_MAX",
    "KINDS",
    "LINE_READ_BYTES_MAX",
    "OUTCOMES",
    "RELATIONS",
    "REPO_BYTES_MAX",
    "TAGS_MAX",
    "AntiPattern",
    "Context",
    "Episode",
    "Feedback",
    "Forget",
    "Handoff",
    "Ledger",
    "Lesson",
    "Link",
    "LinkRecord",
    "Node",
    "Pattern",
    "Rate",
    "Record",
    "check_depth",
    "check_id",
    "check_repo_name",
    "decode",
    "encode",
    "fill_identity",
    "from_line",
    "id_in_repo",
    "keyed_id",
    "make",
    "make_id",
    "make_key",
    "micros",
    "parse_rate",
    "slug",
    "to_line",
    "to_utc",
]
