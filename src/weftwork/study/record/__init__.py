"""From a scenario to its run folder: the only place that puts a run, its results and its answer together."""
