"""The graph of nodes: what lights up for a question, and the context that is made of it."""
