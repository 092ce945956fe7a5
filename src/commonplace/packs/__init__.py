"""Packs: chosen records in one encrypted file, which another home can import."""
