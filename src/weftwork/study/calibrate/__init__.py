"""Fitting Weftwork's few constants to a user's own measurements."""
