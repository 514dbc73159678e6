"""Floor 5: the only package that combines all parts."""
