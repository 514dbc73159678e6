"""Models by name or Hugging Face configuration, and their sizes."""
