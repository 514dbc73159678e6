"""What collectives and messages put on links, edge by edge, against the rules of `weftwork.spec.job.Collect`."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.helpers.flow_jobs import Degrees
from tests.laws.test_flow_folding import Case, fabric, packet_input_of

from weftwork.base.random import Stream, draw
from weftwork.engine.flow.flow_input import FlowInput, Mode
from weftwork.engine.flow.folding import FlowFolding
from weftwork.engine.flow.paths import FlowPaths, RoutingMode

EDGE = 1 / 0.8, 1 / 0.9, 0.75  # local and network efficiency and network share of tests.helpers.flow_jobs
Loads = dict[int, float]


class Rules:
    """The rules, one edge after the other."""

    def __init__(self, engine_input: FlowInput, router: FlowPaths) -> None:
        self.engine_input, self.router = engine_input, router
        self.ports, self.ranks = len(engine_input.port_node), len(engine_input.rank_program)
        wire = engine_input.transport
        packet = wire.mtu_bytes + wire.data_overhead_bytes + wire.telemetry_bytes + wire.interframe_bytes
        self.wire = packet / wire.mtu_bytes
        self.columns = engine_input.rank_ports.shape[1]

    def domain(self, rank: int) -> tuple[int, int]:
        return int(self.engine_input.rank_host[rank]), int(self.engine_input.rank_gpu["nvlink_domain"][rank])

    def inside(self, loads: Loads, source: int, destination: int, share: float) -> None:
        has_nvlink = self.engine_input.rank_gpu["nvlink_domain"][source] >= 0
        base = self.ports
        if has_nvlink and self.domain(source) != self.domain(destination):
            base += 2 * self.ranks  # PCIe of a rank that has NVLink as well
        loads[base + 2 * source] += share
        loads[base + 2 * destination + 1] += share

    def across(self, loads: Loads, pair: tuple[int, int, int], ports: tuple[int, int], share: float) -> None:
        source, destination, channel = pair
        flow = source << 40 | destination << 16 | channel
        entropy = 0xC000 | (draw(self.engine_input.seed, Stream.PATH_CHOICE, flow, 0, 0) & 0x3FFF)
        qp = draw(0, Stream.PATH_CHOICE, flow, 1, 0) & 0xFFFFFF
        found = self.router.paths(
            np.array([ports[0]]), np.array([ports[1]]), entropy=np.array([entropy]), destination_qp=np.array([qp])
        )
        for hop in found.hops:
            loads[int(hop["link"])] += share * float(hop["weight"]) * self.wire

    def ring(self, members: list[int], channel: int) -> Loads:
        loads: Loads = defaultdict(float)
        domains: dict[tuple[int, int], list[int]] = {}
        for rank in members:
            domains.setdefault(self.domain(rank), []).append(rank)
        parts = list(domains.values())
        if len(parts) == 1:
            for i, rank in enumerate(members):
                self.inside(loads, rank, members[(i + 1) % len(members)], EDGE[0])
            return loads
        sizes = Counter(len(part) for part in parts)
        rings = max(sizes, key=lambda size: (sizes[size], size))
        for ring in range(rings):
            for index, part in enumerate(parts):
                way = [part[(ring + step) % len(part)] for step in range(len(part))]
                for one, other in itertools.pairwise(way):
                    self.inside(loads, one, other, EDGE[0] / rings)
                far = parts[(index + 1) % len(parts)]
                door, goal = part[ring % len(part)], far[ring % len(far)]
                if self.engine_input.rank_host[way[-1]] == self.engine_input.rank_host[goal]:
                    self.inside(loads, way[-1], goal, EDGE[0] / rings)
                    continue
                for column in range(self.columns):
                    ports = (
                        int(self.engine_input.rank_ports[door, column]),
                        int(self.engine_input.rank_ports[goal, column]),
                    )
                    self.across(loads, (way[-1], goal, channel), ports, EDGE[1] / rings / self.columns)
        return loads

    def all_to_all(self, members: list[int], channel: int) -> Loads:
        loads: Loads = defaultdict(float)
        part = 1 / len(members)
        for source in members:
            for destination in members:
                if source == destination:
                    continue
                if self.engine_input.rank_host[source] == self.engine_input.rank_host[destination]:
                    self.inside(loads, source, destination, part * EDGE[0])
                    continue
                for column in range(self.columns):
                    to = int(self.engine_input.rank_ports[destination, column])
                    rail = to - int(self.engine_input.port_base[self.engine_input.port_node[to]])
                    ports = int(self.engine_input.port_base[self.engine_input.rank_host[source]]) + rail, to
                    share = part * EDGE[2] * EDGE[1] / self.columns
                    self.across(loads, (source, destination, channel), ports, share)
        return loads

    def message(self, source: int, destination: int, channel: int) -> Loads:
        loads: Loads = defaultdict(float)
        if self.engine_input.rank_host[source] == self.engine_input.rank_host[destination]:
            self.inside(loads, source, destination, 1.0)
        else:
            ports = int(self.engine_input.rank_ports[source, 0]), int(self.engine_input.rank_ports[destination, 0])
            self.across(loads, (source, destination, channel), ports, 1.0)
        return loads


ROUTING: dict[Mode, RoutingMode] = {
    Mode.SPRAY: "spray", Mode.HASHED: "hashed", Mode.DETERMINISTIC: "deterministic", Mode.WEIGHTED: "weighted",
}  # fmt: skip
EXPERT = 5  # channel of tests.helpers.flow_jobs


def hops_of(graph: dict[str, Any], activity: int, skip: int) -> Loads:
    """Without host interfaces, which begin at link ``skip``."""
    own = range(graph["hop_ptr"][activity], graph["hop_ptr"][activity + 1])
    return {int(graph["hop_link"][i]): float(graph["hop_weight"][i]) for i in own if graph["hop_link"][i] < skip}


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("name", ["rails", "rails, 3 tiers", "halves", "fat tree"])
@pytest.mark.parametrize(
    "degrees",
    [
        Degrees(tensor=2, context=2, pipeline=2, data=8, expert=8),
        Degrees(tensor=4, pipeline=2, data=16, expert=16, near=False),
        Degrees(tensor=3, pipeline=3, data=5, expert=5),
        Degrees(tensor=1, data=24, expert=12),
    ],
)
@pytest.mark.parametrize("order", ["packed", "random"])
def test_every_activity_loads_what_its_rule_says(mode: Mode, name: str, degrees: Degrees, order: str) -> None:
    engine_input = packet_input_of(Case(name, degrees, mode, order))
    rules = Rules(engine_input, FlowPaths(fabric(name), ROUTING[mode]))
    graph = FlowFolding(engine_input, "never").graph
    host_interfaces = rules.ports + 4 * rules.ranks
    connections = len(graph["source"])
    assert connections == 2 * (degrees.pipeline - 1) * degrees.ranks // degrees.pipeline
    patterns = set()
    for activity in range(len(graph["latency_ps"])):
        found = hops_of(graph, activity, host_interfaces)
        if activity < connections:
            pair = [int(graph[end][activity]) for end in ("source", "destination", "channel")]
            wanted = rules.message(*pair)
        else:
            group = int(graph["communicator"][activity - connections])
            members = graph["members"][graph["member_ptr"][group] : graph["member_ptr"][group + 1]].tolist()
            channel = int(graph["communicator_channel"][group])
            patterns.add(channel)
            wanted = rules.all_to_all(members, channel) if channel == EXPERT else rules.ring(members, channel)
        assert found == pytest.approx(dict(wanted), rel=1e-12)
    assert EXPERT in patterns


def test_a_slow_host_interface_is_a_link_of_its_own() -> None:
    engine_input = packet_input_of(Case("rails", Degrees(tensor=8, pipeline=2, data=2), Mode.SPRAY))
    nics = engine_input.nics.copy()
    nics["pcie_rate_bps"] = 100_000_000_000
    folded = FlowFolding(replace(engine_input, nics=nics), "never")
    graph, first = folded.graph, len(engine_input.port_node) + 4 * len(engine_input.rank_program)
    crossed = np.unique(graph["hop_link"][graph["hop_link"] >= first]) - first
    # the ports by which something arrives: of every rank that a message, a ring or its embeddings reach
    assert set(crossed.tolist()) == set(engine_input.rank_ports[:, 0].tolist())
    assert folded.capacity[first + crossed].tolist() == pytest.approx([100e9 / 8e12] * len(crossed))
