"""The packet engine in plain Python: one event heap. It is the meaning of the native engine, bit for bit.

Source: `docs/models/packet-engine.md`; each part is in the file named for it (``switch``, ``nic``,
``sender``, ``receiver``, ``server``, ``job``). Short comes before fast.
Leaves out: samples over time, which the native engine alone records.
"""

from __future__ import annotations

import heapq
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from weftwork.base.random import Stream, draw, uniform
from weftwork.engine.instants import LOSS_PARTS
from weftwork.engine.outcome import COUNTERS, MARK_DTYPE, MESSAGE_DTYPE, PORT_DTYPE, SERIES_DTYPE, Outcome, ending
from weftwork.engine.plan import Instant
from weftwork.engine.reference.job import JobRun
from weftwork.engine.reference.nic import Nic
from weftwork.engine.reference.port import Packet, Phase
from weftwork.engine.reference.queue_pair import QueuePair
from weftwork.engine.reference.server import Lane, server_links
from weftwork.engine.reference.switch import Switch
from weftwork.spec.fabric import SWITCH

if TYPE_CHECKING:
    from collections.abc import Callable

    from weftwork.engine.plan import Plan
    from weftwork.engine.reference.job import OpRow, RankStream
    from weftwork.engine.reference.port import Port

    Progress = Callable[[int, int, int], object]

__all__ = ["Simulation", "run"]

EVENTS_PER_PROGRESS = 10_000  # chosen: some tenths of a second


def run(plan: Plan, *, on_progress: Progress | None = None) -> Outcome:
    """Run a plan to its end.

    Parameters
    ----------
    plan : what to run
    on_progress : called at the start and now and then with simulated picoseconds, packet-hops and delivered bytes; a
        KeyboardInterrupt that it raises, or that arrives meanwhile, ends the run with what there is

    Raises
    ------
    PolicyError : a policy's step failed or wrote what no engine can obey; with file and line
    """
    simulation = Simulation(plan)
    with suppress(KeyboardInterrupt):
        simulation.run(on_progress)
    return simulation.outcome()


