"""Memory and work of a run, before it is made.

One model covers every workload and every fidelity.

Memory is what the process has at its most, interpreter, tables and answer included. It is a sum of what a run is made
of, counted twice by the same terms: from the keys alone, before anything is built, and again when the programs of the
job are written, before routes, engines and tables are. The coefficients are a fit to the most memory of some forty runs
(`benchmarks/run_memory.py`, which prints how far off they are).
Leaves out: how long a run takes, which its progress tells; memory that a policy of the user's own takes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.base.memory import memory_limit, memory_words
from weftwork.spec.fidelities import FIDELITIES
from weftwork.spec.job import Arrivals, Loop, Send
from weftwork.spec.peers import peers_of
from weftwork.spec.routings import ROUTINGS
from weftwork.study.prepare.engine import ENGINES
from weftwork.study.prepare.lowered import folds
from weftwork.study.prepare.recording import TIMELINE_BINS, TIMELINE_ROWS
from weftwork.study.prepare.workload import ROADS
from weftwork.topology.build import counting_keys, fabric_size
from weftwork.topology.devices import node_of
from weftwork.topology.routing import attachments

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from weftwork.spec.fabric import Fabric
    from weftwork.spec.job import Job, Operation
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.study.prepare.job_volume import Volume
    from weftwork.study.prepare.prepared import Prepared

__all__ = ["Amounts", "Estimate", "amounts_asked", "amounts_of", "estimate", "refuse_actors", "refuse_amounts"]

BUSY: Final = 0.5  # of the rows of a timeline; chosen: ports of a permutation are idle half of the time or more


@dataclass(frozen=True, kw_only=True, slots=True)
class Amounts:
    """The amounts that determine a run's memory and work.

    Attributes
    ----------
    nodes, links, leaves : of the fabric; leaves are the switches that hosts hang on
    ranks : of the job
    messages, queue_pairs : that are kept
    payload_bytes : of all messages between hosts, for engines of packets
    operations : rows of the programs as engines have them
    steps : operations that one rank of each program runs, loops unrolled; what engines that fold ranks keep
    sampled : flows and ports of which series are kept
    """

    nodes: int = 0
    links: int = 0
    leaves: int = 0
    ranks: int = 0
    messages: int = 0
    queue_pairs: int = 0
    payload_bytes: int = 0
    operations: int = 0
    steps: int = 0
    sampled: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """Memory and work of a run.

    Attributes
    ----------
    memory_bytes : at the most
    work : packet-hops, or messages and collectives under way
    unit : what ``work`` counts
    parts : bytes by what takes them, the largest first
    step_bytes : of them those of steps, each program run once
    """

    memory_bytes: int
    work: int
    unit: str
    parts: Mapping[str, int] = field(default_factory=dict)
    step_bytes: int = 0

    def __str__(self) -> str:
        return f"about {memory_words(self.memory_bytes)} and {self.work:,} {self.unit}"


def amounts_asked(scenario: Scenario) -> Amounts:
    """Count the amounts that follow from the keys of a scenario.

    Nothing is built before; an amount without such keys is 0.

    Raises
    ------
    ConfigError, CodeError : the fabric cannot be
    """
    size = fabric_size(scenario.fabric)
    if size is None:
        return Amounts()
    gpus = size.hosts * node_of(scenario.fabric.node)[0].server.gpus
    counts = ROADS[scenario.workload_kind.name].count_asked(scenario, size, gpus)
    return Amounts(nodes=size.nodes, links=size.links, leaves=size.leaves, **counts)


def amounts_of(scenario: Scenario, fabric: Fabric, job: Job, sent: Volume | None) -> Amounts:
    """Count the amounts of a run of this job on this fabric.

    Parameters
    ----------
    scenario : its fidelity, and what it records
    fabric, job : built
    sent : messages and payload of the job; None where the engine folds ranks and keeps no messages
    """
    operations = steps = 0
    for program in job.programs:
        for stream in program.streams:
            rows, run = _counted(stream)
            operations += rows
            steps += run
    return Amounts(
        nodes=len(fabric.node_kind),
        links=len(fabric.links),
        leaves=len(attachments(fabric)[0]),
        ranks=job.ranks,
        messages=0 if sent is None else sent.messages,
        queue_pairs=0 if sent is None else _queue_pairs(job),
        payload_bytes=round(_between_hosts(job)) if FIDELITIES[scenario.engine.fidelity].has_packets else 0,
        operations=operations,
        steps=steps,
        sampled=_sampled(scenario, fabric, job),
    )


def _counted(operations: tuple[Operation, ...]) -> tuple[int, int]:
    """Rows, and executed operations."""
    rows = run = 0
    for operation in operations:
        if isinstance(operation, Loop):
            inner, each = _counted(operation.body)
            rows += inner + 2
            run += operation.count * each
        elif isinstance(operation, Arrivals):
            rows += 2 * len(operation)
            run += 2 * len(operation)
        else:
            rows += 1
            run += 1
    return rows, run


def _between_hosts(job: Job) -> float:
    """Payload between servers.

    A loop sends in every turn as in its first.
    """
    host = job.placement.host

    def sent(operations: tuple[Operation, ...], ranks: NDArray[np.int64], first: int) -> float:
        total = 0.0
        for operation in operations:
            if isinstance(operation, Loop):
                total += operation.count * sent(operation.body, ranks, first)
            elif isinstance(operation, Arrivals):
                total += float(operation.size_bytes.sum()) * len(ranks)
            elif isinstance(operation, Send):
                peers = peers_of(operation.peer, ranks - first, 0)
                there = peers >= 0
                far = host[ranks[there]] != host[peers[there] + first]
                size = operation.size
                share = size.span / size.parts if size.parts else 1
                total += int(far.sum()) * size.total_bytes * share * size.copies
        return total

    return sum(
        sent(stream, np.flatnonzero(job.rank_program == index), job.first_rank[index] if job.first_rank else 0)
        for index, program in enumerate(job.programs)
        for stream in program.streams
    )


def _queue_pairs(job: Job) -> int:
    """Upper bound of the number of queue pairs.

    A rank has one for each peer and channel.
    """
    found = 0
    for index, program in enumerate(job.programs):
        peers: dict[tuple[object, ...], int] = {}
        arrivals = 0
        for stream in program.streams:
            arrivals += _connections(stream, 1, peers)
        found += int((job.rank_program == index).sum()) * (arrivals + sum(peers.values()))
    return found


def _connections(operations: tuple[Operation, ...], turns: int, peers: dict[tuple[object, ...], int]) -> int:
    """Note each rule for a peer once, with its number of peers.

    It returns the connections of arrivals.
    """
    arrivals = 0
    for operation in operations:
        if isinstance(operation, Loop):
            arrivals += _connections(operation.body, operation.count, peers)
        elif isinstance(operation, Arrivals):
            arrivals += len(operation)
        elif isinstance(operation, Send):
            peer = operation.peer
            members = peer.group.size if peer.group is not None else turns
            key = (peer.rule, peer.shift, peer.step, id(peer.table), peer.group, operation.channel)
            peers[key] = max(peers.get(key, 0), 1 if peer.step == 0 else min(turns, members))
    return arrivals


def _sampled(scenario: Scenario, fabric: Fabric, job: Job) -> int:
    """Flows and ports with a time series."""
    wanted = scenario.engine.record
    if not FIDELITIES[scenario.engine.fidelity].has_series:
        return 0
    each = 2 + len(wanted.state or ())  # rate, window, and fields of the policies' states
    flows = {"all": each * _queue_pairs(job), "none": 0}.get(str(wanted.flows), each * len(wanted.flows))
    ports = {"all": len(fabric.ports.node), "none": 0}.get(str(wanted.ports), len(wanted.ports))
    return flows + ports


def estimate(scenario: Scenario, amounts: Amounts) -> Estimate:
    """Estimate a run from its amounts.

    Parameters
    ----------
    scenario : its fidelity
    amounts : of `amounts_asked` or `amounts_of`
    """
    fidelity, engine = FIDELITIES[scenario.engine.fidelity], ENGINES[scenario.engine.fidelity]
    hops = _packet_hops(scenario, amounts)
    ports = 2 * amounts.links
    rows = min(BUSY * min(TIMELINE_ROWS, TIMELINE_BINS * ports), hops if fidelity.has_packets else float("inf"))
    terms = engine.memory_bytes
    if engine.folded_memory_bytes is not None and folds(scenario):
        terms, rows = engine.folded_memory_bytes, 0
    fixed = terms["process"] + (_GOODPUT_BYTES if scenario.reliability is not None else 0)
    parts = {
        "fabric": terms["link"] * amounts.links + terms["route"] * amounts.nodes * amounts.leaves,
        "job": terms["rank"] * amounts.ranks
        + terms["message"] * amounts.messages
        + terms["queue_pair"] * amounts.queue_pairs
        + terms["operation"] * amounts.operations
        + terms["step"] * amounts.steps,
        "tables over time": terms["row"] * rows,
        "series": _SAMPLE_BYTES * _samples(amounts.sampled),
    }
    whole = {name: round(size) for name, size in sorted(parts.items(), key=lambda one: -one[1])}
    work, unit = hops, "packet-hops"
    if not fidelity.has_packets:
        work, unit = max(amounts.messages, amounts.steps), "messages and steps"
    return Estimate(
        memory_bytes=round(fixed) + sum(whole.values()),
        work=round(work),
        unit=unit,
        parts=whole,
        step_bytes=round(terms["step"] * amounts.steps),
    )


_SAMPLE_BYTES: Final = 89
_GOODPUT_BYTES: Final = 20e6


def _samples(sampled: int) -> int:
    """Samples of flows and ports in a run of unknown length.

    Chosen: 10,000 instants.
    """
    if not sampled:
        return 0
    from weftwork.engine.packet import SERIES_ROWS  # imports the engine, which only a run with packets needs

    return min(SERIES_ROWS, 10_000 * sampled)


def _packet_hops(scenario: Scenario, amounts: Amounts) -> float:
    """Hops of packets and their ACKs between hosts under different spines."""
    mtu = scenario.transport.mtu_bytes or 4_096
    return 2 * max(1.0, amounts.payload_bytes / mtu) * (4 if amounts.leaves > 1 else 2)


def refuse_amounts(scenario: Scenario, amounts: Amounts) -> Estimate:
    """Estimate a run, and refuse it if memory is too small.

    Raises
    ------
    ConfigError : with the keys to shrink, those of the largest part first
    """
    found = estimate(scenario, amounts)
    limit = memory_limit()
    if found.memory_bytes <= limit.limit_bytes:
        return found
    largest = next(iter(found.parts))
    keys = _keys(scenario, largest)
    shares = ", ".join(f"{name} {memory_words(size)}" for name, size in found.parts.items() if size > 0)
    text = (
        f"the run needs about {memory_words(found.memory_bytes)} of memory, wanted at most {limit}: {shares};"
        f" take less of {', '.join(keys)}"
    )
    raise ConfigError(scenario.source, [Mistake(path=keys[0], text=text)])


def refuse_actors(prepared: Prepared, actors: int) -> None:
    """Refuse a folded run with more different ranks than memory holds.

    Their number is known once the engine has folded the run.

    Parameters
    ----------
    prepared : with an estimate that has counted each program once
    actors : ranks of which the engine runs one for all that are alike

    Raises
    ------
    ConfigError : with the keys to shrink
    """
    told, limit = prepared.estimate, memory_limit()
    extra = told.step_bytes * max(0, actors - len(prepared.job.programs)) // max(1, len(prepared.job.programs))
    if told.memory_bytes + extra <= limit.limit_bytes:
        return
    scenario, keys = prepared.scenario, _keys(prepared.scenario, "job")
    needed = f"the run needs about {memory_words(told.memory_bytes + extra)} of memory, wanted at most {limit}"
    if ROUTINGS[scenario.fabric.routing].detour == "adaptive":
        text = (
            f"under {scenario.fabric.routing} routing the flow engine folds nothing: with {plural(actors, 'rank')}"
            f" {needed}; take minimal or valiant, or less of {', '.join(keys)}"
        )
        raise ConfigError(scenario.source, [scenario.mistake("fabric.routing", text)])
    text = f"the links make {plural(actors, 'kind')} of ranks differ, so {needed}; take less of {', '.join(keys)}"
    raise ConfigError(scenario.source, [scenario.mistake(keys[0], text)])


def _keys(scenario: Scenario, part: str) -> list[str]:
    """The keys that make a part of the estimate large."""
    if part in {"series", "tables over time"}:
        return ["engine.record.flows", "engine.record.ports"] if part == "series" else ["fabric.hosts"]
    if part == "fabric":
        return [f"fabric.{key}" for key in counting_keys(scenario.fabric)] or ["fabric"]
    return ROADS[scenario.workload_kind.name].large_keys(scenario)
