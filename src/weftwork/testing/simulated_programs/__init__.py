"""Unchanged RDMA programs on a simulated fabric, in virtual time."""
