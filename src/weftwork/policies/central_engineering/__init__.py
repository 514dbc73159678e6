"""Central traffic engineering: one scheme per file.

A scheme says how a controller lays down paths.
"""
