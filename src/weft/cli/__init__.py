"""Floor 6: one file per command."""
