"""Running prepared scenarios: once, over seeds, over sizes, with interrupts."""
