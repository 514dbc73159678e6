"""The API of pyverbs on software NICs: unchanged programs run without an RDMA NIC.

``python -m weftwork.compat.pyverbs program.py`` runs a program so that its ``import pyverbs`` finds these modules; see
`alias` for other ways. Each module has the name and the classes of the module of pyverbs. A device is an address of
this machine, by default loopback; see `software_nics`.
Source: the public API of pyverbs in rdma-core 59, Documentation/pyverbs.md; written anew, nothing is copied.
Leaves out: extended reliable connections, raw packets, flow steering, device memory, tag matching, providers of
vendors. They raise `PyverbsRDMAError` with ``EOPNOTSUPP``, as a device without them does.
"""
