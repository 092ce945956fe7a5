"""Redaction: what must never be written is taken out before anything is."""
