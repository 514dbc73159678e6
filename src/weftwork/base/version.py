"""The version of Weftwork: the one place that states it. The build (pyproject.toml, CMakeLists.txt) reads this line."""

VERSION = "0.1.0"
