"""Link types and encapsulations: the one table of the headers that may stand in front of an RDMA packet.

A new member is one row of ``LAYERS``; its reader returns what follows. A row without reader is known by name, so that
its frames can be named when they are passed over.
Source: each row names its own. Link types are those of draft-ietf-opsawg-pcaplinktype and tcpdump.org/linktypes.html.
Leaves out: what is encrypted (MACsec, ESP), PPP, and fragments, which are not put together.
"""

from __future__ import annotations

from typing import Final

from weftwork.wire.ethernet import (
    ETHERTYPE_IPV4,
    ETHERTYPE_IPV6,
    ETHERTYPE_MAC_CONTROL,
    ETHERTYPE_VLAN,
    VLAN_TAG_BYTES,
    EthernetHeader,
)
from weftwork.wire.infiniband import ETHERTYPE_ROCE_V1
from weftwork.wire.ip import IPV4_HEADER_BYTES, IPV6_HEADER_BYTES, PROTOCOL_UDP, Ipv4Header, decode_ip
from weftwork.wire.layers import Carrier, Layer, NextHeader, PassedOver, Selector, Span
from weftwork.wire.pcap import (
    LINK_ERF,
    LINK_ETHERNET,
    LINK_INFINIBAND,
    LINK_LINUX_COOKED,
    LINK_LINUX_COOKED_2,
    LINK_RAW_IP,
)
from weftwork.wire.udp import ROCE_V2_PORT, UDP_HEADER_BYTES, UdpHeader

__all__ = ["EXTENSION_HEADERS", "LAYERS", "layer_name", "layer_of", "link_name"]

_ETHERTYPE_BRIDGED: Final = 0x6558  # RFC 1701: transparent Ethernet bridging
_ETHERTYPE_LENGTH_END: Final = 0x0600  # IEEE 802.3, 3.2.6: smaller values are lengths
EXTENSION_HEADERS: Final = {0: "hop-by-hop options", 43: "routing header", 60: "destination options"}  # RFC 8200, 4.1
_ERSPAN_2_BYTES, _ERSPAN_3_BYTES, _ERSPAN_3_MORE_BYTES = 8, 12, 8  # draft-foschiano-erspan-03, 4.2 and 4.3
_ETHERTYPE_ERSPAN_2: Final = 0x88BE  # draft-foschiano-erspan-03, 4.2
_ERF_ETHERNET: Final = frozenset({2, 11, 16, 20})  # Endace ERF types whose frames have two bytes in front
_GPE_NEXT: Final = {1: ETHERTYPE_IPV4, 2: ETHERTYPE_IPV6, 3: _ETHERTYPE_BRIDGED}  # draft-ietf-nvo3-vxlan-gpe-13, 3.1


def layer_of(selector: Selector, number: int) -> Layer | None:
    """The row of a header, or None for a number that the table does not have."""
    return _BY_NUMBER.get((selector, number))


def layer_name(selector: Selector, number: int) -> str:
    """Name of a header, with its number where the table does not have it."""
    row = layer_of(selector, number)
    if row is not None:
        return row.name
    if selector is Selector.ETHERTYPE and number < _ETHERTYPE_LENGTH_END:
        return "Ethernet with a length (LLC: spanning tree and others)"
    return selector.value.format(number)


def link_name(link_type: int) -> str:
    """Name and number of a link type."""
    row = layer_of(Selector.LINK_TYPE, link_type)
    return f"link type {link_type}" if row is None else f"{row.name} (link type {link_type})"


# Readers: link types


def _ethernet(span: Span) -> NextHeader:
    front, rest = span.front(14, "Ethernet")
    if int.from_bytes(front[12:14], "big") == ETHERTYPE_VLAN:
        front, rest = span.front(14 + VLAN_TAG_BYTES, "Ethernet")
    header, _ = EthernetHeader.decode(front)
    return NextHeader(Selector.ETHERTYPE, header.ethertype, rest, header)


