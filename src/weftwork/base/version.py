"""The version of Weftwork, stated only here.

The build (pyproject.toml, CMakeLists.txt) reads the line below.
"""

VERSION = "0.1.0"
