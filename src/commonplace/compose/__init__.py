"""Compose: what an agent reads, cut to a bound in tokens. Recalled text is data: dated, attributed, never orders."""