def _cooked(span: Span) -> NextHeader:
    header, rest = span.front(16, "Linux cooked")
    return NextHeader(Selector.ETHERTYPE, int.from_bytes(header[14:16], "big"), rest)


def _cooked_2(span: Span) -> NextHeader:
    header, rest = span.front(20, "Linux cooked")
    return NextHeader(Selector.ETHERTYPE, int.from_bytes(header[:2], "big"), rest)


def _loopback_of_host(span: Span) -> NextHeader:
    header, rest = span.front(4, "loopback")
    # in the byte order of the host that captured, which the file does not say; families are small numbers
    number = min(int.from_bytes(header, "little"), int.from_bytes(header, "big"))
    return NextHeader(Selector.ADDRESS_FAMILY, number, rest)


def _loopback(span: Span) -> NextHeader:
    header, rest = span.front(4, "loopback")
    return NextHeader(Selector.ADDRESS_FAMILY, int.from_bytes(header, "big"), rest)


def _ip_over_infiniband(span: Span) -> NextHeader:
    header, rest = span.front(44, "IPoIB")
    return NextHeader(Selector.ETHERTYPE, int.from_bytes(header[40:42], "big"), rest)


def _erf(span: Span) -> NextHeader:
    header, rest = span.front(16, "ERF")
    kind, record_bytes, link_bytes = (
        header[8],
        int.from_bytes(header[10:12], "big"),
        int.from_bytes(header[14:16], "big"),
    )
    more, headers_bytes = kind >> 7, 16
    while more:
        extension, rest = rest.front(8, "ERF extension header")
        more = extension[0] >> 7
        headers_bytes += 8
    kind &= 0x7F
    pad_bytes = 2 if kind in _ERF_ETHERNET else 0
    _, rest = rest.front(pad_bytes, "ERF Ethernet header")
    # a record holds fewer bytes than the link had where the card cut it, and padding behind them otherwise
    kept_bytes = record_bytes - headers_bytes - pad_bytes
    if record_bytes and link_bytes:
        rest = Span(rest.data[: max(min(kept_bytes, link_bytes), 0)], link_bytes)
    return NextHeader(Selector.ERF_TYPE, kind, rest)


# Readers: below IP


def _tag(span: Span) -> NextHeader:
    header, rest = span.front(VLAN_TAG_BYTES, "VLAN tag")
    return NextHeader(Selector.ETHERTYPE, int.from_bytes(header[2:4], "big"), rest)


def _labels(span: Span) -> NextHeader:
    is_last = False
    while not is_last:
        label, span = span.front(4, "MPLS")
        is_last = bool(label[2] & 1)
    first, _ = span.front(1, "MPLS payload")
    ethertype = {4: ETHERTYPE_IPV4, 6: ETHERTYPE_IPV6}.get(first[0] >> 4)
    if ethertype is None:  # RFC 4928: the first nibble tells IP from a pseudowire, and nothing tells pseudowires apart
        raise PassedOver("MPLS labels with no IP packet behind them (a pseudowire?)", f"first byte {first[0]:#04x}")
    return NextHeader(Selector.ETHERTYPE, ethertype, span)


def _erspan_2(span: Span) -> NextHeader:
    _, rest = span.front(_ERSPAN_2_BYTES, "ERSPAN")
    return _ethernet(rest)


def _erspan_3(span: Span) -> NextHeader:
    header, rest = span.front(_ERSPAN_3_BYTES, "ERSPAN")
    if (frame_type := header[10] >> 2 & 0x1F) != 0:
        raise PassedOver("ERSPAN of other frames than Ethernet's", f"frame type {frame_type}")
    if header[11] & 1:
        _, rest = rest.front(_ERSPAN_3_MORE_BYTES, "ERSPAN subheader")
    return _ethernet(rest)


# Readers: IP and what it carries


