"""Redaction: secrets are removed before anything is written.

A secret becomes `[redacted:kind]`; text between `<private>` tags is removed without a trace.
Nothing here logs, stores or returns a secret. No regex is compiled at import, because hooks pay
for every millisecond.
"""

from commonplace.redaction.fields import Redaction, redact
from commonplace.redaction.names import name_kind
from commonplace.redaction.suspicion import may_hold_secret
from commonplace.redaction.text import redact_text

__all__ = ["Redaction", "may_hold_secret", "name_kind", "redact", "redact_text"]
