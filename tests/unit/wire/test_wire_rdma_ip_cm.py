"""The private header of the RDMA IP CM service, byte by byte, and the ports in service IDs."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weftwork.base.errors import UsageError
from weftwork.wire.fields import MalformedPacket
from weftwork.wire.rdma_ip_cm import IpCmHeader, gid_of, port_of_service, service_of_port

FOUR = IPv4Address("10.0.0.1"), IPv4Address("10.0.0.2")


SIX = IPv6Address("fd00::1"), IPv6Address("fd00::2")


def test_the_bytes_are_those_of_struct_cma_hdr() -> None:
    header = IpCmHeader(source_port=0xC123, source=FOUR[0], destination=FOUR[1])
    assert header.encode() == bytes.fromhex("0040c123" + "00" * 12 + "0a000001" + "00" * 12 + "0a000002")
    six = IpCmHeader(source_port=1, source=SIX[0], destination=SIX[1], version=2)
    assert six.encode() == bytes.fromhex("02600001") + SIX[0].packed + SIX[1].packed


@given(
    port=st.integers(0, 0xFFFF),
    ends=st.tuples(st.ip_addresses(v=4), st.ip_addresses(v=4)) | st.tuples(st.ip_addresses(v=6), st.ip_addresses(v=6)),
    version=st.integers(0, 255),
    user=st.binary(max_size=56),
)
def test_a_header_is_read_as_it_was_written(
    port: int, ends: tuple[IPv4Address | IPv6Address, IPv4Address | IPv6Address], version: int, user: bytes
) -> None:
    header = IpCmHeader(source_port=port, source=ends[0], destination=ends[1], version=version)
    assert IpCmHeader.decode(header.encode() + user) == (header, user)


@given(data=st.binary(max_size=100))
def test_any_bytes_are_a_header_or_the_documented_error(data: bytes) -> None:
    if len(data) < 36 or data[1] >> 4 not in {4, 6}:
        with pytest.raises(MalformedPacket):
            IpCmHeader.decode(data)
    else:
        header, behind = IpCmHeader.decode(data)
        assert (header.source.version, header.source_port) == (data[1] >> 4, int.from_bytes(data[2:4]))
        assert behind == data[36:]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(UsageError, match="source_port"):
        IpCmHeader(source_port=1 << 16, source=FOUR[0], destination=FOUR[1]).encode()
    with pytest.raises(UsageError, match="wanted one IP version"):
        IpCmHeader(source_port=1, source=FOUR[0], destination=SIX[1]).encode()
    with pytest.raises(UsageError, match="port"):
        service_of_port(1 << 16)


@given(service=st.integers(0, (1 << 64) - 1), port=st.integers(0, 0xFFFF))
def test_a_service_names_a_port_in_tcps_port_space_alone(service: int, port: int) -> None:
    assert port_of_service(service_of_port(port)) == port
    assert service_of_port(port) == 0x0106_0000 + port
    assert port_of_service(service) == (service & 0xFFFF if service >> 16 == 0x0106 else None)


def test_a_gid_is_the_ip_address() -> None:
    assert IPv6Address(gid_of(FOUR[0].packed)).ipv4_mapped == FOUR[0]
    assert IPv6Address(gid_of(SIX[0].packed)) == SIX[0]
