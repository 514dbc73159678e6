"""A sweep: which value of which key, over a grid, lists, zipped keys or random samples, and whether it is clear."""
