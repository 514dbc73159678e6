"""The pool of resumable runs on all cores.

Points of scenarios become run folders, for sweeps, tuning and design.
"""
