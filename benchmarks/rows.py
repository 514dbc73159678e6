"""What the benchmarks of the packet engine run: each row is a fabric, a job and a transport.

Source of the set-up: the prototypes of the packet engine, which all rows of docs/models/speed.md follow: 400 Gb/s,
payloads of 4,096 B and real headers, 1 us from port to port, DCQCN, go-back-N, PFC, ECN, ACKs as packets, 512 packets
a flow, k MB of buffer in a switch of k ports.
Leaves out: how a row is timed (`measure`), and ns-3 (`ns3_permutation`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.clock import NS_PS, US_PS
from weftwork.engine.lower import lower
from weftwork.engine.packet import Series
from weftwork.engine.settings import EngineSettings
from weftwork.policies.load import load
from weftwork.spec.device import Ecn, Nic, Switch
from weftwork.spec.fabric import SWITCH, Fabric
from weftwork.spec.scenario.policies import PolicyChoice
from weftwork.spec.scenario.transport import TransportSection
from weftwork.topology.build import fabric_of
from weftwork.topology.shapes.fat_tree import fat_tree
from weftwork.transports.rocev2 import transport
from weftwork.workload.collectives.call import Call
from weftwork.workload.collectives.catalogue import schedule
from weftwork.workload.placement import packed
from weftwork.workload.traffic.patterns.incast import incast
from weftwork.workload.traffic.patterns.permutation import permutation

if TYPE_CHECKING:
    from collections.abc import Callable

    from weftwork.engine.packet_input import PacketInput
    from weftwork.spec.job import Job

__all__ = ["MTU_BYTES", "ROWS", "Row", "series_of"]

MTU_BYTES: Final = 4_096
SEED: Final = 1
LATENCY_PS: Final = 500 * NS_PS  # of every switch and NIC; with a propagation as long, 1 us from port to port
MB: Final = 1_000_000
GIB: Final = 1 << 30
NO_ACKS: Final = 65_536  # ACKs: more than any flow here has packets, so that only the last one is acknowledged


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One row of the table.

    Parameters
    ----------
    text : what it is, for people
    job : from a number of hosts to the job; with ``gpus`` it is an all-reduce, and this stays unused
    gpus : of a rail-optimized fabric of DGX H100 servers, in place of the fat tree; 0: none
    target_ns : CPU time per packet-hop that is wanted at most; None where nothing was asked
    radix : of the three-tier fat tree, which has radix**3 / 4 hosts
    buffer_bytes : of a switch; None: radix MB
    peak_rss_bytes : memory that is wanted at most
    least_pauses : pauses per 100 data packets without which the row does not show what it is for
    series_every_ps : time between two samples of all rates, windows and queues; 0: nothing is recorded
    port_selection : of the catalogue, or the path of a file
    telemetry : switches write into packets what a control with that need reads
    on_reference : the reference engine runs it, not the native one
    """

    text: str
    job: Callable[[int], Job]
    gpus: int = 0
    target_ns: float | None = None
    radix: int = 8
    rate_bps: int = 400_000_000_000
    buffer_bytes: int | None = None
    ecn: Ecn = Ecn(kmin_bytes=400_000, kmax_bytes=1_600_000)  # noqa: RUF009 - frozen; as all rows were measured
    host_delay_ps: int = LATENCY_PS
    receive_latency_ps: int = LATENCY_PS
    port_selection: str = "ecmp"
    telemetry: bool = False
    congestion_control: str = "dcqcn"
    variant: str | None = "paper"
    transport: dict[str, Any] = field(default_factory=dict)
    peak_rss_bytes: int | None = None
    least_pauses: float = 0.0
    series_every_ps: int = 0
    on_reference: bool = False

    def fabric(self) -> Fabric:
        """Build the fabric."""
        if self.gpus:
            return fabric_of(topology="rail-optimized", node="dgx-h100", switch="tomahawk-5", gpus=self.gpus)
        buffer_bytes = self.radix * MB if self.buffer_bytes is None else self.buffer_bytes
        return fat_tree(
            tiers=3,
            radix=self.radix,
            host_rate_bps=self.rate_bps,
            fabric_rate_bps=self.rate_bps,
            host_delay_ps=self.host_delay_ps,
            fabric_delay_ps=LATENCY_PS,
            switch=Switch(
                forwarding_latency_ps=LATENCY_PS, buffer_bytes=buffer_bytes, ecn=self.ecn, telemetry=self.telemetry
            ),
            nic=Nic(receive_latency_ps=self.receive_latency_ps),
        )

    def engine_input(self, fabric: Fabric) -> PacketInput:
        """Lower the row."""
        sprayed = self.port_selection == "spray"
        section = TransportSection(
            congestion_control=PolicyChoice(name=self.congestion_control),
            path_selection=PolicyChoice(name="ecmp"),
            port_selection=PolicyChoice(name=self.port_selection),
            reorder_tolerant=sprayed,
            **self.transport,
        )
        return lower(
            fabric=fabric,
            job=_all_reduce(fabric) if self.gpus else self.job(len(fabric.hosts)),
            transport=transport(section),
            congestion_control=load("congestion_control", self.congestion_control, variant=self.variant),
            settings=EngineSettings(port_selection=load("port_selection", self.port_selection), seed=SEED),
        )


