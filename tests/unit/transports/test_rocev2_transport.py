"""RoCEv2 as the engines see it: frames by the fields of their headers, and each key of the scenario in its place."""

from __future__ import annotations

import pytest

from weftwork.spec.scenario.scenario import loads
from weftwork.spec.transport import Transport
from weftwork.transports.rocev2 import TRANSPORT, transport

HEAD = "schema: 3\nfabric: {radix: 4}\ntraffic: {pattern: permutation, size: 1MiB}\n"
ETHERNET, IPV4, UDP, BTH, RETH, AETH, CNP_BODY, ICRC, FCS = 14, 20, 8, 12, 16, 4, 16, 4, 4


def resolved(keys: str = "") -> Transport:
    return transport(loads(f"{HEAD}transport: {{{keys}}}\n").transport)


def test_frames_are_the_sums_of_their_headers() -> None:
    """IBTA vol. 1, annex A17: BTH behind UDP and IPv4; an RETH in the first packet of a WRITE, an AETH in an ACK."""
    around = ETHERNET + IPV4 + UDP + BTH + ICRC + FCS
    found = resolved("mtu: 1024")
    assert found.mtu_bytes == 1_024
    assert found.data_overhead_bytes == around
    assert found.first_extra_bytes == RETH
    assert found.ack_bytes == found.credit_bytes == around + AETH
    assert found.cnp_bytes == around + CNP_BODY
    assert found.pause_frame_bytes == 64  # IEEE 802.3, 4.4.2: the shortest frame


@pytest.mark.parametrize("mtu", [256, 512, 1_024, 2_048, 4_096])
def test_headers_do_not_grow_with_the_payload(mtu: int) -> None:
    found = resolved(f"mtu: {mtu}")
    assert (found.data_overhead_bytes, found.first_extra_bytes) == (62, 16)
    assert found.payload_share == mtu / (mtu + 62 + 20)


@pytest.mark.parametrize(("flow_control", "lossless"), [("pfc", (2,)), ("none", ())])
def test_under_pfc_the_priority_of_the_data_is_lossless_and_no_other(flow_control: str, lossless: tuple[int]) -> None:
    found = resolved(f"flow_control: {flow_control}, data_priority: 2, control_priority: 5")
    assert found.lossless_priorities == lossless
    assert (found.data_priority, found.control_priority) == (2, 5)


def test_every_key_stands_where_the_engines_read_it() -> None:
    found = resolved(
        "recovery: selective-repeat, reorder_tolerant: true, reorder_window: 77, reorder_threshold: 11,"
        " resend: at-once, ack_every: 3, timeout: 2ms, retry_limit: 5, end_to_end_credits: 9, interframe: 12B"
    )
    assert (found.recovery, found.resend, found.reorder_tolerant) == ("selective-repeat", "at-once", True)
    assert (found.reorder_window_packets, found.reorder_threshold_packets) == (77, 11)
    assert (found.ack_every, found.retransmission_timeout_ps, found.retry_limit) == (3, 2_000_000_000, 5)
    assert (found.end_to_end_credits, found.interframe_bytes) == (9, 12)


def test_a_scenario_without_the_section_gives_the_defaults_of_the_record() -> None:
    assert resolved() == Transport()
    assert TRANSPORT.build is transport
