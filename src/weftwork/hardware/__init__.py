"""Floor 2: caveats about devices, each with its source."""
