"""Recall: candidates, fusion, priors, duplicates, relevance. Every score is explained.

It never reads the clock: ages are counted back from the newest memory, so the same files give the
same answer.
"""
