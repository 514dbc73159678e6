"""Floor 3: job descriptions to spec.Job."""
