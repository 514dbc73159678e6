"""Charts of a page as SVG and HTML text; one file per kind of chart."""
