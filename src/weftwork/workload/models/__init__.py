"""Models by name or from a Hugging Face configuration, and how large they are."""
