"""Floor 1: the shared records and arrays of Weftwork.

They are frozen. Siblings above meet here and nowhere else.
"""
