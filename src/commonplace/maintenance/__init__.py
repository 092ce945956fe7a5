"""Maintenance: the work that keeps a home small and complete, which appending never does itself.

Every step is a function with a name in one table (`steps.py`); one runner takes them in order,
under one lock for each home (`runner.py`). `commonplace maintain`, an idle server and the end of a
session run them (`due.py`).
"""
