"""Patterns of traffic, one file each: parameters to `weft.spec.job.Job`."""
