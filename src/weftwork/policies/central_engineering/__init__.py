"""Central traffic engineering: how a controller lays down paths; one file, one scheme."""
