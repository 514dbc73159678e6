"""Floor 2: one file each: steps of congestion control, path and port selection; schemes of central engineering."""
