"""A simulated host: the NICs of its programs behind one port of the fabric.

Each device of a program has a NIC of its own; all share the address of the host, as the processes of a machine do. A
datagram goes to the NIC whose prefix its queue pair number has, and a request for a connection to the NIC that listens.
A datagram from the host to itself takes no time and does not enter the fabric.
Source: `weftwork.rdma.drivers.steering`, which does the same for processes of one machine.
Leaves out: the time that programs and their processors take.
"""

from __future__ import annotations

import weakref
from collections import Counter, deque
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from weftwork.base.errors import UsageError
from weftwork.rdma.bells import close_all, make_bell, ring, silence
from weftwork.rdma.connection_manager import ConnectionManager
from weftwork.rdma.drivers.slots import addressee
from weftwork.rdma.nic import RdmaNic
from weftwork.rdma.number_prefix import PREFIXES
from weftwork.rdma.wires import OpenWire
from weftwork.wire.ib import BTH_BYTES
from weftwork.wire.ip import ECN_CE
from weftwork.wire.rdma_ip_cm import PortSpace, service_of_port

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from weftwork.policies.load import LoadedPolicy
    from weftwork.rdma.datagram import Datagram
    from weftwork.rdma.wires import WireOptions
    from weftwork.testing.simulated_programs.stage import TurnStage

__all__ = ["HostTraffic", "SimulatedHost", "SimulatedPort"]


@dataclass(slots=True)
class HostTraffic:
    """Packets of a host that entered or left the fabric.

    Parameters
    ----------
    sent, received, marked : packets; ``marked`` counts those received with a congestion mark
    sent_bytes, received_bytes : of their UDP payloads
    first_ps, last_ps : instants of the first and the last packet; None without any
    """

    sent: int = 0
    received: int = 0
    marked: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0
    first_ps: int | None = None
    last_ps: int | None = None

    def see(self, now_ps: int) -> None:
        """Note the instant of a packet."""
        self.first_ps = now_ps if self.first_ps is None else self.first_ps
        self.last_ps = now_ps


