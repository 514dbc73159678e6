"""A sweep: the best values of keys, and whether they are clearly better.

Points are from a grid, lists, zipped keys or random samples.
"""
