"""Fitting Weftwork's few constants on measurements of a user's own."""
