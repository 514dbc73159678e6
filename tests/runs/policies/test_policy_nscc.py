"""NSCC against its equations, worked out by hand for the network that its constants are meant for.

100 Gb/s x 12 us is 150,000 B, so that a = 1; the target is 9 us, b = 0.75, and the largest window 225,000 B.
"""

from typing import Any

import pytest
from helpers.both import both
from helpers.tiny import Message, sends, star

from weftwork.engine import packet
from weftwork.engine.lower import lower
from weftwork.engine.packet_input import PacketInput
from weftwork.engine.settings import EngineSettings
from weftwork.policies.load import load
from weftwork.spec.device import Ecn, Switch
from weftwork.spec.transport import Transport

US_PS = 1_000_000


MTU = 4_096


FRAME = MTU + 62 + 4  # with the time at which it was sent


CUT = Transport(
    recovery="selective-repeat", reorder_threshold_packets=1 << 16, trim_bytes=78, lossless_priorities=(),
    interframe_bytes=0, retransmission_timeout_ps=100 * US_PS, retry_limit=1_000,
)  # fmt: skip


def network(messages: list[Message], control: str = "nscc", **parameters: Any) -> PacketInput:
    ecn = Ecn(kmin_bytes=20 * FRAME, kmax_bytes=80 * FRAME, pmax=1, at="dequeue")
    hosts = 1 + max(max(message.source, message.destination) for message in messages)
    return lower(
        fabric=star(
            hosts,
            switch=Switch(
                forwarding_latency_ps=0, buffer_bytes=10**12, reserve_bytes=0, egress_alpha=99.5 * FRAME / 1e12, ecn=ecn
            ),
            delays_ps=[2 * US_PS] * hosts,
        ),
        job=sends(hosts, messages),
        transport=CUT,
        congestion_control=load("congestion_control", control, parameters),
        settings=EngineSettings(port_selection=load("port_selection", "ecmp")),
    )


def incast(senders: int, size_bytes: int) -> list[Message]:
    return [Message(source=source, destination=senders, size_bytes=size_bytes) for source in range(senders)]


def test_a_lone_flow_is_never_held_up() -> None:
    outcome = both(network(incast(1, 1_000_000)))
    frames = 1_000_000 // MTU + 1
    line_ps = (1_000_000 + frames * 66 + 16) * 20
    assert outcome.counters["trims"] == 0
    assert outcome.messages["delivered_at_ps"][0] - line_ps <= 4 * US_PS + (FRAME + 16) * 20


@pytest.mark.parametrize("variant", ["uet-htsim", "table-3-82", "with-credit"])
def test_both_engines_agree_on_an_incast_with_cut_packets(variant: str) -> None:
    given = dict(load("congestion_control", "nscc").plugin.variants[variant])
    outcome = both(network(incast(5, 200_000), **given))
    assert outcome.counters["trims"] > 20
    assert (outcome.messages["delivered_at_ps"] > 0).all()


def test_an_incast_cuts_few_packets_where_windows_that_stand_still_cut_many() -> None:
    found = packet.run(network(incast(8, 2_000_000)))
    still = packet.run(network(incast(8, 2_000_000), "fixed-window"))
    assert found.counters["timeouts"] == 0
    assert found.counters["trims"] < 0.2 * still.counters["trims"]
    line_ps = 16_000_000 * 20
    assert found.messages["delivered_at_ps"].max() < 1.1 * line_ps


def test_two_flows_come_to_share_the_link_though_the_second_comes_later() -> None:
    """The index of Jain over 200 us, some 25 base RTTs, from when the second flow has come."""
    each = [
        Message(source=s, destination=2, size_bytes=65_536, at_ps=s * 200 * US_PS) for s in (0, 1) for _ in range(700)
    ]
    rows = packet.run(network(each)).messages

    def shares(from_us: int) -> list[float]:
        ends_us = rows["delivered_at_ps"] / US_PS
        is_in = (ends_us > from_us) & (ends_us <= from_us + 200)
        return [float(rows["size_bytes"][is_in & (rows["source"] == source)].sum()) for source in (0, 1)]

    def jain(from_us: int) -> float:
        return sum(shares(from_us)) ** 2 / (2 * sum(share**2 for share in shares(from_us)))

    assert jain(200) < jain(400) < jain(800) < jain(1_000)
    assert jain(200) < 0.92
    assert jain(1_000) > 0.95
    assert sum(shares(1_000)) > 0.95 * 200e-6 * 400e9 / 8 * MTU / FRAME
