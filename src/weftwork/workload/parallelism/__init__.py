"""How a model is spread over GPUs: groups of ranks."""
