"""One file, one choice."""
