"""Which fabric to build.

It has all candidates, their costs, the time of an iteration, and why losers lose.
"""
