"""The reference engine: a plain event-heap simulator that gives the packet engine its meaning, part by part."""
