"""Find the repository of a folder, the homes that apply there, and the files of a home."""
