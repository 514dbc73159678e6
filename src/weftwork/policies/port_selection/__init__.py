"""Port selections: one choice per file."""
