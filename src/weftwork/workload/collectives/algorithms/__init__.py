"""The catalogue of collective algorithms: one file each, and nothing registers itself."""
