"""The catalogue of collective algorithms, one file each.

Nothing registers itself.
"""
