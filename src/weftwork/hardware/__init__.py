"""Floor 2: facts about devices, each with its source."""
