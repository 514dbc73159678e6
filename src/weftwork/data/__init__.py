"""Floor 2: published measurements, with source and licence."""