@dataclass(eq=False, kw_only=True)
class SimulatedHost:
    """The NICs of one host; the fabric sees them as one.

    Parameters
    ----------
    number : of the host in the fabric
    address : IP address, 4 bytes
    stage : gives turns to programs
    random : draws keys, numbers and PSNs
    congestion_control : of the scenario, or None
    line_rate_bps : of its port
    path_mtu : most bytes in a packet
    later : calls a function at the present instant, after the event that is handled
    wake : tells the fabric that packets wait
    listeners : service ID to the hosts that listen there by a loopback address
    resolved : addresses that programs may name, and the address in the fabric
    on_packet : called with every packet of the port and the present instant
    """

    number: int
    address: bytes
    stage: TurnStage
    random: Random
    congestion_control: LoadedPolicy | None
    line_rate_bps: int
    path_mtu: int
    later: Callable[[Callable[[], None]], None]
    wake: Callable[[], None]
    listeners: dict[int, list[SimulatedHost]]
    resolved: dict[bytes, bytes]
    on_packet: Callable[[Datagram, int], None]
    makes_trains: bool = False
    traffic: HostTraffic = field(default_factory=HostTraffic)
    nics: dict[int, RdmaNic] = field(default_factory=dict)  # by slot
    ports: dict[int, SimulatedPort] = field(default_factory=dict)
    services: dict[int, int] = field(default_factory=dict)  # service ID to slot
    closed: list[RdmaNic] = field(default_factory=list)
    _turn: int = 0
    _left_over: deque[Datagram] = field(default_factory=deque)  # of devices that are closed

    # For programs

    def open(self, options: WireOptions) -> OpenWire:
        """Open a device of a program on this host; UsageError beyond 256."""
        slot = next((number for number in range(PREFIXES) if number not in self.nics), None)
        if slot is None:
            raise UsageError(f"devices: found {PREFIXES} on host {self.number}, which is the most")
        control = options.loaded_control
        nic = RdmaNic(
            self.address,
            random=self.random,
            limits=options.limits,
            congestion_control=control if control is not None else self.congestion_control,
            line_rate_bps=self.line_rate_bps,
            number_prefix=slot,
        )
        port = SimulatedPort(self, slot)
        self.nics[slot], self.ports[slot] = nic, port
        return OpenWire(
            nic=nic,
            port=port,
            mover=_Mover(self, port),
            make_manager=lambda: ConnectionManager(nic, path_mtu=port.path_mtu),
            time=_DeviceTime(self.stage, nic),
        )

    def close(self, slot: int) -> None:
        """Take a device off the host, once its last packets have left."""
        nic = self.nics.get(slot)
        if nic is None:
            return
        self.ports.pop(slot)
        self.services = {service: of for service, of in self.services.items() if of != slot}
        for service, hosts in self.listeners.items():
            if self in hosts and service not in self.services:
                hosts.remove(self)
        del self.nics[slot]
        self.closed.append(nic)
        while made := nic.datagrams_to_send(self.stage.now_ps):
            self._left_over += [datagram._replace(parts=(bytes(datagram.payload()),)) for datagram in made]
        self.wake()

    # The fabric's NIC

    def receive(self, datagram: Datagram, now_ps: int) -> None:
        """Take a datagram from the fabric."""
        self.traffic.received += 1
        self.traffic.received_bytes += len(datagram.payload())
        self.traffic.marked += datagram.ecn == ECN_CE
        self.traffic.see(now_ps)
        self.on_packet(datagram, now_ps)
        self._deliver(datagram, now_ps)

    def _deliver(self, datagram: Datagram, now_ps: int) -> None:
        payload = datagram.payload()
        slot: int | None = None
        if len(payload) >= BTH_BYTES:
            to = addressee(payload)
            slot = to.slot if to.service is None else self.services.get(to.service)
        nic = self.nics.get(slot) if slot is not None else next(iter(self.nics.values()), None)
        if nic is None:
            return  # the device is closed, and so nobody answers
        nic.receive(datagram, now_ps)
        self._touch(nic)

    def _touch(self, nic: RdmaNic) -> None:
        self.stage.touched[nic] = None
        for slot, port in self.ports.items():
            if self.nics[slot] is nic:
                port.ring()

    def datagrams_to_send(self, now_ps: int, most: int) -> list[Datagram]:
        """Take the datagrams to send now; those to this host are delivered instead."""
        made: list[Datagram] = []
        while self._left_over and len(made) < most:
            self._leave(self._left_over.popleft(), now_ps, made)
        nics = list(self.nics.items())
        for slot, nic in nics[self._turn :] + nics[: self._turn]:
            while len(made) < most and (found := nic.datagrams_to_send(now_ps, most - len(made))):
                for datagram in found:
                    self._leave(datagram, now_ps, made)
            if len(made) >= most:
                self._turn = (list(self.nics).index(slot) + 1) % len(nics)  # the next device's turn
                break
        return made

    def _leave(self, datagram: Datagram, now_ps: int, made: list[Datagram]) -> None:
        if datagram.destination == self.address:
            self._loop_back(datagram)
        else:
            self._note_sent(datagram, now_ps)
            made.append(datagram)

    def _note_sent(self, datagram: Datagram, now_ps: int) -> None:
        self.traffic.sent += 1
        self.traffic.sent_bytes += sum(map(len, datagram.parts))
        self.traffic.see(now_ps)
        self.on_packet(datagram, now_ps)

    def _loop_back(self, datagram: Datagram) -> None:
        copied = datagram._replace(parts=(bytes(datagram.payload()),))

        def arrive() -> None:
            self._deliver(copied, self.stage.now_ps)
            self.wake()

        self.later(arrive)

    def next_timer_ps(self) -> int | None:
        """When to call `on_timer`, or None."""
        times = [at_ps for nic in self.nics.values() if (at_ps := nic.next_timer_ps()) is not None]
        return min(times, default=None)

    def on_timer(self, now_ps: int) -> None:
        """Do all due work."""
        for nic in list(self.nics.values()):
            due_ps = nic.next_timer_ps()
            if due_ps is not None and due_ps <= now_ps:
                nic.on_timer(now_ps)
                self._touch(nic)


