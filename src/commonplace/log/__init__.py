"""The log: append, read, rotate, check. The only writer of the truth.

The modules are imported where they are used, so that appending a line loads nothing of rotation or repair.
"""
