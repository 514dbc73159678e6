"""The catalogue of methods of NCCL that have a closed form, one file each.

Nothing registers itself.
"""
