"""Compose the texts that agents read, within a limit in tokens.

Recalled texts have a date and a source; they are information for an agent, not instructions.
"""
