"""Faults, bundles and acknowledgements of the flow engine, worked out on paper: nothing else tells what is right.

A message of n full packets puts n x 4,178 + 16 bytes on each link. Alone on links of one rate it takes the first packet
over each of them, then the others over the last one (`alone_ps`); when its last byte has flowed, so many bytes have,
and the rest of that time is what it still needs.
Source: docs/models/flow-engine.md, sections "Time of a message" and "Faults".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from helpers.tiny import BYTE_PS, DELAY_PS, RATE_BPS, Message, flow_input_of, job_of, packet_input_of, sends, wired

from weftwork.engine import packet
from weftwork.engine.flow import run as flow
from weftwork.engine.instants import Fault
from weftwork.spec.device import Nic, Switch
from weftwork.spec.fabric import Fabric
from weftwork.spec.job import At, Job, Peer, Placement, Program, Send, Size, Wait
from weftwork.spec.transport import Transport

pytestmark = pytest.mark.sanitize

PACKET_BYTES = 4096 + 82
FIRST_BYTES = PACKET_BYTES + 16
ACK_BYTES = 66 + 20
PACKETS = 3_000
SIZE = PACKETS * 4096
AT_PS, RECONVERGENCE_PS, FAILOVER_PS = 20_000_000, 7_000_000, 3_000_000
NEAR = 3  # picoseconds of rounding


def delivered(
    fabric: Fabric, job: Job, faults: Sequence[Fault] = (), *, sprays: bool = False, **options: int
) -> list[int]:
    engine_input = flow_input_of(
        fabric,
        job,
        port_selection="spray" if sprays else "ecmp",
        faults=faults,
        **{"reconvergence_delay_ps": RECONVERGENCE_PS, "failover_delay_ps": FAILOVER_PS} | options,
    )
    found: list[int] = flow.run(engine_input).packets.messages["delivered_at_ps"].tolist()
    return found


def one(size_bytes: int = SIZE, **changes: int) -> list[Message]:
    return [Message(source=0, destination=1, size_bytes=size_bytes, **changes)]


def alone_ps(hops: int) -> int:
    return (hops * FIRST_BYTES + (PACKETS - 1) * PACKET_BYTES) * BYTE_PS + hops * DELAY_PS


MESSAGE_BYTES = PACKETS * PACKET_BYTES + 16


def flowing_ps(rate_bps: float = RATE_BPS, size_bytes: float = MESSAGE_BYTES) -> float:
    return size_bytes * 8e12 / rate_bps


# Rates that change under way


LINE = wired([(0, 2), (2, 3), (3, 1)], hosts=2)
MIDDLE, LAST = 1, 2  # links


@pytest.mark.parametrize("slow_bps", [RATE_BPS // 4, 150_000_000_000])
@pytest.mark.parametrize("link", [0, MIDDLE, LAST])
def test_a_link_that_is_degraded_under_way_carries_the_rest_at_its_new_rate(link: int, slow_bps: int) -> None:
    """What the last packets need behind the last byte is told from the rates of before, the delays among it."""
    fault = Fault(at_ps=AT_PS, event="degrade", link=link, rate_bps=slow_bps)
    found = delivered(LINE, sends(2, one()), [fault])
    left_bytes = MESSAGE_BYTES - AT_PS / BYTE_PS
    behind_ps = alone_ps(3) - flowing_ps()
    assert behind_ps == 2 * FIRST_BYTES * BYTE_PS + 3 * DELAY_PS
    assert found == pytest.approx([AT_PS + flowing_ps(slow_bps, left_bytes) + behind_ps], abs=NEAR)


def test_a_link_that_is_degraded_and_whole_again_has_cost_what_it_did_not_carry() -> None:
    """A quarter of the rate for 10 us: three quarters of 10 us are lost, and nothing else."""
    faults = [
        Fault(at_ps=AT_PS, event="degrade", link=MIDDLE, rate_bps=RATE_BPS // 4),
        Fault(at_ps=AT_PS + 10_000_000, event="degrade", link=MIDDLE, rate_bps=RATE_BPS),
    ]
    assert delivered(LINE, sends(2, one()), faults) == pytest.approx([alone_ps(3) + 7_500_000], abs=NEAR)


@pytest.mark.parametrize(("link", "times"), [(MIDDLE, 2), (LAST, 1)])
def test_a_link_that_is_down_for_a_while_has_cost_that_while(link: int, times: int) -> None:
    """Routes learn of its end and of its return as late: between switches there is no way for as long once more.

    The link of the receiver is the only one to it, and in no route.
    """
    faults = [Fault(at_ps=AT_PS, event="down", link=link), Fault(at_ps=AT_PS + 2_000_000, event="up", link=link)]
    assert delivered(LINE, sends(2, one()), faults) == pytest.approx([alone_ps(3) + times * 2_000_000], abs=NEAR)
    late = delivered(LINE, sends(2, one()), faults, reconvergence_delay_ps=10**9)
    assert late == pytest.approx([alone_ps(3) + 2_000_000], abs=NEAR)


# A bundle: three links between two switches, hosts on links four times as fast


FAST_BPS = 4 * RATE_BPS


def bundle(members: int) -> Fabric:
    links = [(0, 2), (3, 1), *[(2, 3)] * members]
    return wired(links, hosts=2, rates_bps=[FAST_BPS, FAST_BPS, *[RATE_BPS] * members])


def whole_ps(members: int) -> int:
    """Of a sprayed message that meets nobody."""
    (found,) = delivered(bundle(members), sends(2, one()), sprays=True)
    return found


def behind_ps(members: int) -> float:
    """What a sprayed message needs behind its last byte: three delays and some packets."""
    rest = whole_ps(members) - flowing_ps(members * RATE_BPS)
    assert 3 * DELAY_PS < rest < 3 * DELAY_PS + 4 * FIRST_BYTES * BYTE_PS
    return rest


@pytest.mark.parametrize("member", [2, 3, 4])
@pytest.mark.parametrize("slow_bps", [RATE_BPS // 4, RATE_BPS // 10])
def test_a_degraded_member_holds_back_the_whole_bundle(member: int, slow_bps: int) -> None:
    """Each member gets a third of the bytes, and the message goes at three times the rate of the slowest."""
    fault = Fault(at_ps=AT_PS, event="degrade", link=member, rate_bps=slow_bps)
    found = delivered(bundle(3), sends(2, one()), [fault], sprays=True)
    left_bytes = MESSAGE_BYTES - 3 * AT_PS / BYTE_PS
    assert found == pytest.approx([AT_PS + flowing_ps(3 * slow_bps, left_bytes) + behind_ps(3)], abs=NEAR)


def test_a_hashed_message_meets_a_degraded_member_only_if_it_is_its_own() -> None:
    """Of three members one is the message's: there it goes at the new rate, on the others as if nothing had been."""
    (alone,) = delivered(bundle(3), sends(2, one()))
    assert alone == pytest.approx(flowing_ps() + 3 * DELAY_PS, rel=1e-3)
    found = []
    for member in (2, 3, 4):
        fault = Fault(at_ps=AT_PS, event="degrade", link=member, rate_bps=RATE_BPS // 4)
        found += delivered(bundle(3), sends(2, one()), [fault])
    left_bytes = MESSAGE_BYTES - AT_PS / BYTE_PS
    slow = alone + flowing_ps(RATE_BPS // 4, left_bytes) - flowing_ps(RATE_BPS, left_bytes)
    assert sorted(found) == pytest.approx([alone, alone, slow], abs=NEAR)


def test_two_sprayed_messages_share_what_the_slowest_member_leaves() -> None:
    """Both at one and a half times its rate; a message that does not cross the bundle has its link for itself."""
    slow_bps = RATE_BPS // 10
    links = [(0, 6), (1, 6), (2, 6), (3, 7), (4, 7), (5, 6), (6, 7), (6, 7), (6, 7)]
    fabric = wired(links, hosts=6, rates_bps=[FAST_BPS] * 6 + [RATE_BPS] * 3)
    pairs = [(0, 3), (1, 4), (2, 5)]
    job = sends(6, [Message(source=a, destination=b, size_bytes=SIZE) for a, b in pairs])
    fault = Fault(at_ps=0, event="degrade", link=7, rate_bps=slow_bps)
    found = delivered(fabric, job, [fault], sprays=True)
    assert found[:2] == pytest.approx([flowing_ps(1.5 * slow_bps)] * 2, rel=0.01)
    assert found[2] == pytest.approx(flowing_ps(FAST_BPS), rel=0.03)


@pytest.mark.parametrize("member", [2, 4])
def test_a_dead_member_stops_the_bundle_until_routes_follow_and_two_thirds_are_left(member: int) -> None:
    down = Fault(at_ps=AT_PS, event="down", link=member)
    left_bytes = MESSAGE_BYTES - 3 * AT_PS / BYTE_PS
    known_ps = AT_PS + RECONVERGENCE_PS
    found = delivered(bundle(3), sends(2, one()), [down], sprays=True)
    assert found == pytest.approx([known_ps + flowing_ps(2 * RATE_BPS, left_bytes) + behind_ps(2)], abs=NEAR)
    # and back again 20 us later: all three carry it from the instant at which routes know
    up = Fault(at_ps=AT_PS + 20_000_000, event="up", link=member)
    found = delivered(bundle(3), sends(2, one()), [down, up], sprays=True)
    left_bytes -= 2 * 20_000_000 / BYTE_PS
    again_ps = known_ps + 20_000_000
    assert found == pytest.approx([again_ps + flowing_ps(3 * RATE_BPS, left_bytes) + behind_ps(3)], abs=NEAR)


# Another NIC port


SENT = (Send(peer=Peer(rule="rank", shift=1), size=Size(total_bytes=SIZE)), Wait())


def two_ports() -> Job:
    """Rank 0 sends to rank 1 by its first port; each has two."""
    return Job(
        name="two ports",
        ranks=2,
        programs=(Program(streams=(SENT,)), Program(streams=())),
        rank_program=np.arange(2, dtype=np.int32),
        placement=Placement(host=np.arange(2, dtype=np.int32), nics=np.array([[0, 1], [0, 1]], np.int32)),
        milestone_names=(),
    )


def test_a_queue_pair_goes_on_by_the_other_port_at_the_failover() -> None:
    """Two planes, the second at half the rate. What had not flowed flows there, from 3 us after the fault on."""
    links = [(0, 2), (2, 1), (0, 3), (3, 1)]
    fabric = wired(links, hosts=2, rates_bps=[RATE_BPS, RATE_BPS, RATE_BPS // 2, RATE_BPS // 2])
    down = Fault(at_ps=AT_PS, event="down", link=0)
    found = delivered(fabric, two_ports(), [down], reconvergence_delay_ps=10**12)
    left_bytes = MESSAGE_BYTES - AT_PS / BYTE_PS
    behind = FIRST_BYTES * 2 * BYTE_PS + 2 * DELAY_PS
    moved_ps = AT_PS + FAILOVER_PS
    assert found == pytest.approx([moved_ps + flowing_ps(RATE_BPS // 2, left_bytes) + behind], abs=NEAR)
    # where no plane reaches both ends, it waits, and comes home the same time after its own link is back
    gone = [Fault(at_ps=AT_PS - 1, event="down", link=3), down, Fault(at_ps=AT_PS + 50_000_000, event="up", link=0)]
    stayed = delivered(fabric, two_ports(), gone, reconvergence_delay_ps=10**12)
    assert stayed == pytest.approx([alone_ps(2) + 50_000_000 + FAILOVER_PS], abs=NEAR)


def test_a_queue_pair_that_opens_after_a_failover_chooses_by_what_was_up_then() -> None:
    """The first port dies before the message is posted: by the second one from the start, after 3 us or later."""
    links = [(0, 2), (2, 1), (0, 3), (3, 1)]
    fabric = wired(links, hosts=2, rates_bps=[RATE_BPS, RATE_BPS, RATE_BPS // 2, RATE_BPS // 2])
    down = Fault(at_ps=0, event="down", link=0)
    slow_ps = 2 * alone_ps(2) - 2 * DELAY_PS  # each byte takes twice as long, the delays do not
    late = replace(two_ports(), programs=(Program(streams=((At(at_ps=AT_PS), *SENT),)), Program(streams=())))
    for job, posted_ps in ((two_ports(), FAILOVER_PS), (late, AT_PS)):
        found = delivered(fabric, job, [down], reconvergence_delay_ps=10**12)
        assert found == pytest.approx([posted_ps + slow_ps], abs=NEAR)


# Acknowledgements


@pytest.mark.parametrize("ack_bytes", [66, 1_000])
@pytest.mark.parametrize("size_bytes", [1, 4096, 40_960])
def test_an_acknowledgement_takes_the_delays_of_the_way_back_and_its_bytes_on_each_hop(
    size_bytes: int, ack_bytes: int
) -> None:
    """Three switches in a row, each link with a rate and a delay of its own; and the packet engine says the same.

    A switch takes 300 ns of forwarding and the NIC 7 ns of receiving on the way back too. The host interface, which
    delays the message, is not on the way of its acknowledgement.
    """
    rates_bps, delays_ps = [100 * 10**9, 400 * 10**9, 200 * 10**9, 50 * 10**9], [11_000, 222_000, 3_000, 44_000]
    fabric = wired(
        [(0, 2), (2, 3), (3, 4), (4, 1)],
        hosts=2,
        rates_bps=rates_bps,
        delays_ps=delays_ps,
        switch=Switch(forwarding_latency_ps=300_000),
        nic=Nic(receive_latency_ps=7_000, pcie_rate_bps=40 * 10**9, pcie_latency_ps=90_000),
    )
    wire = Transport(ack_bytes=ack_bytes)
    wanted_ps = sum(delays_ps) + 3 * 300_000 + 7_000 + sum((ack_bytes + 20) * 8 * 10**12 // rate for rate in rates_bps)
    for outcome in (
        flow.run(flow_input_of(fabric, sends(2, one(size_bytes)), transport=wire)).packets,
        packet.run(packet_input_of(fabric, sends(2, one(size_bytes)), transport=wire)),
    ):
        (message,) = outcome.messages
        assert message["acked_at_ps"] - message["delivered_at_ps"] == pytest.approx(wanted_ps, abs=1)


def test_each_end_has_the_latency_of_its_own_nic() -> None:
    """The message meets that of the receiver, 90 ns, and its acknowledgement that of the sender, 7 ns."""
    fabric = wired([(0, 2), (2, 1)], hosts=2, switch=Switch(forwarding_latency_ps=300_000))
    fabric = replace(
        fabric,
        nics=(Nic(receive_latency_ps=7_000), Nic(receive_latency_ps=90_000)),
        node_device=np.array([0, 1, 0], fabric.node_device.dtype),
    )
    there_ps = 2 * (FIRST_BYTES * BYTE_PS + DELAY_PS) + 300_000 + 90_000
    back_ps = 2 * (ACK_BYTES * BYTE_PS + DELAY_PS) + 300_000 + 7_000
    for outcome in (
        packet.run(packet_input_of(fabric, sends(2, one(4096)))),
        flow.run(flow_input_of(fabric, sends(2, one(4096)))).packets,
    ):
        (message,) = outcome.messages
        assert message["delivered_at_ps"] == pytest.approx(there_ps, abs=1)
        assert message["acked_at_ps"] - message["delivered_at_ps"] == pytest.approx(back_ps, abs=1)


def test_a_sender_that_waits_goes_on_at_the_acknowledgement() -> None:
    """Two messages, the second posted when the first is acknowledged: the second begins then, not at the delivery."""
    outcome = flow.run(flow_input_of(LINE, job_of([[[*SENT, *SENT]], []]))).packets
    ack_ps = 3 * (ACK_BYTES * BYTE_PS + DELAY_PS)
    first_ps = alone_ps(3)
    assert outcome.messages["acked_at_ps"].tolist() == pytest.approx(
        [first_ps + ack_ps, 2 * (first_ps + ack_ps)], abs=NEAR
    )
    assert outcome.messages["posted_at_ps"][1] == outcome.messages["acked_at_ps"][0]


@pytest.mark.parametrize("selection", ["spray", "ecmp", "destination-modulo"])
def test_acknowledged_times_are_those_of_packets_over_a_tree(selection: str) -> None:
    """Alone from one pod to another, over six hops: a path of each mode, sprayed or not, takes the same way back."""
    leaves, aggs, cores = (4, 5, 6, 7), (8, 9, 10, 11), (12, 13, 14)
    links = list(zip(range(4), leaves, strict=True))
    links += [*product(leaves[:2], aggs[:2]), *product(leaves[2:], aggs[2:]), *product(aggs, cores)]
    tier = np.repeat([0, 1, 2, 3], [4, 4, 4, 3])
    fabric = wired(links, hosts=4)
    fabric = replace(fabric, node_tier=tier.astype(fabric.node_tier.dtype))
    job = sends(4, [Message(source=0, destination=3, size_bytes=4096)])
    wire = Transport(reorder_tolerant=True)
    by_flow = flow.run(flow_input_of(fabric, job, port_selection=selection, transport=wire)).packets.messages
    by_packet = packet.run(packet_input_of(fabric, job, port_selection=selection, transport=wire)).messages
    for name in ("delivered_at_ps", "acked_at_ps"):
        assert by_flow[name].tolist() == pytest.approx(by_packet[name].tolist(), abs=NEAR)
    wanted_ps = 6 * (FIRST_BYTES * BYTE_PS + DELAY_PS) + 6 * (ACK_BYTES * BYTE_PS + DELAY_PS)
    assert by_packet["acked_at_ps"].tolist() == [wanted_ps]
