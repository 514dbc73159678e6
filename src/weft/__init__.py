"""Weft plans, simulates and operates the network that trains large models."""
