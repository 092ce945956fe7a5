"""A whole home to another place: a backup in one file, or git."""
