"""The index, derived from the logs, notes and skills. It can be deleted at any time.

Catching up gives the same index as rebuilding.
"""
