"""Spread of a model over GPUs: groups of ranks."""
