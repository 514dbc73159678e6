"""Floor 3: topologies, one file each, that build a spec.Fabric from parameters."""
