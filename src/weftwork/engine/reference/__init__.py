"""The reference engine: a plain event-heap simulator.

It gives the packet engine its meaning, part by part.
"""