class Simulation:
    """A run that can be looked into.

    Attributes
    ----------
    now_ps : instant of the event that is handled; ``until_ps`` once that has come
    ports, nics : by global port id; ``nics`` has the ports of hosts only
    switches : by node
    queue_pairs, lanes : by (source, destination, channel); between hosts, and inside one
    server_links : NVLink and PCIe by rank
    down : ids of the ports that were down at the last FAILOVER
    counters : by the names of `COUNTERS`
    was_interrupted : `run` did not come to its end
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.now_ps = 0
        self.counters = dict.fromkeys(COUNTERS, 0)
        self.lossless: list[bool] = [bool(c) for c in plan.class_lossless.tolist()]
        self.routes = plan.routes[0]
        self.queue_pairs: dict[tuple[int, int, int], QueuePair] = {}
        self.lanes: dict[tuple[int, int, int], Lane] = {}
        self.down: set[int] = set()
        self.rank_host: list[int] = plan.port_node[plan.rank_ports[:, 0]].tolist()
        self.server_links = server_links(self)
        self.switches: dict[int, Switch] = {}
        self.nics: dict[int, Nic] = {}
        self.ports: list[Port] = []
        for node, kind in enumerate(plan.node_kind.tolist()):
            if kind == SWITCH:
                self.switches[node] = Switch(self, node)
                self.ports += self.switches[node].ports
            else:
                for port in range(int(plan.port_base[node]), int(plan.port_base[node + 1])):
                    self.nics[port] = Nic(self, node, port)
                    self.ports.append(self.nics[port].port)
        self.job = JobRun(self)
        self._events: list[tuple[int, Phase, tuple[int, ...], int, Callable[..., None], tuple[object, ...]]] = []
        self._serial = 0
        self.was_interrupted = False
        self.delivered_bytes = 0
        for index, (at_ps, code, port, value) in enumerate(plan.instants.tolist()):
            self.at(at_ps, Phase.INSTANT, (index,), self._apply, code, port, value)
        self.job.start()

    # Events

    def at(
        self, at_ps: int, phase: Phase, identity: tuple[int, ...], action: Callable[..., None], *arguments: object
    ) -> None:
        """Do something at an instant, in the page's order of one instant."""
        self._serial += 1
        heapq.heappush(self._events, (at_ps, phase, identity, self._serial, action, arguments))

    def run(self, on_progress: Progress | None = None) -> None:
        """Handle events until nothing is left to do, or up to ``until_ps``."""
        handled = 0
        self.was_interrupted = True  # until the last line says that it was not
        if on_progress is not None:
            on_progress(self.now_ps, self.counters["packet_hops"], self.delivered_bytes)
        while self._events and self._events[0][0] < self.plan.until_ps:
            self.now_ps, _, _, _, action, arguments = heapq.heappop(self._events)
            action(*arguments)
            handled += 1
            if on_progress is not None and handled % EVENTS_PER_PROGRESS == 0:
                on_progress(self.now_ps, self.counters["packet_hops"], self.delivered_bytes)
        self.was_interrupted = False
        if self._events:
            self.now_ps = self.plan.until_ps

    # Packets on links

    def draw(self, stream: Stream, packet: Packet, place: int) -> int:
        """64 random bits of a packet at a place."""
        return draw(self.plan.seed, stream, packet.queue_pair.flow, packet.identity, place)

    def packet_arrives(self, sender: Port, packet: Packet, times_down: int) -> None:
        """The far end of a link has a packet whole, unless the link has lost it."""
        self.counters["packet_hops"] += 1
        self.counters["end_ps"] = self.now_ps
        port = self.ports[sender.peer_id]
        if times_down != sender.times_down:
            self.drop("link_down", port)
        elif sender.loss > 0 and uniform(self.draw(Stream.LINK_LOSS, packet, sender.id)) < sender.loss:
            self.drop("link_loss", port)
        elif (
            sender.corruption > 0 and uniform(self.draw(Stream.LINK_CORRUPTION, packet, sender.id)) < sender.corruption
        ):
            self.drop("corrupted", port)
        else:
            port.node.receive(port, packet)

    def drop(self, reason: str, port: Port) -> None:
        """Count a packet that is no more."""
        self.counters[f"drop_{reason}"] += 1
        port.counts["drops"] += 1

    # Messages

    def connection(self, source: int, destination: int, channel: int) -> QueuePair | Lane:
        """What carries the messages of this name: a queue pair between hosts, a lane inside one."""
        key = (source, destination, channel)
        if self.rank_host[source] != self.rank_host[destination]:
            if key not in self.queue_pairs:
                self.queue_pairs[key] = QueuePair(self, *key)
            return self.queue_pairs[key]
        if key not in self.lanes:
            self.lanes[key] = Lane(self, *key)
        return self.lanes[key]

    def send(self, stream: RankStream, destination: int, size_bytes: int, op: OpRow) -> None:
        """Post a message of a stream; the first one opens what carries it."""
        carrier = self.connection(stream.rank, destination, op.channel)
        if isinstance(carrier, Lane):
            carrier.post(size_bytes, stream)
            return
        sender = carrier.sender or carrier.open(op.nic, peer_rail=bool(op.peer_rail))
        sender.post(size_bytes, op.data_class, stream)

    # Instants

    def _apply(self, code: int, port_id: int, value: int) -> None:
        """A fault, or what follows from one."""
        match Instant(code):
            case Instant.ROUTES:
                self.routes = self.plan.routes[value]
            case Instant.HOST_RATE:
                self.nics[port_id].pcie_rate_bps = value
                self.nics[port_id].has_host_interface = True  # also at rate 0: nothing overtakes what waits in it
            case Instant.FAILOVER:
                self._fail_over()
            case kind:
                port = self.ports[port_id]
                self._apply_to_link(kind, (port, self.ports[port.peer_id]), value)

    @staticmethod
    def _apply_to_link(kind: Instant, ends: tuple[Port, Port], value: int) -> None:
        for end in ends:
            match kind:
                case Instant.LINK_DOWN:
                    end.go_down()
                case Instant.LINK_UP:
                    end.is_up = True
                    end.start()
                case Instant.RATE:
                    end.rate_bps = value
                case Instant.LOSS:
                    end.loss = value / LOSS_PARTS

    def _fail_over(self) -> None:
        """Queue pairs change to ports that work, all of them before any port sends."""
        self.down = {port.id for port in self.ports if not port.is_up}
        opened = [self.queue_pairs[key] for key in sorted(self.queue_pairs) if self.queue_pairs[key].sender is not None]
        for queue_pair in [each for each in opened if each.fail_over()]:
            queue_pair.source_port.start()

    # Results

    def outcome(self) -> Outcome:
        """Tables and counters of the run."""
        carriers = self.queue_pairs | self.lanes
        pairs = [carriers[key] for key in sorted(carriers)]
        messages = [
            (q.source, q.destination, q.channel, i, m.size_bytes, m.posted_at_ps, m.delivered_at_ps, m.acked_at_ps)
            for q in pairs
            for i, m in enumerate(q.messages)
        ]
        is_done = self.job.has_ended() and all(row[-1] >= 0 for row in messages)
        complete, simulated_ps = ending(
            is_done=is_done,
            interrupted_at_ps=self.now_ps if self.was_interrupted else None,
            end_ps=self.counters["end_ps"],
            until_ps=self.plan.until_ps,
            has_clock_ended=bool(self._events) and not self.was_interrupted,
        )
        return Outcome(
            messages=np.array(messages, MESSAGE_DTYPE),
            ports=np.array([tuple(port.counts.values()) for port in self.ports], PORT_DTYPE),
            counters=dict(self.counters),
            marks=np.array(sorted(self.job.marks, key=lambda mark: (mark[0], mark[2])), MARK_DTYPE),
            series=np.empty(0, SERIES_DTYPE),
            complete=complete,
            simulated_ps=simulated_ps,
        )
