"""The encapsulations of the NIC, each with addresses, and the packets of each as a capture has them."""

from __future__ import annotations

from typing import Final

from weftwork.base.errors import UsageError
from weftwork.rdma.datagram import Datagram
from weftwork.rdma.encapsulation import ROCE_V1, ROCE_V2, Encapsulation, InfinibandEncapsulation
from weftwork.wire.ethernet import ETHERTYPE_IPV4, ETHERTYPE_IPV6, EthernetHeader
from weftwork.wire.infiniband import ETHERTYPE_ROCE_V1
from weftwork.wire.pcap import LINK_ETHERNET, LINK_INFINIBAND, CapturedPacket
from weftwork.wire.vcrc import append_vcrc

_PREFIX: Final = b"\xfe\x80" + bytes(13)


class TwoLids:
    """A subnet of fe80::1 and fe80::2, with LIDs 0x101 and 0x102."""

    def lid_of(self, gid: bytes) -> int:
        if gid[:-1] != _PREFIX or gid[-1] not in {1, 2}:
            raise UsageError(f"address: found {gid.hex()}, wanted fe80::1 or fe80::2")
        return 0x100 | gid[-1]


INFINIBAND = InfinibandEncapsulation(TwoLids())
INFINIBAND_GLOBAL = InfinibandEncapsulation(TwoLids(), has_grh=True)
ENCAPSULATIONS: dict[str, Encapsulation] = {
    "rocev2": ROCE_V2,
    "rocev1": ROCE_V1,
    "infiniband": INFINIBAND,
    "infiniband-grh": INFINIBAND_GLOBAL,
}


def two_addresses(encapsulation: Encapsulation, *, ipv6: bool = False) -> tuple[bytes, bytes]:
    """Addresses of two NICs that packets of an encapsulation can have."""
    front = bytes((10, 0, 0))
    if isinstance(encapsulation, InfinibandEncapsulation):
        front = _PREFIX
    elif ipv6:
        front = b"\xfd" + bytes(14)
    return front + b"\1", front + b"\2"


def captured_packet(datagram: Datagram, encapsulation: Encapsulation = ROCE_V2, time_ns: int = 0) -> CapturedPacket:
    """A datagram of the NIC with the headers that a driver puts in front."""
    payload = bytes(datagram.payload())
    packet = encapsulation.front(datagram, len(payload)) + payload
    if isinstance(encapsulation, InfinibandEncapsulation):
        data, link_type = append_vcrc(packet), LINK_INFINIBAND
    else:
        ethertype = ETHERTYPE_IPV4 if len(datagram.source) == 4 else ETHERTYPE_IPV6
        macs = [b"\x02\0\0\0\0" + address[-1:] for address in (datagram.destination, datagram.source)]
        header = EthernetHeader(
            destination=macs[0],
            source=macs[1],
            ethertype=ETHERTYPE_ROCE_V1 if encapsulation is ROCE_V1 else ethertype,
        )
        data, link_type = header.encode() + packet, LINK_ETHERNET
    return CapturedPacket(time_ns, data, len(data), link_type=link_type, interface="nic")
