"""Access to the disk: atomic writes, file locks, and opening only plain files."""
