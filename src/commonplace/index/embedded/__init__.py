"""The index in the home's own folder: SQLite for facts, Tantivy for words, NumPy for vectors."""
