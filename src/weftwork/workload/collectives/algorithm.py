"""The record of an algorithm's file, and the schedules that it makes.

An `Algorithm` turns a `Call` into a `Schedule`. Besides, each algorithm states in closed form the bytes that it sends
and the longest chain of messages that wait for each other, so that a run, and a program on symbols, can be held against
them.
Leaves out: the time of additions and copies inside a GPU, which the step latencies stand for.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from weftwork.base.clock import SECOND_PS
from weftwork.base.errors import ConfigError, Mistake
from weftwork.spec.job import Job, Operation, Placement, Program
from weftwork.spec.scenario.choice import Offer
from weftwork.workload.collectives.call import Call, call_mistakes
from weftwork.workload.collectives.group_form import GroupForm
from weftwork.workload.collectives.lattice_form import LatticeForm
from weftwork.workload.collectives.method import TimedMethod

__all__ = [
    "END",
    "START",
    "Algorithm",
    "Hop",
    "Schedule",
    "Share",
    "Traffic",
    "least_time_ps",
    "schedule_by_program",
    "traffic_of",
]

START: Final = 0
END: Final = 1  # indices of Job.milestone_names
MILESTONES: Final = ("start", "end")


@dataclass(frozen=True, kw_only=True, slots=True)
class Share:
    """The bytes of one channel, cut into near-equal parts.

    Attributes
    ----------
    total_bytes : on the wire; all sends of the share have it as `Size.total_bytes`
    parts : all sends of the share have it as `Size.parts`; 0 where the share is sent whole
    owners : whose result (reduce-scatter, all-to-all) or contribution (all-gather) the parts are: ``parts`` divided by
        ``len(owners)`` of them in a row for each; empty where no part is anybody's
    """

    total_bytes: int
    parts: int
    owners: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Schedule:
    """Programs of a call, without a placement.

    Attributes
    ----------
    name : for people
    call : what was asked
    programs : one for all ranks that do the same
    rank_program : shape (ranks + switches,), index into ``programs``
    shares : of the bytes
    share_of_connection : by `Send.channel`, the share whose parts travel on it
    switches : NVLink switches that take part, as ranks behind those of the GPUs: rank ``call.ranks + d`` is the switch
        of domain d, with ``Placement.gpu`` -1 - d; they pass no milestones
    """

    name: str
    call: Call
    programs: tuple[Program, ...]
    rank_program: NDArray[np.int32]
    shares: tuple[Share, ...]
    share_of_connection: tuple[int, ...]
    switches: int = 0

    def job(self, placement: Placement) -> Job:
        """The job of a schedule on a placement of all ranks, switches included."""
        return Job(
            name=self.name,
            ranks=len(self.rank_program),
            programs=self.programs,
            rank_program=self.rank_program,
            placement=placement,
            milestone_names=MILESTONES,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Traffic:
    """Bytes of one repetition, without headers.

    Attributes
    ----------
    total_bytes : of all messages; exact, whatever the sizes of parts
    network_bytes : of those between NVLink domains, with parts of equal size, as all that follow
    sent_bytes, received_bytes : of the busiest GPU, over all its links
    network_sent_bytes, network_received_bytes : through the NICs of the GPU whose NICs are the busiest; what goes by
        the rail of its receiver leaves by the NIC of the GPU of that rail
    local_sent_bytes, local_received_bytes : of the GPU that is the busiest inside its domain
    """

    total_bytes: int
    network_bytes: int
    sent_bytes: int
    received_bytes: int
    network_sent_bytes: int
    network_received_bytes: int
    local_sent_bytes: int
    local_received_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Hop:
    """A step of messages inside a domain or over the network.

    ``count`` messages of ``size_bytes`` each follow one another. ``is_step`` : whether the software has to pass them
    on; what an NVLink switch does takes no step.
    """

    count: int
    size_bytes: int
    is_local: bool = False
    is_step: bool = True


@dataclass(frozen=True, kw_only=True)
class Algorithm(Offer[Any]):
    """The constant ``ALGORITHM`` of a catalogue file or a user's file.

    Parameters
    ----------
    name : equal to the file's with ``-`` for ``_``
    operations : a builder of programs for each operation that it has
    traffic : bytes of a call in closed form
    chain : messages of a call that wait for each other, each for the one before
    source : where it is described
    keys : of the scenario that belong to it; a call has their values as ``options``
    mistakes : of a call that is right in general and that this algorithm cannot do
    needs_lattice : whether it needs the box of a torus or mesh that the ranks fill
    method : its closed form, by which ``protocol: auto`` chooses, and the figures of latencies that it has; None: none
    on_lattice : its closed form on a torus or mesh; None: none, and ``auto`` does not choose it there
    over_groups : its closed form over the groups of a network; None: none, and ``auto`` does not choose it there
    changes_rails : whether its messages change rails inside servers, so that ranks reach each other where rails are not
        joined
    """

    name: str
    operations: Mapping[str, Callable[[Call], Schedule]]
    traffic: Callable[[Call], Traffic]
    chain: Callable[[Call], Sequence[Hop]]
    mistakes: Callable[[Call], list[Mistake]] = lambda _: []
    needs_lattice: bool = False
    method: TimedMethod | None = None
    on_lattice: LatticeForm | None = None
    over_groups: GroupForm | None = None
    changes_rails: bool = False

    def __post_init__(self) -> None:
        """Refuse mistakes of a file that was written by hand.

        Raises
        ------
        TypeError : as of any `Offer`; or the method is no `TimedMethod`
        """
        super().__post_init__()
        method: object = self.method  # a file written by hand; Python itself checks no types
        if method is not None and not isinstance(method, TimedMethod):
            raise TypeError(f"method is {method!r}, wanted a TimedMethod(...), or None")
        if not isinstance(self.changes_rails, bool):
            raise TypeError(f"changes_rails is {self.changes_rails!r}, wanted True or False")

    def check(self, call: Call) -> None:
        """Refuse calls that the algorithm cannot do.

        Raises
        ------
        ConfigError : with all mistakes
        """
        mistakes = call_mistakes(call, tuple(self.operations), self.name) or self.mistakes(call)
        if mistakes:
            raise ConfigError("collective", mistakes)

    def schedule(self, call: Call) -> Schedule:
        """Make the programs.

        Raises
        ------
        ConfigError : with all mistakes
        """
        self.check(call)
        return replace(self.operations[call.operation](call), name=f"{self.name} {call.operation}")


def schedule_by_program(
    call: Call,
    shares: Sequence[Share],
    signature: Callable[[int], Hashable],
    build: Callable[[int], Sequence[Sequence[Operation]]],
    *,
    lanes: int = 1,
    switches: int = 0,
) -> Schedule:
    """Make one program for all ranks with the same signature.

    Parameters
    ----------
    call : what is asked
    shares : of the bytes
    signature : all in which the programs of two ranks can differ
    build : the streams of the first rank of a signature
    lanes : connections of each share, which follow each other
    switches : NVLink switches that take part, as ranks behind those of the GPUs
    """
    of_signature: dict[Hashable, int] = {}
    programs: list[Program] = []
    rank_program = np.zeros(call.ranks + switches, np.int32)
    for rank in range(len(rank_program)):
        key = signature(rank)
        if key not in of_signature:
            of_signature[key] = len(programs)
            programs.append(Program(streams=tuple(tuple(stream) for stream in build(rank))))
        rank_program[rank] = of_signature[key]
    return Schedule(
        name=call.operation,
        call=call,
        programs=tuple(programs),
        rank_program=rank_program,
        shares=tuple(shares),
        share_of_connection=tuple(connection // lanes for connection in range(lanes * len(shares))),
        switches=switches,
    )


def traffic_of(call: Call, edges: Iterable[tuple[int, int, int]]) -> Traffic:
    """Count messages one by one.

    It is for GPUs that differ too much for a formula.

    Parameters
    ----------
    call : whose domains
    edges : source, destination and bytes; what crosses domains goes by the rail of the destination
    """
    size = call.domain
    names = ("sent", "received", "network_sent", "network_received", "local_sent", "local_received")
    sums = {name: [0] * call.ranks for name in names}
    total = network = 0
    for source, to, size_bytes in edges:
        is_network = source // size != to // size
        by = source - source % size + to % size if is_network else source
        sides = ("network_sent", "network_received") if is_network else ("local_sent", "local_received")
        for name, rank in (("sent", source), ("received", to), (sides[0], by), (sides[1], to)):
            sums[name][rank] += size_bytes
        total += size_bytes
        network += size_bytes * is_network
    busiest = {f"{name}_bytes": max(sums[name]) for name in names}
    return Traffic(total_bytes=total, network_bytes=network, **busiest)


def least_time_ps(
    algorithm: Algorithm,
    call: Call,
    *,
    rate_bps: int,
    latency_ps: int,
    local_rate_bps: int = 0,
    local_latency_ps: int = 0,
) -> int:
    """Minimum time of one repetition by the alpha-beta model.

    Headers, queues and all other traffic are left out. The larger of two bounds: the messages of the longest chain, one
    after another, each with its latency (alpha) and its bytes (beta); and the bytes of the busiest GPU over each of its
    links.

    Parameters
    ----------
    algorithm, call : that it can do
    rate_bps : of all NICs of a GPU together, in each direction
    latency_ps : of a message over the network besides its serialisation
    local_rate_bps : of a GPU inside its domain, in each direction; 0 for no limit
    local_latency_ps : of a message inside a domain
    """
    algorithm.check(call)

    def beta_ps(size_bytes: int, bps: int) -> int:
        return size_bytes * 8 * SECOND_PS // bps if bps else 0

    chain_ps = 0
    for hop in algorithm.chain(call):
        alpha_ps = local_latency_ps if hop.is_local else latency_ps
        if hop.is_step:
            alpha_ps += call.local_step_latency_ps if hop.is_local else call.step_latency_ps
        chain_ps += hop.count * (alpha_ps + beta_ps(hop.size_bytes, local_rate_bps if hop.is_local else rate_bps))
    traffic = algorithm.traffic(call)
    network = max(traffic.network_sent_bytes, traffic.network_received_bytes)
    local = max(traffic.local_sent_bytes, traffic.local_received_bytes)
    busy_ps = max(
        beta_ps(network, rate_bps) + (latency_ps if network else 0),
        beta_ps(local, local_rate_bps) + (local_latency_ps if local else 0),
    )
    return call.base_latency_ps + max(chain_ps, busy_ps)
