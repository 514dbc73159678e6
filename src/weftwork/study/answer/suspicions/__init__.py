"""Kinds of suspects: each file offers one as its constant ``SUSPICION``.

A new file is a new kind, with no other edit. Files whose names begin with an underscore are shared by several kinds.
"""
