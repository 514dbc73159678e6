"""Collective operations: a call and an algorithm to the programs of `weft.spec.job`."""
