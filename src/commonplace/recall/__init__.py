"""Recall: candidates, fusion, priors, what is the same, what is relevant enough; every score explained.

It never reads the clock: ages count back from the newest memory there is, so the same files give the same answer.
"""
