"""tshark reads what our codecs write, and finds nothing malformed in it."""

from __future__ import annotations

import shutil
import struct
import subprocess
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

import pytest

from weftwork.wire.ethernet import ETHERTYPE_IPV4, ETHERTYPE_IPV6, EthernetFrame, EthernetHeader
from weftwork.wire.extended import Aeth, AethKind, Nak
from weftwork.wire.ib import CNP_BODY, Bth, cnp_bth
from weftwork.wire.ip import ECN_CE
from weftwork.wire.opcodes import Opcode
from weftwork.wire.pfc import PriorityPause
from weftwork.wire.rocev2 import rocev2_packet

TSHARK = shutil.which("tshark")
pytestmark = pytest.mark.skipif(TSHARK is None, reason="tshark, the oracle, is not installed (Debian package 'tshark')")

SOURCE_MAC, DESTINATION_MAC = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")
ADDRESSES: dict[int, tuple[IPv4Address | IPv6Address, IPv4Address | IPv6Address]] = {
    ETHERTYPE_IPV4: (IPv4Address("10.0.0.1"), IPv4Address("10.0.0.2")),
    ETHERTYPE_IPV6: (IPv6Address("fd00::1"), IPv6Address("fd00::2")),
}


def roce_frame(bth: Bth, body: bytes, ethertype: int = ETHERTYPE_IPV4) -> EthernetFrame:
    source, destination = ADDRESSES[ethertype]
    packet = rocev2_packet(
        source=source, destination=destination, source_port=0xC123, bth=bth, body=body, dscp=26, ecn=ECN_CE
    )
    header = EthernetHeader(destination=DESTINATION_MAC, source=SOURCE_MAC, ethertype=ethertype)
    return EthernetFrame(header=header, payload=packet.encode())


def tshark_fields(folder: Path, frames: list[EthernetFrame], fields: list[str]) -> list[list[str]]:
    """Write the frames as a capture (pcap 2.4, Ethernet, with check sequences) and return the fields of each."""
    capture = folder / "frames.pcap"
    with capture.open("wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for frame in frames:
            encoded = frame.encode()
            out.write(struct.pack("<IIII", 0, 0, len(encoded), len(encoded)) + encoded)
    options = ["-n", "-o", "eth.fcs:Always", "-o", "eth.check_fcs:TRUE", "-o", "ip.check_checksum:TRUE"]
    options += ["-d", "udp.port==4791,infiniband", "-T", "fields", "-E", "separator=|"]
    for field in fields:
        options += ["-e", field]
    answer = subprocess.run(
        [str(TSHARK), "-r", str(capture), *options], capture_output=True, text=True, check=True, timeout=60
    )
    return [line.split("|") for line in answer.stdout.splitlines()]


def test_tshark_reads_roce_as_it_was_meant(tmp_path: Path) -> None:
    nak = Aeth(kind=AethKind.NAK, value=Nak.PSN_SEQUENCE_ERROR, msn=0x1234)
    frames = [
        roce_frame(Bth(opcode=Opcode.SEND_ONLY, destination_qp=0xABCDEF, psn=0xFFFFFE, ack_request=True), bytes(64)),
        roce_frame(Bth(opcode=Opcode.ACKNOWLEDGE, destination_qp=0x11, psn=7), nak.encode()),
        roce_frame(Bth(opcode=Opcode.ACKNOWLEDGE, destination_qp=0x11, psn=7), nak.encode(), ETHERTYPE_IPV6),
        roce_frame(cnp_bth(0xD2), CNP_BODY),
    ]
    fields = ["eth.fcs.status", "ip.checksum.status", "udp.length", "infiniband.bth.opcode", "infiniband.bth.destqp"]
    fields += [
        "infiniband.bth.psn",
        "infiniband.bth.a",
        "infiniband.aeth.syndrome",
        "infiniband.aeth.msn",
        "_ws.malformed",
    ]
    rows = tshark_fields(tmp_path, frames, fields)
    assert [row[0] for row in rows] == ["1"] * 4  # 1 is tshark's "good"
    assert [row[1] for row in rows] == ["1", "1", "", "1"]
    assert [row[2] for row in rows] == ["88", "28", "28", "40"]
    assert [int(row[3]) for row in rows] == [Opcode.SEND_ONLY, Opcode.ACKNOWLEDGE, Opcode.ACKNOWLEDGE, Opcode.CNP]
    assert [int(row[4], 16) for row in rows] == [0xABCDEF, 0x11, 0x11, 0xD2]
    assert [int(row[5]) for row in rows] == [0xFFFFFE, 7, 7, 0]
    assert [row[6] for row in rows] == ["1", "0", "0", "0"]
    assert [(row[7], row[8]) for row in rows[1:3]] == [("96", "4660")] * 2
    assert [row[9] for row in rows] == [""] * 4


def test_tshark_reads_priority_pauses_as_they_were_meant(tmp_path: Path) -> None:
    pause = PriorityPause(class_enable_vector=1 << 3, quanta=(0, 0, 0, 0xFFFF, 0, 0, 0, 1))
    fields = ["eth.fcs.status", "macc.opcode", "macc.cbfc.enbv", "macc.cbfc.pause_time.c3", "macc.cbfc.pause_time.c7"]
    rows = tshark_fields(tmp_path, [pause.frame(SOURCE_MAC)], [*fields, "_ws.malformed"])
    assert rows == [["1", "0x0101", "0x0008", "65535", "1", ""]]
