"""The pool of resumable runs: points of scenarios to run folders on all cores; for sweeps, tuning and design."""
