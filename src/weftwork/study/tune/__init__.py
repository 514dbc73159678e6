"""Tuning: which values of the parameters of a scenario serve an objective best, and whether that is more than luck."""
