"""Predictions against what others measured: published rows as scenarios, errors, the scorecard and its page."""
