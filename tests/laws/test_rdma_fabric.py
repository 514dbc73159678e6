"""Software NICs on generated fabrics: no packet is unaccounted for, and each message arrives whole or says why not."""

from __future__ import annotations

from typing import NamedTuple

from helpers.rdma_ends import Connection, RdmaEnd, connect, ends_of
from helpers.rdma_wires import recording_nics
from helpers.tiny import packet_input_of, sends, wired
from hypothesis import given
from hypothesis import strategies as st

from weftwork.base.clock import SECOND_PS
from weftwork.policies.load import load
from weftwork.rdma.queue_pair import NicLimits
from weftwork.rdma.verbs import WcStatus, WrOpcode
from weftwork.spec.device import Ecn, Switch
from weftwork.spec.transport import Transport
from weftwork.testing.rdma_fabric import RdmaFabric
from weftwork.wire.ethernet import ETHERNET_HEADER_BYTES, FCS_BYTES, MINIMUM_FRAME_BYTES
from weftwork.wire.ip import IPV4_HEADER_BYTES
from weftwork.wire.udp import UDP_HEADER_BYTES

SPAN = 1 << 18
LEAF_SPINE = [(0, 4), (1, 4), (2, 5), (3, 5), (4, 6), (4, 7), (5, 6), (5, 7)]
HEADERS_BYTES = ETHERNET_HEADER_BYTES + IPV4_HEADER_BYTES + UDP_HEADER_BYTES + FCS_BYTES


class Flow(NamedTuple):
    """A message of one host to another, or a READ of it."""

    source: int
    target: int
    size_bytes: int
    reads: bool


class Case(NamedTuple):
    """A fabric of two leaves and two spines, and what its hosts send each other."""

    flows: list[Flow]
    is_lossless: bool  # by PFC, in a buffer that is soon above its threshold; else it is soon full
    loss: float
    mtu_bytes: int
    control: str
    seed: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    hosts = st.integers(0, 3)
    ends = st.tuples(hosts, st.sampled_from([3, 3, 2, 1, 0])).filter(lambda both: both[0] != both[1])
    flow = st.builds(
        lambda both, size, reads: Flow(*both, size, reads),
        ends,
        st.sampled_from([0, 1, 4097, SPAN, SPAN]),
        st.sampled_from([False, False, True]),
    )
    return Case(
        flows=draw(st.lists(flow, min_size=3, max_size=8)),
        is_lossless=draw(st.booleans()),
        loss=draw(st.sampled_from([0.0, 0.0, 0.02])),
        mtu_bytes=draw(st.sampled_from([1024, 4096])),
        control=draw(st.sampled_from(["none", "dcqcn"])),
        seed=draw(st.integers(0, 1 << 16)),
    )


def fabric_of(case: Case) -> RdmaFabric:
    ecn = Ecn(kmin_bytes=5_000, kmax_bytes=100_000)
    switch = Switch(
        buffer_bytes=1_000_000 if case.is_lossless else 100_000, reserve_bytes=0, headroom_bytes=100_000, ecn=ecn
    )
    return RdmaFabric(
        packet_input_of(
            wired(LEAF_SPINE, hosts=4, switch=switch, loss=case.loss),
            sends(4, []),
            transport=Transport(lossless_priorities=(3,) if case.is_lossless else ()),
            congestion_control=case.control,
            seed=case.seed,
        )
    )


@given(case=cases())
def test_every_packet_is_accounted_for_and_every_message_ends(case: Case) -> None:
    fabric = fabric_of(case)
    control = None if case.control == "none" else load("congestion_control", case.control)
    nics = recording_nics(
        [bytes((10, 1, 0, host)) for host in range(4)],
        case.seed,
        congestion_control=control,
        line_rate_bps=400_000_000_000,
        limits=NicLimits(max_inflight=64),
    )
    for host, nic in enumerate(nics):
        fabric.attach(host, nic)
    ends = ends_of(nics, SPAN * (len(case.flows) + 1))
    opened = [post(case, ends, at) for at in range(len(case.flows))]

    def have_ended() -> bool:
        return sum(len(end.cq) for end in ends) == len(case.flows)

    assert fabric.wait_for(have_ended, 100 * SECOND_PS)
    fabric.run_until(fabric.now_ps + SECOND_PS)  # until what is still under way has come to its end
    results = {wc.qp_num: wc.status for end in ends for wc in end.cq.poll(64)}
    for at, (flow, connection) in enumerate(zip(case.flows, opened, strict=True)):
        status = results[connection.qp.qp_num]
        source, target = connection.end.buffer, connection.peer.buffer
        place = slice((at + 1) * SPAN, (at + 1) * SPAN + flow.size_bytes)
        if status is WcStatus.SUCCESS:
            assert source[place] == target[: flow.size_bytes] if flow.reads else target[place] == source[place]
        else:
            assert status is WcStatus.RETRY_EXC_ERR
            assert fabric.total("drops") > 0
    # Conservation: what left the NICs has arrived or was dropped, by packets; and nothing that arrived was invented.
    handed_out = [payload for nic in nics for _, payload in nic.handed_out]
    sent_frames = sum(fabric.simulation.ports[host].counts["frames"] for host in range(4))
    sent_bytes = sum(fabric.simulation.ports[host].counts["bytes"] for host in range(4))
    assert sent_frames == len(handed_out)
    assert sent_bytes == sum(max(len(one) + HEADERS_BYTES, MINIMUM_FRAME_BYTES) for one in handed_out)
    assert sent_frames == sum(nic.received for nic in nics) + fabric.total("drops")
    if case.is_lossless and case.loss == 0:
        assert fabric.total("drops") == 0
    assert all(nic.counters.total() == 0 for nic in nics)  # every ICRC was right


def post(case: Case, ends: list[RdmaEnd], at: int) -> Connection:
    """Open a connection for one flow and post its request."""
    flow = case.flows[at]
    made = connect(ends[flow.source], ends[flow.target], path_mtu=case.mtu_bytes, timeout=8)
    place = (at + 1) * SPAN
    if flow.reads:
        made.post(WrOpcode.RDMA_READ, place, flow.size_bytes, 0)
    else:
        made.post(WrOpcode.RDMA_WRITE, place, flow.size_bytes, place)
    return made
