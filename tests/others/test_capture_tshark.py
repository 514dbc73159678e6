"""tshark opens our captures and reads every header as it was meant; we read what tshark's own tools write."""

from __future__ import annotations

import shutil
import subprocess
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any

import pytest
from helpers.captures import bth, captured, frame, management, read, read_response, write, write_capture
from helpers.tshark import NEEDS_TSHARK, fields, number

from weftwork.study.record.run import run_scenario
from weftwork.study.run.captured_link import CapturedLink
from weftwork.wire.cm import (
    CmDisconnectReply,
    CmDisconnectRequest,
    CmMessage,
    CmPath,
    CmReady,
    CmReject,
    CmReply,
    CmRequest,
    CmServiceReply,
    CmServiceRequest,
    CmWait,
)
from weftwork.wire.dissection import dissect
from weftwork.wire.ethernet import EthernetHeader
from weftwork.wire.extended import Aeth, AethKind, AtomicAckEth, AtomicEth, Deth, Ieth, ImmediateData, Reth
from weftwork.wire.ib import Bth
from weftwork.wire.infiniband import ETHERTYPE_ROCE_V1, NativePacket, RoceV1Packet
from weftwork.wire.ip import Ipv6Header
from weftwork.wire.lrh import Lrh
from weftwork.wire.opcodes import Opcode
from weftwork.wire.pcap import CapturedPacket
from weftwork.wire.pcapng import encode_pcapng, read_capture
from weftwork.wire.pfc import PFC_OPCODE
from weftwork.wire.selective_nak import SelectiveNak
from weftwork.wire.transport import transport_packet

CAPTURED = """schema: 3
name: captured
fabric: {topology: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 4, link_rate: 100Gbps}
traffic: {pattern: incast, senders: 4, size: 400KB}
"""
USER_0 = 147  # link types: draft-ietf-opsawg-pcaplinktype
EDITCAP = shutil.which("editcap")
pytestmark = NEEDS_TSHARK


@pytest.mark.parametrize(
    ("opcode", "headers", "read_as"),
    [
        (Opcode.WRITE_ONLY, (Reth(0x1234567890, 0xABCD, 8),), {"reth.va": 0x1234567890, "reth.r_key": 0xABCD}),
        (Opcode.READ_REQUEST, (Reth(1, 2, 3),), {"reth.va": 1, "reth.r_key": 2, "reth.dmalen": 3}),
        (Opcode.SEND_ONLY_IMMEDIATE, (ImmediateData(0xDEADBEEF),), {"immdt": 0xDEADBEEF}),
        (Opcode.WRITE_ONLY_IMMEDIATE, (Reth(1, 2, 8), ImmediateData(7)), {"reth.dmalen": 8, "immdt": 7}),
        (Opcode.SEND_ONLY_INVALIDATE, (Ieth(0xABCD),), {"ieth": 0xABCD}),
        (Opcode.READ_RESPONSE_ONLY, (Aeth(AethKind.ACK, 31, 5),), {"aeth.syndrome": 31, "aeth.msn": 5}),
        (Opcode.ACKNOWLEDGE, (SelectiveNak(3, 0x123).aeth(),), {"aeth.syndrome": 0x40, "aeth.msn": 0x003123}),
        (
            Opcode.COMPARE_SWAP,
            (AtomicEth(8, 9, 10, 11),),
            {"reth.va": 8, "reth.r_key": 9, "atomiceth.swapdt": 10, "atomiceth.cmpdt": 11},
        ),
        (Opcode.FETCH_ADD, (AtomicEth(8, 9, 10, 0),), {"atomiceth.swapdt": 10}),
        (
            Opcode.ATOMIC_ACKNOWLEDGE,
            (Aeth(AethKind.ACK, 31, 5), AtomicAckEth(0x1234)),
            {"aeth.msn": 5, "atomicacketh.origremdt": 0x1234},
        ),
        (Opcode.UD_SEND_ONLY, (Deth(0x11111111, 0xABCDEF),), {"deth.q_key": 0x11111111, "deth.srcqp": 0xABCDEF}),
    ],
    ids=lambda value: value.name if isinstance(value, Opcode) else "",
)  # fmt: skip
def test_tshark_reads_every_extended_header(
    tmp_path: Path, opcode: Opcode, headers: tuple[Any, ...], read_as: dict[str, int]
) -> None:
    payload = b"12345" if opcode not in {0x0C, 0x11, 0x12, 0x13, 0x14} else b""
    packet = transport_packet(bth("a", opcode, 100), headers, payload)
    file = write_capture(tmp_path / "one.pcapng", [frame("a", packet)])
    names = ["bth.opcode", "bth.psn", "bth.padcnt", *read_as]
    (row,) = fields(file, *(f"infiniband.{name}" for name in names))
    assert [number(name, value) for name, value in zip(names, row, strict=True)] == [
        opcode,
        100,
        packet.bth.pad_bytes,
        *read_as.values(),
    ]


