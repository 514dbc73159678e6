"""Floor 2: write-once run folders, read by query."""
