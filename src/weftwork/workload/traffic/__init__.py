"""Traffic between hosts: patterns and their common parts.

Each pattern is a file that makes a `weftwork.spec.job.Job`.
"""
