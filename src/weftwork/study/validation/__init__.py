"""Predictions against published measurements.

It has published rows as scenarios, errors, the scorecard and its page.
"""
