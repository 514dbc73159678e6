"""Messages inside a server, worked out on paper: slices, turns, ingresses, and how they mix with packets."""

import pytest
from helpers.both import both
from helpers.tiny import BYTE_PS, DELAY_PS, job_of, packet_input_of, pair, wired

from weftwork.base.clock import US_PS
from weftwork.base.errors import ConfigError
from weftwork.engine import packet
from weftwork.engine.outcome import Outcome
from weftwork.engine.rows.outcome import EVENT_KINDS
from weftwork.spec.device import Server
from weftwork.spec.job import At, Group, Milestone, Operation, Peer, Receive, Send, Size, Wait
from weftwork.spec.transport import Transport

NVLINK_BPS, PCIE_BPS = 4_000_000_000_000, 500_000_000_000  # a byte takes 2 ps, or 16
NVLINK_PS, PCIE_PS = 300_000, 1_000_000
SLICE_BYTES = 1_000
SLICE_PS = 2 * SLICE_BYTES
SERVER = Server(
    gpus=4,
    nvlink_domain_gpus=2,
    nvlink_rate_bps=NVLINK_BPS,
    nvlink_latency_ps=NVLINK_PS,
    pcie_rate_bps=PCIE_BPS,
    pcie_latency_ps=PCIE_PS,
    slice_bytes=SLICE_BYTES,
)

pytestmark = pytest.mark.sanitize


def to(rank: int, size_bytes: int, channel: int = 0) -> Send:
    return Send(peer=Peer(rule="rank", shift=rank), size=Size(total_bytes=size_bytes), channel=channel)


def of(rank: int, channel: int = 0) -> Receive:
    return Receive(peer=Peer(rule="rank", shift=rank), channel=channel)


def server(*programs: list[list[Operation]], gpus: tuple[int, ...] = (0, 1, 2, 3)) -> Outcome:
    """Ranks on the GPUs of host 0, and an idle host 1 beside it."""
    job = job_of([*programs, []], hosts=[0] * len(programs) + [1], gpus=[*gpus[: len(programs)], 0])
    return both(packet_input_of(pair(server=SERVER), job))


@pytest.mark.parametrize(("gpus", "byte_ps", "latency_ps"), [((0, 1), 2, NVLINK_PS), ((1, 2), 16, PCIE_PS)])
@pytest.mark.parametrize("size_bytes", [0, 1, 999, 1_000, 1_001, 123_456])
def test_a_lone_message_takes_latency_and_size_by_rate(
    gpus: tuple[int, int], byte_ps: int, latency_ps: int, size_bytes: int
) -> None:
    outcome = server(
        [[At(at_ps=7), to(1, size_bytes), Wait(), Milestone(name=0)]], [[of(0), Wait(), Milestone(name=1)]], gpus=gpus
    )
    there_ps = 7 + latency_ps + size_bytes * byte_ps
    row = outcome.messages[0]
    assert (row["size_bytes"], row["posted_at_ps"]) == (size_bytes, 7)
    assert row["delivered_at_ps"] == row["acked_at_ps"] == there_ps
    assert outcome.milestones["at_ps"].tolist() == [there_ps] * 2
    assert outcome.counters["end_ps"] == outcome.simulated_ps == there_ps
    assert sum(outcome.counters.values()) == there_ps  # nothing else is counted
    assert outcome.complete


def test_what_a_fast_ingress_takes_from_a_slow_egress_is_not_there_before_it_has_left() -> None:
    # The NVLink switch of a domain of two has twice the rate of a GPU.
    up = server([[to(1, 5_000)]], [], gpus=(0, -1))
    assert up.messages["delivered_at_ps"].tolist() == [NVLINK_PS + 5 * SLICE_PS]
    down = server([], [[to(0, 5_000)]], gpus=(0, -1))
    assert down.messages["delivered_at_ps"].tolist() == [NVLINK_PS + 5 * SLICE_PS]
    both_gpus = server([[to(2, 5_000)]], [[to(2, 5_000)]], [], gpus=(0, 1, -1))
    # Slices of the second GPU find the ingress taken for half a slice's time, and are there a whole one after leaving.
    assert both_gpus.messages["delivered_at_ps"].tolist() == [NVLINK_PS + 5 * SLICE_PS] * 2


