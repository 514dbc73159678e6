"""Floor 4: run a job on a fabric."""
