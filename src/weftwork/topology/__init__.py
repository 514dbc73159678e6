"""Floor 3: parameters to spec.Fabric, one file each."""
