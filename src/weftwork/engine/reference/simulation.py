"""The packet engine in plain Python, with one event heap.

It is the meaning of the native engine, bit for bit.
Source: `docs/models/packet-engine.md`; each part is in the file named for it (``switch``, ``nic``,
``sender``, ``receiver``, ``server``, ``job``) and knows a clock and what is next to it. Here they meet.
Short comes before fast.
Leaves out: samples over time, which the native engine alone records.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from operator import itemgetter

import numpy as np

from weftwork.base.work_done import simulated
from weftwork.engine.capture import CaptureRequest, earliest
from weftwork.engine.columns import fields_of
from weftwork.engine.instants import LOSS_PARTS
from weftwork.engine.outcome import Outcome, ending
from weftwork.engine.packet_input import PacketInput
from weftwork.engine.reference.clock import Phase
from weftwork.engine.reference.deadlock import DeadlockWatch
from weftwork.engine.reference.event_heap import EventHeap
from weftwork.engine.reference.flow import QueuePairConfig
from weftwork.engine.reference.forwarding import Forwarding
from weftwork.engine.reference.job import JobRun, OpRow
from weftwork.engine.reference.link import LinkConfig, OneWayLink
from weftwork.engine.reference.link_credits import LinkCredits
from weftwork.engine.reference.nic import NicConfig, NicPort
from weftwork.engine.reference.port import Port, PortConfig
from weftwork.engine.reference.port_choice import PortChoiceConfig
from weftwork.engine.reference.queue_pair import QueuePair
from weftwork.engine.reference.server import Link, ServerLane, ServerLink
from weftwork.engine.reference.shared_buffer import BufferConfig
from weftwork.engine.reference.switch import SwitchConfig, SwitchNode
from weftwork.engine.reference.tap import Tap
from weftwork.engine.reference.waits import waits_of
from weftwork.engine.rows.fabric import Instant
from weftwork.engine.rows.outcome import (
    CAPTURE_DTYPE,
    COUNTERS,
    MESSAGE_DTYPE,
    MILESTONE_DTYPE,
    PORT_DTYPE,
    SERIES_DTYPE,
)
from weftwork.spec.fabric import SWITCH

__all__ = ["Simulation", "run"]

Progress = Callable[[int, int, int], object]


def run(
    engine_input: PacketInput, *, capture: CaptureRequest | None = None, on_progress: Progress | None = None
) -> Outcome:
    """Run an engine input to its end.

    Parameters
    ----------
    engine_input : what to run
    capture : frames to keep; None: none
    on_progress : called at the start and now and then with simulated picoseconds, packet-hops and delivered bytes; a
        KeyboardInterrupt that it raises, or that arrives meanwhile, ends the run with what there is

    Raises
    ------
    PolicyError : a policy's step failed or wrote what no engine can obey; with file and line
    """
    simulation = Simulation(engine_input, capture)
    with suppress(KeyboardInterrupt):
        simulation.run(on_progress)
    return simulation.outcome()


class Simulation:
    """A run that can be inspected.

    Attributes
    ----------
    clock : whose ``now_ps`` is the instant of the event that is handled; ``until_ps`` once that has come
    ports, links, nics : by global port id; a link is the direction that leaves the port; ``nics`` has ports of hosts
    switches : by node
    queue_pairs, lanes : by (source, destination, channel); between hosts, and inside one
    server_links : NVLink and PCIe by rank
    down : ids of the ports that were down at the last FAILOVER
    counters : what the parts count, by the names of `COUNTERS`; links and lanes know the rest themselves
    watch : whether the run has ended in a deadlock
    tap : at the captured ports
    was_interrupted : `run` did not come to its end
    """

    def __init__(self, engine_input: PacketInput, capture: CaptureRequest | None = None) -> None:
        self.engine_input = engine_input
        self.clock = EventHeap()
        self.counters = dict.fromkeys(COUNTERS, 0)
        self.queue_pairs: dict[tuple[int, int, int], QueuePair] = {}
        self.lanes: dict[tuple[int, int, int], ServerLane] = {}
        self.down: set[int] = set()
        self.was_interrupted = False
        self.rank_host: list[int] = engine_input.port_node[engine_input.rank_ports[:, 0]].tolist()
        self.server_links = [
            tuple(_server_link(engine_input, self.clock, rank, link) for link in Link)
            for rank in range(len(engine_input.rank_gpu))
        ]
        self.forwarding = Forwarding(engine_input)
        self.ports = [
            Port(_port_config(engine_input, port), self.clock, self.count, _link_credits(engine_input, port))
            for port in range(len(engine_input.port_peer))
        ]
        self.links = [
            OneWayLink(_link_config(engine_input, port), self.clock, self.ports[int(engine_input.port_peer[port])])
            for port in range(len(engine_input.port_peer))
        ]
        self.tap = Tap(capture or CaptureRequest(ports=(), packet_limit=0), self.clock)
        for captured in self.tap.request.ports:
            self.ports[captured].tap = self.tap
        self.switches: dict[int, SwitchNode] = {}
        self.nics: dict[int, NicPort] = {}
        for node, kind in enumerate(engine_input.node_kind.tolist()):
            ports = self.ports[int(engine_input.port_base[node]) : int(engine_input.port_base[node + 1])]
            if kind == SWITCH:
                config = _switch_config(engine_input, node)
                self.switches[node] = SwitchNode(
                    config, self.clock, ports, self.forwarding, engine_input.port_selection
                )
            for port in ports:
                if kind != SWITCH:
                    shared_state = engine_input.congestion_control.new_shared_state()
                    self.nics[port.id] = NicPort(port, _nic_config(engine_input, node), self.clock, shared_state)
                port.join(self.switches[node] if kind == SWITCH else self.nics[port.id], self.links[port.id])
        self.config = QueuePairConfig(
            transport=engine_input.transport,
            congestion_control=engine_input.congestion_control,
            path_selection=engine_input.path_selection,
            control_class=engine_input.control_class,
            has_receives=engine_input.has_receives,
            seed=engine_input.seed,
            echoes_time=engine_input.echoes_time,
            echoes_entropy=engine_input.echoes_entropy,
            has_telemetry=engine_input.has_telemetry,
            has_path_load=engine_input.has_path_load,
            fabric_base_rtt_ps=engine_input.fabric_base_rtt_ps,
            pins={(source, to, channel): entropy for source, to, channel, entropy in engine_input.pins.tolist()},
        )
        self.job = JobRun(engine_input, self.clock, self)
        self.watch = DeadlockWatch(self)
        for index, (at_ps, code, port_id, value) in enumerate(engine_input.instants.tolist()):
            self.clock.at(at_ps, Phase.INSTANT, (index,), self._apply, code, port_id, value)
        self.job.start()

    def run(self, on_progress: Progress | None = None) -> None:
        """Handle events until the end, or up to ``until_ps``."""

        def tell() -> None:
            if on_progress is not None:
                on_progress(self.clock.now_ps, self.packet_hops, self.delivered_bytes)

        self.was_interrupted = True  # until the last line says that it was not
        tell()
        self.clock.run(self.engine_input.until_ps, None if on_progress is None else tell, self.watch)
        self.watch.look_at_rest()
        self.was_interrupted = False

    # What the parts tell

    def count(self, name: str) -> None:
        """Increment a counter, by the names of `COUNTERS`."""
        self.counters[name] += 1

    @property
    def packet_hops(self) -> int:
        """Arrivals of packets over links, including lost packets."""
        return sum(link.arrivals for link in self.links)

    @property
    def delivered_bytes(self) -> int:
        """Bytes of all messages that have arrived."""
        return sum(carrier.inbox.delivered_bytes for carrier in self._carriers)

    @property
    def end_ps(self) -> int:
        """Instant of the last arrival of a packet or message.

        The message is inside a server.
        """
        there_ps = (message.delivered_at_ps for lane in self.lanes.values() for message in lane.messages)
        return max([0, *(link.last_arrival_ps for link in self.links), *there_ps])

    # Messages: the network of the job

    def send(self, source: int, destination: int, size_bytes: int, op: OpRow, completed: Callable[[], None]) -> None:
        """Post a message of a SEND.

        The first message opens its carrier.
        """
        carrier = self.carrier(source, destination, op.channel)
        if isinstance(carrier, ServerLane):
            carrier.post(size_bytes, completed)
            return
        sender = carrier.sender or carrier.open(op.nic, self.down, peer_rail=bool(op.peer_rail))
        sender.post(size_bytes, op.data_class, completed)

    def claim(self, source: int, destination: int, channel: int, completed: Callable[[], None]) -> bool:
        """Ask for the next message with this name.

        Returns whether it is there, else ``completed`` is called then.
        """
        return self.carrier(source, destination, channel).claim(completed)

    @property
    def _carriers(self) -> list[QueuePair | ServerLane]:
        return [*self.queue_pairs.values(), *self.lanes.values()]

    def carrier(self, source: int, destination: int, channel: int) -> QueuePair | ServerLane:
        """Carrier of the messages with this name.

        It is a queue pair between hosts, a lane inside a host.
        """
        key = (source, destination, channel)
        if self.rank_host[source] != self.rank_host[destination]:
            if key not in self.queue_pairs:
                self.queue_pairs[key] = QueuePair(
                    key, self.engine_input, self.config, self.nics, self.clock, self.count
                )
            return self.queue_pairs[key]
        if key not in self.lanes:
            domains = self.engine_input.rank_gpu["nvlink_domain"]
            link = Link.NVLINK if domains[source] == domains[destination] >= 0 else Link.PCIE
            egress, ingress = self.server_links[source][link], self.server_links[destination][link]
            self.lanes[key] = ServerLane(self.clock, *key, egress=egress, ingress=ingress)
        return self.lanes[key]

    # Instants

    def _apply(self, code: int, port_id: int, value: int) -> None:
        """Apply a fault or its consequence."""
        match Instant(code):
            case Instant.ROUTES:
                self.forwarding.use(self.engine_input.routes[value])
            case Instant.HOST_RATE:
                self.nics[port_id].pcie_rate_bps = value
                self.nics[port_id].has_host_interface = True  # also at rate 0: nothing overtakes what waits in it
            case Instant.FAILOVER:
                self._fail_over()
            case kind:
                for end in (port_id, int(self.engine_input.port_peer[port_id])):
                    self._apply_to_end(kind, end, value)

    def _apply_to_end(self, kind: Instant, port_id: int, value: int) -> None:
        match kind:
            case Instant.LINK_DOWN:
                self.ports[port_id].go_down()
            case Instant.LINK_UP:
                self._come_up(self.ports[port_id])
            case Instant.RATE:
                self.ports[port_id].rate_bps = value
            case Instant.LOSS:
                self.links[port_id].loss = value / LOSS_PARTS

    def _come_up(self, port: Port) -> None:
        far_end = self.ports[int(self.engine_input.port_peer[port.id])]
        if port.credits is not None and far_end.credits is not None:
            port.credits.restart(far_end.credits.used_bytes)
        port.come_up()

    def _fail_over(self) -> None:
        """Move queue pairs to working ports, before any port sends."""
        self.down = {port.id for port in self.ports if not port.is_up}
        opened = [self.queue_pairs[key] for key in sorted(self.queue_pairs) if self.queue_pairs[key].sender is not None]
        for queue_pair in [each for each in opened if each.fail_over(self.down)]:
            queue_pair.source_nic.start()

    # Results

    def outcome(self) -> Outcome:
        """Tables and counters of the run."""
        simulated("reference", self.packet_hops)
        counters = self.counters | {"packet_hops": self.packet_hops, "end_ps": self.end_ps}
        messages = [
            (q.source, q.destination, q.channel, i, m.size_bytes, m.posted_at_ps, m.delivered_at_ps, m.acked_at_ps)
            for q in sorted(self._carriers, key=lambda each: (each.source, each.destination, each.channel))
            for i, m in enumerate(q.messages)
        ]
        is_done = self.job.has_ended() and all(row[-1] >= 0 for row in messages)
        complete, simulated_ps = ending(
            is_done=is_done,
            interrupted_at_ps=self.clock.now_ps if self.was_interrupted else None,
            end_ps=counters["end_ps"],
            until_ps=self.engine_input.until_ps,
            has_clock_ended=bool(self.clock) and not self.was_interrupted and not len(self.watch.cycle),
        )
        captured, captured_left_out = earliest(self.tap.request, np.array(self.tap.rows, CAPTURE_DTYPE))
        streams = [stream for of_rank in self.job.streams for stream in of_rank]
        return Outcome(
            messages=np.array(messages, MESSAGE_DTYPE),
            ports=np.array([tuple(port.counts.values()) for port in self.ports], PORT_DTYPE),
            counters=counters,
            milestones=np.array(sorted(self.job.milestones, key=itemgetter(0, 2)), MILESTONE_DTYPE),
            series=np.empty(0, SERIES_DTYPE),
            complete=complete,
            simulated_ps=simulated_ps,
            waits=waits_of(streams, self.carrier, has_receives=self.engine_input.has_receives),
            deadlock=self.watch.cycle,
            captured=captured,
            captured_left_out=captured_left_out,
        )


# What each part is, read from the engine input


def _port_config(engine_input: PacketInput, port: int) -> PortConfig:
    node = int(engine_input.port_node[port])
    devices = engine_input.switches if engine_input.node_kind[node] == SWITCH else engine_input.nics
    return PortConfig(
        id=port,
        local_index=port - int(engine_input.port_base[node]),
        rate_bps=int(engine_input.port_rate_bps[port]),
        classes=len(engine_input.class_priority),
        pause_quanta=int(devices[int(engine_input.node_device[node])]["pause_quanta"]),
        pause_frame_bytes=engine_input.transport.pause_frame_bytes,
        interframe_bytes=engine_input.transport.interframe_bytes,
    )


def _link_credits(engine_input: PacketInput, port: int) -> LinkCredits | None:
    if not engine_input.transport.link_credits:
        return None
    return LinkCredits(
        room_ahead_bytes=int(engine_input.port_credit_bytes[int(engine_input.port_peer[port])]),
        quantum_bytes=engine_input.transport.credit_quantum_bytes,
        classes=len(engine_input.class_priority),
    )


def _lossless(engine_input: PacketInput) -> tuple[bool, ...]:
    """Whether each class uses pauses; none with link credits."""
    if engine_input.transport.link_credits:
        return (False,) * len(engine_input.class_lossless)
    return tuple(engine_input.class_lossless.astype(bool).tolist())


def _link_config(engine_input: PacketInput, port: int) -> LinkConfig:
    return LinkConfig(
        port_id=port,
        delay_ps=int(engine_input.port_delay_ps[port]),
        loss=float(engine_input.port_loss[port]),
        corruption=float(engine_input.port_corruption[port]),
        seed=engine_input.seed,
    )


def _nic_config(engine_input: PacketInput, node: int) -> NicConfig:
    row, transport = engine_input.nics[int(engine_input.node_device[node])], engine_input.transport
    return NicConfig(
        **fields_of(NicConfig, row),
        lossless=_lossless(engine_input),
        control_class=engine_input.control_class,
        host_packet_ps=transport.host_packet_ps,
        host_byte_ps=transport.host_byte_ps,
        connection_state_bytes=transport.connection_state_bytes,
    )


def _switch_config(engine_input: PacketInput, node: int) -> SwitchConfig:
    row = engine_input.switches[int(engine_input.node_device[node])]
    algorithm, seed, offset, fields = (int(row[f"hash_{name}"]) for name in ("algorithm", "seed", "offset", "fields"))
    own = range(int(engine_input.port_base[node]), int(engine_input.port_base[node + 1]))
    transport = engine_input.transport
    return SwitchConfig(
        choice=PortChoiceConfig(
            node=node,
            seed=engine_input.seed,
            tier=int(engine_input.node_tier[node]),
            group=int(engine_input.node_group[node]),
            hash=(algorithm, seed, offset, fields),
            virtual_channels=engine_input.virtual_channels,
        ),
        buffer=BufferConfig(
            shared_bytes=int(engine_input.shared_bytes[node]),
            **fields_of(BufferConfig, row),
            headroom_bytes={port: int(engine_input.port_headroom_bytes[port]) for port in own},
            lossless=_lossless(engine_input),
        ),
        kmin_bytes={port: int(engine_input.port_kmin_bytes[port]) for port in own},
        kmax_bytes={port: int(engine_input.port_kmax_bytes[port]) for port in own},
        **fields_of(SwitchConfig, row),
        marks_at_dequeue=bool(row["mark_at_dequeue"]),
        has_telemetry=bool(row["telemetry"]) and engine_input.has_telemetry,
        path_load_ps=max(engine_input.fabric_base_rtt_ps, 1) if row["telemetry"] and engine_input.has_path_load else 0,
        telemetry_hop_bytes=transport.telemetry_hop_bytes,
        trim_bytes=transport.trim_bytes,
        trim_class=engine_input.trim_class,
        weights=tuple(row["weight"].tolist()[: len(engine_input.class_priority)]),
    )


def _server_link(engine_input: PacketInput, clock: EventHeap, rank: int, link: Link) -> ServerLink:
    row = engine_input.rank_gpu[rank]
    name = link.name.lower()
    return ServerLink(
        clock,
        rank,
        link,
        rate_bps=int(row[f"{name}_rate_bps"]),
        latency_ps=int(row[f"{name}_latency_ps"]),
        slice_bytes=int(row["slice_bytes"]),
    )
