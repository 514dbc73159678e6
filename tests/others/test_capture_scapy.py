"""`weftwork rdma decode` explains packets that scapy has made and written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from weftwork.cli import main

pytest.importorskip("scapy", reason="scapy, the oracle, comes with the extra 'test'")

from scapy.contrib.roce import AETH, BTH, cnp, opcode
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet, Raw
from scapy.utils import wrpcap, wrpcapng


def transport(kind: str, psn: int) -> Packet:
    return BTH(opcode=opcode("RC", kind)[0], dqpn=0x12, psn=psn, pkey=0xFFFF)


def made() -> list[Packet]:
    """A SEND of three packets, its ACK, a NAK, and a CNP; over IPv4, IPv6 and a VLAN."""
    front = [
        Ether() / IP(src="10.0.0.1", dst="10.0.0.2", id=7),
        Ether() / Dot1Q(vlan=5) / IPv6(src="fd::1", dst="fd::2"),
    ]
    found = []
    for ip in front:
        udp = ip / UDP(sport=0xC000, dport=4791)
        found += [
            udp / transport("SEND_FIRST", 5) / Raw(b"a" * 256),
            udp / transport("SEND_MIDDLE", 6) / Raw(b"b" * 256),
        ]
        found += [udp / transport("SEND_LAST", 7) / Raw(b"c" * 8)]
        found += [udp / transport("ACKNOWLEDGE", 7) / AETH(syndrome=31, msn=1)]
        found += [udp / transport("ACKNOWLEDGE", 8) / AETH(syndrome=0x62, msn=1)]
        found += [udp / cnp(dqpn=0x11)]
    return found


@pytest.mark.parametrize("write", [wrpcap, wrpcapng], ids=["pcap", "pcapng"])
def test_packets_of_scapy_are_explained(
    write: Callable[[str, list[Packet]], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "scapy.cap"
    write(str(file), made())
    with pytest.raises(SystemExit):
        main(["rdma", "decode", str(file), "--json"])
    rows = json.loads(capsys.readouterr().out)["table"]
    names = ["RC SEND first", "RC SEND middle", "RC SEND last", "RC ACK", "RC NAK", "CNP"]
    assert [row["name"] for row in rows] == names * 2
    notes = [" ".join(row["notes"]) for row in rows]
    assert "remote access error" in notes[4]
    assert not any("ICRC" in note for note in notes), notes
    assert [row["destination_qp"] for row in rows[:6]] == [0x12] * 5 + [0x11]


def test_a_packet_that_was_changed_after_scapy_made_it_is_noticed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = bytearray(made()[0].build())
    whole[-9] ^= 1
    file = tmp_path / "changed.pcap"
    wrpcap(str(file), [Ether(bytes(whole))])
    with pytest.raises(SystemExit):
        main(["rdma", "decode", str(file), "--json"])
    (row,) = json.loads(capsys.readouterr().out)["table"]
    assert any("ICRC" in note for note in row["notes"])
