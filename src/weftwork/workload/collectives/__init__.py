"""Collective operations: from calls and algorithms to programs of jobs.

The programs are those of `weftwork.spec.job`.
"""
