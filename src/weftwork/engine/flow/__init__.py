"""The flow engine: bandwidth shared max-min among flows.

The native core does the work; this is its Python side.
"""
