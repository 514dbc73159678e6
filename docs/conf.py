"""Sphinx: MyST pages in the furo theme. Built by `.ci/run docs`, where a warning is an error.

Pages have the outputs of their commands and the tables of the program's rows in the repository; `outputs.py` writes and
checks them, and `_ext/weftwork_pages.py` shows them. Notebooks run in each build (`notebooks`, by myst-nb), and so do
the commands that write HTML pages for frames. So the build needs Weftwork installed. Neither the build nor a page
loads anything from the network.
"""

import sys
from pathlib import Path

from weftwork.base.version import VERSION

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "Weftwork"
author = "The Weftwork authors"
project_copyright = "the Weftwork authors"
version = release = VERSION

extensions = [
    "built_pages", "mathml", "myst_nb", "narrow_pages", "rest_of_folder", "themed_pictures", "weftwork_pages",
]  # fmt: skip
myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "force"  # notebooks run in each build, as commands of pages do
nb_execution_in_temp = True
nb_execution_show_tb = True  # of a cell that fails; the failure itself is a warning
nb_execution_timeout = 300  # chosen: seconds; ten times what a cell takes on a busy machine
nb_merge_streams = True
nb_output_stderr = "remove-warn"  # what a cell says on standard error is a warning
exclude_patterns = ["_build"]
nitpicky = True  # a reference that leads nowhere is a warning
html_theme = "furo"
html_title = f"Weftwork {VERSION}"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["weftwork.css"]
html_js_files = ["frames.js"]
html_favicon = "_static/mark.svg"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_logo": "logo-light.svg",
    "dark_logo": "logo-dark.svg",
    "sidebar_hide_name": True,
    "navigation_with_keys": True,
    "light_css_variables": {
        "color-brand-primary": "#0b5a6b",
        "color-brand-content": "#0b5a6b",
        "color-brand-visited": "#5b4a86",
        "color-accent": "#b35c05",
        "color-sidebar-background": "#f6f8f8",
    },
    "dark_css_variables": {
        "color-brand-primary": "#6cc7d8",
        "color-brand-content": "#6cc7d8",
        "color-brand-visited": "#b7a6e6",
        "color-accent": "#f2a33a",
        "color-sidebar-background": "#16191a",
    },
}
pygments_style = "github-light"  # both come with furo, and have enough contrast on its backgrounds
pygments_dark_style = "github-dark"
