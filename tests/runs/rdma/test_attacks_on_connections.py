"""Attacks on connections: spoofed sources, injected PSNs, forged answers, floods of NAKs and CNPs.

What an attacker on the path can do, because RDMA authenticates nobody, is tested as possible and says so.
"""

from __future__ import annotations

from typing import Any

import pytest
from helpers.rdma_attacker import (
    FIRST_PSN,
    PEER_QP,
    Victim,
    under_attack,
)

from weftwork.policies.load import load
from weftwork.rdma.datagram import Datagram
from weftwork.wire.extended import Reth
from weftwork.wire.ib import DEFAULT_PARTITION_KEY
from weftwork.wire.opcodes import Opcode

EVIL = b"EVIL" * 64


def write(victim: Victim, *, opcode: int = Opcode.WRITE_ONLY, psn: int | None = None, **more: Any) -> Datagram:
    """A WRITE that the victim would execute from its peer."""
    reth = Reth(victim.region.addr, victim.region.rkey, 8)
    return victim.forge(opcode, (reth,), EVIL[:8], psn=psn, **more)


@pytest.mark.parametrize(("variant", "most"), [({}, 1000), ({"variant": "paper"}, 3)], ids=["default", "paper"])
def test_a_flood_of_marked_packets_makes_no_more_cnps_than_packets(variant: dict[str, str], most: int) -> None:
    """The default of DCQCN answers each marked packet; the paper's variant sends one CNP in 50 us."""
    control = load("congestion_control", "dcqcn", variant)
    with under_attack(nic={"congestion_control": control}) as victim:
        sent = []
        for number in range(1000):  # in 100 us
            victim.now_ps = number * 100_000
            sent += victim.attack(write(victim, psn=FIRST_PSN + 5, ecn=3))
        cnps = [packet for packet in sent if packet.bth.opcode == Opcode.CNP]
        assert 0 < len(cnps) <= most
        assert {packet.bth.destination_qp for packet in cnps} == {PEER_QP}
        assert {packet.bth.partition_key for packet in cnps} == {DEFAULT_PARTITION_KEY}
