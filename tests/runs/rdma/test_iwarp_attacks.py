"""What a peer of an iWARP stream tries, and what it gets: each attack with the expected Terminate."""

from __future__ import annotations

from helpers.iwarp_attacker import Victim


def test_a_peer_that_trickles_holds_one_fpdu_at_most() -> None:
    victim = Victim()
    for byte in (b"\xff\xff" + bytes(70_000))[: 65_535 + 6]:
        victim.send(bytes([byte]))
    assert victim.qp._reader.held_bytes <= 65_535 + 8
