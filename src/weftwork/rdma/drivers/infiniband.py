"""Native InfiniBand in memory: a subnet of one switch, which joins NICs of one process.

Packets cross as the bytes that a link carries, from the local route header (LRH) to the variant CRC. The port makes the
variant CRC, the switch checks it, maps the virtual lane and makes it again, and the other port checks it.
Source: IBTA vol. 1, 7.6 (virtual lanes), 7.7 (LRH), 7.8.2 (variant CRC), 4.1 (LIDs and GIDs), 18.2 (switches).
Leaves out: a subnet manager with its datagrams, more than one switch, credits of links, multicast, partitions of ports.
"""

from __future__ import annotations

import ipaddress
import time
from collections import Counter
from typing import TYPE_CHECKING, Final

from weftwork.base.errors import UsageError
from weftwork.rdma.datagram import SMALLEST_BYTES, Datagram
from weftwork.rdma.drivers.mailbox import MOST_WAITING, Mailbox
from weftwork.rdma.drivers.udp import parse_address
from weftwork.rdma.encapsulation import InfinibandEncapsulation
from weftwork.rdma.psn_order import PATH_MTUS_BYTES
from weftwork.wire.fields import MalformedPacket
from weftwork.wire.ip import ECN_CE, ECN_ECT0, IPV6_HEADER_BYTES
from weftwork.wire.lrh import LRH_BYTES, Lrh
from weftwork.wire.pcap import LINK_INFINIBAND, CapturedPacket
from weftwork.wire.rdma_ip_cm import PortSpace
from weftwork.wire.vcrc import VCRC_BYTES, append_vcrc, check_vcrc

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["InfinibandPort", "InfinibandWire"]

