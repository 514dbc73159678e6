"""Weftwork's iWARP against siw, the iWARP of Linux, by the program rping of rdma-core: SEND, READ and WRITE.

`tests/steps/kernel_in_qemu.py --siw` runs these tests where the own kernel has no siw.
"""

from __future__ import annotations

import pytest
from helpers.kernel_nic import KernelNic, why_no, why_no_program
from helpers.rping import ping_rping, serve_rping

from weftwork import rdma

WHY_NOT = why_no("siw") or why_no_program("rping")
pytestmark = [
    pytest.mark.skipif(WHY_NOT is not None, reason=WHY_NOT or ""),
    pytest.mark.parametrize("ipv6", [False, True], ids=["IPv4", "IPv6"]),
]
PORT = 7174
PINGS = 5
SIZES_BYTES = (64, 10_000)  # one segment of TCP, and many; what rping prints has to fit into a pipe


@pytest.mark.parametrize("size_bytes", SIZES_BYTES)
def test_weftwork_pings_rping(*, ipv6: bool, size_bytes: int) -> None:
    with KernelNic("siw", ipv6=ipv6) as nic:
        words = ("rping", "-s", "-a", nic.address, "-v", "-C", str(PINGS), "-S", str(size_bytes))
        server = nic.listening(*words, port=PORT)
        device = rdma.RdmaDevice(nic.peer_address, wire="iwarp")
        ping_rping(rdma.RdmaConnector(device, nic.address, PORT), server, PINGS, size_bytes)


@pytest.mark.parametrize("size_bytes", SIZES_BYTES)
def test_rping_pings_weftwork(*, ipv6: bool, size_bytes: int) -> None:
    with KernelNic("siw", ipv6=ipv6) as nic:
        device = rdma.RdmaDevice(nic.peer_address, wire="iwarp")
        with rdma.RdmaListener(device, PORT) as listener:
            words = ("-v", "-V", "-C", str(PINGS), "-S", str(size_bytes))
            client = nic.start("rping", "-c", "-a", nic.peer_address, *words)
            serve_rping(listener, client, PINGS)


def test_weftwork_learns_that_nobody_listens(*, ipv6: bool) -> None:
    with (
        KernelNic("siw", ipv6=ipv6) as nic,
        rdma.RdmaDevice(nic.peer_address, wire="iwarp") as device,
        pytest.raises(rdma.PeerError, match="nobody listens"),
    ):
        rdma.Rendezvous(device).connect(nic.address, PORT).wait(60)
