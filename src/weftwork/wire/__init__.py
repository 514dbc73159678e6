"""Floor 2: bytes to records and back, without I/O."""
