"""Charts of a page as SVG and HTML text.

One file has one kind of chart.
"""
