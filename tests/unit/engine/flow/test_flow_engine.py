"""The flow engine on jobs whose times can be worked out on paper, and a lone message against the packet engine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.helpers.tiny import (
    BYTE_PS,
    DELAY_PS,
    Message,
    flow_input_of,
    job_of,
    packet_input_of,
    pair,
    sends,
    star,
    wired,
)

from weftwork.base.errors import ConfigError
from weftwork.engine import packet
from weftwork.engine.flow import run as flow
from weftwork.engine.instants import Fault
from weftwork.engine.rows.flow_outcome import SPENT
from weftwork.spec.device import Nic, Server
from weftwork.spec.job import (
    Await,
    Collect,
    Compute,
    Grid,
    Group,
    Job,
    Loop,
    Milestone,
    Notify,
    Operation,
    Peer,
    Placement,
    Program,
    Receive,
    Send,
    Size,
    Wait,
)  # fmt: skip
from weftwork.spec.transport import Transport

pytestmark = pytest.mark.sanitize

MIB = 1 << 20
WIRE = (4096 + 82) / 4096  # headers and gap of a full packet of the default transport


def fct_ps(outcome: Any) -> list[int]:
    """Flow completion times in the order of the messages."""
    messages = getattr(outcome, "packets", outcome).messages
    return (messages["delivered_at_ps"] - messages["posted_at_ps"]).tolist()


@pytest.mark.parametrize("size_bytes", [0, 1, 4096, 4097, 12_289, 65_536, 10 * MIB + 17])
@pytest.mark.parametrize("fabric", ["pair", "star", "slow last link", "host interface"])
def test_a_lone_message_takes_as_long_as_packet_by_packet(fabric: str, size_bytes: int) -> None:
    """Within a thousandth: the only difference is the rounding of each packet's time."""
    fabrics = {
        "pair": pair(),
        "star": star(3),
        "slow last link": wired([(0, 2), (2, 1)], hosts=2, rates_bps=[400_000_000_000, 100_000_000_000]),
        "host interface": star(2, nic=Nic(pcie_rate_bps=200_000_000_000, pcie_latency_ps=300_000)),
    }
    job = sends(2 if fabric != "star" else 3, [Message(source=0, destination=1, size_bytes=size_bytes)])
    by_packet = packet.run(packet_input_of(fabrics[fabric], job))
    by_flow = flow.run(flow_input_of(fabrics[fabric], job)).packets
    assert fct_ps(by_flow) == pytest.approx(fct_ps(by_packet), rel=1e-3)
    acked = by_packet.messages["acked_at_ps"] - by_packet.messages["delivered_at_ps"]
    assert (by_flow.messages["acked_at_ps"] - by_flow.messages["delivered_at_ps"]).tolist() == pytest.approx(
        acked.tolist(), rel=0.02, abs=2
    )


@pytest.mark.parametrize("gpus", [(0, 1), (0, 4)])
@pytest.mark.parametrize("size_bytes", [0, 5, 1 << 20, (1 << 24) + 3])
def test_a_lone_message_inside_a_server_takes_as_long_as_by_slices(gpus: tuple[int, int], size_bytes: int) -> None:
    server = Server(gpus=8, nvlink_domain_gpus=4, nvlink_rate_bps=3_600_000_000_000, pcie_rate_bps=400_000_000_000)
    send: Operation = Send(peer=Peer(rule="rank", shift=1), size=Size(total_bytes=size_bytes))
    job = job_of([[[send, Wait()]], []], hosts=[0, 0], gpus=gpus)
    fabric = star(2, server=server)
    assert fct_ps(flow.run(flow_input_of(fabric, job))) == pytest.approx(
        fct_ps(packet.run(packet_input_of(fabric, job))), rel=1e-4, abs=2
    )


