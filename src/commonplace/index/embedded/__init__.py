"""The engine that lives in the home's own folder: SQLite for the facts, Tantivy for the words, NumPy for the vectors."""
