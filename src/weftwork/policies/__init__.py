"""Floor 2: policies, one file each.

Steps of congestion control, path and port selection; schemes of central engineering.
"""
