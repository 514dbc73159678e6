"""Floor 0: units, time, errors and randomness; no knowledge of networks."""
