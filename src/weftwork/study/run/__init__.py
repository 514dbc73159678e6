"""Running what was prepared: once, with several seeds, over sizes of a collective, and stopping in between."""
