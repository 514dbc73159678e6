"""Steps of routing in direct networks: one choice per file."""
