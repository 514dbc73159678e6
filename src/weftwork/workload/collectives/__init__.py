"""Collective operations: a call and an algorithm to the programs of `weftwork.spec.job`."""
