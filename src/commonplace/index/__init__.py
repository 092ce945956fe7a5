"""The index: derived from the logs, notes and skills; delete it any time. Catching up equals rebuilding."""
