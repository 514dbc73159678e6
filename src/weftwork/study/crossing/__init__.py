"""Congestion controls crossed with load balancers, on the same workloads."""
