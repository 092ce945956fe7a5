"""Setting up: the agents' own settings files, edited so that everything else in them stays byte for byte.

`plan.py` says what would change and does it; `agents.py` is the table of who gets what where; `edits.py` has the kinds
of edits, over `jsonc.py` (JSON with comments) and `marked.py` (a section between markers); `launch.py` is how our
programs are called.
"""
