"""From the output of an engine to tables, a summary and comparisons."""
