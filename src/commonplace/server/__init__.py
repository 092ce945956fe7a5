"""The server: the memory as tools of the Model Context Protocol, for any agent that supports it."""
