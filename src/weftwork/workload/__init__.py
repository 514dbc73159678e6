"""Floor 3: workloads, from job descriptions to spec.Job."""
