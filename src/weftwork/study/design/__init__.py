"""Which fabric to build: every candidate, what it costs, how long an iteration takes on it, and why the losers lose."""
