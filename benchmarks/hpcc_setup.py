"""The set-up of the HPCC paper's large simulations: fabric, traffic, controls, and slowdowns by flow size.

Source: Li et al., SIGCOMM 2019, doi:10.1145/3341302.3342085, section 5; github.com/alibaba-edu/
High-Precision-Congestion-Control, `simulation/run.py`, `simulation/mix/fat.txt` and `analysis`; its issues 21 and 36
(DCQCN's parameters; Poisson arrivals of incasts at 2 % of capacity); hpcc-group.github.io and
liyuliang001.github.io/projects/hpcc (maxStage 0 in the paper's simulations).
Leaves out: the INT bytes that HPCC-ns3 charges for five hops on any path; its NACK interval, as nothing is lost here;
its smaller share of the buffer (1/8) for a leaf's ports towards hosts: here a switch has one for all of its ports.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weftwork.base.clock import SECOND_PS, US_PS
from weftwork.engine import packet
from weftwork.engine.lower import lower
from weftwork.engine.settings import EngineSettings
from weftwork.policies.load import load
from weftwork.spec.device import Ecn, Nic, Switch
from weftwork.spec.fabric import HOST, SWITCH, Fabric
from weftwork.spec.job import Arrivals, Job, Program
from weftwork.spec.transport import Transport
from weftwork.study.results.ideal import ideal_times_ps, nic_ports
from weftwork.topology.assemble import assemble, links_between
from weftwork.workload.placement import one_per_host
from weftwork.workload.traffic.patterns.poisson import poisson
from weftwork.workload.traffic.sizes import load_sizes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from weftwork.engine.outcome import Outcome
    from weftwork.engine.packet_input import PacketInput

__all__ = ["CONTROLS", "SCENARIOS", "Control", "Found", "Scenario", "Shape", "percentiles", "run"]

HOST_BPS: Final = 100_000_000_000
FABRIC_BPS: Final = 4 * HOST_BPS
ALPHA: Final = 0.5  # third.cc: Xoff at 1/8 of the free buffer at the NICs' rate, doubled with the port's rate
DCTCP_BYTES: Final = 30_000  # run.py: Kmin = Kmax = 30 KB x rate / 10 Gb/s
DCTCP_RATE_BPS: Final = 10_000_000_000
INCAST_BYTES: Final = 500_000
INCAST_LOAD: Final = 0.02  # issue 36
INCAST_CHANNEL: Final = 32_768  # chosen: beyond every number that Poisson arrivals give a pair


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """A three-tier tree; with one pod, leaves and spines alone.

    Parameters
    ----------
    pods, leaves, uplinks : pods, leaves of a pod, and switches above the leaves of a pod
    hosts_per_leaf : of each leaf
    cores_per_uplink : core switches above each switch of the middle tier; 0: no third tier
    """

    pods: int
    leaves: int
    uplinks: int
    hosts_per_leaf: int
    cores_per_uplink: int

    @property
    def hosts(self) -> int:
        """Of the whole fabric."""
        return self.pods * self.leaves * self.hosts_per_leaf

    def fabric(self, ecn: Ecn) -> Fabric:
        """Build it: 1 us a link, 32 MB a switch, no forwarding latency, as third.cc has it at 100 Gb/s."""
        leaves, middles = self.pods * self.leaves, self.pods * self.uplinks
        cores = self.uplinks * self.cores_per_uplink
        first_leaf, first_middle = self.hosts, self.hosts + leaves
        first_core = first_middle + middles
        lower_end = list(range(self.hosts))
        upper_end = [first_leaf + host // self.hosts_per_leaf for host in range(self.hosts)]
        for pod in range(self.pods):
            for middle in range(self.uplinks):
                above = first_middle + pod * self.uplinks + middle
                for leaf in range(self.leaves):
                    lower_end.append(first_leaf + pod * self.leaves + leaf)
                    upper_end.append(above)
                for core in range(self.cores_per_uplink):
                    lower_end.append(above)
                    upper_end.append(first_core + middle * self.cores_per_uplink + core)
        tiers = [0] * self.hosts + [1] * leaves + [2] * middles + [3] * cores
        names = [f"host{host}" for host in range(self.hosts)]
        names += [f"leaf{leaf}" for leaf in range(leaves)]
        names += [f"agg{middle}" for middle in range(middles)] + [f"core{core}" for core in range(cores)]
        rates = [HOST_BPS] * self.hosts + [FABRIC_BPS] * (len(lower_end) - self.hosts)
        return assemble(
            name=f"{self.hosts} hosts",
            node_names=names,
            node_kind=[HOST if tier == 0 else SWITCH for tier in tiers],
            node_tier=tiers,
            links=links_between(lower_end, upper_end, rate_bps=rates, delay_ps=US_PS),
            switches=[Switch(forwarding_latency_ps=0, buffer_bytes=32_000_000, alpha=ALPHA, ecn=ecn, telemetry=True)],
            nics=[Nic()],
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Control:
    """A control as the paper names it.

    Parameters
    ----------
    name, variant : of the catalogue
    parameters : beside the variant's
    marks_at_once : the switches' marking has one threshold, as DCTCP wants it; else that of DCQCN
    """

    name: str
    variant: str | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    marks_at_once: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Scenario:
    """Traffic: web-search flows that arrive as a Poisson process at a load, and incasts.

    Parameters
    ----------
    load : payload offered, as a share of the rate of all host links
    incast : senders of each incast; 0: none
    """

    load: float
    incast: int = 0

    def job(self, hosts: int, seed: int, last_ps: int) -> Job:
        """All that arrives until an instant."""
        sizes = load_sizes("web-search")
        per_second = self.load * hosts * HOST_BPS / 8 / sizes.mean_bytes
        flows = max(1, round(per_second * last_ps / SECOND_PS))
        job = poisson(hosts=hosts, flows=flows, load=self.load, host_rate_bps=hosts * HOST_BPS, sizes=sizes, seed=seed)
        if self.incast == 0:
            return job
        extra = self._incasts(hosts, seed, last_ps)
        programs = [
            Program(streams=(*job.programs[program].streams, *extra[rank]))
            for rank, program in enumerate(job.rank_program)
        ]
        return replace(
            job,
            name=f"{job.name}, incasts {self.incast}:1",
            programs=tuple(programs),
            rank_program=np.arange(hosts, dtype=np.int32),
            placement=one_per_host(hosts),
        )

    def _incasts(self, hosts: int, seed: int, last_ps: int) -> list[tuple[tuple[Arrivals, ...], ...]]:
        """For each host what it sends in incasts: a random receiver and random senders, at Poisson instants."""
        dice = np.random.default_rng(seed)
        gap_ps = self.incast * INCAST_BYTES * 8 * SECOND_PS / (INCAST_LOAD * hosts * HOST_BPS)
        sent: list[list[tuple[int, int, int]]] = [[] for _ in range(hosts)]
        at_ps, number = dice.exponential(gap_ps), 0
        while at_ps < last_ps:
            receiver, *senders = dice.choice(hosts, self.incast + 1, replace=False).tolist()
            for sender in senders:
                sent[sender].append((round(at_ps), receiver, INCAST_CHANNEL + number))
            at_ps, number = at_ps + dice.exponential(gap_ps), number + 1
        return [
            ()
            if not own
            else (
                (
                    Arrivals(
                        at_ps=np.array([at for at, _, _ in own], np.int64),
                        peer=np.array([peer for _, peer, _ in own], np.int64),
                        size_bytes=np.full(len(own), INCAST_BYTES, np.int64),
                        channel=np.array([channel for _, _, channel in own], np.int64),
                    ),
                ),
            )
            for own in sent
        ]


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """What a run showed of the web-search flows that arrived after the first fifth of the time.

    Attributes
    ----------
    size_bytes, slowdown : shape (flows,); slowdown is infinite where a flow did not end
    pauses : flow-control frames with quanta above 0
    paused_share : of the time of all links, at all priorities
    max_queue_bytes : the longest egress queue of a switch
    packet_hops, unfinished, drops : counts
    """

    size_bytes: NDArray[np.int64]
    slowdown: NDArray[np.float64]
    pauses: int
    paused_share: float
    max_queue_bytes: int
    packet_hops: int
    unfinished: int
    drops: int


SCENARIOS: Final = {"50 %": Scenario(load=0.5), "30 % + incast": Scenario(load=0.3, incast=60)}
CONTROLS: Final = {
    "HPCC": Control(name="hpcc", variant="hpcc-repo"),
    "DCTCP": Control(name="dctcp", variant="hpcc-repo", marks_at_once=True),
    "TIMELY+win": Control(name="timely", variant="hpcc-repo-window"),
    "DCQCN+win": Control(name="dcqcn", variant="hpcc-repo-window"),
    "TIMELY": Control(name="timely", variant="hpcc-repo"),
    "DCQCN": Control(name="dcqcn", variant="hpcc-repo"),
}


def _engine_input(shape: Shape, job: Job, control: Control, until_ps: int) -> PacketInput:
    ecn = Ecn(pmax=1.0 if control.marks_at_once else 0.2, at="dequeue")
    fabric = shape.fabric(ecn)
    engine_input = lower(
        fabric=fabric,
        job=job,
        transport=Transport(mtu_bytes=1_000),
        congestion_control=load("congestion_control", control.name, control.parameters, variant=control.variant),
        settings=EngineSettings(port_selection=load("port_selection", "ecmp"), until_ps=until_ps),
    )
    if not control.marks_at_once:
        return engine_input
    of_switch = engine_input.node_kind[engine_input.port_node] == SWITCH
    step = np.where(of_switch, DCTCP_BYTES * (engine_input.port_rate_bps // DCTCP_RATE_BPS), 0)
    return replace(engine_input, port_kmin_bytes=step, port_kmax_bytes=step)


def run(shape: Shape, scenario: Scenario, control: Control, *, seed: int, last_ps: int) -> Found:
    """Run one control until all flows that arrive before ``last_ps`` are delivered.

    Parameters
    ----------
    shape, scenario, control : what runs on what
    seed : of arrivals, sizes, pairs and marks
    last_ps : arrivals end there; the run ends ten times as late at the latest
    """
    job = scenario.job(shape.hosts, seed, last_ps)
    outcome = packet.run(_engine_input(shape, job, control, 10 * last_ps))
    plain = _engine_input(shape, job, Control(name="none"), 10 * last_ps)  # the same denominator for all
    return _found(plain, outcome, last_ps)


def _found(plain: PacketInput, outcome: Outcome, last_ps: int) -> Found:
    messages = outcome.messages
    counted = (messages["posted_at_ps"] >= last_ps // 5) & (messages["channel"] < INCAST_CHANNEL)
    own = messages[counted]
    ideal_ps = ideal_times_ps(plain, *nic_ports(plain, own), own["size_bytes"])
    is_done = own["delivered_at_ps"] >= 0
    took_ps = np.where(is_done, own["delivered_at_ps"] - own["posted_at_ps"], np.inf)
    of_switch = plain.node_kind[plain.port_node] == SWITCH
    ports = outcome.ports
    return Found(
        size_bytes=own["size_bytes"].copy(),
        slowdown=took_ps / ideal_ps,
        pauses=int(ports["pauses_sent"].sum()),
        paused_share=float(ports["paused_ps"].sum() / len(ports) / outcome.simulated_ps),
        max_queue_bytes=int(ports["max_queue_bytes"][of_switch].max()),
        packet_hops=outcome.counters["packet_hops"],
        unfinished=int((messages["delivered_at_ps"] < 0).sum()),
        drops=sum(value for name, value in outcome.counters.items() if name.startswith("drop_")),
    )


def percentiles(founds: Sequence[Found], above: int, most: int, percents: Sequence[float]) -> list[float]:
    """Percentiles of the slowdown of flows of more than ``above`` and at most ``most`` bytes, over some runs.

    Parameters
    ----------
    founds : runs of one control, with other seeds
    above, most : bytes
    percents : from 0 to 100
    """
    chosen = [found.slowdown[(found.size_bytes > above) & (found.size_bytes <= most)] for found in founds]
    return [float(value) for value in np.percentile(np.concatenate(chosen), percents)]
