"""The catalogue of patterns: a file of this folder is a value of `traffic.pattern`."""
