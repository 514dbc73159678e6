"""Floor 2: bytes to records and back, no I/O."""