def test_two_senders_share_the_ingress_of_one_receiver_slice_by_slice() -> None:
    # Both start slice k at k; the ingress takes them one after the other: 0's, 1's, 0's, 1's.
    outcome = server([[to(2, 3_000)]], [[to(2, 3_000)]], [], gpus=(0, 1, -1))
    assert len(set(outcome.messages["delivered_at_ps"].tolist())) == 1  # the switch is fast enough for both
    slow = server([[to(1, 3_000)]], [], [[to(1, 3_000)]], gpus=(0, 1, -1))
    # The NVLink switch starts its slices twice as fast: at 0, 1/2, 1; GPU 0 at 0, 1, 2. Six in a row at the ingress,
    # in the order in which they were started: 0, s, s, 0, s, 0 (at 1 the egress of the lower rank is first).
    assert slow.messages["delivered_at_ps"].tolist() == [NVLINK_PS + 6 * SLICE_PS, NVLINK_PS + 5 * SLICE_PS]


def test_lanes_of_an_egress_take_turns_by_slices() -> None:
    # Slices on the wire: a b c a b a, of lanes with 3, 2 and 1 slices in the order of their first SEND.
    outcome = server([[to(1, 2_500, 5), to(1, 2_000, 2), to(1, 1_000, 9)]], [])
    by_channel = dict(
        zip(outcome.messages["channel"].tolist(), outcome.messages["delivered_at_ps"].tolist(), strict=True)
    )
    assert by_channel == {
        5: NVLINK_PS + 5 * SLICE_PS + SLICE_PS // 2,
        2: NVLINK_PS + 5 * SLICE_PS,
        9: NVLINK_PS + 3 * SLICE_PS,
    }


