"""Weft plans, simulates and operates the network that trains large models."""

from weft.base.version import VERSION

__all__ = ["__version__"]

__version__ = VERSION
