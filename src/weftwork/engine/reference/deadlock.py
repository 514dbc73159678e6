"""Deadlocks of flow control.

Each packet waits for an end of a pause, or a credit, that only its own move can bring.
Source: `docs/models/packet-engine.md`, section Deadlock.
Leaves out: deadlocks of a job, whose ranks wait for each other: there nothing is left to do, and the run ends anyway.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from weftwork.engine.reference.clock import Agenda, Phase
from weftwork.engine.rows.waits import DEADLOCK_DTYPE
from weftwork.policies.interface import OFF

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.engine.packet_input import PacketInput
    from weftwork.engine.reference.event_heap import EventHeap
    from weftwork.engine.reference.nic import NicPort
    from weftwork.engine.reference.port import Port
    from weftwork.engine.reference.queue_pair import QueuePair
    from weftwork.engine.reference.switch import SwitchNode

__all__ = ["DeadlockWatch", "SimulationParts"]

_VAIN: Final = (Agenda.RETRANSMISSION, Agenda.CONGESTION_CONTROL, Agenda.RECEIVER, Agenda.REFRESH)


class SimulationParts(Protocol):
    """All parts of a simulation, by the names of `Simulation`."""

    engine_input: PacketInput
    clock: EventHeap
    ports: list[Port]
    switches: dict[int, SwitchNode]
    nics: dict[int, NicPort]
    queue_pairs: dict[tuple[int, int, int], QueuePair]

    @property
    def packet_hops(self) -> int:
        """Arrivals of packets over links."""


def _has_timer(queue_pair: QueuePair) -> bool:
    """Whether a timer for retransmission or of a policy is set.

    The policy is at either end.
    """
    sender, receiver = queue_pair.sender, queue_pair.receiver
    states = [] if receiver is None or receiver.timers is None else [receiver.state]
    if sender is not None:
        states += [sender.state] if sender.steps.path is None else [sender.state, sender.steps.path_state]
    is_retransmission_set = sender is not None and sender.deadline_at_ps != OFF
    return is_retransmission_set or any(at_ps != OFF for state in states for at_ps in state.timer_at_ps)


class DeadlockWatch:
    """Looks for a deadlock regularly.

    It looks at every multiple of `PacketInput.watch_ps`, and under credits where a run comes to rest.

    Attributes
    ----------
    cycle : `DEADLOCK_DTYPE`, what was found; empty: nothing
    """

    def __init__(self, simulation: SimulationParts) -> None:
        self.simulation = simulation
        self.has_credits = simulation.engine_input.transport.link_credits
        self.step_ps = simulation.engine_input.watch_ps
        self.at_ps = self.step_ps
        self.hops = -1  # packets that had arrived when it looked last
        self.cycle: NDArray[np.void] = np.empty(0, DEADLOCK_DTYPE)

    def look(self, next_ps: int) -> bool:
        """Check all instants up to the next event.

        Returns whether the run ends.
        """
        while self.at_ps <= next_ps:
            at_ps, hops = self.at_ps, self.simulation.packet_hops
            is_quiet, self.hops = hops == self.hops, hops
            self.at_ps += self.step_ps
            is_hindered = self._is_hindered(at_ps)
            if is_hindered and is_quiet and self._is_certain(at_ps):
                self.cycle = self._cycle()
                if len(self.cycle):
                    return True
            if is_quiet or not is_hindered:  # nor is there anything to see before the next event
                self.at_ps = max(self.at_ps, next_ps // self.step_ps * self.step_ps + self.step_ps)
        return False

    def look_at_rest(self) -> None:
        """Check a run that has handled its last event.

        Without refreshes nothing may be left to do in a deadlock.
        """
        simulation = self.simulation
        is_at_rest = not any(_has_timer(queue_pair) for queue_pair in simulation.queue_pairs.values())
        if self.has_credits and not len(self.cycle) and is_at_rest and self._is_certain(simulation.clock.now_ps):
            self.cycle = self._cycle()

    def _is_hindered(self, at_ps: int) -> bool:
        """Whether a switch has a paused ingress or a class without credit."""
        ports = [port for node in self.simulation.switches.values() for port in node.ports]
        if not self.has_credits:
            return any(any(port.asked) for port in ports)
        up = [port.id for port in ports if port.is_up]
        return any(self._is_held(port, *head, at_ps) for port in up for head in self._heads(port))

    def _is_certain(self, at_ps: int) -> bool:
        """Whether no packet can ever move again."""
        simulation = self.simulation
        if any(self._moves(phase, identity) for phase, identity in simulation.clock.pending()):
            return False
        if self.has_credits and any(port.frames for port in simulation.ports if port.is_up):
            return False
        if any(self._may_send(queue_pair, at_ps) for queue_pair in simulation.queue_pairs.values()):
            return False
        return all(
            self._is_held(port.id, *head, at_ps)
            for port in simulation.ports
            if port.is_up
            for head in self._heads(port.id)
        )

    def _moves(self, phase: Phase, identity: tuple[int, ...]) -> bool:
        """Whether an event may do more than refresh a pause or fail."""
        if phase == Phase.AGENDA:
            return identity[0] not in _VAIN
        return phase in (Phase.INSTANT, Phase.PACKET) or (phase == Phase.FLOW_CONTROL and self.has_credits)

    def _is_held(self, port: int, traffic_class: int, frame_bytes: int, at_ps: int) -> bool:
        """Whether flow control holds a class beyond an instant.

        The class is paused and the far end still asks for it, or it lacks credit.
        """
        ports, peer = self.simulation.ports, int(self.simulation.engine_input.port_peer[port])
        if self.has_credits:
            return ports[port].lacks_credit(traffic_class, frame_bytes)
        return peer >= 0 and ports[port].pause_until_ps[traffic_class] > at_ps and ports[peer].asked[traffic_class]

    def _heads(self, port: int) -> list[tuple[int, int]]:
        """Class and frame of the packets that are next.

        A switch's port has one for each class, a host's port has the control packet.
        """
        if port in self.simulation.nics:
            nic = self.simulation.nics[port]
            return [(nic.config.control_class, packet.size_bytes) for packet in list(nic.control_queue)[:1]]
        node, its_port = self._switch_of(port), self.simulation.ports[port]
        return [(c, node.head_bytes(its_port, c)) for c in node.waiting(its_port)]

    def _switch_of(self, port: int) -> SwitchNode:
        return self.simulation.switches[int(self.simulation.engine_input.port_node[port])]

    def _may_send(self, queue_pair: QueuePair, at_ps: int) -> bool:
        """Whether either end may later send a packet that changes anything."""
        sender, receiver = queue_pair.sender, queue_pair.receiver
        if receiver is not None and receiver.timers is not None and any(t != OFF for t in receiver.state.timer_at_ps):
            return True
        port = queue_pair.source_nic.port if sender is not None else None
        if sender is None or port is None or sender.has_failed or sender.una == sender.end or not port.is_up:
            return False
        frames = (
            (sender.queue.message_of(seq).traffic_class, sender.frame_bytes(seq))
            for seq in range(sender.una, min(sender.nxt + 1, sender.end))
        )
        if not all(self._is_held(port.id, *frame, at_ps) for frame in frames):
            return True
        asks_credit = sender.una == sender.nxt and not sender.has_credit
        probe = (self.simulation.engine_input.control_class, self.simulation.engine_input.transport.ack_bytes)
        return asks_credit and not self._is_held(port.id, *probe, at_ps)

    def _cycle(self) -> NDArray[np.void]:
        """The cycle from the first held queue, starting at its lowest port."""
        simulation, peer_of = self.simulation, self.simulation.engine_input.port_peer
        held = [p.id for p in simulation.ports if p.is_up and p.id not in simulation.nics and self._heads(p.id)]
        if not held:
            return np.empty(0, DEADLOCK_DTYPE)
        lowest_class, _ = self._heads(held[0])[0]
        at: tuple[int, int] | None = (held[0], lowest_class)
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
            waiting_bytes = self._switch_of(port).egress[port].queue_bytes[traffic_class]
            held_bytes = self._switch_of(far).held_bytes(simulation.ports[far], traffic_class)
            rows.append((port, traffic_class, waiting_bytes, held_bytes))
        return np.array(rows, DEADLOCK_DTYPE)

    def _next_held(self, ingress: int, traffic_class: int) -> tuple[int, int] | None:
        """The first held egress port and class of an ingress.

        It is the first port, and there the lowest class, with a packet from the ingress.
        """
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
