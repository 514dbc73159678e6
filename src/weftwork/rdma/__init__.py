"""Floor 4: RDMA in software."""
