"""Software NICs as hosts of the reference engine.

Real RoCEv2 packets travel on simulated links, in virtual time. A datagram of the NIC becomes a packet with the size
that it has on Ethernet. It passes the ports, queues and switches of the engine, which mark, pause and drop it. The
switches tell CNPs by their opcode and send them in the control class; all else takes the data class. The core of the
NIC is used as it is, by its five calls.
Source: `docs/models/packet-engine.md` (ports, switches, links), `docs/models/rdma-nic.md` (the five calls).
Leaves out: the host interface (PCIe) and the processor of a host, DSCP, and by default the scenario's own job.
A CNP waits behind a data packet of its own NIC that is paused, and of several timeouts in one pause the first counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from ipaddress import IPv4Address
from random import Random
from typing import TYPE_CHECKING, Final, Protocol

from weftwork.base.clock import NEVER_PS
from weftwork.base.errors import UsageError
from weftwork.base.flow_identity import flow_identity
from weftwork.engine.hashing import address
from weftwork.engine.reference.clock import Agenda, Phase
from weftwork.engine.reference.flow import Flow
from weftwork.engine.reference.packet import Packet, PacketKind
from weftwork.engine.reference.simulation import Simulation
from weftwork.engine.rows.outcome import PORT_DTYPE
from weftwork.rdma.nic import RdmaNic
from weftwork.spec.fabric import HOST
from weftwork.wire.ethernet import ETHERNET_HEADER_BYTES, FCS_BYTES, MINIMUM_FRAME_BYTES
from weftwork.wire.ip import ECN_CE, ECN_NOT_ECT, ip_header_bytes
from weftwork.wire.opcodes import Opcode
from weftwork.wire.udp import UDP_HEADER_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from weftwork.engine.packet_input import PacketInput
    from weftwork.engine.reference.port import Port
    from weftwork.rdma.datagram import Datagram
    from weftwork.rdma.queue_pair import NicLimits
    from weftwork.spec.transport import Transport

__all__ = ["RdmaFabric", "SimulatedNic"]

_IP_VERSIONS: Final = {4: 4, 16: 6}  # by the bytes of an address
_AT_ONCE: Final = 256  # chosen: datagrams that are lost by one call
_NUMBERS: Final = 1 << 32  # of packets: the number is 32 bits of a packet's identity


class SimulatedNic(Protocol):
    """Interface of a host's NIC: an address and four calls.

    They are four of the NIC's five calls.
    """

    @property
    def makes_trains(self) -> bool:
        """Whether a datagram may hold many packets.

        A line does not carry such datagrams.
        """

    @property
    def address(self) -> bytes:
        """IP address."""

    def receive(self, datagram: Datagram, now_ps: int) -> None:
        """Take a datagram that arrived."""

    def datagrams_to_send(self, now_ps: int, most: int) -> list[Datagram]:
        """Take the datagrams to send now."""

    def next_timer_ps(self) -> int | None:
        """When to call `on_timer`, or None."""

    def on_timer(self, now_ps: int) -> None:
        """Do all due work."""


@dataclass(kw_only=True, slots=True)
class _RdmaPacket(Packet):
    """A packet of the engine with its datagram."""

    datagram: Datagram


class _RdmaHost:
    """A NIC behind a port of the engine, instead of the engine's NIC.

    Parameters
    ----------
    nic : the core
    port : by which it sends and receives
    fabric : finds ports by address
    """

    def __init__(self, nic: SimulatedNic, port: Port, fabric: RdmaFabric) -> None:
        self.nic: Final = nic
        self.port: Final = port
        self._fabric: Final = fabric
        self._clock: Final = fabric.simulation.clock
        self._head: _RdmaPacket | None = None  # taken from the core, and held by flow control
        self._timer_at_ps: int | None = None
        self._flows: dict[tuple[bytes, int, int], Flow] = {}
        self._sent = 0

    def start(self) -> None:
        """Ask the core for a packet.

        While the link is down all are lost, so that the core gives up in its time.
        """
        if self.port.is_up:
            self.port.start()
            return
        while made := self.nic.datagrams_to_send(self._clock.now_ps, _AT_ONCE):
            for _ in made:
                self.port.drop("link_down")
        self._wake_at(self.nic.next_timer_ps())

    def send_next(self, port: Port) -> None:
        """Start the core's next packet; the line is free."""
        packet = self._head if self._head is not None else self._next_packet()
        self._head = packet
        if packet is not None and not port.is_held(packet.traffic_class, packet.size_bytes):
            self._head = None
            port.transmit(packet)

    def _next_packet(self) -> _RdmaPacket | None:
        now_ps = self._clock.now_ps
        packet = None
        while packet is None and (made := self.nic.datagrams_to_send(now_ps, 1)):
            packet = self._packet(made[0], now_ps)
        self._wake_at(self.nic.next_timer_ps())
        return packet

    def _packet(self, datagram: Datagram, now_ps: int) -> _RdmaPacket | None:
        """The packet of a datagram, or None for an unknown destination."""
        destination = self._fabric.port_of(datagram.destination)
        if destination is None:
            self.port.drop("no_route")
            return None
        payload = bytes(datagram.payload())  # a copy: the view holds until the core is asked again
        is_cnp = payload[0] == Opcode.CNP
        kind = PacketKind.ACK if datagram.ecn == ECN_NOT_ECT else PacketKind.DATA  # which switches may mark
        headers_bytes = ETHERNET_HEADER_BYTES + ip_header_bytes(_IP_VERSIONS[len(datagram.source)]) + UDP_HEADER_BYTES
        frame_bytes = max(headers_bytes + len(payload) + FCS_BYTES, MINIMUM_FRAME_BYTES)
        self._sent += 1
        return _RdmaPacket(
            datagram=datagram._replace(parts=(payload,)),
            flow=self._flow(datagram, int.from_bytes(payload[5:8], "big"), destination),
            origin=self.port.id,
            destination=destination,
            kind=PacketKind.CNP if is_cnp else kind,
            seq=self._sent % _NUMBERS,
            attempt=0,
            size_bytes=frame_bytes,
            traffic_class=self._fabric.control_class if is_cnp else self._fabric.data_class,
            entropy=datagram.source_port,
            payload_bytes=len(payload),
            sent_at_ps=now_ps,
        )

    def _flow(self, datagram: Datagram, queue_pair: int, destination: int) -> Flow:
        """Hash input of switches: addresses, source port and queue pair.

        The queue pair counts where switches look at it.
        """
        key = (datagram.destination, datagram.source_port, queue_pair)
        if key not in self._flows:
            identity = flow_identity(self.port.id, destination, datagram.source_port)
            self._flows[key] = Flow(id=identity, number=queue_pair, entropy=datagram.source_port)
        return self._flows[key]

    def receive(self, port: Port, packet: Packet) -> None:
        """Hand a datagram to the core, with its congestion mark."""
        if packet.destination != port.id or not isinstance(packet, _RdmaPacket):
            port.drop("no_route")  # hosts do not forward
        else:
            datagram = packet.datagram._replace(ecn=ECN_CE) if packet.is_marked else packet.datagram
            self.nic.receive(datagram, self._clock.now_ps)
        port.free(packet.traffic_class, packet.size_bytes)
        self.start()

    def port_went_down(self, port: Port) -> None:
        """Lose the waiting packet.

        The core sends it again when it misses the answer.
        """
        if self._head is not None:
            self._head = None
            port.drop("link_down")

    def _wake_at(self, at_ps: int | None) -> None:
        if at_ps is not None and (self._timer_at_ps is None or at_ps < self._timer_at_ps):
            self._timer_at_ps = max(at_ps, self._clock.now_ps)
            identity = (Agenda.RETRANSMISSION, self.port.id)
            self._clock.at(self._timer_at_ps, Phase.AGENDA, identity, self._on_timer, self._timer_at_ps)

    def _on_timer(self, set_for_ps: int) -> None:
        if self._timer_at_ps == set_for_ps:  # not moved to an earlier instant meanwhile
            self._timer_at_ps = None
            self.nic.on_timer(set_for_ps)
            self.start()