def test_flows_share_a_link_and_the_rest_goes_to_who_is_left() -> None:
    """Two into one port: the short one at half the rate, the long one at half and then alone."""
    job = sends(
        3, [Message(source=0, destination=2, size_bytes=MIB), Message(source=1, destination=2, size_bytes=3 * MIB)]
    )
    short, long = fct_ps(flow.run(flow_input_of(star(3), job)))
    assert short == pytest.approx((2 * MIB * WIRE + 4178) * BYTE_PS + 2 * DELAY_PS, rel=1e-3)
    assert long == pytest.approx((4 * MIB * WIRE + 4178) * BYTE_PS + 2 * DELAY_PS, rel=1e-3)


def test_messages_of_one_connection_follow_each_other() -> None:
    """On one channel one after the other without a gap, on two side by side."""
    one = sends(2, [Message(source=0, destination=1, size_bytes=MIB)] * 2)
    first, second = sorted(fct_ps(flow.run(flow_input_of(pair(), one))))
    assert second - first == pytest.approx(MIB * WIRE * BYTE_PS, rel=1e-3)
    two = sends(2, [Message(source=0, destination=1, size_bytes=MIB, channel=channel) for channel in (0, 1)])
    assert fct_ps(flow.run(flow_input_of(pair(), two))) == pytest.approx([second, second], rel=1e-3)


def ring(ranks: int, steps: int) -> Job:
    """A ring all-gather: every rank passes on what it got last."""
    group = Group(size=ranks)
    step: tuple[Operation, ...] = (
        Send(peer=Peer(rule="shift", group=group, shift=1), size=Size(total_bytes=MIB)),
        Receive(peer=Peer(rule="shift", group=group, shift=-1)),
        Wait(),
    )
    program = Program(streams=((Milestone(name=0), Loop(count=steps, body=step), Milestone(name=1)),))
    return Job(
        name="ring",
        ranks=ranks,
        programs=(program,),
        rank_program=np.zeros(ranks, np.int32),
        placement=Placement(host=np.arange(ranks, dtype=np.int32), nics=np.zeros((ranks, 1), np.int32)),
        milestone_names=("begin", "end"),
    )


def test_a_ring_takes_its_steps() -> None:
    """Each step is a message and its acknowledgement, which the sender awaits."""
    outcome = flow.run(flow_input_of(star(4), ring(4, 3)))
    alone, *_ = fct_ps(flow.run(flow_input_of(star(4), ring(4, 1))))
    acked = outcome.packets.messages["acked_at_ps"]
    assert outcome.packets.messages["ordinal"].tolist() == [0, 1, 2] * 4
    assert outcome.packets.milestones["at_ps"].max() == acked.max() == outcome.packets.simulated_ps
    assert alone * 3 < acked.max() < alone * 3 * 1.02 + 6 * DELAY_PS


def test_time_of_a_stream_is_told_without_gaps() -> None:
    """Computing, then waiting until the message begins, then for the message itself."""
    labels = ("compute", "pipeline")
    sender = [
        Compute(duration_ps=5_000_000, label=0),
        Send(peer=Peer(rule="rank", shift=1), size=Size(total_bytes=MIB), label=1),
    ]
    receiver = [Compute(duration_ps=2_000_000, label=0), Receive(peer=Peer(rule="rank", shift=0)), Wait()]
    job = job_of([[sender], [receiver]])
    outcome = flow.run(flow_input_of(pair(), job))
    (delivered,) = outcome.packets.messages["delivered_at_ps"].tolist()
    told = [
        (labels[row["label"]], SPENT[row["code"]], int(row["start_ps"]), int(row["end_ps"]))
        for row in outcome.segments[outcome.segments["actor"] == 1]
    ]
    assert told == [
        ("compute", "computing", 0, 2_000_000),
        ("pipeline", "waiting", 2_000_000, 5_000_000),
        ("pipeline", "communicating", 5_000_000, delivered),
    ]
    (activity,) = outcome.activities.tolist()
    assert activity[0] == 1
    assert activity[-3:] == (5_000_000, 5_000_000, delivered)


