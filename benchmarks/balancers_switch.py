"""What is published of balancers that decide at the switch, and what comes out here: both numbers and their difference.

    python benchmarks/balancers_switch.py [--ms 1000] [--seeds 60] [--markdown] [--svg FILE]

CONGA and LetFlow against ECMP on CONGA's testbed with a failed link; WCMP's shares; collisions of hashed flows; HPN's
two planes; and every port selection of the catalogue on one permutation, of which nothing is published. The tables and
the figure of docs/models/load-balancing-switch.md are what this prints.
Source: the sources of the truths stand beside them, in `TRUTHS` and in the functions.
Leaves out: CONGA's enterprise and data-mining sizes, which are not published as a table; web-search sizes instead.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from machine import circumstances

from weftwork.base.clock import MS_PS, NEVER_PS, SECOND_PS, US_PS
from weftwork.engine import packet
from weftwork.engine.lower import lower
from weftwork.engine.settings import EngineSettings
from weftwork.policies.load import catalogue, load
from weftwork.report.figures.cards import BLUE, ORANGE, Bar, bars
from weftwork.spec.device import HashFunction, Nic, Switch
from weftwork.spec.fabric import HOST, SWITCH, Fabric
from weftwork.spec.job import Arrivals, Job, Program
from weftwork.spec.transport import Transport
from weftwork.topology.assemble import assemble, links_between
from weftwork.workload.placement import one_per_host
from weftwork.workload.traffic.sizes import load_sizes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from weftwork.engine.outcome import Outcome
    from weftwork.engine.packet_input import PacketInput

__all__ = ["Truth", "asymmetric", "collisions", "compare", "main", "permutation", "planes", "table", "weighted"]

G: Final = 10**9
PERMUTATION: Final = {  # hosts of a leaf -> flows of a host -> most loaded link, found apart from Weftwork
    8: {1: 3.67, 2: 2.80, 4: 2.21, 8: 1.81, 16: 1.55, 32: 1.37, 64: 1.26},
    16: {1: 4.71, 2: 3.46, 4: 2.64, 8: 2.11, 16: 1.75, 32: 1.51, 64: 1.35},
}
LOADS: Final = {  # flows of a link -> links -> most loaded link over the mean, as above
    1: {8: 2.56, 16: 3.08, 32: 3.55, 64: 3.97},
    2: {8: 2.10, 16: 2.42, 32: 2.72, 64: 2.96},
    4: {8: 1.77, 16: 1.97, 32: 2.17, 64: 2.35},
    8: {8: 1.53, 16: 1.67, 32: 1.80, 64: 1.92},
    16: {8: 1.37, 16: 1.46, 32: 1.55, 64: 1.63},
}
Flow = tuple[int, int, int, int]  # source, destination, bytes, instant


@dataclass(frozen=True, kw_only=True, slots=True)
class Truth:
    """A published or closed-form number and what was found."""

    name: str
    known: float
    found: float
    source: str

    @property
    def difference(self) -> float:
        """Of the found number from the known one, as a part of the latter."""
        return self.found / self.known - 1


def _fabric(name: str, links: Sequence[tuple[int, int, int]], *, hosts: int, switch: Switch | None = None) -> Fabric:
    """Links of (end, end, bit/s) with 1 us; nodes from ``hosts`` on are switches."""
    count = max(max(a, b) for a, b, _ in links) + 1
    a, b, rate = (list(column) for column in zip(*links, strict=True))
    return assemble(
        name=name,
        node_names=[f"host{node}" if node < hosts else f"switch{node - hosts}" for node in range(count)],
        node_kind=[HOST if node < hosts else SWITCH for node in range(count)],
        node_tier=[0 if node < hosts else 1 for node in range(count)],
        links=links_between(a, b, rate_bps=rate, delay_ps=US_PS),
        switches=[switch or Switch(forwarding_latency_ps=0)],
        nics=[Nic()],
    )


def _run(
    fabric: Fabric, flows: Sequence[Flow], balancer: str, *, transport: Transport, control: str = "none", seed: int = 1,
    until_ps: int = NEVER_PS, variant: str | None = None,
) -> tuple[PacketInput, Outcome]:  # fmt: skip
    """Each flow on a queue pair of its own, by the native packet engine."""
    hosts = len(fabric.hosts)
    own: list[list[tuple[int, Flow]]] = [[] for _ in range(hosts)]
    for number, flow in enumerate(flows):
        own[flow[0]].append((number, flow))
    programs = [Program(streams=_streams(sorted(one, key=lambda row: row[1][3]))) for one in own]
    job = Job(
        name="flows",
        ranks=hosts,
        programs=tuple(programs),
        rank_program=np.arange(hosts, dtype=np.int32),
        placement=one_per_host(hosts),
    )
    engine_input = lower(
        fabric=fabric,
        job=job,
        transport=transport,
        congestion_control=load("congestion_control", control),
        settings=EngineSettings(
            port_selection=load("port_selection", balancer, variant=variant), seed=seed, until_ps=until_ps
        ),
    )
    return engine_input, packet.run(engine_input)


def _streams(own: Sequence[tuple[int, Flow]]) -> tuple[tuple[Arrivals, ...], ...]:
    if not own:
        return ()
    columns = np.array([(at_ps, peer, size, number) for number, (_, peer, size, at_ps) in own], np.int64).T
    at_ps, peer, size_bytes, channel = columns
    return ((Arrivals(at_ps=at_ps, peer=peer, size_bytes=size_bytes, channel=channel),),)


def _between(fabric: Fabric, ends: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
    """Ports by which these nodes send to those."""
    node, peer = fabric.ports.node, fabric.ports.node[fabric.ports.peer]
    return np.concatenate([np.flatnonzero((node == a) & (peer == b)) for a, b in ends])


# CONGA's testbed: 64 servers at 10 Gb/s, two leaves, two spines, two links of 40 Gb/s for each pair; one has failed.
PER_LEAF: Final = 32
CROSS_BPS: Final = 160 * G  # of a leaf's uplinks when all are up
TCP: Final = Transport(recovery="selective-repeat", lossless_priorities=(), retry_limit=100)


def asymmetric(
    balancer: str, *, ms: float, load_share: float = 0.6, variant: str | None = None, seed: int = 1
) -> float:
    """Mean flow completion time in ms on CONGA's testbed with a failed link.

    Source: Alizadeh et al., SIGCOMM 2014, doi:10.1145/2619239.2626316, section 5 (unverified: read from memory).
    Flows with web-search sizes and CUBIC arrive as a Poisson process between hosts of different leaves, both ways.

    Parameters
    ----------
    balancer, variant : port selection
    ms : how long flows arrive
    load_share : payload offered, as a part of the rate of a leaf's uplinks before the failure
    seed : of arrivals, sizes and pairs
    """
    hosts, dice, sizes = 2 * PER_LEAF, np.random.default_rng(seed), load_sizes("web-search")
    links = [(host, hosts + host // PER_LEAF, 10 * G) for host in range(hosts)]
    for leaf, spine, count in ((0, 0, 2), (0, 1, 2), (1, 0, 2), (1, 1, 1)):
        links += [(hosts + leaf, hosts + 2 + spine, 40 * G)] * count
    gap_ps = sizes.mean_bytes * 8 * SECOND_PS / (load_share * CROSS_BPS)
    flows: list[Flow] = []
    for leaf in range(2):
        at_ps = dice.exponential(gap_ps)
        while at_ps < ms * MS_PS:
            source, destination = dice.integers(PER_LEAF, size=2).tolist()
            size = int(sizes.quantiles(np.array([dice.random()]))[0])
            flows.append((source + leaf * PER_LEAF, destination + (1 - leaf) * PER_LEAF, size, round(at_ps)))
            at_ps += dice.exponential(gap_ps)
    fabric = _fabric("CONGA's testbed", links, hosts=hosts, switch=Switch(buffer_bytes=10_000_000))
    _, outcome = _run(fabric, flows, balancer, transport=TCP, control="cubic", variant=variant, seed=seed)
    messages = outcome.messages
    if (messages["delivered_at_ps"] < 0).any():
        raise SystemExit(f"{balancer}: not everything was delivered")
    return float((messages["delivered_at_ps"] - messages["posted_at_ps"]).mean()) / MS_PS


def weighted() -> float:
    """Share of 2,048 flows on the uplink with twice the capacity behind it, under WCMP."""
    hosts = 8
    links = [(host, hosts + host // 4, 100 * G) for host in range(hosts)]
    links += [(8, 10, 400 * G), (8, 11, 400 * G), (10, 9, 100 * G), (10, 9, 100 * G), (11, 9, 100 * G)]
    fabric = _fabric("two spines", links, hosts=hosts)
    flows = [(a, 4 + b, 1_000, 0) for a in range(4) for b in range(4) for _ in range(128)]
    _, outcome = _run(fabric, flows, "wcmp", transport=Transport())
    frames = outcome.ports["frames"][_between(fabric, [(8, 10), (8, 11)])]
    return float(frames[0] / frames.sum())


@cache
def _leaf_spine(size: int) -> Fabric:
    hosts = size * size
    links = [(host, hosts + host // size, 400 * G) for host in range(hosts)]
    links += [(hosts + leaf, hosts + size + spine, 400 * G) for leaf in range(size) for spine in range(size)]
    return _fabric(f"{size} leaves", links, hosts=hosts)


def collisions(size: int, flows_of_host: int, seeds: int) -> tuple[float, float]:
    """Most loaded link between switches of a random permutation, in flows of a whole link, and its standard error.

    ``size`` leaves, hosts of a leaf and spines; every host sends ``flows_of_host`` packets on queue pairs of their own
    to one other host, by ECMP. The load of a link is the packets that crossed it, up or down.
    """
    fabric = _leaf_spine(size)
    hosts, wire = size * size, Transport(first_extra_bytes=0)
    ends = [(hosts + leaf, hosts + size + spine) for leaf in range(size) for spine in range(size)]
    ports = _between(fabric, [*ends, *((b, a) for a, b in ends)])
    found = []
    for seed in range(1, seeds + 1):
        order = np.random.default_rng(seed).permutation(hosts).tolist()
        flows = [(host, peer, wire.mtu_bytes, 0) for host, peer in enumerate(order) if host != peer] * flows_of_host
        _, outcome = _run(fabric, flows, "ecmp", transport=wire, seed=seed)
        frames, size_bytes = outcome.ports["frames"][ports], outcome.ports["bytes"][ports]
        full_bytes = wire.mtu_bytes + wire.data_overhead_bytes
        data = (size_bytes - frames * wire.ack_bytes) // (full_bytes - wire.ack_bytes)  # the others are ACKs
        found.append(data.max() / flows_of_host)
    return float(np.mean(found)), float(np.std(found) / math.sqrt(seeds))


def table(flows: int, links: int, seeds: int) -> float:
    """Most loaded of ``links`` uplinks over their mean, for flows that a switch hashes; mean over seeds."""
    fabric = _uplinks(links)
    found = []
    for seed in range(1, seeds + 1):
        list_of = [(flow % 8, 8 + flow // 8 % 8, 256, 0) for flow in range(flows)]
        _, outcome = _run(fabric, list_of, "ecmp", transport=Transport(first_extra_bytes=0), seed=seed)
        ports = _between(fabric, [(16, 18 + spine) for spine in range(links)])
        found.append(outcome.ports["frames"][ports].max() / (flows / links))
    return float(np.mean(found))


@cache
def _uplinks(links: int) -> Fabric:
    """Two leaves of eight hosts, joined by spines."""
    wires = [(host, 16 + host // 8, 400 * G) for host in range(16)]
    wires += [(16 + leaf, 18 + spine, 400 * G) for leaf in range(2) for spine in range(links)]
    return _fabric(f"{links} uplinks", wires, hosts=16)


NICS: Final = 16


def planes(*, is_dual: bool, flows_of_port: int = 4, seeds: int = 10) -> tuple[float, float]:
    """HPN: by what factor the two downlinks of a NIC differ, and the longest queue there in kB.

    The factor is the 90th percentile over NICs and seeds, the queue the mean over seeds.

    Source: Qian et al., SIGCOMM 2024, doi:10.1145/3651890.3672265, section 6. Sixteen NICs with two ports of 200 Gb/s
    send to as many others. A sender's ports are hosts of their own; a receiver is one host, behind a switch that stands
    for its bond of two ports. Each port hangs on a leaf of its own. With two planes the leaves of the first ports have
    spines of their own, else all spines join all leaves, whose hash chooses by which port a flow arrives.
    """
    senders, receivers = 2 * NICS, NICS
    hosts = senders + receivers
    bond, leaf, spine = (
        hosts,
        hosts + receivers,
        hosts + receivers + 4,
    )  # leaves: first ports here and there, then second
    links = [(port, leaf + 2 * (port % 2), 200 * G) for port in range(senders)]
    links += [(senders + nic, bond + nic, 400 * G) for nic in range(receivers)]
    links += [(bond + nic, leaf + 1 + 2 * plane, 200 * G) for nic in range(receivers) for plane in range(2)]
    for at in range(16):
        joined = range(4) if not is_dual else (2 * (at % 2), 2 * (at % 2) + 1)
        links += [(leaf + one, spine + at, 400 * G) for one in joined]
    fabric = _fabric(
        "planes", links, hosts=hosts, switch=Switch(forwarding_latency_ps=0, hash=HashFunction(algorithm="mix"))
    )
    apart, queue = [], []
    for seed in range(1, seeds + 1):
        order = np.random.default_rng(seed).permutation(receivers).tolist()
        flows = [
            (2 * nic + port, senders + order[nic], 500_000, 0)
            for nic in range(NICS) for port in range(2) for _ in range(flows_of_port)
        ]  # fmt: skip
        _, outcome = _run(fabric, flows, "ecmp", transport=Transport(), control="dcqcn", seed=seed)
        down = [_between(fabric, [(leaf + 1, bond + nic), (leaf + 3, bond + nic)]) for nic in range(receivers)]
        carried = np.array([outcome.ports["bytes"][ports] for ports in down], float)
        apart += [float(pair.max() / max(pair.min(), 1.0)) for pair in carried if pair.min() > 0]
        queue.append(float(max(outcome.ports["max_queue_bytes"][ports].max() for ports in down)) / 1e3)
    return float(np.percentile(apart, 90)), float(np.mean(queue))


def permutation(balancer: str) -> tuple[float, float, float]:
    """One permutation of 64 hosts on 8 leaves and 8 spines, 1 MB each at 400 Gb/s, a window of a base RTT.

    Returns
    -------
    time of the last byte over that of a host's link, imbalance of a leaf's uplinks (standard deviation over mean of
    bytes) and longest queue of an uplink in kB
    """
    fabric = _leaf_spine(8)
    hosts = 64
    order = np.random.default_rng(7).permutation(hosts).tolist()
    flows = [(host, peer, 1_000_000, 0) for host, peer in enumerate(order) if host != peer]
    wire = Transport(recovery="selective-repeat")
    _, outcome = _run(fabric, flows, balancer, transport=wire, control="fixed-window")
    took_ps = outcome.messages["delivered_at_ps"].max()
    spread = []
    longest = 0.0
    for leaf in range(8):
        ports = _between(fabric, [(hosts + leaf, hosts + 8 + spine) for spine in range(8)])
        carried = outcome.ports["bytes"][ports].astype(float)
        spread.append(carried.std() / carried.mean())
        longest = max(longest, float(outcome.ports["max_queue_bytes"][ports].max()) / 1e3)
    return float(took_ps / (1_000_000 * 8 * SECOND_PS / (400 * G))), float(np.mean(spread)), longest


def compare(*, ms: float) -> list[Truth]:
    """Every truth but the tables of collisions."""
    took = {name: asymmetric(name, ms=ms, variant=variant) for name, variant in
            (("ecmp", None), ("conga", "paper"), ("letflow", "paper"))}  # fmt: skip
    joined, two = planes(is_dual=False), planes(is_dual=True)
    conga, letflow = "SIGCOMM 2014, abstract: 5x", "NSDI 2017, abstract: within 10 to 20 % on a testbed"
    return [
        Truth(name="ECMP / CONGA, mean FCT", known=5.0, found=took["ecmp"] / took["conga"], source=conga),
        Truth(name="LetFlow / CONGA, mean FCT", known=1.15, found=took["letflow"] / took["conga"], source=letflow),
        Truth(name="WCMP, share of weight 2 of 3", known=2 / 3, found=weighted(), source="EuroSys 2014: weights"),
        Truth(name="HPN, ports of a NIC, joined", known=3.0, found=joined[0], source="SIGCOMM 2024: up to 3x"),
        Truth(name="HPN, ports of a NIC, two planes", known=1.0, found=two[0], source="SIGCOMM 2024: equal"),
        Truth(name="HPN, queue, two planes / joined", known=1 - 0.918, found=two[1] / joined[1],
              source="SIGCOMM 2024: -91.8 %"),
    ]  # fmt: skip


def _rows(head: Sequence[str], rows: Sequence[Sequence[str]], *, is_markdown: bool) -> str:
    if is_markdown:
        lines = ["| " + " | ".join(row) + " |" for row in (head, ["---", *["---:"] * (len(head) - 1)], *rows)]
    else:
        widths = [max(len(row[at]) for row in (head, *rows)) for at in range(len(head))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (head, *rows)]
    return "\n".join(lines)


def main() -> None:
    """Print the tables and draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--ms", type=float, default=1_000.0, help="time in which flows arrive on CONGA's testbed")
    parser.add_argument("--seeds", type=int, default=60, help="of each row of collisions")
    parser.add_argument("--markdown", action="store_true", help="print tables for the page")
    parser.add_argument("--svg", type=Path, help="also draw what is published and what was found here")
    chosen = parser.parse_args()
    begin_s = time.process_time()
    truths = compare(ms=chosen.ms)
    cells: list[Any] = [
        [t.name, f"{t.known:.3g}", f"{t.found:.3g}", f"{100 * t.difference:+.0f} %", t.source] for t in truths
    ]
    texts = [_rows(["what", "published", "here", "difference", "source"], cells, is_markdown=chosen.markdown)]
    cells = []
    for size, known in PERMUTATION.items():
        for count, mean in known.items():
            found, error = collisions(size, count, chosen.seeds)
            cells.append([f"{size}", f"{count}", f"{mean:.2f}", f"{found:.2f} +- {error:.2f}",
                          f"{100 * (found / mean - 1):+.1f} %"])  # fmt: skip
    head = ["leaves, hosts of a leaf, spines", "flows of a host", "known", "here", "difference"]
    texts.append(_rows(head, cells, is_markdown=chosen.markdown))
    cells = []
    for ratio, known in LOADS.items():
        for links, mean in known.items():
            found = table(ratio * links, links, chosen.seeds)
            cells.append([f"{ratio}", f"{links}", f"{mean:.2f}", f"{found:.2f}", f"{100 * (found / mean - 1):+.1f} %"])
    texts.append(_rows(["flows of a link", "links", "known", "here", "difference"], cells, is_markdown=chosen.markdown))
    cells = []
    for entry in catalogue("port_selection"):
        slowdown, spread, queue = permutation(entry.name)
        cells.append([f"`{entry.name}`", f"{slowdown:.2f}", f"{spread:.3f}", f"{queue:.0f}"])
    head = ["port selection", "last byte", "imbalance of uplinks", "longest queue kB"]
    texts.append(_rows(head, cells, is_markdown=chosen.markdown))
    made = circumstances(1)
    print(f"{made['date']}, commit {made['commit']}, Python {made['python']}, {made['cpu']}; "
          f"{time.process_time() - begin_s:.0f} s of CPU time\n")  # fmt: skip
    print("\n\n".join(texts))
    if chosen.svg is not None:
        chosen.svg.write_text(_picture(truths), encoding="utf-8")


def _picture(truths: Sequence[Truth]) -> str:
    rows = [
        Bar(name=f"{truth.name}{end}", value=value, text=f"{value:.2f}", colour=colour)
        for truth in truths
        for end, value, colour in ((", published", truth.known, ORANGE), (", here", truth.found, BLUE))
    ]
    return bars("Balancers at the switch: published and simulated", rows, axis="factor, share or ratio")


if __name__ == "__main__":
    main()
