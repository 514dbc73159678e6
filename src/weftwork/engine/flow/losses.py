"""Losses on flows: how many more the slowest of flows side by side has than a mean one.

A flow has the mean cost of its own path (native/flow/losses.hpp). A job waits for the slowest of its flows, so what
a loss costs is multiplied by the mean maximum of Poisson numbers over their mean.
Source: docs/models/flow-losses.md.
Leaves out: the draw of each loss, and congestion controls that slow down after one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.engine.instants import LOSS_PARTS
from weftwork.engine.rows.fabric import Instant
from weftwork.engine.rows.transport import LOSS_RULES_DTYPE
from weftwork.spec.fabric import HOST
from weftwork.spec.fault_changes import ChangedState
from weftwork.spec.job import Arrivals, Collect, Loop, Operation, Send
from weftwork.topology.connected import connected_parts
from weftwork.topology.oversubscription import oversubscription_by_tier

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from weftwork.base.findings import Findings
    from weftwork.engine.instants import Fault
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.job import Job
    from weftwork.spec.transport import Transport

__all__ = [
    "ALMOST_ALL",
    "FlowLosses",
    "check_losses",
    "flow_losses",
    "mean_maximum",
    "no_losses",
    "quantile_of_maximum",
    "without_losses",
]

ALMOST_ALL: Final = 0.999  # chosen: of runs that take no longer than the upper bound of an answer
_DEVIATIONS: Final = 12  # chosen: standard deviations of a Poisson number that a sum goes through; the rest is 1e-30


@dataclass(frozen=True, kw_only=True, slots=True)
class FlowLosses:
    """Losses of ports at the start, and what they cost.

    Attributes
    ----------
    port_loss : shape (ports,), of a packet that a port sends; empty: nothing is ever lost
    rules : shape (1,), `LOSS_RULES_DTYPE`, for the mean run
    most : the same for the slowest of 1,000 runs
    """

    port_loss: NDArray[np.float64]
    rules: NDArray[np.void]
    most: NDArray[np.void]


def check_losses(fabric: Fabric, faults: Sequence[Fault], findings: Findings) -> None:
    """Find links that lose everything, of which no flow has a mean time."""
    text = "found a link that loses all packets, so that no flow ever ends; wanted less than 1, or event: down"
    for index, fault in enumerate(faults):
        if fault.change.sets is ChangedState.LOSS and fault.loss >= 1:
            findings.wrong(f"faults.{index}.loss", text, "down")
    if (_link_loss(fabric) >= 1).any():
        findings.wrong("fabric.loss", text)


def _link_loss(fabric: Fabric) -> NDArray[np.float64]:
    """Probability that a link loses or corrupts a packet; shape (links,)."""
    links = fabric.links
    return np.asarray(1.0 - (1.0 - links["loss"]) * (1.0 - links["corruption"]), np.float64)


def flow_losses(
    fabric: Fabric,
    job: Job,
    transport: Transport,
    instants: NDArray[np.void],
    *,
    tier_of_port: NDArray[np.int32],
    is_sprayed: bool,
) -> tuple[FlowLosses, NDArray[np.void]]:
    """Losses of a run, and its instants with losses that hold from the first instant left out.

    Parameters
    ----------
    fabric : its losses and corruptions
    job, transport : whose packets are lost, and how they are sent again
    instants : `INSTANT_DTYPE`, those of lossy links among them
    tier_of_port : shape (ports,), which links of a path a port is
    is_sprayed : each flow takes all ways at once, and so crosses a lossy link of any of them
    """
    is_loss = instants["code"] == Instant.LOSS
    ports = fabric.ports
    link_loss = _link_loss(fabric)
    corruption = fabric.links["corruption"]
    made = instants.copy()  # an instant tells the loss alone
    told = 1.0 - (1.0 - instants["value"][is_loss] / LOSS_PARTS) * (
        1.0 - corruption[ports.link[instants["port"][is_loss]]]
    )
    made["value"][is_loss] = np.rint(told * LOSS_PARTS)
    worst = link_loss.copy()
    np.maximum.at(worst, ports.link[made["port"][is_loss]], made["value"][is_loss] / LOSS_PARTS)
    if not (worst > 0).any():
        return no_losses(), instants[~is_loss]
    at_start = is_loss & (made["at_ps"] == 0)
    for row in made[at_start]:
        link_loss[ports.link[row["port"]]] = row["value"] / LOSS_PARTS
    crowd = _Crowd.of(fabric, job, transport, worst[ports.link], tier_of_port, is_sprayed=is_sprayed)
    losses = FlowLosses(
        port_loss=np.ascontiguousarray(link_loss[ports.link]),
        rules=_rules(transport, crowd, at=None),
        most=_rules(transport, crowd, at=ALMOST_ALL),
    )
    return losses, made[~at_start]


def no_losses() -> FlowLosses:
    """Links that lose nothing."""
    none = np.zeros(1, LOSS_RULES_DTYPE)
    return FlowLosses(port_loss=np.empty(0, np.float64), rules=none, most=none)


def without_losses(instants: NDArray[np.void]) -> NDArray[np.void]:
    """Instants without those at which a link begins or ceases to lose packets."""
    kept: NDArray[np.void] = instants[instants["code"] != Instant.LOSS]
    return kept


# How many flows are side by side, and how many packets they have


@dataclass(frozen=True, kw_only=True, slots=True)
class _Load:
    """Transfers that a job waits for.

    Attributes
    ----------
    times : how often, over all ranks
    packets : of the data of one, over the network
    """

    times: float
    packets: float


@dataclass(frozen=True, kw_only=True, slots=True)
class _Crowd:
    """Flows side by side whose packets are lost.

    Attributes
    ----------
    flows : how many cross a lossy link
    apart : how many of them do not share the link that holds them up
    loss : of a packet on the path of one
    connections : messages that a rank sends over one connection, one after the other, as one load each
    calls : whole collectives
    follow : messages of a connection
    """

    flows: float
    apart: float
    loss: float
    connections: tuple[_Load, ...]
    calls: tuple[_Load, ...]
    follow: float

    @classmethod
    def of(
        cls,
        fabric: Fabric,
        job: Job,
        transport: Transport,
        port_loss: NDArray[np.float64],
        tier_of_port: NDArray[np.int32],
        *,
        is_sprayed: bool,
    ) -> _Crowd:
        """The crowd of a job.

        A path has one link of each kind, and a lossy link of a kind as often as links of that kind are lossy. A flow
        that is sprayed has all links of a kind that lead out of its part of the fabric, and a packet one of them.
        """
        misses, arrives = 1.0, 1.0
        for kind in np.unique(tier_of_port).tolist():
            own = np.flatnonzero(tier_of_port == kind)
            is_lossy = port_loss[own] > 0
            if is_lossy.any() and is_sprayed:
                is_lossy = np.bincount(_parts(fabric, own), weights=is_lossy) > 0
            misses *= 1.0 - float(is_lossy.mean())
            arrives *= 1.0 - float(port_loss[own].mean())
        mean = 1.0 - arrives
        sends = _Sends(job, transport.mtu_bytes)
        flows = max(1.0, sends.senders * (1.0 - misses))
        ratios = oversubscription_by_tier(fabric) if fabric.direct is None else {}
        together = sends.contention * math.prod(max(1.0, float(ratio)) for ratio in ratios.values())
        return cls(
            flows=flows,
            apart=max(1.0, flows / together),
            loss=min(mean / (1.0 - misses), float(np.nextafter(1.0, 0.0))),
            connections=tuple(sends.connections),
            calls=tuple(sends.calls),
            follow=sends.follow,
        )


def _parts(fabric: Fabric, own: NDArray[np.int64]) -> NDArray[np.int64]:
    """For ports between the same tiers the part of the fabric whose sprayed flows take them, numbered from 0.

    A part is what links below these ports join: a leaf for its ports up and down, a pod for ports above it. Ports of
    hosts are taken one by one, and those between switches of a direct network by the switch that sends.
    """
    ports, tier = fabric.ports, fabric.node_tier
    node, peer = ports.node[own], ports.node[ports.peer[own]]
    lower = np.where(tier[node] <= tier[peer], node, peer)
    part: NDArray[np.integer]
    if fabric.direct is not None:
        part = node
    elif (fabric.node_kind[lower] == HOST).any():
        return np.arange(len(own))
    else:
        links = fabric.links
        below = (fabric.node_kind != HOST) & (tier <= tier[lower].max())
        inside = links[below[links["a"]] & below[links["b"]]]
        part = connected_parts(inside["a"], inside["b"], len(tier))[lower]
    return np.unique(part, return_inverse=True)[1]


class _Sends:
    """Messages and collectives of a job over its network, as loads.

    Attributes
    ----------
    connections, calls : as of `_Crowd`
    senders : ranks that send over a connection or take part in a call
    follow : messages of a mean connection
    contention : packets to the busiest receiver over those of the busiest sender
    """

    def __init__(self, job: Job, mtu_bytes: int) -> None:
        self.connections: list[_Load] = []
        self.calls: list[_Load] = []
        self._job, self._mtu_bytes = job, mtu_bytes
        self._to, self._of = np.zeros(job.ranks), np.zeros(job.ranks)
        self._calls = np.zeros(job.ranks, np.bool_)
        messages = lanes = 0.0
        for index, program in enumerate(job.programs):
            ranks = np.flatnonzero(job.rank_program == index)
            seen: set[object] = set()
            packets = sent = 0.0
            for stream in program.streams:
                for operation, times in _unrolled(stream, 1):
                    if isinstance(operation, Collect):
                        self._call(operation, ranks, times)
                    elif isinstance(operation, Send):
                        steps = times if operation.peer.step else 1
                        seen.update((operation.peer, operation.channel, step) for step in range(min(steps, job.ranks)))
                        each = self._send(operation, ranks, times)
                        sent += times if each else 0
                        packets += times * each
                    elif isinstance(operation, Arrivals):
                        each_packets = np.maximum(1, -(-operation.size_bytes // mtu_bytes))
                        pairs = np.stack([operation.peer, operation.channel], axis=1)
                        seen.update(map(tuple, np.unique(pairs, axis=0).tolist()))
                        np.add.at(self._to, operation.peer, len(ranks) * each_packets)
                        self._of[ranks] += each_packets.sum()
                        sent += len(operation)
                        packets += float(each_packets.sum())
            if sent and len(ranks):
                self.connections.append(_Load(times=len(ranks) * len(seen), packets=packets / len(seen)))
                messages += len(ranks) * sent
                lanes += len(ranks) * len(seen)
        self.senders = int(((self._of > 0) | self._calls).sum())
        self.follow = max(1.0, messages / lanes) if lanes else 1.0
        self.contention = max(1.0, float(self._to.max()) / float(self._of.max())) if self._of.any() else 1.0

    def _send(self, operation: Send, ranks: NDArray[np.int64], times: float) -> float:
        """Packets of one message; 0 where no rank sends one."""
        size, peer = operation.size, operation.peer
        share = size.span / size.parts if size.parts else 1.0
        packets = float(max(1, math.ceil(size.total_bytes * share * size.copies / self._mtu_bytes)))
        if peer.table is not None:
            to = np.asarray(peer.table, np.int64)[ranks]
            ranks, to = ranks[to >= 0], to[to >= 0]
            np.add.at(self._to, to, times * packets)
        elif peer.rule == "rank":
            self._to[peer.shift] += len(ranks) * times * packets
        else:
            self._to[ranks] += times * packets
        self._of[ranks] += times * packets
        return packets if len(ranks) else 0.0

    def _call(self, operation: Collect, ranks: NDArray[np.int64], times: float) -> None:
        """A collective whose group spans servers: each of its rings has its share of the bytes."""
        if not len(ranks):
            return
        members = np.zeros(1, np.int64)
        first = int(ranks[0])
        for stride, size in operation.group.axes:
            digit = first // stride % size
            steps = (np.arange(size) - digit) * stride
            members = (members[:, None] + steps[None, :]).ravel()
        hosts, counts = np.unique(self._job.placement.host[(first + members) % self._job.ranks], return_counts=True)
        if len(hosts) > 1:
            packets = max(1.0, operation.amount_bytes / int(counts.max()) / self._mtu_bytes)
            self._calls[ranks] = True
            self.calls.append(_Load(times=len(ranks) * times, packets=packets))


def _unrolled(operations: tuple[Operation, ...], times: int) -> Iterator[tuple[Operation, int]]:
    """Operations with how often they run."""
    for operation in operations:
        if isinstance(operation, Loop):
            yield from _unrolled(operation.body, times * operation.count)
        else:
            yield operation, times


# What they cost


def _rules(transport: Transport, crowd: _Crowd, at: float | None) -> NDArray[np.void]:
    """Rules for the mean run, or for the share ``at`` of all runs."""
    keeps_early = transport.recovery == "selective-repeat"
    goes_back = not keeps_early
    waits_always = transport.recovery == "timeout" or (goes_back and transport.reorder_tolerant)
    loss = crowd.loss
    again = loss / (1.0 - loss) if waits_always else 0.0 if keeps_early else 2.0 * loss * loss  # timeouts of a packet
    every = [*crowd.connections, *crowd.calls]
    times = sum(load.times for load in every)
    rules = np.zeros(1, LOSS_RULES_DTYPE)
    rules["timeout_ps"] = transport.retransmission_timeout_ps
    rules["goes_back"] = goes_back and not waits_always
    rules["waits_always"] = waits_always
    rules["waits_at_gaps"] = goes_back
    rules["kept_packets"] = transport.reorder_window_packets if transport.reorder_tolerant else 0.0
    rules["repeats"] = _multiple(crowd.apart if at is None else crowd.flows, every, loss / (1.0 - loss), at)
    if at is None:
        parts = [_Load(times=load.times, packets=load.packets / crowd.follow) for load in crowd.connections]
        rules["waits"] = _multiple(crowd.flows, [*parts, *crowd.calls], again, None)
        rules["end_waits"] = mean_maximum(crowd.flows, loss / crowd.follow) / loss
        rules["call_waits"] = mean_maximum(crowd.flows, loss) / loss
        return rules
    rules["waits"] = _multiple(crowd.flows, every, again, at) if waits_always else 0.0
    calls = sum(load.times for load in crowd.calls) / max(1, len(crowd.calls))
    ranks = max(1.0, times / max(1.0, len(every)))
    chain = crowd.follow if crowd.connections else max(1.0, calls / ranks)
    inside = sum(load.times * load.packets for load in every) / max(1.0, times) * (0.0 if waits_always else again)
    one = inside + (0.0 if waits_always else loss)  # timeouts of a connection, or of a call
    if crowd.follow == 1.0 and not crowd.calls:
        timeouts = quantile_of_maximum(crowd.flows, one, at)
    else:
        timeouts = quantile_of_maximum(1.0, crowd.flows * one * (1.0 if crowd.connections else chain), at)
    rules["end_waits"] = rules["call_waits"] = timeouts / (loss * chain)
    return rules


def _multiple(flows: float, loads: Sequence[_Load], rate: float, at: float | None) -> float:
    """Losses of the slowest of some flows over those of a mean one, over all loads."""
    most = mean = 0.0
    for load in loads:
        expected = load.packets * rate
        if expected > 0:
            number = mean_maximum(flows, expected) if at is None else quantile_of_maximum(flows, expected, at)
            most += load.times * number
            mean += load.times * expected
    return most / mean if mean else 1.0


def mean_maximum(count: float, mean: float) -> float:
    """Mean of the largest of some Poisson numbers.

    Parameters
    ----------
    count : how many, 1 or more; it need not be whole
    mean : of each

    Examples
    --------
    >>> round(mean_maximum(1, 2.5), 9)
    2.5
    >>> round(mean_maximum(100, 0.0001), 4)  # rare: as many as all of them have together
    0.01
    """
    first, share = _distribution(mean)
    return first + float((-np.expm1(count * np.log(np.maximum(share, 1e-300)))).sum())


def quantile_of_maximum(count: float, mean: float, at: float) -> float:
    """The number that the largest of some Poisson numbers exceeds in a share ``1 - at`` of all cases at most.

    Examples
    --------
    >>> quantile_of_maximum(1, 0.0005, 0.999), quantile_of_maximum(10, 0.0005, 0.999)
    (0.0, 1.0)
    """
    first, share = _distribution(mean)
    return first + float(np.searchsorted(share**count, at))


def _distribution(mean: float) -> tuple[float, NDArray[np.float64]]:
    """The first number that matters, and the shares of a Poisson number up to it and each one behind it."""
    if mean <= 0:
        return 0.0, np.ones(1)
    reach = _DEVIATIONS * (math.sqrt(mean) + 1.0)
    first = max(0, math.floor(mean - reach))
    number = np.arange(first, math.ceil(mean + reach) + 1, dtype=np.float64)
    log_factorial = math.lgamma(first + 1) + np.concatenate([[0.0], np.cumsum(np.log(number[1:]))])
    return float(first), np.minimum(1.0, np.cumsum(np.exp(number * math.log(mean) - mean - log_factorial)))
