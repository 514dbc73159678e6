"""A peer that misbehaves by a script, to test an RDMA stack against it."""
