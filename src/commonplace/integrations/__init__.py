"""Integrations: the memory behind the interfaces of other frameworks, each an extra.

Importing this package imports none of them; each module imports its own, and says which extra brings it.
"""