class _Awaited:
    """Ends a run before the next event when a result has come."""

    at_ps = 0  # it looks before every event

    def __init__(self, has_come: Callable[[], bool]) -> None:
        self._has_come = has_come

    def look(self, _: int) -> bool:
        return self._has_come()


class RdmaFabric:
    """A simulated fabric with software NICs as hosts.

    `docs/howto/rdma-in-simulation.md` has a program.

    Parameters
    ----------
    engine_input : fabric, transport and policies, as ``prepare(scenario).engine_input`` has them
    runs_job : the job of the scenario runs as well, beside the software NICs and on other hosts

    Attributes
    ----------
    simulation : the parts of the engine, for whoever wants to look into a queue or a port
    data_class, control_class : indices of the traffic classes of data and of CNPs

    Raises
    ------
    UsageError : switches would write into packets or cut them, which RoCEv2 has no bytes for
    """

    def __init__(self, engine_input: PacketInput, *, runs_job: bool = False) -> None:
        transport = engine_input.transport
        if engine_input.has_telemetry or engine_input.has_path_load or transport.trim_bytes:
            raise UsageError("engine_input: found telemetry, path load or trimming; wanted switches that only mark")
        idle = replace(engine_input, streams=engine_input.streams[:0])
        self.simulation: Final = Simulation(engine_input if runs_job else idle)
        priorities = engine_input.class_priority.tolist()
        self.data_class: Final[int] = priorities.index(transport.data_priority)
        self.control_class: Final = engine_input.control_class
        self._input: Final = engine_input
        self._hosts: dict[int, _RdmaHost] = {}  # by port
        self._ports: dict[bytes, int] = {}  # by address

    @property
    def transport(self) -> Transport:
        """Sizes of packets, and what protects them."""
        return self._input.transport

    @property
    def now_ps(self) -> int:
        """The present instant."""
        return self.simulation.clock.now_ps

    def add_nic(
        self, host: int, *, nic_port: int = 0, random: Random | None = None, limits: NicLimits | None = None
    ) -> RdmaNic:
        """Put a new NIC on a port of a host.

        It has the port's rate and the scenario's congestion control.

        Parameters
        ----------
        host : its number among the hosts of the fabric
        nic_port : number of the port among those of the host
        random : draws queue pair numbers, PSNs and keys; by default it follows from the seed of the run and the port
        limits : on the objects of the NIC

        Returns
        -------
        the NIC; its address is 10.0.0.0 plus the id of the port, as in the captures of simulated links

        Raises
        ------
        UsageError : no such port, or it has a NIC already
        """
        port = self._port(host, nic_port)
        control = self._input.congestion_control
        nic = RdmaNic(
            self.address_of(host, nic_port),
            random=random if random is not None else Random(self._input.seed << 32 | port.id),
            limits=limits,
            congestion_control=None if control.name == "none" else control,
            line_rate_bps=port.rate_bps,
        )
        self._join(port, nic)
        return nic

    def attach(self, host: int, nic: SimulatedNic, *, nic_port: int = 0) -> None:
        """Put an existing NIC, with its address, on a port of a host.

        Parameters
        ----------
        host, nic_port : as in `add_nic`
        nic : makes a datagram for each packet

        Raises
        ------
        UsageError : no such port, or it has a NIC already, or another one has the address, or the NIC makes trains
        """
        if nic.makes_trains:
            raise UsageError("nic: found makes_trains, wanted a datagram for each packet")
        self._join(self._port(host, nic_port), nic)

    def run_until(self, at_ps: int) -> None:
        """Run all events before an instant.

        Parameters
        ----------
        at_ps : the instant, at which it then is
        """
        self._run(at_ps, None)
        self._pass_idly(at_ps)

    def wait_for(self, has_come: Callable[[], bool], limit_ps: int = NEVER_PS) -> bool:
        """Run until a result has come.

        The present instant is then that of the result.

        Parameters
        ----------
        has_come : asked before each event
        limit_ps : instant up to which to wait

        Returns
        -------
        False where it has not come by then, or nothing is left to happen
        """
        self._run(limit_ps, _Awaited(has_come))
        if has_come():
            return True
        self._pass_idly(limit_ps)
        return False

    def total(self, name: str) -> int:
        """Sum of a counter over all ports of the fabric.

        Parameters
        ----------
        name : of `weftwork.engine.rows.outcome.PORT_DTYPE`, such as ``marks``, ``drops`` and ``pauses_sent``

        Raises
        ------
        UsageError : no counter has this name
        """
        names = PORT_DTYPE.names or ()
        if name not in names:
            raise UsageError(f"name: found {name!r}, wanted one of {', '.join(names)}")
        return sum(port.counts[name] for port in self.simulation.ports)

    def wake(self, address: bytes) -> None:
        """Ask the NIC at an address for packets, since something was posted."""
        self._hosts[self._ports[address]].start()

    def later(self, address: bytes, action: Callable[[], None]) -> None:
        """Call a function at the present instant, behind the event that is handled.

        Parameters
        ----------
        address : of the NIC whose agenda it is
        action : what is called
        """
        identity = (Agenda.DELIVERY, self._ports[address])
        self.simulation.clock.at(self.now_ps, Phase.AGENDA, identity, action)

    def rate_bps(self, host: int, nic_port: int = 0) -> int:
        """Rate of a port of a host."""
        return self._port(host, nic_port).rate_bps

    def address_of(self, host: int, nic_port: int = 0) -> bytes:
        """Address of a port of a host: 10.0.0.0 plus the id of the port."""
        return IPv4Address(address(self._port(host, nic_port).id)).packed

    def port_of(self, address: bytes) -> int | None:
        """Id of the port whose NIC has an address, or None."""
        return self._ports.get(address)

    def _run(self, until_ps: int, watch: _Awaited | None) -> None:
        for host in self._hosts.values():
            host.start()  # requests may have been posted since
        self.simulation.clock.run(until_ps, watch=watch)

    def _pass_idly(self, at_ps: int) -> None:
        """Advance to an instant without events before it.

        With no end, the last event was the last.
        """
        if at_ps < NEVER_PS:
            self.simulation.clock.now_ps = max(self.simulation.clock.now_ps, at_ps)

    def _port(self, host: int, nic_port: int) -> Port:
        nodes = (self._input.node_kind == HOST).nonzero()[0]
        if not 0 <= host < len(nodes):
            raise UsageError(f"host: found {host}, wanted 0 to {len(nodes) - 1}")
        ends: list[int] = self._input.port_base[nodes[host] : nodes[host] + 2].tolist()
        first, end = ends
        if not 0 <= nic_port < end - first:
            raise UsageError(f"nic_port: found {nic_port}, wanted 0 to {end - first - 1}")
        return self.simulation.ports[first + nic_port]

    def _join(self, port: Port, nic: SimulatedNic) -> None:
        if port.id in self._hosts:
            raise UsageError(f"port {port.id}: found a NIC on it already")
        if nic.address in self._ports:
            raise UsageError(f"address: found {nic.address.hex()} at port {self._ports[nic.address]} already")
        host = self._hosts[port.id] = _RdmaHost(nic, port, self)
        self._ports[nic.address] = port.id
        port.join(host, self.simulation.links[port.id])
