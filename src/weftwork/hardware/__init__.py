"""Floor 2: catalogues of devices and prices, each figure with its source."""
