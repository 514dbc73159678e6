"""Small networks for the conformance kits.

A bottleneck tests a congestion control, uplinks test a balancer. Each is a callable that a kit takes as its ``run``;
both engines serve, since both give the same result.
Source: the shapes are the textbook's: a dumbbell of one switch, and two leaves over some spines.
Leaves out: losses of links, hosts that cannot keep up, and everything else that a scenario can say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from weftwork.base.clock import MS_PS, NEVER_PS, US_PS
from weftwork.base.grammar import plural
from weftwork.engine.instants import Fault
from weftwork.engine.lower import lower
from weftwork.engine.reference import simulation as reference
from weftwork.engine.settings import EngineSettings
from weftwork.policies.load import load
from weftwork.spec.device import Ecn, Nic, Switch
from weftwork.spec.fabric import HOST, LINK_DTYPE, SWITCH, Fabric
from weftwork.spec.job import At, Job, Loop, Operation, Peer, Placement, Program, Send, Size
from weftwork.spec.transport import Transport
from weftwork.testing.steps import Finding
from weftwork.topology.assemble import assemble

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from weftwork.engine.outcome import Outcome
    from weftwork.engine.packet_input import PacketInput
    from weftwork.policies.load import LoadedPolicy

__all__ = ["Bottleneck", "EngineName", "Uplinks", "Usage", "uplink_findings"]

EngineName = Literal["packet", "reference"]
_MESSAGE_PACKETS = 16  # chosen: fine enough to count bytes in an interval, coarse enough for few messages
_RATE_BPS = 100_000_000_000
_DELAY_PS = US_PS  # chosen: 200 m of fibre, or a switch's latency and a short cable
_TRIM_BYTES = 64  # chosen: the smallest frame of Ethernet, IEEE 802.3, clause 4.4.2
_ECN = Ecn(kmin_bytes=100_000, kmax_bytes=400_000, pmax=0.2)  # chosen: a quarter of the default, to settle sooner


@dataclass(frozen=True, kw_only=True, slots=True)
class Bottleneck:
    """Senders around one switch that send to one further host.

    The links have 100 Gb/s and 1 us. The first flow starts at 0; the others when it has had the link for ``lead_ps``.
    Goodput is measured from ``settled_at_ps`` until ``until_ps``.

    Parameters
    ----------
    engine : ``packet``, or ``reference``, which is some hundred times slower
    lead_ps : head start of the first flow
    settled_at_ps : by then the control must have done its work
    until_ps : end of the run
    """

    engine: EngineName = "packet"
    lead_ps: int = MS_PS
    settled_at_ps: int = 20 * MS_PS
    until_ps: int = 30 * MS_PS

    def __call__(self, policy: LoadedPolicy, flows: int) -> tuple[float, ...]:
        """Run long flows.

        Parameters
        ----------
        policy : a congestion control
        flows : how many

        Returns
        -------
        the goodput of each, as a fraction of what one flow without a control gets
        """
        return self.shares(self.messages(policy, flows), flows)

    def shares(self, messages: NDArray[np.void], flows: int) -> tuple[float, ...]:
        """Goodput of each flow, relative to a single uncontrolled flow.

        Parameters
        ----------
        messages : of a run, see `messages`
        flows : of that run
        """
        (whole,) = self._goodputs(self.messages(load("congestion_control", "none"), 1), 1)
        return tuple(goodput / whole for goodput in self._goodputs(messages, flows))

    def _goodputs(self, messages: NDArray[np.void], flows: int) -> list[int]:
        """Bytes of each flow that arrive within the interval."""
        is_counted = messages["delivered_at_ps"] >= self.settled_at_ps
        return [int(messages["size_bytes"][is_counted & (messages["source"] == flow)].sum()) for flow in range(flows)]

    def messages(self, policy: LoadedPolicy, flows: int) -> NDArray[np.void]:
        """Run long flows and return their messages.

        Flow i is sent by rank i.

        Parameters
        ----------
        policy : a congestion control
        flows : how many

        Returns
        -------
        rows of `weftwork.engine.outcome`; ``delivered_at_ps`` is negative where the run ended before
        """
        transport = _transport(policy, reorder_tolerant="reorder-tolerance" in policy.plugin.needs)
        links = [(host, flows + 1) for host in range(flows + 1)]
        size = _MESSAGE_PACKETS * transport.mtu_bytes
        # As many messages as the link could carry to the end, so that nobody ever runs dry.
        count = 1 + self.until_ps * _RATE_BPS // (8_000_000_000_000 * size)
        engine_input = lower(
            fabric=_fabric(links, hosts=flows + 1, telemetry=_asks_switches(policy)),
            job=_job([(flow, flows, self.lead_ps if flow else 0) for flow in range(flows)], flows + 1, size, count),
            transport=transport,
            congestion_control=policy,
            settings=EngineSettings(port_selection=load("port_selection", "ecmp"), until_ps=self.until_ps),
        )
        return _run(engine_input, self.engine).messages


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """Results of `Uplinks`.

    Attributes
    ----------
    frames : by uplink of the sending leaf
    lost : packets that were sent to a dead port after the routes knew of it
    unfinished : messages that did not arrive
    """

    frames: tuple[int, ...]
    lost: int
    unfinished: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Uplinks:
    """Hosts of two leaves that send over several spines.

    Each host of one leaf sends to a host of the other leaf. One spine may be dead from the start. Every host opens
    several queue pairs, so that balancers of flows have flows to balance.

    Parameters
    ----------
    engine : ``packet`` or ``reference``
    spines, hosts, queue_pairs : the shape; queue pairs are for each host
    messages : that each queue pair sends, of 16 packets
    """

    engine: EngineName = "packet"
    spines: int = 4
    hosts: int = 4
    queue_pairs: int = 16
    messages: int = 4

    def __call__(self, policy: LoadedPolicy, *, dead: int | None = None) -> Usage:
        """Run the flows.

        Parameters
        ----------
        policy : a path selection or a port selection; the other one is ECMP
        dead : index of the uplink that is down from the start; None: none
        """
        is_port = policy.kind == "port_selection"
        leaves, first_spine = (2 * self.hosts, 2 * self.hosts + 1), 2 * self.hosts + 2
        down = [(host, leaves[host // self.hosts]) for host in range(2 * self.hosts)]
        up = [(leaf, first_spine + spine) for leaf in leaves for spine in range(self.spines)]
        flows = [(host, host + self.hosts, 2 * US_PS) for host in range(self.hosts)]
        transport = _transport(policy, reorder_tolerant=True)
        fabric = _fabric([*down, *up], hosts=2 * self.hosts, telemetry=_asks_switches(policy))
        size = _MESSAGE_PACKETS * transport.mtu_bytes
        engine_input = lower(
            fabric=fabric,
            job=_job(flows, 2 * self.hosts, size, self.messages, channels=self.queue_pairs),
            transport=transport,
            congestion_control=load("congestion_control", "none"),
            settings=EngineSettings(
                path_selection=None if is_port else policy,
                port_selection=policy if is_port else load("port_selection", "ecmp"),
                faults=() if dead is None else (Fault(at_ps=0, event="down", link=len(down) + dead),),
                reconvergence_delay_ps=US_PS,  # before the first flow starts
                until_ps=NEVER_PS,
            ),
        )
        outcome = _run(engine_input, self.engine)
        uplinks = [
            port
            for port in range(int(engine_input.port_base[leaves[0]]), int(engine_input.port_base[leaves[0] + 1]))
            if engine_input.port_node[engine_input.port_peer[port]] >= first_spine
        ]
        return Usage(
            frames=tuple(int(outcome.ports["frames"][port]) for port in uplinks),
            lost=outcome.counters["drop_link_down"],
            unfinished=int((outcome.messages["delivered_at_ps"] < 0).sum()),
        )


def uplink_findings(policy: LoadedPolicy, run: Callable[..., Usage]) -> tuple[Finding, ...]:
    """Check a balancer in a network: used uplinks, dead uplink, arrivals.

    Every uplink is used, a dead one is not, everything arrives.

    Parameters
    ----------
    policy : a path selection or a port selection
    run : ``run(policy)`` and ``run(policy, dead=1)`` as `Uplinks` does
    """
    findings: list[Finding] = []
    for dead in (None, 1):
        usage = run(policy, dead=dead)
        told = "" if dead is None else f" with uplink {dead} dead"
        alive = [frames for uplink, frames in enumerate(usage.frames) if uplink != dead]
        if min(alive) < sum(alive) / len(alive) / 4:  # chosen: 64 flows by a fair hash stay far above a quarter
            text = f"the uplinks sent {', '.join(f'{frames:,}' for frames in usage.frames)} packets{told}"
            findings.append(Finding(check="uses_every_uplink", text=text))
        if usage.lost or (dead is not None and usage.frames[dead]):
            text = f"{plural(usage.lost, 'packet was', 'packets were')} sent to a port that the routes no longer have"
            findings.append(Finding(check="leaves_dead_uplinks", text=text))
        if usage.unfinished:
            findings.append(
                Finding(check="everything_arrives", text=f"{plural(usage.unfinished, 'message')} did not{told}")
            )
    return tuple(findings)


def _run(engine_input: PacketInput, engine: EngineName) -> Outcome:
    if engine == "reference":
        return reference.run(engine_input)
    from weftwork.engine import packet  # a clone without a compiler still has the reference

    return packet.run(engine_input)


def _transport(policy: LoadedPolicy, *, reorder_tolerant: bool) -> Transport:
    """RoCEv2 with PFC, or with selective repeat for trimming policies.

    There is no PFC for a policy that needs to hear of cut packets.
    """
    if "trimming" not in policy.plugin.needs:
        return Transport(reorder_tolerant=reorder_tolerant)
    return Transport(
        reorder_tolerant=reorder_tolerant, recovery="selective-repeat", lossless_priorities=(), trim_bytes=_TRIM_BYTES
    )


def _asks_switches(policy: LoadedPolicy) -> bool:
    """Whether switches write into packets for this policy."""
    return not policy.plugin.needs.isdisjoint(("telemetry", "path-load"))


def _fabric(links: Sequence[tuple[int, int]], *, hosts: int, telemetry: bool) -> Fabric:
    nodes = max(max(link) for link in links) + 1
    rows = np.zeros(len(links), LINK_DTYPE)
    rows["a"], rows["b"] = np.array(links).T
    rows["rate_bps"], rows["delay_ps"] = _RATE_BPS, _DELAY_PS
    kind = [HOST] * hosts + [SWITCH] * (nodes - hosts)
    return assemble(
        name="conformance",
        node_names=[f"node{node}" for node in range(nodes)],
        node_kind=kind,
        node_tier=[int(k == SWITCH) for k in kind],
        links=rows,
        switches=(Switch(ecn=_ECN, telemetry=telemetry),),
        nics=(Nic(),),
    )


def _job(
    flows: Sequence[tuple[int, int, int]], hosts: int, size_bytes: int, messages: int, *, channels: int = 1
) -> Job:
    """Flows as (source, destination, start).

    Their messages are posted at once, on separate queue pairs.
    """
    streams: list[list[tuple[Operation, ...]]] = [[] for _ in range(hosts)]
    for source, destination, at_ps in flows:
        for channel in range(channels):
            send: Any = Send(
                peer=Peer(rule="rank", shift=destination), size=Size(total_bytes=size_bytes), channel=channel
            )
            streams[source].append((At(at_ps=at_ps), Loop(count=messages, body=(send,))))
    return Job(
        name="conformance",
        ranks=hosts,
        programs=tuple(Program(streams=tuple(own)) for own in streams),
        rank_program=np.arange(hosts, dtype=np.int32),
        placement=Placement(host=np.arange(hosts, dtype=np.int32), nics=np.zeros((hosts, 1), np.int32)),
        milestone_names=(),
    )
