"""Floor 5: tables and figures from the store."""
