"""Kinds of faults: one file each, found by this folder.

Each file offers ``FAULT``, a `weftwork.spec.fault_kind.FaultKind`.
"""
