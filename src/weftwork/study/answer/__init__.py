"""The answer of a run: its time, its limit, and its culprit.

The rules are in docs/models/answer.md.
"""
