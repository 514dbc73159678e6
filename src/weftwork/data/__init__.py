"""Floor 2: other people's measurements, with source and licence."""
