"""From a scenario to all parts of a run."""
