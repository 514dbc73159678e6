"""From what an engine gave back to tables, a summary and comparisons."""
