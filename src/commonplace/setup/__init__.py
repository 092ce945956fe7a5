"""Setup: editing the agents' own settings files so that every other byte in them stays.

What is written where is described in `agents/`. `plan.py` finds out what would change and changes
it; `edits.py` has one kind of edit for each kind of description, over `jsonc.py` (JSON with
comments) and `marked_section.py` (a section between markers); `launch.py` is how our programs are
called.
"""
