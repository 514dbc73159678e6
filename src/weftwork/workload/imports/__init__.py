"""Training jobs written for other programs, read as keys of a scenario."""
