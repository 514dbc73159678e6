"""Published packet runs of the Ultra Ethernet model as scorecard rows.

Two tables: sprayed permutations of 8,192 hosts on a leaf-spine fabric, and small cases at 100 Gb/s in a fat tree of
1,024 hosts. A row takes the packet engine itself, without a scenario: the model's packets (4,150 B, 64 B of them
header; answers and cut packets of 64 B) are no RoCEv2.
Chosen, since the tables do not state it: hosts of a permutation, which is another random one; starts at 0 (a public
copy of the connection matrices has that); a packet less in a queue than there, since there the packet on the wire
counts too; an answer for every packet, which selective repeat sends; which of them count, as the policies' defaults
say. Small cases: a queue of one BDP, marks between 0.2 and 0.8 of it, as main_uec.cpp chooses where nothing is said,
128 entropies, as validate_load_balancing_snd.txt has, and for `mixed` and `reps` an answer for every packet.
Source: `weftwork.data.measured`; ultraethernet/uet-htsim, main_uec.cpp, uec.cpp, compositequeue.cpp.
Leaves out: SLEEK, 800 Gb/s, oversubscribed and broken fabrics; under RCCC, that leaves do not mark towards hosts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, Final

from weftwork.base.clock import SECOND_PS, US_PS
from weftwork.base.errors import EngineError
from weftwork.base.grammar import plural
from weftwork.data.measured import measured
from weftwork.engine import packet
from weftwork.engine.lower import lower
from weftwork.engine.outcome import Outcome
from weftwork.engine.settings import EngineSettings
from weftwork.policies.load import catalogue, load
from weftwork.spec.device import Ecn, HashFunction, Nic, Switch
from weftwork.spec.fabric import Fabric
from weftwork.spec.job import Job
from weftwork.spec.transport import Transport
from weftwork.study.validation.scorecard import Excluded, Point
from weftwork.topology.shapes.fat_tree import fat_tree
from weftwork.topology.shapes.leaf_spine import leaf_spine
from weftwork.workload.traffic.patterns.incast import incast
from weftwork.workload.traffic.patterns.permutation import permutation

__all__ = [
    "FRAME_BYTES",
    "PAYLOAD_BYTES",
    "UetRow",
    "permutation_row",
    "permutations",
    "small_cases",
    "small_row",
]

HEADER_BYTES: Final = 64  # uec.cpp, UecSrc::_hdr_size; answers and cut packets have as many
FRAME_BYTES: Final = 4_150  # main_uec.cpp, packet_size
PAYLOAD_BYTES: Final = FRAME_BYTES - HEADER_BYTES
LEAVES: Final = 128  # topologies/leaf_spine_8192_*.topo: 64 hosts and 64 uplinks each, 1 us a link
PER_LEAF: Final = 64
RADIX: Final = 16  # of the fat tree: 1,024 hosts in three tiers
SMALL_PATHS: Final = 128
ENDLESS_BYTES: Final = 10**12  # of shared buffer, so that a queue's own length alone limits it
TIMEOUT_PS: Final = 15 * US_PS  # main_uec.cpp: 15 us and the time in which six full queues drain
QUEUES_OF_TIMEOUT: Final = 6
MB: Final = 1_000_000
QUICK_BYTES: Final = 2 * MB  # without --full: a minute on two cores
FULL_BYTES: Final = 16 * MB  # what is larger is in benchmarks/published_permutation.py
QUICK_PATHS: Final = 64
_SELECTIONS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "oblivious": ("oblivious", {}),
    "bitmap": ("bitmap", {}),
    "reps": ("reps", {}),
    "mixed": ("mixed", {"good_every": 1}),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class UetRow:
    """One published run.

    Attributes
    ----------
    pattern : ``permutation``, ``incast`` or ``lone``
    hosts, flows, message_bytes, rate_bps : of the run; flows other than all hosts go to the last host
    control : in the catalogue
    paths : entropies
    queue_packets, kmin_packets, kmax_packets : of a queue at a switch, as the options of the run have them
    window_packets : first window; 0: the control's own
    path_selection, path_parameters : in the catalogue
    tail_us : completion of the last flow at its sender, as published
    least_us : of the first flow; 0: not published
    """

    pattern: str
    hosts: int
    flows: int
    message_bytes: int
    rate_bps: int
    control: str
    paths: int
    queue_packets: int
    kmin_packets: int
    kmax_packets: int
    window_packets: int = 0
    path_selection: str = "mixed"
    path_parameters: tuple[tuple[str, Any], ...] = ()
    tail_us: float
    least_us: float = 0.0

    @property
    def name(self) -> str:
        """Name of the run for people."""
        size = f"{self.message_bytes // MB} MB at {self.rate_bps // 10**9} Gb/s"
        if self.pattern != "permutation":
            return f"{self.pattern}, {self.flows} x {size}" if self.flows > 1 else f"lone flow, {size}"
        return (
            f"{plural(self.hosts, 'host')}, {size}, {plural(self.paths, 'path')}, {self.control}, {self.path_selection}"
        )

    def run(self, *, seed: int = 1, leaves: int = LEAVES) -> Outcome:
        """Run it on the packet engine.

        Parameters
        ----------
        seed : of the permutation, of entropies and marks
        leaves : of the leaf-spine fabric, 64 hosts each; fewer make a smaller permutation

        Raises
        ------
        EngineError : a message did not arrive
        """
        large = self.hosts > RADIX**3 // 4
        hosts = leaves * PER_LEAF if large else self.hosts
        windows = {"first_window_bytes": self.window_packets * FRAME_BYTES} if self.control == "nscc" else {}
        outcome = packet.run(
            lower(
                fabric=self._leaf_spine(leaves) if large else self._fat_tree(),
                job=self._job(hosts, seed),
                transport=self._transport(),
                congestion_control=load("congestion_control", self.control, windows),
                settings=EngineSettings(
                    path_selection=load(
                        "path_selection", self.path_selection, {"paths": self.paths, **dict(self.path_parameters)}
                    ),
                    port_selection=load("port_selection", "ecmp"),
                    seed=seed,
                ),
            )
        )
        if not outcome.complete or (outcome.messages["acked_at_ps"] < 0).any():
            raise EngineError(f"the run of {self.name} did not end")
        return outcome

    def point(self) -> Point:
        """Run it, and compare it with the published time.

        The naive rule is line rate.
        """
        tail_ps = int(self.run().messages["acked_at_ps"].max())
        senders = self.flows if self.pattern == "incast" else 1
        return Point(
            name=self.name,
            measured_s=self.tail_us / 1e6,
            predicted_s=tail_ps / SECOND_PS,
            naive_s=senders * self.message_bytes * 8 / self.rate_bps,
        )

    def _job(self, hosts: int, seed: int) -> Job:
        if self.pattern == "permutation":
            return permutation(hosts=hosts, size_bytes=self.message_bytes, seed=seed)
        return incast(hosts=hosts, senders=self.flows, receiver=hosts - 1, size_bytes=self.message_bytes, seed=seed)

    def _transport(self) -> Transport:
        drain_ps = self.queue_packets * FRAME_BYTES * 8 * SECOND_PS // self.rate_bps
        return Transport(
            name="ultra-ethernet",
            mtu_bytes=PAYLOAD_BYTES,
            data_overhead_bytes=HEADER_BYTES,
            first_extra_bytes=0,
            timestamp_bytes=0,
            entropy_echo_bytes=0,
            request_overhead_bytes=0,
            ack_bytes=HEADER_BYTES,
            credit_bytes=HEADER_BYTES,
            trim_bytes=HEADER_BYTES,
            interframe_bytes=0,
            lossless_priorities=(),
            recovery="selective-repeat",
            reorder_threshold_packets=1 << 20,  # nothing is lost because it was overtaken
            reorder_window_packets=1 << 15,
            retransmission_timeout_ps=TIMEOUT_PS + QUEUES_OF_TIMEOUT * drain_ps,
            retry_limit=1_000,
        )

    def _switch(self) -> Switch:
        limit_bytes = (self.queue_packets - 1) * FRAME_BYTES + FRAME_BYTES // 2
        return Switch(
            forwarding_latency_ps=0,
            buffer_bytes=ENDLESS_BYTES,
            reserve_bytes=0,
            egress_alpha=limit_bytes / ENDLESS_BYTES,
            hash=HashFunction(algorithm="mix"),
            ecn=Ecn(
                kmin_bytes=self.kmin_packets * FRAME_BYTES,
                kmax_bytes=self.kmax_packets * FRAME_BYTES,
                pmax=1,
                at="dequeue",
            ),
        )

    def _leaf_spine(self, leaves: int) -> Fabric:
        return leaf_spine(
            leaves=leaves,
            spines=PER_LEAF,
            hosts_per_leaf=PER_LEAF,
            host_rate_bps=self.rate_bps,
            fabric_rate_bps=self.rate_bps,
            host_delay_ps=US_PS,
            fabric_delay_ps=US_PS,
            switch=self._switch(),
            nic=Nic(receive_latency_ps=0),
        )

    def _fat_tree(self) -> Fabric:
        return fat_tree(
            tiers=3,
            radix=RADIX,
            host_rate_bps=self.rate_bps,
            fabric_rate_bps=self.rate_bps,
            host_delay_ps=US_PS,
            fabric_delay_ps=US_PS,
            switch=self._switch(),
            nic=Nic(receive_latency_ps=0),
        )


def permutations(*, is_full: bool, most_bytes: int = FULL_BYTES) -> tuple[tuple[UetRow, ...], tuple[Excluded, ...]]:
    """Rows of the table of 8,192 hosts.

    Parameters
    ----------
    is_full : all up to ``most_bytes``; else those of 64 paths at 1 and 2 MB
    most_bytes : the largest message

    Returns
    -------
    rows, and those of controls that are not in the catalogue
    """
    names = {entry.name for entry in catalogue("congestion_control")}
    found, excluded = [], []
    for row in measured("htsim-permutation-8192-hosts").to_pylist():
        is_wanted = row["message_bytes"] <= most_bytes
        if not is_full:
            is_wanted = row["message_bytes"] <= QUICK_BYTES and row["paths"] == QUICK_PATHS
        if not is_wanted:
            continue
        made = permutation_row(row)
        if made.control in names:
            found.append(made)
        else:
            excluded.append(Excluded(name=made.name, reason=f"{made.control} is not in the catalogue"))
    return tuple(found), tuple(excluded)


def permutation_row(row: Mapping[str, Any]) -> UetRow:
    """A row with the options of its run.

    generate_permutation_experiments.py makes the options from the rate of the links.
    """
    queue_packets = row["link_gbps"] // 4
    return UetRow(
        pattern="permutation",
        hosts=LEAVES * PER_LEAF,
        flows=LEAVES * PER_LEAF,
        message_bytes=row["message_bytes"],
        rate_bps=row["link_gbps"] * 10**9,
        control=row["control"],
        paths=row["paths"],
        queue_packets=queue_packets,
        kmin_packets=queue_packets // 4,
        kmax_packets=3 * queue_packets // 4,
        window_packets=3 * queue_packets // 2,
        tail_us=row["tail_fct_us"],
        least_us=row["min_fct_us"],
    )


def small_cases() -> tuple[tuple[UetRow, ...], tuple[Excluded, ...]]:
    """Rows at 100 Gb/s, under NSCC.

    For several published runs, the mean of the least and the most.

    Returns
    -------
    rows, and those that are left out
    """
    found, excluded = [], []
    for row in measured("htsim-100g").to_pylist():
        made = small_row(row)
        if row["load_balancing"] in _SELECTIONS:
            found.append(made)
        else:
            excluded.append(
                Excluded(name=made.name, reason=f"{row['load_balancing']} is not a path selection of Weftwork")
            )
    return tuple(found), tuple(excluded)


def small_row(row: Mapping[str, Any]) -> UetRow:
    """A row at 100 Gb/s with the options of its run.

    Parameters
    ----------
    row : its cells
    """
    rate_bps = row["link_gbps"] * 10**9
    links = 6  # of the longest path: up three tiers and down again
    rtt_ps = links * (2 * US_PS + (FRAME_BYTES + HEADER_BYTES) * 8 * SECOND_PS // rate_bps)
    bdp_packets = ceil(rtt_ps * rate_bps / 8 / SECOND_PS / FRAME_BYTES)
    name, parameters = _SELECTIONS.get(row["load_balancing"], (row["load_balancing"], {}))
    return UetRow(
        pattern=row["pattern"],
        hosts=row["hosts"],
        flows=row["flows"],
        message_bytes=row["message_bytes"],
        rate_bps=rate_bps,
        control="nscc",
        paths=SMALL_PATHS,
        queue_packets=bdp_packets,
        kmin_packets=ceil(0.2 * bdp_packets),
        kmax_packets=ceil(0.8 * bdp_packets),
        path_selection=name,
        path_parameters=tuple(parameters.items()),
        tail_us=(row["least_tail_us"] + row["most_tail_us"]) / 2,
    )
