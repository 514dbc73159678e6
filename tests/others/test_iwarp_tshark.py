"""tshark opens a capture of every operation of iWARP without a malformed packet, and reads what was meant."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.iwarp_captures import CONVERSATIONS, marked, write_stream
from helpers.iwarp_pair import IwarpPair
from helpers.tshark import NEEDS_TSHARK, details, fields

from weftwork.rdma.iwarp.framing import FpduReader
from weftwork.wire.ddp import DdpTagged, decode_ddp
from weftwork.wire.mpa import EnhancedSetup, MpaFrame
from weftwork.wire.rdmap import AtomicOpcode, AtomicRequest, AtomicResponse, RdmapOpcode, ReadRequest, Terminate

pytestmark = NEEDS_TSHARK
DDP = ["tagged_flag", "last_flag", "dv", "stag", "tagged_offset", "qn", "msn", "mo"]
RDMAP = ["version", "opcode", "sinkstag", "sinkto", "rdmardsz", "srcstag", "srcto", "term_layer"]
RDMAP += ["term_errcode_rdma", "term_errcode_ddp_tagged", "atomic.opcode", "atomic.request_identifier"]
RDMAP += ["atomic.remote_stag", "atomic.remote_tagged_offset", "atomic.add_data", "atomic.swap_data"]
RDMAP += ["atomic.compare_data", "atomic.original_request_identifier", "atomic.original_remote_data_value"]
NAMES = [*(f"iwarp_ddp.{name}" for name in DDP), *(f"iwarp_rdma.{name}" for name in RDMAP)]


def wanted_fields(segment: memoryview) -> dict[str, int]:
    """What tshark has to say about a segment."""
    header, body = decode_ddp(segment)
    is_tagged = isinstance(header, DdpTagged)
    opcode = header.upper & 0xF
    found = {
        "iwarp_ddp.tagged_flag": int(is_tagged),
        "iwarp_ddp.last_flag": int(header.is_last),
        "iwarp_ddp.dv": header.version,
        "iwarp_rdma.version": header.upper >> 6,
        "iwarp_rdma.opcode": opcode,
    }
    if isinstance(header, DdpTagged):
        return found | {"iwarp_ddp.stag": header.stag, "iwarp_ddp.tagged_offset": header.offset}
    found |= {"iwarp_ddp.qn": header.queue, "iwarp_ddp.msn": header.message, "iwarp_ddp.mo": header.offset}
    rdmap: dict[str, int] = {}
    if opcode == RdmapOpcode.READ_REQUEST:
        read, _ = ReadRequest.decode(body)
        rdmap = dict(zip(("sinkstag", "sinkto", "rdmardsz", "srcstag", "srcto"), read, strict=True))
    elif opcode == RdmapOpcode.ATOMIC_REQUEST:
        atomic, _ = AtomicRequest.decode(body)
        word = "swap_data" if atomic.operation == AtomicOpcode.COMPARE_SWAP else "add_data"
        rdmap = {
            "atomic.opcode": atomic.operation,
            "atomic.request_identifier": atomic.request,
            "atomic.remote_stag": atomic.stag,
            "atomic.remote_tagged_offset": atomic.offset,
            f"atomic.{word}": atomic.add_or_swap,
            "atomic.compare_data": atomic.compare,
        }
    elif opcode == RdmapOpcode.ATOMIC_RESPONSE:
        answer, _ = AtomicResponse.decode(body)
        rdmap = {
            "atomic.original_request_identifier": answer.request,
            "atomic.original_remote_data_value": answer.original,
        }
    elif opcode == RdmapOpcode.TERMINATE:
        terminate, _ = Terminate.decode(body)
        name = "term_errcode_ddp_tagged" if terminate.layer == 1 else "term_errcode_rdma"
        rdmap = {"term_layer": terminate.layer, name: terminate.code}
    return found | {f"iwarp_rdma.{name}": value for name, value in rdmap.items()}


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda one: one.__name__)
def test_tshark_reads_what_the_ends_say(conversation: Callable[[], IwarpPair], tmp_path: Path) -> None:
    pair = conversation()
    file = write_stream(tmp_path / "iwarp.pcap", pair)
    rows = fields(file, *NAMES, "_ws.col.Info")[3:]  # fails where one is malformed; three open the TCP connection
    sent = pair.streams[0].sent
    assert len(rows) == len(sent)
    assert [row[-1].split(maxsplit=3)[-1] for row in rows[:2]] == ["MPA Request Frame", "MPA Reply Frame"]
    options = [end.nic.options for end in pair.ends]
    has_crc = any(option.crc for option in options)
    readers = [FpduReader(crc=has_crc, markers=options[1 - number].markers) for number in (0, 1)]
    for row, (number, data) in zip(rows[2:], sent[2:], strict=True):
        (segment,) = readers[number].feed(memoryview(data))
        wanted = wanted_fields(segment)
        found = {name: int(value, 0) for name, value in zip(NAMES, row, strict=False) if value}
        assert found == wanted
    text = details(file)
    assert text.count("(Good CRC32)") == (len(sent) - 2 if has_crc else 0)
    assert "Bad CRC32" not in text


def test_tshark_finds_a_wrong_crc(tmp_path: Path) -> None:
    pair = marked()
    number, data = pair.streams[0].sent[6]
    pair.streams[0].sent[6] = (number, data[:-1] + bytes([data[-1] ^ 1]))
    text = details(write_stream(tmp_path / "iwarp.pcap", pair))
    assert text.count("Bad CRC32") == 1


def test_tshark_reads_the_start_up(tmp_path: Path) -> None:
    pair = marked()
    file = write_stream(tmp_path / "iwarp.pcap", pair)
    names = ["rev", "marker_flag", "crc_flag", "rej_flag", "pdlength", "privatedata"]
    rows = fields(file, *(f"iwarp_mpa.{name}" for name in names))[3:5]
    for row, (_, data) in zip(rows, pair.streams[0].sent, strict=False):
        frame, _ = MpaFrame.decode(data)
        numbers = [frame.revision, frame.wants_markers, frame.wants_crc, frame.rejects, len(frame.private_data)]
        assert [int(value, 0) for value in row[:5]] == numbers
        assert row[5] == frame.private_data.hex()
        setup, user = EnhancedSetup.decode(frame.private_data)
        assert setup.is_peer_to_peer
        assert bytes(user) in {b"question", b"yes"}
