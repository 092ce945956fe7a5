"""The log files: append, read, rotate, check. No other package writes to them.

Import the modules one by one: appending a line should not load rotation or repair.
"""
