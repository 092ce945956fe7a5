"""Snapshots: what the logs of a home held at a moment, kept as objects that are named by a hash."""
