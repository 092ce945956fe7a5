"""Integrations: the memory behind the interfaces of other frameworks, each an extra.

Importing this package imports none of them. Each module imports its framework, and names the extra
to install if that is missing.
"""
