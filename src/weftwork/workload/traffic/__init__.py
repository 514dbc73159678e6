"""Traffic between hosts: patterns, each a file that makes a `weftwork.spec.job.Job`, and what they share."""
