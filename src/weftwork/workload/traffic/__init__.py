"""Patterns of traffic, one file each: parameters to `weftwork.spec.job.Job`."""
