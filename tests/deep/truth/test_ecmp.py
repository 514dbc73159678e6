"""How flows collide when switches hash them: against the statistics of balls in bins, and polarisation with its cures.

Source: Raab and Steger, "Balls into Bins", RANDOM 1998, doi:10.1007/3-540-49543-6_13, for the model; its exact
distribution is the coefficient of a power series (Flajolet and Sedgewick, Analytic Combinatorics, section II.3):

    P(max load <= k) = n! / m^n  [x^n] (sum of x^i / i! for i = 0 .. k)^m    for n flows on m links

The CRC of real headers, with addresses in a row, has to behave like it. Leaves out: flows of unequal size.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from random import Random

import numpy as np
import pytest
from helpers.figures import Show
from helpers.tiny import DELAY_PS, RATE_BPS, job_of, packet_input_of
from numpy.typing import NDArray

from weftwork.base.random import Stream, draw
from weftwork.engine.hashing import field_bytes, final_hash
from weftwork.engine.packet import run
from weftwork.engine.rows.fabric import HashAlgorithm, HashField
from weftwork.spec.device import HashFunction, Nic, Switch
from weftwork.spec.fabric import HOST, SWITCH
from weftwork.spec.job import Operation, Peer, Send, Size
from weftwork.spec.transport import Transport
from weftwork.topology.assemble import assemble, links_between
from weftwork.topology.shapes.leaf_spine import leaf_spine

FIVE_TUPLE = HashField.SRC_IP | HashField.DST_IP | HashField.PROTOCOL | HashField.SRC_PORT | HashField.DST_PORT
WIRE = Transport(first_extra_bytes=0)
PACKET = Size(total_bytes=WIRE.mtu_bytes)


@cache
def expected_max_load(flows: int, links: int) -> float:
    """E[max load] of equal flows on links, over the mean load; the module's formula, with x scaled by n/m."""
    mean = flows / links
    below = 0.0
    expected = 0.0
    log_scale = math.lgamma(flows + 1) - flows * math.log(links) - flows * math.log(mean) + links * mean
    for most in range(flows + 1):
        # terms of a Poisson distribution of this mean: the power stays in the range of a float
        series = np.array([math.exp(-mean + i * math.log(mean) - math.lgamma(i + 1)) for i in range(most + 1)])
        power = np.ones(1)
        for _ in range(links):
            power = np.convolve(power, series)[: flows + 1]
        at_most = power[flows] * math.exp(log_scale) if len(power) > flows else 0.0
        expected += most * (at_most - below)
        below = at_most
        if at_most > 1 - 1e-12:
            break
    return expected / mean


HASHED_FLOWS, HASHED_SEEDS = 128, 400


@cache
def headers() -> list[list[bytes]]:
    """What a switch hashes of each flow, by seed."""
    return [
        [
            field_bytes(
                fields=FIVE_TUPLE, source_port=flow, destination_port=1000 + flow,
                entropy=0xC000 | draw(seed, Stream.PATH_CHOICE, flow, 0, 0) & 0x3FFF, in_port=0, destination_qp=0,
            )
            for flow in range(HASHED_FLOWS)
        ]
        for seed in range(HASHED_SEEDS)
    ]  # fmt: skip


@cache
def hashes(algorithm: int) -> NDArray[np.int64]:
    """Shape (seeds, flows)."""
    return np.array([[final_hash(algorithm, 0, 0, data) for data in flows] for flows in headers()], np.int64)


@pytest.mark.parametrize(
    ("flows", "links", "known"),
    [(8, 8, 2.56), (32, 32, 3.55), (32, 8, 1.77), (64, 16, 1.97), (64, 64, 3.97), (128, 8, 1.37)],
)
@pytest.mark.parametrize("algorithm", [HashAlgorithm.CRC32, HashAlgorithm.CRC16_CCITT, HashAlgorithm.MIX])
def test_hashes_collide_as_chance_does(flows: int, links: int, known: float, algorithm: int, show: Show) -> None:
    """Mean over seeds of the most loaded link, over the mean load, within 3 sigma of that mean of the formula."""
    seeds = HASHED_SEEDS
    taken = hashes(algorithm)[:, :flows] % links
    loads = [np.bincount(of_seed, minlength=links).max() / (flows / links) for of_seed in taken]
    expected = expected_max_load(flows, links)
    sigma = float(np.std(loads) / math.sqrt(seeds))
    name = HashAlgorithm(algorithm).name.lower()
    show(
        f"{flows} flows on {links} links, {name}: {np.mean(loads):.3f}, formula {expected:.3f}, 3 sigma {3 * sigma:.3f}"
    )
    assert expected == pytest.approx(known, abs=0.05)  # known: means of a simulation apart from Weftwork, of some seeds
    assert np.mean(loads) == pytest.approx(expected, abs=3 * sigma)