def _ip(span: Span) -> NextHeader:
    first, _ = span.front(1, "IP")
    is_ipv6 = first[0] >> 4 == 6
    front, _ = span.front(IPV6_HEADER_BYTES if is_ipv6 else IPV4_HEADER_BYTES, "IPv6" if is_ipv6 else "IPv4")
    if is_ipv6:
        packet_bytes = IPV6_HEADER_BYTES + int.from_bytes(front[4:6], "big")
    else:
        span.front((front[0] & 0xF) * 4, "IPv4")
        packet_bytes = int.from_bytes(front[2:4], "big")
    # a switch that mirrors may cut packets itself: then the packet is longer than its frame ever was in the capture
    header, payload = decode_ip(span.padded(packet_bytes))
    rest = Span(span.data[header.size_bytes :][: len(payload)], len(payload))
    if isinstance(header, Ipv4Header):
        if header.is_fragment:
            raise PassedOver("fragments of IPv4, which are not put together")
        return NextHeader(Selector.IP_PROTOCOL, header.protocol, rest, header)
    return NextHeader(Selector.IP_PROTOCOL, header.next_header, rest, header)


def _extension(span: Span) -> NextHeader:
    front, _ = span.front(8, "IPv6 extension header")
    _, rest = span.front(8 + front[1] * 8, "IPv6 extension header")  # RFC 8200, 4.3: in units of 8 bytes, the first not
    return NextHeader(Selector.IP_PROTOCOL, front[0], rest)


def _fragment(span: Span) -> NextHeader:
    header, rest = span.front(8, "IPv6 fragment header")
    if int.from_bytes(header[2:4], "big") & 0xFFF9:  # offset or more fragments; neither: RFC 6946
        raise PassedOver("fragments of IPv6, which are not put together")
    return NextHeader(Selector.IP_PROTOCOL, header[0], rest)


def _udp(span: Span) -> NextHeader:
    span.front(UDP_HEADER_BYTES, "UDP")
    header, payload = UdpHeader.decode(span.padded(span.whole_bytes))
    rest = Span(span.data[UDP_HEADER_BYTES:][: len(payload)], len(payload))
    return NextHeader(Selector.UDP_PORT, header.destination_port, rest, header)


def _gre(span: Span) -> NextHeader:
    header, rest = span.front(4, "GRE")
    flags, protocol = int.from_bytes(header[:2], "big"), int.from_bytes(header[2:4], "big")
    if version := flags & 0b111:
        raise PassedOver("GRE of another version than 0 (PPTP)", f"version {version}")
    if flags & 0x4000:  # RFC 1701: a list of routes, which RFC 2784 took away
        raise PassedOver("GRE with source routes")
    has_sequence = bool(flags & 0x1000)
    words = bool(flags & 0x8000) + bool(flags & 0x2000) + has_sequence  # checksum, key, sequence number
    _, rest = rest.front(4 * words, "GRE")
    if protocol == _ETHERTYPE_ERSPAN_2 and not has_sequence:  # the first version has no header of its own
        return NextHeader(Selector.ETHERTYPE, _ETHERTYPE_BRIDGED, rest)
    return NextHeader(Selector.ETHERTYPE, protocol, rest)


def _vxlan(span: Span) -> NextHeader:
    header, rest = span.front(8, "VXLAN")
    if not header[0] & 0x08:
        raise PassedOver("VXLAN without a valid network identifier", f"flags {header[0]:#04x}")
    return NextHeader(Selector.ETHERTYPE, _ETHERTYPE_BRIDGED, rest)


def _vxlan_gpe(span: Span) -> NextHeader:
    header, rest = span.front(8, "VXLAN-GPE")
    ethertype = _GPE_NEXT.get(header[3])
    if ethertype is None:
        raise PassedOver("VXLAN-GPE with neither IP nor Ethernet behind it", f"next protocol {header[3]}")
    return NextHeader(Selector.ETHERTYPE, ethertype, rest)


def _geneve(span: Span) -> NextHeader:
    front, _ = span.front(8, "Geneve")
    if version := front[0] >> 6:
        raise PassedOver("Geneve of another version than 0", f"version {version}")
    _, rest = span.front(8 + (front[0] & 0x3F) * 4, "Geneve")
    return NextHeader(Selector.ETHERTYPE, int.from_bytes(front[2:4], "big"), rest)


