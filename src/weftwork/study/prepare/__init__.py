"""From a scenario to everything that a run is made of."""
