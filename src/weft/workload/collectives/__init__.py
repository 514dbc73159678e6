"""Collective operations, one file each: parameters to `weft.spec.job.Job`."""
