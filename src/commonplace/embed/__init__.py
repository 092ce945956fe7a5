"""Embed texts as vectors, with the model in the package or an HTTP service."""
