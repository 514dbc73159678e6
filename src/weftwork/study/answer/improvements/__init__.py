"""Improvements that one can buy: each file offers one as its constant ``IMPROVEMENT``.

A new file is a new row of the table ``what_if``, with no other edit.
"""