_SUBNET: Final = ipaddress.IPv6Network("fe80::/64")  # IBTA vol. 1, 4.1.1: default prefix of a subnet
_FIRST_GUID: Final = 0x0200_00FF_FE00_0000  # chosen: EUI-64 of a MAC address that is administered locally
_MOST_LIDS: Final = 0xBFFF  # IBTA vol. 1, 4.1.3: unicast LIDs
_LEVELS: Final = 16  # IBTA vol. 1, 7.6.5: service levels
_PAIRED_LANES: Final = tuple(range(_LEVELS // 2)) * 2  # chosen: a lane for two levels
_MANAGEMENT_LANE: Final = 15  # IBTA vol. 1, 7.6.4: of the subnet manager alone
_NO_LANE: Final = 0x0F  # of the first byte of LRH
_FECN: Final = 0x80  # in the fifth byte of BTH
_MOST_FRONTS: Final = 1024  # chosen: headers of peers and sizes that are remembered


class InfinibandWire:
    """A subnet: one switch, and the LIDs and GIDs of its ports.

    Parameters
    ----------
    has_grh : every packet has a global route header, which a subnet does not need
    port_lanes : virtual lane of each of the 16 service levels on the way to the switch, 0 to 14
    switch_lanes : the same on the way from the switch; by default levels n and n + 8 share lane n
    capture : takes each packet as it leaves the switch
    clock_ns : time of captured packets

    Attributes
    ----------
    counters : packets that the switch dropped, by reason
    """

    def __init__(
        self,
        *,
        has_grh: bool = False,
        port_lanes: tuple[int, ...] = (0,) * _LEVELS,
        switch_lanes: tuple[int, ...] = _PAIRED_LANES,
        capture: Callable[[CapturedPacket], None] | None = None,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        for name, lanes in (("port_lanes", port_lanes), ("switch_lanes", switch_lanes)):
            if len(lanes) != _LEVELS or not all(0 <= lane < _MANAGEMENT_LANE for lane in lanes):
                raise UsageError(f"{name}: found {lanes}, wanted 16 lanes of 0 to {_MANAGEMENT_LANE - 1}")
        self.has_grh: Final = has_grh
        self.port_lanes: Final = port_lanes
        self.counters: Counter[str] = Counter()
        self._switch_lanes: Final = switch_lanes
        self._capture: Final = capture
        self._clock_ns: Final = clock_ns
        self._lids: dict[bytes, int] = {}
        self._gids: dict[int, bytes] = {}
        self._ports: dict[int, InfinibandPort] = {}

    def open(self, address: str | None = None) -> InfinibandPort:
        """Open a port.

        Parameters
        ----------
        address : its GID, fe80:: and a GUID, as text; None for the next free one

        Raises
        ------
        UsageError : an address of another kind, or another port has it
        """
        if len(self._lids) >= _MOST_LIDS:
            raise UsageError(f"ports: found {len(self._lids)}, which is the most of a subnet")
        lid = len(self._lids) + 1
        gid = _SUBNET.network_address.packed[:8] + (_FIRST_GUID | lid).to_bytes(8)
        if address is not None:
            parsed = parse_address(address)
            if parsed not in _SUBNET or parsed == _SUBNET.network_address:
                raise UsageError(f"address: found {address}, wanted a GID of this subnet, such as fe80::1")
            gid = parsed.packed
        lid = self._lids.setdefault(gid, lid)
        if lid in self._ports:
            raise UsageError(f"address: found {ipaddress.ip_address(gid)}, which another port of this wire has")
        self._gids[lid] = gid
        port = self._ports[lid] = InfinibandPort(self, gid, lid)
        return port

    def lid_of(self, gid: bytes) -> int:
        """LID of a port, which it keeps when it closes; UsageError for a GID that the subnet does not have."""
        lid = self._lids.get(gid)
        if lid is None:
            text = ipaddress.ip_address(gid) if len(gid) in {4, 16} else gid.hex()
            known = ", ".join(str(ipaddress.ip_address(one)) for one in self._lids) or "none yet"
            raise UsageError(f"address: found {text}, wanted a GID of this subnet: {known}")
        return lid

    def gid_at(self, lid: int) -> bytes | None:
        """GID of a port, or None for a LID that the subnet does not have."""
        return self._gids.get(lid)

    def carry(self, packet: bytes) -> None:
        """Take a packet from a port into the switch, and hand it to the port of its LID.

        Packets that changed on the link or have no port are counted and dropped.
        """
        try:
            check_vcrc(packet)
            lrh, _ = Lrh.decode(packet)
        except MalformedPacket:
            self.counters["vcrc"] += 1
            return
        if lrh.link_version or lrh.packet_words * 4 + VCRC_BYTES != len(packet):
            self.counters["malformed"] += 1
            return
        port = self._ports.get(lrh.destination_lid)
        if port is None:
            self.counters["no_route"] += 1
            return
        lane = self._switch_lanes[lrh.service_level]
        if lane != lrh.virtual_lane:
            packet = append_vcrc(bytes([lane << 4 | packet[0] & 0xF]) + packet[1:-VCRC_BYTES])
        if self._capture is not None:
            name = f"lid {lrh.destination_lid}"
            self._capture(CapturedPacket(self._clock_ns(), packet, len(packet), LINK_INFINIBAND, name))
        port.take(packet)

    def remove(self, port: InfinibandPort) -> None:
        """Take a port off the switch; its LID stays."""
        if self._ports.get(port.lid) is port:
            del self._ports[port.lid]


class InfinibandPort:
    """A port of a channel adapter.

    Parameters
    ----------
    wire : that opened it
    gid : 16 bytes
    lid : 16 bits

    Attributes
    ----------
    address : the GID
    """

    makes_trains: Final = False
    slot: Final = None

    def __init__(self, wire: InfinibandWire, gid: bytes, lid: int) -> None:
        self.address = gid
        self.lid: Final = lid
        self.counters: Counter[str] = Counter()
        self.last_error = ""
        self.receive_buffer_bytes = MOST_WAITING * max(PATH_MTUS_BYTES)
        self.encapsulation: Final = InfinibandEncapsulation(wire, has_grh=wire.has_grh)
        self._wire: Final = wire
        self._mailbox: Final[Mailbox[bytes]] = Mailbox()
        self._front_bytes: Final = LRH_BYTES + (IPV6_HEADER_BYTES if wire.has_grh else 0)
        self._sent: dict[tuple[bytes, int, int], bytes] = {}
        self._seen: dict[bytes, tuple[bytes, int, int] | None] = {}

    def fileno(self) -> int:
        """Descriptor that is readable while packets wait."""
        return self._mailbox.fileno()

    def listen(self, service_port: int, space: PortSpace = PortSpace.TCP) -> None:
        """Receive requests for a service: they come here anyway."""

    def join(self, group: bytes) -> None:
        """Refuse: this wire has no multicast."""
        raise UsageError(f"multicast: found group {group.hex(':')} on native InfiniBand, wanted the wire rocev2")

    def leave(self, group: bytes) -> None:
        """Receive no more datagrams of a multicast address."""

    def resolve(self, address: bytes, service_port: int, space: PortSpace = PortSpace.TCP) -> bytes:
        """Return the address itself."""
        del service_port, space
        return address

    def path_mtu(self, destination: bytes) -> int:
        """Return the largest path MTU; UsageError for a GID that the subnet does not have."""
        self._wire.lid_of(destination)
        return max(PATH_MTUS_BYTES)

    def send(self, datagram: Datagram) -> None:
        """Send a packet to the switch."""
        payload_bytes = sum(map(len, datagram.parts))
        key = (datagram.destination, datagram.dscp, payload_bytes)
        front = self._sent.get(key)
        if front is None:
            if len(self._sent) >= _MOST_FRONTS:
                self._sent.clear()
            made = self.encapsulation.front(datagram, payload_bytes)
            front = self._sent[key] = bytes([self._wire.port_lanes[datagram.dscp] << 4 | made[0]]) + made[1:]
        self._wire.carry(append_vcrc(b"".join((front, *datagram.parts))))

    def take(self, packet: bytes) -> None:
        """Append a packet of the switch to the waiting packets."""
        if not self._mailbox.put(packet):
            self.counters["receive_dropped"] += 1

    def receive(self) -> Datagram | None:
        """Take a packet; those that changed on the link, or are not from this subnet, are counted and dropped."""
        while (packet := self._mailbox.take()) is not None:
            try:
                check_vcrc(packet)
            except MalformedPacket:
                self.counters["vcrc"] += 1
                continue
            view = memoryview(packet)
            front, payload = packet[: self._front_bytes], view[self._front_bytes : -VCRC_BYTES]
            if front not in self._seen:
                if len(self._seen) >= _MOST_FRONTS:
                    self._seen.clear()
                self._seen[front] = self._read_front(front, len(payload))
            found = self._seen[front]
            if found is None or found[2] != len(payload):
                self.counters["malformed"] += 1
                continue
            ecn = ECN_CE if payload[4] & _FECN else ECN_ECT0
            return Datagram(found[0], self.address, 0, (payload,), ecn, found[1])
        return None

    def _read_front(self, front: bytes, payload_bytes: int) -> tuple[bytes, int, int] | None:
        """Sender, service level and bytes behind the headers; None for headers that no port of this subnet makes.

        All bits but the virtual lane have to be those of the path, since the NIC computes the ICRC from the path, and
        in front of a GRH the ICRC covers none of the LRH.
        """
        if payload_bytes < SMALLEST_BYTES:
            return None
        lrh, _ = Lrh.decode(front)
        source = self._wire.gid_at(lrh.source_lid)
        if source is None or lrh.destination_lid != self.lid:
            return None
        sample = Datagram(source, self.address, 0, (), dscp=lrh.service_level)
        wanted = self.encapsulation.front(sample, payload_bytes)
        is_path = (front[0] & _NO_LANE, front[1:LRH_BYTES]) == (wanted[0] & _NO_LANE, wanted[1:LRH_BYTES])
        covers_same = is_path and self.encapsulation.state(front) == self.encapsulation.state(wanted)
        return (source, lrh.service_level, payload_bytes) if covers_same else None

    def close(self) -> None:
        """Take the port off the switch."""
        self._wire.remove(self)
        self._mailbox.close()
