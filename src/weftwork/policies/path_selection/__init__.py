"""Path selections: one choice per file."""
