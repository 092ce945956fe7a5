"""Embedding: texts as vectors. The protocol, the model in the package, an HTTP service, the background worker."""
