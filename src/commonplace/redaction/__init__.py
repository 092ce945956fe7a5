"""Redaction: secrets are removed before anything is written.

A secret becomes `[redacted:kind]`; text between `<private>` tags is removed without a trace.
`suspicion.may_hold_secret` is the quick test, `text.redact_text` and `fields.redact` do the work.
Nothing here logs, stores or returns a secret. No regex is compiled at import, because hooks pay
for every millisecond.
"""