def series_of(row: Row, engine_input: PacketInput) -> Series | None:
    """What the row records: every flow, and every port of every switch; None where it records nothing."""
    if row.series_every_ps == 0:
        return None
    of_switches = (engine_input.node_kind[engine_input.port_node] == SWITCH).nonzero()[0]
    return Series(every_ps=row.series_every_ps, ports=tuple(of_switches.tolist()), flows=None)


def _permutation(packets: int = 512) -> Callable[[int], Job]:
    return lambda hosts: permutation(hosts=hosts, size_bytes=packets * MTU_BYTES, seed=SEED)


def _incast(senders: int, packets: int) -> Callable[[int], Job]:
    return lambda hosts: incast(hosts=hosts, size_bytes=packets * MTU_BYTES, seed=SEED, senders=senders)


def _all_reduce(fabric: Fabric) -> Job:
    """64 MiB by reduce-scatter and all-gather inside servers and rings across them, 8 channels; no software latency."""
    domain = fabric.servers[0].nvlink_domain_gpus
    call = Call(
        operation="all-reduce",
        ranks=fabric.gpus,
        size_bytes=64 << 20,
        channels=domain,
        chunks=4,
        domain=domain,
    )
    return schedule("hierarchical", call).job(packed(fabric, fabric.gpus))


def _one_flow(packets: int) -> Callable[[int], Job]:
    """From host 0 to the last host, which is in another pod."""
    return lambda hosts: incast(hosts=hosts, size_bytes=packets * MTU_BYTES, seed=SEED, senders=1, receiver=hosts - 1)


ROWS: Final[dict[str, Row]] = {
    "permutation": Row(text="k=8, 128 hosts, permutation by ECMP", job=_permutation(), target_ns=60),
    "spray": Row(text="k=8, 128 hosts, permutation sprayed", job=_permutation(), port_selection="spray", target_ns=60),
    "pfc": Row(
        text="k=8, 128 hosts, permutation by ECMP, buffer 1 MB",
        job=_permutation(),
        buffer_bytes=MB,
        least_pauses=1.0,
        target_ns=90,
    ),
    "pfc-ecn": Row(
        text="the same with ECN from 10 to 100 kB, so that DCQCN acts too",
        job=_permutation(),
        buffer_bytes=MB,
        ecn=Ecn(kmin_bytes=10_000, kmax_bytes=100_000),  # chosen: 1 and 10 % of the buffer
        least_pauses=1.0,
        target_ns=90,
    ),
    "incast": Row(text="k=8, incast 64:1, 2,048 packets a flow", job=_incast(64, 2_048), target_ns=100),
    "permutation-1024": Row(text="k=16, 1,024 hosts, permutation by ECMP", job=_permutation(), radix=16, target_ns=75),
    "spray-8192": Row(
        text="k=32, 8,192 hosts, permutation sprayed",
        job=_permutation(),
        radix=32,
        port_selection="spray",
        target_ns=110,
        peak_rss_bytes=GIB,
    ),
    "incast-8192": Row(text="k=32, 8,192 hosts, incast 64:1", job=_incast(64, 512), radix=32, target_ns=120),
    "one-flow": Row(text="k=8, 128 hosts, one flow of 32,768 packets over 6 links", job=_one_flow(32_768)),
    "one-flow-8192": Row(text="k=32, 8,192 hosts, the same flow", job=_one_flow(32_768), radix=32),
    "flowlets": Row(
        text="k=8, permutation by flowlets, 16,384 of them in the state of each switch",
        job=_permutation(),
        port_selection=str(Path(__file__).with_name("flowlets.py")),
    ),
    "short-links": Row(
        text="k=8, permutation by ECMP, 50 ns to a host",
        job=_permutation(),
        host_delay_ps=50 * NS_PS,
        receive_latency_ps=0,
    ),
    "series": Row(
        text="k=8, permutation by ECMP, all series every 10 us", job=_permutation(), series_every_ps=10 * US_PS
    ),
    "rails": Row(
        text="64 H100 in 8 servers, rail-optimized, hierarchical all-reduce of 64 MiB", job=_permutation(), gpus=64
    ),
    "small": Row(text="k=4, 16 hosts, permutation by ECMP, 512 packets a flow", job=_permutation(512), radix=4),
    "small-reference": Row(text="the same on the reference engine", job=_permutation(512), radix=4, on_reference=True),
    "as-ns3": Row(
        text="k=8, 128 hosts, 100 Gb/s, permutation of 2 MB flows, no control at all",
        job=lambda hosts: permutation(hosts=hosts, size_bytes=2 * MB, seed=SEED),
        rate_bps=100_000_000_000,
        buffer_bytes=1_000 * MB,
        congestion_control="none",
        variant=None,
        transport={"flow_control": "none", "ack_every": NO_ACKS},
    ),
}
