"""Records between Python and the native core, each declared once.

A module is a family of records. From its declarations come the NumPy dtypes, the C++ structs with their description
(`native/rows`, written by ``python -m weftwork.engine.rows``), and the reading of settings by name.
"""