def most_loaded_by_chance(size: int, subflows: int, seeds: int) -> NDArray[np.float64]:
    """The same experiment with a random number for each hash: most loaded up or down link, by seed."""
    random = np.random.default_rng(1)
    hosts = size * size
    leaf = np.tile(np.arange(hosts) // size, (seeds, 1))
    peer_leaf = np.repeat(random.permuted(leaf, axis=1), subflows, axis=1)
    leaf = np.repeat(leaf, subflows, axis=1)
    spine = random.integers(size, size=leaf.shape)
    link_of_seed = np.arange(seeds)[:, None] * hosts + spine
    most = [
        np.bincount((link_of_seed + at * size)[leaf != peer_leaf], minlength=seeds * hosts).reshape(seeds, hosts).max(1)
        for at in (leaf, peer_leaf)
    ]
    return np.maximum(*most) / subflows


@pytest.mark.parametrize(("subflows", "known"), [(1, 3.67), pytest.param(4, 2.21, marks=pytest.mark.deep)])
def test_a_permutation_collides_on_the_way_up_and_down(subflows: int, known: float, show: Show) -> None:
    """Runs of the engine: 8 leaves x 8 hosts x 8 spines, every host to another, each subflow hashed on its own.

    One packet per subflow; the load of a link between switches is the data that crossed it. Its largest value, in flows
    of a whole link, is how much longer the slowest takes than on a fabric that spreads perfectly. Mean over 300 seeds,
    within 3 sigma of that mean of the same experiment done with random numbers, 20,000 times.
    """
    size, seeds = 8, 300
    hosts = size * size
    fabric = leaf_spine(
        leaves=size, spines=size, hosts_per_leaf=size, host_rate_bps=RATE_BPS, fabric_rate_bps=RATE_BPS,
        host_delay_ps=DELAY_PS, fabric_delay_ps=DELAY_PS, switch=Switch(), nic=Nic(),
    )  # fmt: skip
    kind = fabric.node_kind[fabric.ports.node]
    between = (kind == SWITCH) & (kind[fabric.ports.peer] == SWITCH)
    found = []
    for seed in range(seeds):
        order = list(range(hosts))
        Random(seed).shuffle(order)
        table = tuple(-1 if peer == host else peer for host, peer in enumerate(order))
        peer = Peer(rule="table", table=table)
        stream: tuple[Operation, ...] = tuple(Send(peer=peer, size=PACKET, channel=c) for c in range(subflows))
        outcome = run(packet_input_of(fabric, job_of([[stream]] * hosts), transport=WIRE, seed=seed))
        found.append(data_frames(outcome.ports["frames"], outcome.ports["bytes"])[between].max() / subflows)
    by_chance = float(most_loaded_by_chance(size, subflows, 20_000).mean())
    sigma = float(np.std(found) / math.sqrt(seeds))
    show(f"k=8 q={subflows}: mean {np.mean(found):.3f}, by chance {by_chance:.3f}, 3 sigma {3 * sigma:.3f}")
    assert by_chance == pytest.approx(known, abs=0.05)  # known: 300 and more seeds of a simulation apart from Weftwork
    assert np.mean(found) == pytest.approx(by_chance, abs=3 * sigma)


def data_frames(frames: NDArray[np.int64], sent_bytes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of frames that are full packets or ACKs, how many are packets."""
    full_bytes = WIRE.mtu_bytes + WIRE.data_overhead_bytes
    return (sent_bytes - frames * WIRE.ack_bytes) // (full_bytes - WIRE.ack_bytes)


@cache
def share_of_links_used(members: int, lower: HashFunction, upper: HashFunction) -> tuple[float, float]:
    """Flows up two tiers of ``members`` links each: share of upper links that carry any, and largest over mean load.

    Hosts hang on one switch; it has a link to each of ``members`` aggregation switches, each of which has as many
    links of its own, all to one far switch with the receivers. 64 flows for each link of the first tier.
    """
    senders = 16
    hosts = 2 * senders
    near, aggs, far = hosts, hosts + 1, hosts + 1 + members
    ends = [(host, near) for host in range(senders)] + [(senders + host, far) for host in range(senders)]
    ends += [(near, aggs + i) for i in range(members)]
    ends += [(aggs + i, far) for i in range(members) for _ in range(members)]
    a, b = np.array(ends).T
    nodes = far + 1
    device = np.zeros(nodes, np.int32)
    device[aggs:far] = 1
    fabric = assemble(
        name="two tiers of hashing",
        node_names=[f"n{i}" for i in range(nodes)],
        node_kind=[HOST] * hosts + [SWITCH] * (nodes - hosts),
        node_tier=[0] * hosts + [1] * (nodes - hosts),
        links=links_between(a, b, rate_bps=RATE_BPS, delay_ps=DELAY_PS),
        switches=(Switch(hash=lower), Switch(hash=upper)),
        nics=(Nic(),),
        node_device=device,
    )
    channels = 64 * members // senders
    peer = Peer(rule="table", table=(*range(senders, hosts), *[-1] * senders))
    stream: tuple[Operation, ...] = tuple(Send(peer=peer, size=PACKET, channel=c) for c in range(channels))
    loads: list[NDArray[np.int64]] = []
    engine_input = packet_input_of(fabric, job_of([[stream]] * hosts), transport=WIRE)
    for seed in range(20):
        outcome = run(replace(engine_input, seed=seed))
        port_node = fabric.ports.node
        upper_ports = (port_node >= aggs) & (port_node < far) & (port_node[fabric.ports.peer] == far)
        loads.append(data_frames(outcome.ports["frames"], outcome.ports["bytes"])[upper_ports])
    table = np.array(loads)
    return float((table > 0).mean()), float((table.max(axis=1) / table.mean(axis=1)).mean())


def crc(seed: int = 0, offset: int = 0) -> HashFunction:
    return HashFunction(algorithm="crc32", seed=seed, offset=offset)


POLARISED: Sequence[object] = [
    pytest.param(crc(), crc(), id="same function"),
    pytest.param(crc(), crc(seed=0xDEADBEEF), id="another seed"),
]
CURED: Sequence[object] = [
    pytest.param(crc(), crc(offset=10), id="another offset"),
    pytest.param(crc(), HashFunction(algorithm="crc32c"), id="another polynomial"),
    pytest.param(
        HashFunction(algorithm="mix", seed=1), HashFunction(algorithm="mix", seed=2), id="not affine, another seed"
    ),
]


@pytest.mark.parametrize("members", [4, 8])
@pytest.mark.parametrize(("lower", "upper"), POLARISED)
def test_polarisation(members: int, lower: HashFunction, upper: HashFunction, show: Show) -> None:
    """Flows that agree on h mod m at the first switch agree on it at the second: 1/m of the links are used.

    A CRC is affine: another seed XORs the same constant into every hash, which renames the one link that is used and,
    where m is a power of two, spreads nothing.
    """
    used, load = share_of_links_used(members, lower, upper)
    show(f"m={members}, seeds {lower.seed:#x} and {upper.seed:#x}: {used:.4f} of the links, max/mean {load:.2f}")
    assert used == 1 / members
    assert load >= members


@pytest.mark.parametrize("members", [4, 8])
@pytest.mark.parametrize(("lower", "upper"), CURED)
def test_cures_of_polarisation(members: int, lower: HashFunction, upper: HashFunction, show: Show) -> None:
    """With functions that know nothing of each other, the load is that of 64 m flows on m^2 links, within a tenth."""
    used, load = share_of_links_used(members, lower, upper)
    expected = expected_max_load(64 * members, members * members)
    words = f"{lower.algorithm}, then {upper.algorithm} seed {upper.seed} offset {upper.offset}"
    show(f"m={members}, {words}: {used:.4f} of the links, max/mean {load:.2f}, chance {expected:.2f}")
    assert used > 0.99
    assert load == pytest.approx(expected, rel=0.1)