_LINK, _TYPE, _PROTOCOL, _PORT = Selector.LINK_TYPE, Selector.ETHERTYPE, Selector.IP_PROTOCOL, Selector.UDP_PORT
_ERF_TYPE, _FAMILY = Selector.ERF_TYPE, Selector.ADDRESS_FAMILY
_TCPDUMP: Final = "tcpdump.org/linktypes.html"
_ENDACE: Final = "Endace ERF types: wiretap/erf_record.h of Wireshark, ibdump.h of ibdump"
_IEEE: Final = "IEEE 802 EtherType registry"
_IANA: Final = "IANA protocol numbers"

LAYERS: Final[tuple[Layer, ...]] = (
    # link types that are read
    Layer(_LINK, LINK_ETHERNET, "Ethernet", _TCPDUMP, _ethernet),
    Layer(_LINK, LINK_LINUX_COOKED, "Linux cooked", _TCPDUMP, _cooked),
    Layer(_LINK, LINK_LINUX_COOKED_2, "Linux cooked 2", _TCPDUMP, _cooked_2),
    Layer(_LINK, LINK_ERF, "ERF", _TCPDUMP, _erf),
    Layer(_LINK, LINK_INFINIBAND, "InfiniBand", _TCPDUMP, carrier=Carrier.INFINIBAND),
    Layer(_LINK, 0, "BSD loopback", _TCPDUMP, _loopback_of_host),
    Layer(_LINK, 108, "OpenBSD loopback", _TCPDUMP, _loopback),
    Layer(_LINK, LINK_RAW_IP, "raw IP", _TCPDUMP, _ip),
    Layer(_LINK, 12, "raw IP", "DLT_RAW of most systems: pcap/dlt.h of libpcap", _ip),
    Layer(_LINK, 14, "raw IP", "DLT_RAW of OpenBSD: pcap/dlt.h of libpcap", _ip),
    Layer(_LINK, 228, "raw IPv4", _TCPDUMP, _ip),
    Layer(_LINK, 229, "raw IPv6", _TCPDUMP, _ip),
    Layer(_LINK, 242, "IP over InfiniBand", "RFC 4391, section 6, behind 40 bytes of addresses", _ip_over_infiniband),
    # link types that are known by name
    Layer(_LINK, 6, "token ring", _TCPDUMP),
    Layer(_LINK, 9, "PPP", _TCPDUMP),
    Layer(_LINK, 50, "PPP in HDLC", _TCPDUMP),
    Layer(_LINK, 51, "PPPoE", _TCPDUMP),
    Layer(_LINK, 104, "Cisco HDLC", _TCPDUMP),
    Layer(_LINK, 105, "IEEE 802.11", _TCPDUMP),
    Layer(_LINK, 107, "frame relay", _TCPDUMP),
    Layer(_LINK, 117, "OpenBSD pflog", _TCPDUMP),
    Layer(_LINK, 122, "IP over Fibre Channel", _TCPDUMP),
    Layer(_LINK, 127, "IEEE 802.11 with radiotap", _TCPDUMP),
    *(Layer(_LINK, 147 + n, f"USER{n}, whose meaning only its writer knows", _TCPDUMP) for n in range(16)),
    Layer(_LINK, 189, "USB", _TCPDUMP),
    Layer(_LINK, 192, "PPI", _TCPDUMP),
    Layer(_LINK, 220, "USB of Linux", _TCPDUMP),
    Layer(_LINK, 224, "Fibre Channel", _TCPDUMP),
    Layer(_LINK, 227, "SocketCAN", _TCPDUMP),
    Layer(_LINK, 239, "NFLOG of Linux", _TCPDUMP),
    Layer(_LINK, 249, "USBPcap", _TCPDUMP),
    Layer(_LINK, 252, "upper PDUs of Wireshark", _TCPDUMP),
    Layer(_LINK, 253, "netlink of Linux", _TCPDUMP),
    Layer(_LINK, 258, "PKTAP of macOS", _TCPDUMP),
    # ERF: what a record holds
    *(Layer(_ERF_TYPE, kind, "Ethernet", _ENDACE, _ethernet) for kind in sorted(_ERF_ETHERNET)),
    Layer(_ERF_TYPE, 21, "InfiniBand", _ENDACE, carrier=Carrier.INFINIBAND),
    Layer(_ERF_TYPE, 22, "IPv4", _ENDACE, _ip),
    Layer(_ERF_TYPE, 23, "IPv6", _ENDACE, _ip),
    Layer(_ERF_TYPE, 0, "ERF type 0 (legacy), which does not say what it holds", _ENDACE),
    Layer(_ERF_TYPE, 25, "InfiniBand link packets (credits)", _ENDACE),
    Layer(_ERF_TYPE, 27, "ERF metadata", _ENDACE),
    Layer(_ERF_TYPE, 28, "Omni-Path", _ENDACE),
    Layer(_ERF_TYPE, 29, "Omni-Path", _ENDACE),
    Layer(_ERF_TYPE, 48, "ERF padding", _ENDACE),
    # loopback: address families
    Layer(_FAMILY, 2, "IPv4", _TCPDUMP, _ip),
    *(Layer(_FAMILY, family, "IPv6", _TCPDUMP, _ip) for family in (24, 28, 30)),
    # EtherTypes that are read
    Layer(_TYPE, ETHERTYPE_IPV4, "IPv4", "RFC 894", _ip),
    Layer(_TYPE, ETHERTYPE_IPV6, "IPv6", "RFC 2464, section 3", _ip),
    Layer(_TYPE, ETHERTYPE_ROCE_V1, "RoCEv1", "IBTA vol. 1, annex A16", carrier=Carrier.ROCE_V1),
    Layer(_TYPE, ETHERTYPE_MAC_CONTROL, "PFC", "IEEE 802.3, 31.4.1.3", carrier=Carrier.PFC),
    Layer(_TYPE, ETHERTYPE_VLAN, "VLAN", "IEEE 802.1Q, table 9-1: a tag behind another", _tag),
    Layer(_TYPE, 0x88A8, "VLAN", "IEEE 802.1Q, table 9-1: service tag", _tag),
    Layer(_TYPE, 0x9100, "VLAN", "if_ether.h of Linux: ETH_P_QINQ1, service tag before the standard", _tag),
    Layer(_TYPE, 0x9200, "VLAN", "if_ether.h of Linux: ETH_P_QINQ2, service tag before the standard", _tag),
    Layer(_TYPE, 0x9300, "VLAN", "if_ether.h of Linux: ETH_P_QINQ3, service tag before the standard", _tag),
    Layer(_TYPE, 0x8847, "MPLS", "RFC 3032, 5; RFC 5332", _labels, is_tunnel=True),
    Layer(_TYPE, 0x8848, "MPLS", "RFC 5332", _labels, is_tunnel=True),
    Layer(_TYPE, _ETHERTYPE_BRIDGED, "Ethernet", "RFC 1701; NVGRE: RFC 7637, 3.2", _ethernet),
    Layer(_TYPE, _ETHERTYPE_ERSPAN_2, "ERSPAN", "draft-foschiano-erspan-03, 4.2", _erspan_2, is_tunnel=True),
    Layer(_TYPE, 0x22EB, "ERSPAN", "draft-foschiano-erspan-03, 4.3", _erspan_3, is_tunnel=True),
    # EtherTypes that are known by name
    Layer(_TYPE, 0x0806, "ARP", "RFC 826"),
    Layer(_TYPE, 0x1123, "mirrored InfiniBand (ibdump --decap reads it)", "PM_ENCAP_ETHERTYPE in ibdump.h of ibdump"),
    Layer(_TYPE, 0x22F3, "TRILL", "RFC 6325"),
    Layer(_TYPE, 0x8809, "slow protocols (LACP)", _IEEE),
    Layer(_TYPE, 0x8863, "PPPoE", "RFC 2516"),
    Layer(_TYPE, 0x8864, "PPPoE", "RFC 2516"),
    Layer(_TYPE, 0x888E, "IEEE 802.1X", _IEEE),
    Layer(_TYPE, 0x88CC, "LLDP", "IEEE 802.1AB"),
    Layer(_TYPE, 0x88E5, "MACsec (encrypted)", "IEEE 802.1AE"),
    Layer(_TYPE, 0x88E7, "IEEE 802.1ah", _IEEE),
    Layer(_TYPE, 0x88F7, "PTP", "IEEE 1588"),
    Layer(_TYPE, 0x8902, "connectivity fault management", _IEEE),
    Layer(_TYPE, 0x8906, "FCoE", _IEEE),
    Layer(_TYPE, 0x8914, "FIP", _IEEE),
    Layer(_TYPE, 0x893F, "IEEE 802.1BR", _IEEE),
    Layer(_TYPE, 0x894F, "NSH", "RFC 8300"),
    Layer(_TYPE, 0x9000, "Ethernet loopback test", _IEEE),
    # IP protocols that are read
    Layer(_PROTOCOL, PROTOCOL_UDP, "UDP", "RFC 768", _udp),
    Layer(_PROTOCOL, 4, "IPv4", "RFC 2003", _ip, is_tunnel=True),
    Layer(_PROTOCOL, 41, "IPv6", "RFC 4213; RFC 2473", _ip, is_tunnel=True),
    Layer(_PROTOCOL, 47, "GRE", "RFC 2784, RFC 2890", _gre, is_tunnel=True),
    Layer(_PROTOCOL, 137, "MPLS", "RFC 4023", _labels, is_tunnel=True),
    Layer(_PROTOCOL, 44, "fragment header", "RFC 8200, 4.5", _fragment),
    *(Layer(_PROTOCOL, number, name, "RFC 8200, 4", _extension) for number, name in EXTENSION_HEADERS.items()),
    # IP protocols that are known by name
    Layer(_PROTOCOL, 1, "ICMP", "RFC 792"),
    Layer(_PROTOCOL, 2, "IGMP", "RFC 3376"),
    Layer(_PROTOCOL, 6, "TCP (iWARP on it included)", "RFC 9293"),
    Layer(_PROTOCOL, 50, "ESP (encrypted)", "RFC 4303"),
    Layer(_PROTOCOL, 51, "IPsec authentication header", "RFC 4302"),
    Layer(_PROTOCOL, 58, "ICMPv6", "RFC 4443"),
    Layer(_PROTOCOL, 89, "OSPF", "RFC 2328"),
    Layer(_PROTOCOL, 103, "PIM", "RFC 7761"),
    Layer(_PROTOCOL, 112, "VRRP", "RFC 9568"),
    Layer(_PROTOCOL, 115, "L2TP", "RFC 3931"),
    Layer(_PROTOCOL, 132, "SCTP", "RFC 9260"),
    # UDP ports
    Layer(_PORT, ROCE_V2_PORT, "RoCEv2", "IBTA vol. 1, annex A17", carrier=Carrier.ROCE_V2),
    Layer(_PORT, 4789, "VXLAN", "RFC 7348, section 5", _vxlan, is_tunnel=True),
    Layer(_PORT, 8472, "VXLAN", "drivers/net/vxlan of Linux: the port before RFC 7348", _vxlan, is_tunnel=True),
    Layer(_PORT, 4790, "VXLAN-GPE", "draft-ietf-nvo3-vxlan-gpe-13, 3.1", _vxlan_gpe, is_tunnel=True),
    Layer(_PORT, 6081, "Geneve", "RFC 8926, 3.3 and 3.4", _geneve, is_tunnel=True),
    Layer(_PORT, 6635, "MPLS", "RFC 7510", _labels, is_tunnel=True),
)
_BY_NUMBER: Final = {(row.selector, row.number): row for row in LAYERS}
