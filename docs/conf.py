"""Sphinx: MyST pages in the furo theme. Built by `.ci/run docs`, where a warning is an error."""

from weft.base.version import VERSION

project = "Weft"
author = "The Weft authors"
project_copyright = "the Weft authors"
version = release = VERSION

extensions = ["myst_parser", "sphinx.ext.mathjax"]
myst_enable_extensions = ["deflist", "dollarmath"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"Weft {VERSION}"
