"""Floor 5: the only place that puts the parts together."""