class SimulatedPort:
    """The port of one device on a simulated host.

    Parameters
    ----------
    host : whose
    slot : top eight bits of the numbers of the device
    """

    def __init__(self, host: SimulatedHost, slot: int) -> None:
        self.address: bytes = host.address
        self.counters: Counter[str] = Counter()
        self.last_error = ""
        self._host: Final = host
        self._slot: Final = slot
        self._bell: Final = make_bell()
        self._give_back: Final = weakref.finalize(self, close_all, self._bell)

    def fileno(self) -> int:
        """Descriptor that is readable when something has happened at the NIC."""
        return self._bell

    def ring(self) -> None:
        """Make the descriptor readable."""
        ring(self._bell)

    def silence(self) -> None:
        """Make the descriptor wait again."""
        silence(self._bell)

    def path_mtu(self, destination: bytes) -> int:
        """Largest path MTU that the scenario's packets allow."""
        del destination
        return self._host.path_mtu

    def listen(self, service_port: int, space: PortSpace = PortSpace.TCP) -> None:
        """Receive requests for a service; UsageError if another device of the host does."""
        service = service_of_port(service_port, space)
        of = self._host.services.get(service)
        if of == self._slot:
            return
        if of is not None:
            raise UsageError(f"port: found {service_port}, on which another program of this host listens")
        self._host.services[service] = self._slot
        self._host.listeners.setdefault(service, []).append(self._host)

    def join(self, group: bytes) -> None:
        """Refuse: the fabric carries datagrams to one host alone."""
        raise UsageError(f"multicast: found {ip_address(group)}, which the simulated fabric does not carry")

    def leave(self, group: bytes) -> None:
        """Receive no more datagrams of a multicast address."""

    def resolve(self, address: bytes, service_port: int, space: PortSpace = PortSpace.TCP) -> bytes:
        """Address in the fabric; a loopback address means the host that listens.

        UsageError where several hosts do, and this one does not.
        """
        if address in self._host.resolved:
            return self._host.resolved[address]
        if not ip_address(address).is_loopback:
            return address
        hosts = self._host.listeners.get(service_of_port(service_port, space), [])
        if self._host in hosts or not hosts:
            return self._host.address
        if len(hosts) > 1:
            numbers = ", ".join(str(host.number) for host in hosts)
            raise UsageError(
                f"address: found {ip_address(address)} for port {service_port}, on which hosts {numbers} listen, "
                "wanted the address of one of them"
            )
        return hosts[0].address

    def close(self) -> None:
        """Take the device off its host."""
        self._host.close(self._slot)
        self._give_back()


class _Mover:
    """Tells the fabric that packets wait; the fabric moves them while time passes."""

    def __init__(self, host: SimulatedHost, port: SimulatedPort) -> None:
        self._host: Final = host
        self._port: Final = port

    def progress(self) -> bool:
        """Do nothing: packets move while time passes."""
        self._port.silence()
        return False

    def send(self) -> None:
        """Tell the fabric."""
        self._host.wake()

    def wait_s(self) -> float | None:
        """Return None: the fabric keeps the timers."""
        return None


class _DeviceTime:
    """Virtual time of one device."""

    def __init__(self, stage: TurnStage, nic: RdmaNic) -> None:
        self._stage: Final = stage
        self._nic: Final = nic

    def wait(self, until: Callable[[], bool], timeout_s: float | None) -> bool:
        """Let time pass until a condition holds; False after the timeout.

        A wait of no time is a poll.
        """
        if timeout_s is None or timeout_s > 0:
            return self._stage.wait(until, timeout_s, waits_for="its RDMA device")
        self._stage.poll(self._nic, until)
        return until()

    def poll(self, until: Callable[[], bool]) -> None:
        """Let a little time pass."""
        self._stage.poll(self._nic, until)
