"""Published policies, small, in tests/policies: each keeps its contract, and does in a network what it is known for.

What each case says of the result would not hold if the mechanism did nothing. Both engines have to agree on all of it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.both import both
from helpers.direct_networks import dragonfly, ring, torus
from helpers.tiny import Message, sends, wired

from weftwork.base.clock import MS_PS, NEVER_PS, US_PS
from weftwork.engine.lower import lower
from weftwork.engine.outcome import Outcome
from weftwork.engine.packet_input import PacketInput
from weftwork.engine.settings import EngineSettings
from weftwork.policies.load import LoadedPolicy, load
from weftwork.spec.device import Ecn, Nic, Switch
from weftwork.spec.fabric import Fabric
from weftwork.spec.scenario.policies import PolicyKind
from weftwork.spec.transport import Transport
from weftwork.testing.port_selection import check_port_selection
from weftwork.topology.routing import attachments, switch_distances

OURS = Path(__file__).parents[3] / "policies"
PORTS = ("dateline", "ugal", "valiant")
G = 1_000_000_000
RATE_BPS = 100 * G
PROBE_BYTES = 1_000
SPRAYED = Transport(reorder_tolerant=True)
CUT = Transport(
    recovery="selective-repeat", reorder_threshold_packets=64, trim_bytes=64, lossless_priorities=(), retry_limit=100,
    retransmission_timeout_ps=10 * MS_PS,
)  # fmt: skip


@cache
def named(kind: PolicyKind, name: str, parameters: tuple[tuple[str, Any], ...] = ()) -> LoadedPolicy:
    """A policy of the tests, or of the catalogue."""
    file = OURS / f"{name}.py"
    return load(kind, file if file.is_file() else name, dict(parameters))


def plan(
    fabric: Fabric,
    messages: list[Message],
    *,
    control: str = "none",
    path: str | None = None,
    port: str = "ecmp",
    transport: Transport | None = None,
    until_ps: int = NEVER_PS,
    **parameters: Any,
) -> PacketInput:
    """An engine input; `parameters` are those of the one policy that is no default."""
    given = tuple(parameters.items())
    return lower(
        fabric=fabric,
        job=sends(len(fabric.hosts), messages),
        transport=transport or Transport(),
        congestion_control=named("congestion_control", control, given if control != "none" else ()),
        settings=EngineSettings(
            path_selection=None if path is None else named("path_selection", path, given if control == "none" else ()),
            port_selection=named("port_selection", port, given if control == "none" and path is None else ()),
            until_ps=until_ps,
        ),
    )


def star(hosts: int, *, switch: Switch | None = None, nic: Nic | None = None) -> Fabric:
    """Hosts around one switch, 100 Gb/s and 1 us."""
    return wired(
        [(host, hosts) for host in range(hosts)],
        hosts=hosts,
        switch=switch,
        nic=nic,
        rates_bps=[RATE_BPS] * hosts,
        delays_ps=[US_PS] * hosts,
    )


def two_leaves(per_leaf: int, up_bps: list[int], down_bps: list[int] | None = None, **devices: Any) -> Fabric:
    """Hosts at two leaves; the first leaf's and the second leaf's links to each spine have these rates."""
    hosts, spines = 2 * per_leaf, len(up_bps)
    links = [(host, hosts + host // per_leaf) for host in range(hosts)]
    links += [(hosts + leaf, hosts + 2 + spine) for leaf in range(2) for spine in range(spines)]
    rates = [RATE_BPS] * hosts + up_bps + (up_bps if down_bps is None else down_bps)
    return wired(links, hosts=hosts, rates_bps=rates, delays_ps=[US_PS] * len(links), **devices)


def incast(senders: int, size_bytes: int) -> list[Message]:
    """Hosts 0 and up send to the one behind them."""
    return [Message(source=source, destination=senders, size_bytes=size_bytes) for source in range(senders)]


def probes(source: int, destination: int, times_ps: range) -> list[Message]:
    """Small messages, whose times are those of the queue."""
    return [Message(source=source, destination=destination, size_bytes=PROBE_BYTES, at_ps=at_ps) for at_ps in times_ps]


def across(hosts: int, size_bytes: int, times_ps: range = range(1)) -> list[Message]:
    """Each host of the first leaf sends to the one opposite, once at each of these times."""
    return [
        Message(source=host, destination=host + hosts, size_bytes=size_bytes, at_ps=at_ps)
        for at_ps in times_ps
        for host in range(hosts)
    ]


def times_ps(outcome: Outcome, size_bytes: int) -> list[int]:
    """From posting to delivery, of messages of this size."""
    rows = outcome.messages[outcome.messages["size_bytes"] == size_bytes]
    return (rows["delivered_at_ps"] - rows["posted_at_ps"]).tolist()


def run(engine_input: PacketInput) -> Outcome:
    """Both engines' outcome, in which all has arrived."""
    outcome = both(engine_input)
    assert (outcome.messages["delivered_at_ps"] >= 0).all()
    return outcome