def test_a_run_for_its_time_alone_keeps_no_details() -> None:
    engine_input = flow_input_of(star(4), ring(4, 3))
    whole, lean = flow.run(engine_input), flow.run(engine_input, has_details=False)
    assert len(whole.segments)
    assert len(whole.tiers)
    assert not len(lean.segments) + len(lean.activities) + len(lean.tiers)
    assert lean.packets.digest() == whole.packets.digest()
    assert lean.link_bytes.tolist() == whole.link_bytes.tolist()


def test_a_call_behind_another_waits_for_the_network_and_not_for_others() -> None:
    """All members have posted the second call while the first still runs: the rest of both is communication."""
    both = Collect(
        operation="all-gather", size_bytes=MIB, group=Grid(axes=((1, 2),)), channel=0, pattern="ring",
        amount_bytes=MIB, label=0,
    )  # fmt: skip
    outcome = flow.run(flow_input_of(pair(), job_of([[[both, both, Wait()]], [[both, both, Wait()]]])))
    assert outcome.segments["code"].tolist() == [SPENT.index("communicating")] * len(outcome.segments)
    assert len(outcome.activities) == 2


def test_two_streams_call_on_channels_of_their_own() -> None:
    """Ranks might call in different orders, so that a call would meet another one."""
    call = Collect(
        operation="all-gather", size_bytes=MIB, group=Grid(axes=((1, 2),)), channel=3, pattern="ring",
        amount_bytes=MIB, label=0,
    )  # fmt: skip
    beside = replace(call, channel=4)
    both = [[Loop(count=2, body=(call,)), Wait()], [beside, Wait()]]
    assert len(flow.run(flow_input_of(pair(), job_of([both, both]))).activities) == 3
    clash = [[call, Wait()], [Loop(count=2, body=(call,)), Wait()]]
    with pytest.raises(ConfigError) as refused:
        flow_input_of(pair(), job_of([both, clash]))
    (mistake,) = refused.value.mistakes
    assert mistake.path == "job.programs.1.Collect"
    assert "streams 0 and 1 both call collectives on channel 3" in mistake.text


@pytest.mark.parametrize("far", [0, 1, 2])
def test_a_call_ends_when_its_last_bytes_have_come_the_longest_way(far: int) -> None:
    """A ring over three hosts, of which one has a long cable: two of its three transfers cross that."""
    far_ps = 50_000_000
    delays_ps = [far_ps if host == far else DELAY_PS for host in range(3)]
    fabric = wired([(host, 3) for host in range(3)], hosts=3, delays_ps=delays_ps)
    ring_of_three = Collect(
        operation="all-gather", size_bytes=MIB, group=Grid(axes=((1, 3),)), channel=0, pattern="ring",
        amount_bytes=MIB, label=0,
    )  # fmt: skip
    outcome = flow.run(flow_input_of(fabric, job_of([[[ring_of_three, Wait()]]] * 3)))
    (end_ps,) = outcome.activities["end_ps"].tolist()
    assert end_ps == pytest.approx(MIB * WIRE * BYTE_PS + far_ps + DELAY_PS, abs=1)


def test_tokens_order_streams_and_a_straggler_computes_longer() -> None:
    program = [[Compute(duration_ps=1_000), Notify(token=0, after_ps=500)], [Await(token=0), Milestone(name=0)]]
    outcome = flow.run(flow_input_of(pair(), job_of([program, program]), compute_factor=np.array([1.0, 1.2])))
    assert outcome.packets.milestones["at_ps"].tolist() == [1_500, 1_700]


def test_tokens_that_come_later_find_their_way_among_thousands_of_streams() -> None:
    main = [Compute(duration_ps=1_000), Notify(token=0, after_ps=500)]
    ranks = 1_500  # numbers of streams beyond 11 bits
    job = job_of([[main, [Await(token=0), Milestone(name=0)]]] * ranks, hosts=[0] * ranks, gpus=range(ranks))
    outcome = flow.run(flow_input_of(star(2, server=Server(gpus=ranks)), job, fold="never"))
    assert outcome.packets.milestones["at_ps"].tolist() == [1_500] * ranks


