"""A deadlock of priority flow control: each packet waits for a pause that only its own move could end.

Source: `docs/models/packet-engine.md`, section Deadlock.
Leaves out: deadlocks of a job, whose ranks wait for each other: there nothing is left to do, and the run ends anyway.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from weftwork.engine.reference.clock import Agenda, Phase
from weftwork.engine.waits import DEADLOCK_DTYPE
from weftwork.policies.interface import OFF

if TYPE_CHECKING:
    from collections import deque

    from numpy.typing import NDArray

    from weftwork.engine.packet_input import PacketInput
    from weftwork.engine.reference.event_heap import EventHeap
    from weftwork.engine.reference.nic import NicPort
    from weftwork.engine.reference.packet import Packet
    from weftwork.engine.reference.port import Port
    from weftwork.engine.reference.queue_pair import QueuePair
    from weftwork.engine.reference.switch import SwitchNode

__all__ = ["DeadlockWatch", "SimulationParts"]

_VAIN: Final = (Agenda.RETRANSMISSION, Agenda.CONGESTION_CONTROL, Agenda.RECEIVER, Agenda.REFRESH)


class SimulationParts(Protocol):
    """What is looked at: all parts of a simulation, by the names of `Simulation`."""

    engine_input: PacketInput
    clock: EventHeap
    ports: list[Port]
    switches: dict[int, SwitchNode]
    nics: dict[int, NicPort]
    queue_pairs: dict[tuple[int, int, int], QueuePair]

    @property
    def packet_hops(self) -> int:
        """Arrivals of packets over links."""


class DeadlockWatch:
    """Looks for a deadlock at every multiple of `PacketInput.watch_ps`.

    Attributes
    ----------
    cycle : `DEADLOCK_DTYPE`, what was found; empty: nothing
    """

    def __init__(self, simulation: SimulationParts) -> None:
        self.simulation = simulation
        self.step_ps = simulation.engine_input.watch_ps
        self.at_ps = self.step_ps
        self.hops = -1  # packets that had arrived when it looked last
        self.cycle: NDArray[np.void] = np.empty(0, DEADLOCK_DTYPE)

    def look(self, next_ps: int) -> bool:
        """Look at all instants up to that of the next event; returns whether the run ends."""
        while self.at_ps <= next_ps:
            at_ps, hops = self.at_ps, self.simulation.packet_hops
            is_quiet, self.hops = hops == self.hops, hops
            self.at_ps += self.step_ps
            is_paused = any(any(port.asked) for node in self.simulation.switches.values() for port in node.ports)
            if is_paused and is_quiet and self._is_certain(at_ps):
                self.cycle = self._cycle()
                if len(self.cycle):
                    return True
            if is_quiet or not is_paused:  # nor is there anything to see before the next event
                self.at_ps = max(self.at_ps, next_ps // self.step_ps * self.step_ps + self.step_ps)
        return False

    def _is_certain(self, at_ps: int) -> bool:
        """Whether no packet can ever move again."""
        simulation = self.simulation
        if any(self._moves(phase, identity) for phase, identity in simulation.clock.pending()):
            return False
        if any(self._may_send(queue_pair, at_ps) for queue_pair in simulation.queue_pairs.values()):
            return False
        return all(
            self._is_held(port.id, traffic_class, at_ps)
            for port in simulation.ports
            if port.is_up
            for traffic_class in self._waiting(port.id)
        )

    @staticmethod
    def _moves(phase: Phase, identity: tuple[int, ...]) -> bool:
        """Whether an event may be more than the refresh of a pause, or a try in vain."""
        if phase == Phase.AGENDA:
            return identity[0] not in _VAIN
        return phase in (Phase.INSTANT, Phase.PACKET)

    def _is_held(self, port: int, traffic_class: int, at_ps: int) -> bool:
        """Whether a class is paused beyond an instant, and the far end still asks for it."""
        ports, peer = self.simulation.ports, int(self.simulation.engine_input.port_peer[port])
        return peer >= 0 and ports[port].pause_until_ps[traffic_class] > at_ps and ports[peer].asked[traffic_class]

    def _waiting(self, port: int) -> list[int]:
        """Classes with packets at a port of a switch, or with control packets at one of a host."""
        if port in self.simulation.nics:
            nic = self.simulation.nics[port]
            return [nic.config.control_class] if nic.control_queue else []
        queues = self._egress_queues(port)
        return [traffic_class for traffic_class, queue in enumerate(queues) if queue]

    def _egress_queues(self, port: int) -> list[deque[Packet]]:
        node = self.simulation.switches[int(self.simulation.engine_input.port_node[port])]
        return node.egress[port].queues

    def _may_send(self, queue_pair: QueuePair, at_ps: int) -> bool:
        """Whether either end may send some day what could change anything."""
        sender, receiver = queue_pair.sender, queue_pair.receiver
        if receiver is not None and receiver.timers is not None and any(t != OFF for t in receiver.state.timer_at_ps):
            return True
        port = queue_pair.source_nic.port if sender is not None else None
        if sender is None or port is None or sender.has_failed or sender.una == sender.end or not port.is_up:
            return False
        messages = [m for m in queue_pair.messages if m.end > sender.una and m.first <= sender.nxt]
        if not all(self._is_held(port.id, message.traffic_class, at_ps) for message in messages):
            return True
        asks_credit = sender.una == sender.nxt and not sender.has_credit
        return asks_credit and not self._is_held(port.id, self.simulation.engine_input.control_class, at_ps)

    def _cycle(self) -> NDArray[np.void]:
        """The cycle that the first queue that is held leads to, from its lowest port on."""
        simulation, peer_of = self.simulation, self.simulation.engine_input.port_peer
        held = [p.id for p in simulation.ports if p.is_up and p.id not in simulation.nics and self._waiting(p.id)]
        if not held:
            return np.empty(0, DEADLOCK_DTYPE)
        at: tuple[int, int] | None = (held[0], self._waiting(held[0])[0])
        path: list[tuple[int, int]] = []
        while at is not None and at not in path:
            path.append(at)
            at = self._next_held(int(peer_of[at[0]]), at[1])
        if at is None:
            return np.empty(0, DEADLOCK_DTYPE)
        cycle = path[path.index(at) :]
        first = cycle.index(min(cycle))
        rows = []
        for port, traffic_class in cycle[first:] + cycle[:first]:
            far = int(peer_of[port])
            buffer = simulation.switches[int(simulation.engine_input.port_node[far])].buffer
            waiting_bytes = sum(packet.size_bytes for packet in self._egress_queues(port)[traffic_class])
            rows.append((port, traffic_class, waiting_bytes, buffer.ingress[far][traffic_class].held_bytes))
        return np.array(rows, DEADLOCK_DTYPE)

    def _next_held(self, ingress: int, traffic_class: int) -> tuple[int, int] | None:
        """The first egress port, and there the lowest class, in which a packet waits that came in by an ingress."""
        node = self.simulation.switches.get(int(self.simulation.engine_input.port_node[ingress]))
        if node is None:
            return None
        queues = ((port.id, c, queue) for port in node.ports for c, queue in enumerate(node.egress[port.id].queues))
        came_in = (ingress, traffic_class)
        return next(
            (
                (port, c)
                for port, c, queue in queues
                if any((packet.ingress, packet.arrival_class) == came_in for packet in queue)
            ),
            None,
        )
