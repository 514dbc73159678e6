"""WCMP on weights from routing: traffic divides by the capacity behind two spines, and again after a link has failed.

Both engines have to agree on every packet.
"""

from __future__ import annotations

import numpy as np
import pytest
from helpers.both import both
from helpers.tiny import Message, flow_input_of, packet_input_of, sends, wired

from weftwork.base.clock import MS_PS
from weftwork.base.errors import ConfigError
from weftwork.engine.flow import run as flow
from weftwork.engine.instants import Fault
from weftwork.policies.load import LoadedPolicy, load
from weftwork.spec.fabric import Fabric
from weftwork.testing.port_selection import check_port_selection

WCMP = load("port_selection", "wcmp")
G = 1_000_000_000
HOSTS = 4  # at each of two leaves
CHANNELS = 32
FAILS_AT_PS, AGAIN_AT_PS = MS_PS, 2 * MS_PS


def two_spines() -> Fabric:
    """Leaves 8 and 9, spines 10 and 11: 400 Gb/s up from leaf 8, down 2 x 100 Gb/s from spine 10 and 100 from 11."""
    links = [(host, 2 * HOSTS + host // HOSTS) for host in range(2 * HOSTS)]
    links += [(8, 10), (8, 11), (10, 9), (10, 9), (11, 9)]
    return wired(links, hosts=2 * HOSTS, rates_bps=[100 * G] * (2 * HOSTS) + [400 * G] * 2 + [100 * G] * 3)


def flows(at_ps: int, first_channel: int = 0) -> list[Message]:
    """One packet on each of 32 channels between each two hosts of different leaves, from leaf 8 to leaf 9."""
    return [
        Message(source=a, destination=HOSTS + b, size_bytes=1_000, at_ps=at_ps, channel=first_channel + channel)
        for a in range(HOSTS)
        for b in range(HOSTS)
        for channel in range(CHANNELS)
    ]


def shares(fabric: Fabric, messages: list[Message], port_selection: LoadedPolicy | str, *faults: Fault) -> list[int]:
    """Data packets by each of the two uplinks of leaf 8; its ACKs go to hosts."""
    outcome = both(packet_input_of(fabric, sends(2 * HOSTS, messages), port_selection=port_selection, faults=faults))
    assert outcome.complete
    base = fabric.ports.base[8] + HOSTS
    return outcome.ports["frames"][base : base + 2].tolist()


def test_it_keeps_its_contract() -> None:
    assert check_port_selection(WCMP) == ()


def test_two_links_behind_one_spine_and_one_behind_the_other_divide_two_to_one() -> None:
    fabric = two_spines()
    by_weight = shares(fabric, flows(0), WCMP)
    assert sum(by_weight) == HOSTS * HOSTS * CHANNELS
    assert by_weight[0] == pytest.approx(2 / 3 * sum(by_weight), rel=0.1)
    assert shares(fabric, flows(0), "ecmp")[0] == pytest.approx(sum(by_weight) / 2, rel=0.1)


def test_weights_follow_a_failure_when_routes_are_computed_anew() -> None:
    """One of the two links behind spine 10 fails: from reconvergence on the spines carry alike."""
    fabric = two_spines()
    fault = Fault(at_ps=FAILS_AT_PS, event="down", link=2 * HOSTS + 2)
    before = shares(fabric, flows(0), WCMP)
    whole = shares(fabric, [*flows(0), *flows(AGAIN_AT_PS, CHANNELS)], WCMP, fault)
    after = np.array(whole) - before
    assert after.sum() == sum(before)
    assert after[0] == pytest.approx(after.sum() / 2, rel=0.1)


def test_flows_take_the_paths_of_packets() -> None:
    """The same flows by the same uplink: the bytes of both engines divide alike."""
    fabric, messages = two_spines(), flows(0)
    by_packet = shares(fabric, messages, WCMP)
    outcome = flow.run(flow_input_of(fabric, sends(2 * HOSTS, messages), port_selection=WCMP))
    base = fabric.ports.base[8] + HOSTS
    by_flow = outcome.link_bytes[base : base + 2]
    assert by_flow[0] / by_flow.sum() == pytest.approx(by_packet[0] / sum(by_packet), rel=1e-9)


def test_flows_refuse_weights_where_packets_of_a_flow_part() -> None:
    sprayed = load("path_selection", "spray")
    with pytest.raises(ConfigError, match="'wcmp' divides the packets of a flow by the weights"):
        flow_input_of(two_spines(), sends(2 * HOSTS, flows(0)), port_selection=WCMP, path_selection=sprayed)
