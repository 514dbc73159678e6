"""tshark and `weftwork rdma decode` read every message that the connection manager writes, and find nothing wrong."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from helpers.cm_pair import PORT, CmPair

from weftwork.rdma.capture import CaptureExplainer
from weftwork.rdma.encapsulation import ROCE_V2
from weftwork.wire.cm import CM_MESSAGES
from weftwork.wire.ethernet import ETHERTYPE_IPV4, ETHERTYPE_IPV6, EthernetHeader
from weftwork.wire.pcap import CapturedPacket
from weftwork.wire.pcapng import encode_pcapng
from weftwork.wire.rdma_ip_cm import PortSpace

TSHARK = shutil.which("tshark")
MACS = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")
NAMES = ["REQ", "MRA", "REP", "RTU", "DREQ", "DREP", "REQ", "REJ", "SIDR_REQ", "SIDR_REP"]


def conversation(*, ipv6: bool) -> tuple[CmPair, list[CapturedPacket]]:
    """Every message once, as it is on Ethernet."""
    pair = CmPair(ipv6=ipv6)
    mine, theirs = pair.request(private_data=b"hello", selective_repeat=True)
    theirs.send_mra()
    pair.soon()
    theirs.accept(pair.qp(1))
    pair.soon()
    mine.disconnect()
    assert pair.run()
    pair.take(1)
    _, refused = pair.request()
    refused.reject(b"no")
    assert pair.run()
    pair.cms[1].listen(PORT, space=PortSpace.UDP)
    pair.cms[0].services.ask(pair.addresses[1], PORT, b"who")
    pair.soon()
    asked = pair.cms[1].services.next_event()
    assert asked is not None
    asked.id.accept(0xABCDE)
    assert pair.run()
    assert pair.names() == NAMES
    packets = []
    for number, datagram in enumerate(pair.wire.sent):
        payload = bytes(datagram.payload())
        sender = pair.addresses.index(datagram.source)
        ethertype = ETHERTYPE_IPV6 if ipv6 else ETHERTYPE_IPV4
        header = EthernetHeader(destination=MACS[1 - sender], source=MACS[sender], ethertype=ethertype)
        data = header.encode() + ROCE_V2.front(datagram, len(payload)) + payload
        packets.append(CapturedPacket(number * 1000, data, len(data), interface="eth0"))
    return pair, packets


@pytest.mark.skipif(TSHARK is None, reason="tshark, the oracle, is not installed (Debian package 'tshark')")
@pytest.mark.parametrize("ip_version", [4, 6])
def test_tshark_reads_what_the_manager_writes(tmp_path: Path, ip_version: int) -> None:
    pair, packets = conversation(ipv6=ip_version == 6)
    file = tmp_path / "connections.pcapng"
    file.write_bytes(b"".join(encode_pcapng(packets)))
    names = ["bth.destqp", "deth.q_key", "deth.srcqp", "mad.attributeid", "mad.transactionid", "cm.req.serviceid"]
    names += ["cm.req.ip_cm.sport", "cm.req.ip_cm.ipv"]
    options = ["-n", "-d", "udp.port==4791,infiniband", "-T", "fields", "-E", "separator=|", "-E", "occurrence=f"]
    options += [word for name in names for word in ("-e", f"infiniband.{name}")] + ["-e", "_ws.malformed"]
    done = subprocess.run([str(TSHARK), "-r", str(file), *options], capture_output=True, text=True, check=True)
    rows = [line.split("|") for line in done.stdout.splitlines()]
    attributes = {kind.NAME: number for number, kind in CM_MESSAGES.items()}
    headers = [header for _, header, _ in pair.messages()]
    assert [row[-1] for row in rows] == [""] * len(NAMES), "tshark finds it malformed"
    assert {tuple(int(cell, 0) for cell in row[:3]) for row in rows} == {(1, 0x80010000, 1)}
    assert [int(row[3], 0) for row in rows] == [attributes[name] for name in NAMES]
    assert [int(row[4], 0) for row in rows] == [header.transaction for header in headers]
    assert {int(row[5], 0) for row in rows if row[5]} == {0x01061144}
    assert {row[7] for row in rows if row[6]} == {f"0x{ip_version:02x}"}


def test_our_own_decoder_explains_what_the_manager_writes() -> None:
    _, packets = conversation(ipv6=False)
    seen = CaptureExplainer()
    rows = [row for packet in packets for row in seen.explain(packet)]
    assert [row.name for row in rows] == [f"CM {name}" for name in NAMES]
    assert [row.notes for row in rows[:-1]] == [()] * (len(NAMES) - 1)
