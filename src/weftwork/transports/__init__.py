"""Floor 3: transports, with one file for each.

A file has headers, recovery, ordering and defaults.
"""