def test_messages_of_a_lane_do_not_overtake_each_other() -> None:
    outcome = server([[to(1, 2_000), to(1, 0), to(1, 1_500)]], [])
    arrivals = [2 * SLICE_PS, 2 * SLICE_PS, 2 * SLICE_PS + SLICE_PS * 3 // 2]
    assert outcome.messages["delivered_at_ps"].tolist() == [NVLINK_PS + at for at in arrivals]


def test_nvlink_and_pcie_of_a_rank_do_not_share() -> None:
    outcome = server([[to(1, 4_000), to(2, 4_000)]], [], [])
    assert outcome.messages["delivered_at_ps"].tolist() == [NVLINK_PS + 8_000, PCIE_PS + 64_000]


def test_a_stream_that_a_delivery_wakes_runs_before_the_next_delivery_of_that_instant() -> None:
    # Both messages are there at one instant; the stream posts between the deliveries, as the agenda's kinds say.
    job: list[list[list[Operation]]] = [
        [[to(2, 0), Wait()]],
        [[to(2, 0), Wait()]],
        [[of(0), Wait(), Milestone(name=0)], [of(1), Wait(), Milestone(name=1)]],
    ]
    outcome = server(*job, gpus=(0, 1, -1))
    assert outcome.messages["delivered_at_ps"].tolist() == [NVLINK_PS] * 2
    assert outcome.milestones["name"].tolist() == [0, 1]


def test_a_stream_runs_before_a_delivery_of_that_instant() -> None:
    # At the instant of a delivery the second stream posts first; the one that the delivery wakes finds the egress busy.
    there_ps = NVLINK_PS + SLICE_PS
    woken: list[Operation] = [of(0), Wait(), to(0, 1_000, 1), Wait()]
    timed: list[Operation] = [At(at_ps=there_ps), to(0, 1_000, 2), Wait()]
    outcome = server([[to(1, 1_000), Wait()]], [woken, timed])
    assert outcome.messages["channel"].tolist() == [0, 1, 2]
    assert outcome.messages["posted_at_ps"].tolist() == [0, there_ps, there_ps]
    assert (outcome.messages["delivered_at_ps"] // there_ps).tolist() == [1, 2, 2]
    assert outcome.messages["delivered_at_ps"].tolist()[1:] == [2 * there_ps + SLICE_PS, 2 * there_ps]


def test_a_delivery_comes_before_the_egress_is_free_at_that_instant() -> None:
    # Without latency a slice is delivered when its egress is free. At 3 slices the stream that this wakes posts on its
    # second lane, which comes before the third, where two slices have waited.
    near = SERVER.model_copy(update={"nvlink_latency_ps": 0})
    first: list[Operation] = [to(1, 1_000), to(1, 1_000, 1), Wait(), to(1, 1_000), Wait(), to(1, 1_000, 1), Wait()]
    second: list[Operation] = [At(at_ps=2 * SLICE_PS + 1), to(1, 2_000, 2), Wait()]
    outcome = both(
        packet_input_of(pair(server=near), job_of([[first, second], [], []], hosts=[0, 0, 1], gpus=[0, 1, 0]))
    )
    assert outcome.messages["channel"].tolist() == [0, 0, 1, 1, 2]
    assert (outcome.messages["delivered_at_ps"] // SLICE_PS).tolist() == [1, 3, 2, 4, 6]


def test_packets_and_messages_inside_a_server_go_on_side_by_side() -> None:
    # Rank 0 sends to its neighbour and to the other host, whose rank answers its own neighbour once it has received.
    programs: list[list[list[Operation]]] = [
        [[to(1, 1_000), to(2, 4_096), Wait(), Milestone(name=0)]],
        [[of(0), Wait(), Milestone(name=0)]],
        [[of(0), Wait(), to(3, 1_000), Wait(), Milestone(name=1)]],
        [[of(2), Wait(), Milestone(name=1)]],
    ]
    outcome = both(packet_input_of(pair(server=SERVER), job_of(programs, hosts=[0, 0, 1, 1], gpus=[0, 1, 0, 1])))
    packet_ps = (4_096 + 62 + 16 + 20) * BYTE_PS + DELAY_PS
    ack_ps = (66 + 20) * BYTE_PS + DELAY_PS
    near_ps = NVLINK_PS + SLICE_PS
    assert outcome.messages["delivered_at_ps"].tolist() == [near_ps, packet_ps, packet_ps + near_ps]
    assert outcome.messages["acked_at_ps"].tolist() == [near_ps, packet_ps + ack_ps, packet_ps + near_ps]
    assert outcome.milestones["at_ps"].tolist() == [
        packet_ps + ack_ps,
        near_ps,
        packet_ps + near_ps,
        packet_ps + near_ps,
    ]
    assert outcome.counters["packet_hops"] == 2
    assert outcome.counters["end_ps"] == packet_ps + max(ack_ps, near_ps)


def test_a_run_that_stops_before_a_delivery_does_not_have_it() -> None:
    job = job_of([[[to(1, 1_000), Wait()]], [], []], hosts=[0, 0, 1], gpus=[0, 1, 0])
    there_ps = NVLINK_PS + SLICE_PS
    cut = both(packet_input_of(pair(server=SERVER), job, until_ps=there_ps))
    assert (cut.messages["delivered_at_ps"].tolist(), cut.complete, cut.counters["end_ps"]) == ([-1], False, 0)
    whole = both(packet_input_of(pair(server=SERVER), job, until_ps=there_ps + 1))
    assert (whole.messages["delivered_at_ps"].tolist(), whole.complete) == ([there_ps], True)


def test_groups_by_members_meet_on_both_sides_of_a_server() -> None:
    # A ring over ranks 2, 0, 3, 1; 0 and 1 are on host 0.
    ring = Group(size=4, members=(2, 0, 3, 1))
    body: list[Operation] = [
        Send(peer=Peer(rule="shift", group=ring, shift=1), size=Size(total_bytes=100)),
        Receive(peer=Peer(rule="shift", group=ring, shift=-1)),
        Wait(),
    ]
    outcome = both(packet_input_of(pair(server=SERVER), job_of([[body]] * 4, hosts=[0, 0, 1, 1], gpus=[0, 1, 0, 1])))
    pairs = list(zip(outcome.messages["source"].tolist(), outcome.messages["destination"].tolist(), strict=True))
    assert pairs == [(0, 3), (1, 2), (2, 0), (3, 1)]
    assert outcome.complete
    inside = both(packet_input_of(pair(server=SERVER), job_of([[body]] * 4, hosts=[0, 1, 0, 1], gpus=[0, 0, 1, 1])))
    is_near = inside.messages["delivered_at_ps"] == inside.messages["acked_at_ps"]
    assert is_near.tolist() == [False, False, True, True]  # 2 to 0 and 3 to 1


def test_a_message_that_waits_for_its_turn_starts_when_the_egress_is_free() -> None:
    # Posted in the middle of another slice, which ends first.
    outcome = server([[to(1, 1_000), At(at_ps=SLICE_PS // 2), to(1, 1_000, 1)]], [])
    assert outcome.messages["delivered_at_ps"].tolist() == [NVLINK_PS + SLICE_PS, NVLINK_PS + 2 * SLICE_PS]


def test_nvlink_without_a_rate_is_refused() -> None:
    job = job_of([[[to(1, 1)]], []], hosts=[0, 0], gpus=[0, 1])
    with pytest.raises(ConfigError, match="found NVLink of 0 b/s in 'n0', wanted more than 0"):
        packet_input_of(pair(server=Server(gpus=2, nvlink_domain_gpus=2)), job)


@pytest.mark.parametrize(
    ("nic", "rail", "ports"), [(0, "own", [0, 2]), (1, "own", [1, 2]), (0, "peer", [0, 2]), (1, "peer", [0, 2])]
)
def test_a_column_chooses_ports_at_both_ends_and_a_rail_is_that_of_the_peer(
    nic: int, rail: str, ports: list[int]
) -> None:
    # Two hosts with ports 0 and 1, 2 and 3 around a switch; the second rank uses its port 0 in both columns.
    fabric = wired([(0, 2), (0, 2), (1, 2), (1, 2)], hosts=2)
    send = Send(
        peer=Peer(rule="rank", shift=1), size=Size(total_bytes=1), nic=nic, rail="peer" if rail == "peer" else "own"
    )
    outcome = both(packet_input_of(fabric, job_of([[[send, Wait()]], []], nics=[[0, 1], [0, 0]])))
    assert outcome.complete
    assert outcome.ports["frames"][:4].nonzero()[0].tolist() == ports


def test_the_rail_of_a_peer_is_refused_where_a_host_does_not_have_the_port() -> None:
    fabric = wired([(0, 2), (0, 2), (1, 2)], hosts=2)
    send = Send(peer=Peer(rule="rank", shift=0), size=Size(total_bytes=1), rail="peer")
    with pytest.raises(ConfigError, match="found the rail of the peer with NIC port 1, but 'n1' has 1"):
        packet_input_of(fabric, job_of([[], [[send]]], nics=[[0, 1], [0, 0]]))


def test_what_is_recorded_names_queue_pairs_by_their_place_among_all_that_carry_messages() -> None:
    # In order: 0 to 1 inside the server, 0 to 2 and 1 to 2 by packets, which are all lost.
    job = job_of([[[to(1, 1), to(2, 1)]], [[to(2, 1)]], []], hosts=[0, 0, 1], gpus=[0, 1, 0])
    lossy = pair(server=SERVER, loss=1.0)
    transport = Transport(retransmission_timeout_ps=10 * US_PS, retry_limit=0)
    outcome = packet.run(
        packet_input_of(lossy, job, transport=transport),
        series=packet.Series(every_ps=US_PS, flows=None, path_sample=1),
        event_limit=10,
    )
    assert set(outcome.series["index"].tolist()) == {1, 2}
    assert outcome.paths["queue_pair"].tolist() == [1, 2]
    timeouts = outcome.events["kind"] == EVENT_KINDS.index("timeout")
    assert outcome.events["place"][timeouts].tolist() == [1, 2]