def took_ps(outcome: Outcome) -> int:
    """Longest time from posting a message to its delivery."""
    return int((outcome.messages["delivered_at_ps"] - outcome.messages["posted_at_ps"]).max())


def port_towards(engine_input: PacketInput, node: int, peer: int) -> int:
    """The port of a node at whose other end is `peer`."""
    first, last = engine_input.port_base[node], engine_input.port_base[node + 1]
    return next(port for port in range(first, last) if engine_input.port_node[engine_input.port_peer[port]] == peer)


def frames(engine_input: PacketInput, outcome: Outcome, links: list[tuple[int, int]]) -> list[int]:
    """Packets that went over these links, each from a node to a node."""
    return [int(outcome.ports["frames"][port_towards(engine_input, node, peer)]) for node, peer in links]


def least_ps(size_bytes: int, rate_bps: int = RATE_BPS) -> int:
    """Time of so much payload on a link, without any header."""
    return size_bytes * 8 * 10**12 // rate_bps


# Contracts


@pytest.mark.parametrize("name", PORTS)
def test_a_port_selection_keeps_its_contract(name: str) -> None:
    assert check_port_selection(named("port_selection", name)) == ()


# Networks


@pytest.mark.parametrize(
    ("fabric", "hosts", "routers", "ports", "hops"),
    [
        (dragonfly(2, 4, 2), 72, 36, 2 + 3 + 2, 3),
        (dragonfly(4, 8, 0), 32, 8, 4 + 7, 1),
        (torus(4, 2), 16, 16, 1 + 4, 4),
        (ring(8), 8, 8, 1 + 2, 4),
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_a_direct_network_has_its_shape(fabric: Fabric, hosts: int, routers: int, ports: int, hops: int) -> None:
    assert len(fabric.hosts) == hosts
    assert np.diff(fabric.ports.base)[hosts:].tolist() == [ports] * routers
    nodes, _ = attachments(fabric)
    assert nodes.tolist() == list(range(hosts, hosts + routers))
    assert switch_distances(fabric, np.ones(len(fabric.links), np.bool_), nodes).max() == hops


def test_groups_of_a_dragonfly_are_linked_once_each() -> None:
    fabric = dragonfly(2, 4, 2)
    assert fabric.node_pod is not None
    pods = fabric.node_pod[np.stack([fabric.links["a"], fabric.links["b"]])]
    between = pods[:, pods[0] != pods[1]]
    assert len({tuple(sorted(pair)) for pair in between.T.tolist()}) == between.shape[1] == 9 * 8 // 2


# Port selections


def test_a_dateline_frees_a_ring_from_its_deadlock() -> None:
    fabric = ring(8, switch=Switch(forwarding_latency_ps=0, buffer_bytes=400_000, headroom_bytes=30_000))
    messages = [
        Message(source=source, destination=destination, size_bytes=150_000)
        for source in range(8)
        for destination in range(8)
        if source != destination
    ]
    stuck = both(plan(fabric, messages))
    assert len(stuck.deadlock) == 8
    assert (stuck.messages["delivered_at_ps"] >= 0).sum() == 0
    freed = run(plan(fabric, messages, port="dateline"))
    assert len(freed.messages) == 56
    assert freed.counters["timeouts"] == 0


def test_valiant_spreads_what_goes_between_two_routers() -> None:
    """Four hosts at each router share one link to the next one; by way of the others there are seven."""
    messages = [Message(source=host, destination=(host + 4) % 32, size_bytes=65_536) for host in range(32)]
    direct = took_ps(run(plan(dragonfly(4, 8, 0), messages, transport=SPRAYED)))
    assert direct > 4 * least_ps(65_536)
    assert took_ps(run(plan(dragonfly(4, 8, 0), messages, port="valiant", transport=SPRAYED))) < 0.65 * direct


def test_ugal_leaves_the_shortest_paths_where_all_go_to_the_next_group() -> None:
    messages = [Message(source=host, destination=(host + 8) % 72, size_bytes=65_536) for host in range(72)]
    never = plan(dragonfly(2, 4, 2), messages, port="ugal", transport=SPRAYED, bias_bytes=10**12)
    shortest = took_ps(run(never))
    freely = run(plan(dragonfly(2, 4, 2), messages, port="ugal", transport=SPRAYED))
    assert took_ps(freely) < 0.7 * shortest
    assert freely.counters["drop_no_route"] == 0


def test_drill_keeps_queues_shorter_than_a_spray() -> None:
    queues = {}
    for name in ("spray", "drill"):
        engine_input = plan(two_leaves(4, [RATE_BPS] * 4), across(4, 400_000), port=name, transport=SPRAYED)
        outcome = run(engine_input)
        uplinks = [port_towards(engine_input, 8, spine) for spine in range(10, 14)]
        queues[name] = int(outcome.ports["max_queue_bytes"][uplinks].max())
    assert queues["drill"] < 0.5 * queues["spray"]


def test_ars_gives_each_of_four_flows_an_uplink_of_its_own() -> None:
    messages = [
        Message(source=host, destination=host + 4, size_bytes=1_500_000, at_ps=40 * US_PS * host) for host in range(4)
    ]
    uplinks = [(8, spine) for spine in range(10, 14)]
    by_hash = plan(two_leaves(4, [RATE_BPS] * 4), messages)
    assert min(frames(by_hash, run(by_hash), uplinks)) == 0
    by_quality = plan(two_leaves(4, [RATE_BPS] * 4), messages, port="ars")
    assert len(set(frames(by_quality, run(by_quality), uplinks))) == 1


def test_conga_leaves_a_spine_whose_link_to_the_other_leaf_is_slow() -> None:
    """The first leaf's own links are alike, so that only what the other leaf tells can say it."""
    fabric = two_leaves(4, [4 * RATE_BPS] * 2, [4 * RATE_BPS, RATE_BPS // 10])
    messages = across(4, 32_768, range(0, 400 * US_PS, 20 * US_PS))
    slow = [(11, 9)]
    by_hash = plan(fabric, messages, transport=SPRAYED)
    outcome = run(by_hash)
    told = plan(fabric, messages, port="conga", transport=SPRAYED, dre_ps=5 * US_PS, gap_ps=8 * US_PS)
    better = run(told)
    assert frames(told, better, slow)[0] < 0.1 * frames(by_hash, outcome, slow)[0]
    assert took_ps(better) < 0.1 * took_ps(outcome)


# Path selection


def test_plb_leaves_a_path_that_marks() -> None:
    fabric = two_leaves(
        4, [4 * RATE_BPS, RATE_BPS // 10], switch=Switch(ecn=Ecn(kmin_bytes=8_000, kmax_bytes=8_000, pmax=1))
    )
    window = {"control": "fixed-window", "window_bytes": 16_384}
    stays = took_ps(run(plan(fabric, across(4, 1_000_000), **window)))
    assert took_ps(run(plan(fabric, across(4, 1_000_000), path="plb", **window))) < 0.7 * stays


# Congestion controls


def test_dctcp_keeps_the_queue_near_its_threshold() -> None:
    threshold_bytes = 60_000
    ecn = Ecn(kmin_bytes=threshold_bytes, kmax_bytes=threshold_bytes, pmax=1)
    fabric = star(6, switch=Switch(ecn=ecn))
    deaf = run(plan(fabric, incast(4, 1_000_000), control="reno"))
    assert deaf.ports["max_queue_bytes"].max() > 20 * threshold_bytes
    messages = [*incast(4, 2_000_000), *probes(5, 4, range(400 * US_PS, 600 * US_PS, 10 * US_PS))]
    outcome = run(plan(fabric, messages, control="dctcp"))
    assert outcome.ports["max_queue_bytes"].max() < 5 * threshold_bytes  # slow start goes above it
    waits_ps = [time_ps - 2 * US_PS for time_ps in times_ps(outcome, PROBE_BYTES)]
    assert max(waits_ps) < 1.7 * least_ps(threshold_bytes)  # without alpha twice the threshold and more
    assert took_ps(outcome) < 1.1 * least_ps(8_000_000)


def test_swift_keeps_the_delay_near_its_target() -> None:
    messages = [*incast(4, 2_000_000), *probes(5, 4, range(200 * US_PS, 600 * US_PS, 20 * US_PS))]
    fabric = star(6)
    assert min(times_ps(run(plan(fabric, messages)), PROBE_BYTES)) > 70 * US_PS
    outcome = run(plan(fabric, messages, control="swift", base_target_ps=10 * US_PS, scaling_ps=0))
    assert min(times_ps(outcome, PROBE_BYTES)) > 5 * US_PS  # the target is 11 us there and back, with one switch
    assert max(times_ps(outcome, PROBE_BYTES)) < 11 * US_PS
    assert took_ps(outcome) < 1.05 * least_ps(8_000_000)


def test_swift_spares_a_host_that_cannot_keep_up() -> None:
    """The window of the fabric alone would hold more than the NIC's buffer takes before it asks for a pause."""
    nic = Nic(pcie_rate_bps=RATE_BPS // 2, receive_buffer_bytes=400_000, xoff_bytes=100_000, xon_bytes=80_000)
    fabric = star(2, nic=nic)
    assert run(plan(fabric, incast(1, 4_000_000))).ports["pauses_sent"].sum() > 0
    outcome = run(plan(fabric, incast(1, 4_000_000), control="swift", host_target_ps=5 * US_PS))
    assert outcome.ports["pauses_sent"].sum() == 0
    assert took_ps(outcome) < 1.05 * least_ps(4_000_000, RATE_BPS // 2)


def test_swift_paces_windows_below_a_packet() -> None:
    """Eighty senders of a packet each would be 20 us of queue; a path without queues holds 15 packets."""
    messages = [*incast(80, 100_000), *probes(81, 80, range(400 * US_PS, 600 * US_PS, 20 * US_PS))]
    outcome = run(plan(star(82), messages, control="swift", base_target_ps=8 * US_PS, scaling_ps=0, initial_packets=1))
    assert max(times_ps(outcome, PROBE_BYTES)) < 12 * US_PS
    assert took_ps(outcome) < 1.3 * least_ps(8_000_000)


@pytest.mark.parametrize("variant", ["zhu-repo", "patched"])
def test_timely_empties_the_queue_and_comes_back(variant: str) -> None:
    messages = [*incast(4, 2_000_000), *probes(5, 4, range(200 * US_PS, 600 * US_PS, 20 * US_PS))]
    limits = {"low_ps": 8 * US_PS, "high_ps": 20 * US_PS, "min_rtt_ps": 6 * US_PS, "increase_rate_bps": 200_000_000}
    limits |= {"start_fraction": 1, "hyper_after": 5}
    outcome = run(plan(star(6), messages, control="timely", variant=variant, **limits))
    assert max(times_ps(outcome, PROBE_BYTES)) < 40 * US_PS  # 70 us and more without control, as above
    assert took_ps(outcome) < 2 * least_ps(8_000_000)  # at the rates to which it falls at first, five times as long


@pytest.mark.parametrize("name", ["reno", "cubic"])
def test_a_tcp_loses_a_tenth_of_what_is_lost_without_control(name: str) -> None:
    lossy = Transport(
        recovery="selective-repeat", lossless_priorities=(), retransmission_timeout_ps=MS_PS, retry_limit=100
    )
    fabric = star(5, switch=Switch(buffer_bytes=300_000))
    lost = run(plan(fabric, incast(4, 1_000_000), transport=lossy)).counters["drop_egress_threshold"]
    held = run(plan(fabric, incast(4, 1_000_000), transport=lossy, control=name)).counters["drop_egress_threshold"]
    assert 0 < held < 0.1 * lost


def test_nscc_needs_few_cuts_and_no_timeout_for_an_incast() -> None:
    ecn = Ecn(kmin_bytes=20_000, kmax_bytes=80_000, pmax=1, at="dequeue")
    fabric = star(7, switch=Switch(buffer_bytes=400_000, egress_alpha=0.5, ecn=ecn))
    freely = run(plan(fabric, incast(6, 1_000_000), transport=CUT))
    outcome = run(plan(fabric, incast(6, 1_000_000), control="nscc", transport=CUT))
    assert outcome.counters["timeouts"] == 0
    assert 0 < outcome.counters["trims"] < 0.1 * freely.counters["trims"]
    assert took_ps(outcome) < 1.1 * least_ps(6_000_000)