def test_a_link_that_dies_holds_its_flows_until_routes_follow() -> None:
    """Two spines: the flow stands still for the reconvergence delay, then goes on over the other one."""
    fabric = wired([(0, 2), (1, 3), (2, 4), (4, 3), (2, 5), (5, 3)], hosts=2)
    job = sends(2, [Message(source=0, destination=1, size_bytes=8 * MIB)])
    (whole,) = fct_ps(flow.run(flow_input_of(fabric, job)))
    at_ps, delay_ps = 50_000_000, 20_000_000
    times = []
    for link in (2, 4):
        faults = [Fault(at_ps=at_ps, event="down", link=link)]
        engine_input = flow_input_of(fabric, job, faults=faults, reconvergence_delay_ps=delay_ps)
        times += fct_ps(flow.run(engine_input))
    assert sorted(times) == pytest.approx([whole, whole + delay_ps], rel=1e-6)


def test_a_degraded_link_and_an_end_before_the_end() -> None:
    job = sends(2, [Message(source=0, destination=1, size_bytes=8 * MIB)])
    fault = Fault(at_ps=0, event="degrade", link=0, rate_bps=100_000_000_000)
    outcome = flow.run(flow_input_of(pair(), job, faults=[fault]))
    assert fct_ps(outcome) == pytest.approx([8 * MIB * WIRE * BYTE_PS * 4 + DELAY_PS], rel=1e-3)
    cut = flow.run(flow_input_of(pair(), job, until_ps=100_000_000))
    assert not cut.packets.complete
    assert cut.packets.messages["delivered_at_ps"].tolist() == [-1]
    assert cut.link_bytes[0] == pytest.approx(100_000_000 / BYTE_PS)


def test_links_that_lose_all_packets_and_wrong_factors_are_refused() -> None:
    job = sends(2, [Message(source=0, destination=1, size_bytes=1)])
    with pytest.raises(ConfigError, match="loses all packets"):
        flow_input_of(pair(loss=1.0), job)
    with pytest.raises(ConfigError, match="loses all packets"):
        flow_input_of(pair(), job, faults=[Fault(at_ps=0, event="lossy", link=0, loss=1.0)])
    with pytest.raises(ConfigError, match="compute factors"):
        flow_input_of(pair(), job, compute_factor=np.zeros(2))


def test_links_carry_what_messages_take() -> None:
    """Headers and gaps included, and frames as the packet engine counts them."""
    transport = Transport(ack_every=1 << 16)
    job = sends(2, [Message(source=0, destination=1, size_bytes=8 * MIB)])
    by_packet = packet.run(packet_input_of(pair(), job, transport=transport))
    outcome = flow.run(flow_input_of(pair(), job, transport=transport))
    assert outcome.packets.ports["frames"][0] == by_packet.ports["frames"][0]
    assert outcome.packets.ports["bytes"][0] == pytest.approx(by_packet.ports["bytes"][0], abs=2)


@pytest.mark.parametrize(("bins", "bin_us"), [(240, 1), (6, 4)])
def test_a_timeline_tells_each_bin_by_its_end(bins: int, bin_us: int) -> None:
    """A message alone fills the line from its post on: 50,000 B in a microsecond, then what is left."""
    job = sends(2, [Message(source=0, destination=1, size_bytes=MIB)])
    outcome = flow.run(flow_input_of(pair(), job), timeline_bins=bins).packets
    assert outcome.timeline_bin_ps == bin_us * 1_000_000
    rows = outcome.timeline[outcome.timeline["port"] == outcome.timeline["port"][0]]
    sent_bytes = MIB * WIRE
    full = int(sent_bytes // (50_000 * bin_us))
    ends_ps = [(index + 1) * bin_us * 1_000_000 for index in range(full)]
    assert rows["at_ps"].tolist()[:full] == ends_ps
    assert rows["bytes"].tolist()[:full] == [50_000 * bin_us] * full
    assert rows["bytes"].tolist()[full:] == [pytest.approx(sent_bytes - full * 50_000 * bin_us, abs=20)]
    assert rows["at_ps"][-1] <= outcome.simulated_ps + bin_us * 1_000_000