# tshark 4.0 shows the upper 12 of the 20 bits of a flow label
PATH = CmPath(local_lid=3, remote_lid=4, flow_label=0xABC00, traffic_class=5, hop_limit=6, local_ack_timeout=17)


@pytest.mark.parametrize(
    ("message", "read_as"),
    [
        (
            CmRequest(
                local_comm_id=0x11, service_id=0x1061234, local_ca_guid=0x22, local_queue_key=0x33, local_qpn=0xABCDEF,
                responder_resources=4, initiator_depth=5, remote_response_timeout=20, transport_service=1,
                has_flow_control=1, starting_psn=0x123456, local_response_timeout=19, retry_count=7,
                partition_key=0xFFFF, path_mtu=5, rnr_retry_count=6, cm_retries=15, has_shared_receive_queue=1,
                primary=PATH,
            ),
            {
                "": 0x11, "serviceid": 0x1061234, "localcaguid": 0x22, "localqkey": 0x33,
                "localqpn": 0xABCDEF, "responderres": 4, "initdepth": 5, "remoteresptout": 20, "transpsvctype": 1,
                "e2eflowctrl": 1, "startpsn": 0x123456, "localresptout": 19, "retrcount": 7, "pkey": 0xFFFF,
                "pppmtu": 5, "rnrretrcount": 6, "maxcmretr": 15, "srq": 1,
                "prim_locallid": 3, "prim_remotelid": 4, "prim_flowlabel": 0xABC,
                "prim_tfcclass": 5, "prim_hoplim": 6, "prim_localacktout": 17,
            },
        ),
        (
            CmReply(
                local_comm_id=1, remote_comm_id=2, local_queue_key=3, local_qpn=4, starting_psn=5,
                responder_resources=6, initiator_depth=7, target_ack_delay=8, failover_accepted=1,
                has_flow_control=1, rnr_retry_count=5, has_shared_receive_queue=1, local_ca_guid=9,
            ),
            {
                "": 1, "remotecommid": 2, "localqkey": 3, "localqpn": 4, "startpsn": 5, "respres": 6,
                "initdepth": 7, "tgtackdelay": 8, "failoveracc": 1, "e2eflowctrl": 1, "rnrretrcount": 5, "srq": 1,
                "localcaguid": 9,
            },
        ),
        (CmReady(local_comm_id=1, remote_comm_id=2), {"localcommid": 1, "remotecommid": 2}),
        (
            CmReject(local_comm_id=1, remote_comm_id=2, message_rejected=1, rejected_info_bytes=3, reason=28),
            {"localcommid": 1, "remotecommid": 2, "msgrej": 1, "rejinfolen": 3, "reason": 28},
        ),
        (
            CmDisconnectRequest(local_comm_id=1, remote_comm_id=2, remote_qpn=0x112233),
            {"localcommid": 1, "remotecommid": 2, "req.remoteqpneecn": 0x112233},
        ),
        (CmDisconnectReply(local_comm_id=1, remote_comm_id=2), {"localcommid": 1, "remotecommid": 2}),
        (CmWait(local_comm_id=1, remote_comm_id=2), {}),
        (CmServiceRequest(request_id=1, service_id=2), {}),
        (CmServiceReply(request_id=1, service_qpn=2), {}),
    ],
    ids=lambda value: value.NAME if isinstance(value, CmMessage) else "",
)  # fmt: skip
def test_tshark_reads_messages_of_communication_management(
    tmp_path: Path, message: CmMessage, read_as: dict[str, int]
) -> None:
    file = write_capture(tmp_path / "one.pcapng", [management("a", message)])
    # tshark names the reply to a DREQ drsp, and the queue pair of a DREQ as if it were in a REQ
    kind = {"DREP": "drsp"}.get(message.NAME, message.NAME.lower())
    names = [f"infiniband.cm.{name if '.' in name else f'{kind}.{name}'.rstrip('.')}" for name in read_as]
    names = ["infiniband.mad.attributeid", *names]
    (row,) = fields(file, *names)
    assert dict(zip(read_as, [int(value, 0) for value in row[1:]], strict=True)) == read_as
    assert int(row[0], 0) == message.ATTRIBUTE


