"""Congestion controls: one choice per file."""
