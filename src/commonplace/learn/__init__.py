"""Learning: what the records of many tasks say together. No model, nothing invented, all undoable.

Every function takes a `Recaller` and writes through it; `Memory` offers them.
"""
