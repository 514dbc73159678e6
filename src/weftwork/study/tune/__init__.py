"""Tuning: the best values of a scenario's parameters for an objective.

Fresh seeds show whether they are more than luck.
"""