def test_tshark_reads_rocev1_and_native_infiniband(tmp_path: Path) -> None:
    grh = Ipv6Header(
        source=IPv6Address("fe80::1"), destination=IPv6Address("fe80::2"), payload_bytes=24, next_header=0x1B
    )
    send = Bth(Opcode.SEND_ONLY, destination_qp=0x12, psn=7)
    ethernet = EthernetHeader(destination=bytes(6), source=bytes(6), ethertype=ETHERTYPE_ROCE_V1).encode()
    lrh = Lrh(destination_lid=3, source_lid=4, packet_words=8, virtual_lane=1, service_level=2)
    frames = [
        (ethernet + RoceV1Packet(grh=grh, bth=send, body=b"payload!").encode(), 1),
        (NativePacket(lrh=lrh, grh=None, bth=send, body=b"payload!").encode() + b"\0\0", USER_0),
    ]
    file = tmp_path / "two.pcapng"
    file.write_bytes(b"".join(encode_pcapng(CapturedPacket(0, data, len(data), link) for data, link in frames)))
    names = [
        "bth.opcode",
        "bth.destqp",
        "bth.psn",
        "grh.paylen",
        "lrh.dlid",
        "lrh.slid",
        "lrh.pktlen",
        "lrh.vl",
    ]
    rows = fields(file, *(f"infiniband.{name}" for name in names))
    assert [[int(value, 0) for value in row if value] for row in rows] == [[4, 0x12, 7, 24], [4, 0x12, 7, 3, 4, 8, 1]]


def test_tshark_reads_times_names_and_comments(tmp_path: Path) -> None:
    data = write("a", 1, 1)[0]
    packet = CapturedPacket(1_700_000_000_123_456_789, data, len(data) + 9, interface="leaf0", comment="queue 3")
    file = tmp_path / "one.pcapng"
    file.write_bytes(b"".join(encode_pcapng([packet])))
    names = ["frame.time_epoch", "frame.interface_name", "frame.comment", "frame.len", "frame.cap_len"]
    assert fields(file, *names) == [["1700000000.123456789", "leaf0", "queue 3", str(len(data) + 9), str(len(data))]]


@pytest.mark.parametrize(
    "overrides",
    [
        {"faults": "[{at: 0s, link: host1-leaf0, event: lossy, loss: 0.02}]"},
        {"transport.congestion_control": "none", "fabric.switch.buffer": "300KB"},
        {"transport.congestion_control": "hpcc", "fabric.switch.telemetry": "true"},
    ],
    ids=["lossy", "paused", "telemetry"],
)
def test_tshark_reads_the_capture_of_a_run_as_it_was_simulated(tmp_path: Path, overrides: dict[str, str]) -> None:
    scenario = tmp_path / "captured.yaml"
    scenario.write_text(CAPTURED, encoding="utf-8")
    link = CapturedLink(name="host1-leaf0")
    run = run_scenario(scenario, out=tmp_path / "out", overrides=overrides, what_if="none", capture=link)
    names = ["frame.time_epoch", "frame.interface_name", "ip.src", "infiniband.bth.opcode", "infiniband.bth.psn"]
    names += ["infiniband.aeth.syndrome", "infiniband.invariant.crc", "macc.opcode"]
    file = run.path / link.file
    rows = fields(file, *names)
    ours = list(read_capture(file.read_bytes()))
    assert len(rows) == len(ours) > 100
    for row, one in zip(rows, ours, strict=True):
        found, (seconds, nanoseconds) = dissect(one), row[0].split(".")
        assert (int(seconds) * 10**9 + int(nanoseconds), row[1]) == (one.time_ns, one.interface)
        if found.transport is None:
            assert int(row[7], 0) == PFC_OPCODE
            continue
        bth, aeth = found.transport.bth, found.transport.find(Aeth)
        assert found.ip is not None
        assert (row[2], int(row[3], 0), int(row[4])) == (str(found.ip.source), bth.opcode, bth.psn)
        assert row[5] == ("" if aeth is None else str(aeth.syndrome))
        assert found.icrc_wanted is not None
        # tshark 4.0 does not know the opcode of a CNP, and shows what is behind its BTH in one piece
        crc = "" if bth.opcode == Opcode.CNP else found.icrc_wanted.to_bytes(4, "little").hex()
        assert row[6].removeprefix("0x") == crc
    said = run.provenance["capture"]["without_wire_form"]
    comment = subprocess.run(["capinfos", "-k", str(file)], capture_output=True, text=True, check=True).stdout
    assert [note for note in said if note not in comment] == []


@pytest.mark.skipif(EDITCAP is None, reason="editcap is not installed (Debian package 'wireshark-common')")
@pytest.mark.parametrize("form", ["pcap", "nsecpcap", "pcapng"])
def test_what_editcap_writes_is_read(tmp_path: Path, form: str) -> None:
    frames = [*write("a", 100, 3), read("a", 103, 512), *read_response("b", 103, 2)]
    ours, theirs = write_capture(tmp_path / "ours.pcapng", frames), tmp_path / "theirs"
    subprocess.run([str(EDITCAP), "-F", form, str(ours), str(theirs)], check=True, capture_output=True)
    found = list(read_capture(theirs.read_bytes()))
    assert [(one.time_ns, bytes(one.data)) for one in found] == [(one.time_ns, one.data) for one in captured(frames)]
