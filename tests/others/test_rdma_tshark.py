"""tshark opens a capture of every operation of the NIC without a malformed packet, and reads what was meant."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.rdma_captures import CONVERSATIONS, packets_of
from helpers.rdma_encapsulations import ENCAPSULATIONS, INFINIBAND_GLOBAL
from helpers.rdma_pair import Pair
from helpers.tshark import NEEDS_TSHARK, USER_0, fields

from weftwork.rdma.encapsulation import ROCE_V1, ROCE_V2, Encapsulation
from weftwork.wire.dissection import dissect
from weftwork.wire.extended import Aeth, AtomicEth, Deth, Ieth, ImmediateData, Reth
from weftwork.wire.opcodes import Opcode
from weftwork.wire.pcap import LINK_INFINIBAND, CapturedPacket
from weftwork.wire.pcapng import encode_pcapng

pytestmark = NEEDS_TSHARK
UNKNOWN = {Opcode.CNP, Opcode.FLUSH, Opcode.ATOMIC_WRITE}  # to tshark 4.0, which shows all behind BTH in one piece
NAMES = ["bth.opcode", "bth.destqp", "bth.psn", "bth.padcnt", "reth.va", "reth.r_key", "reth.dmalen"]
NAMES += ["aeth.syndrome", "aeth.msn", "immdt", "ieth", "deth.q_key", "deth.srcqp", "atomiceth.swapdt"]
NAMES += ["invariant.crc", "vendor"]


def written(file: Path, packets: list[CapturedPacket]) -> Path:
    """A capture file, in which native InfiniBand has the link type that tshark is told about."""
    types = {LINK_INFINIBAND: USER_0}
    said = (packet._replace(link_type=types.get(packet.link_type, packet.link_type)) for packet in packets)
    file.write_bytes(b"".join(encode_pcapng(said)))
    return file


CASES = [pytest.param((conversation,), ROCE_V2, id=conversation.__name__) for conversation in CONVERSATIONS]
CASES += [pytest.param(CONVERSATIONS, one, id=name) for name, one in ENCAPSULATIONS.items() if one is not ROCE_V2]


@pytest.mark.parametrize(("conversations", "encapsulation"), CASES)
def test_tshark_reads_what_the_nic_says(
    conversations: tuple[Callable[..., Pair], ...], encapsulation: Encapsulation, tmp_path: Path
) -> None:
    packets = [packet for one in conversations for packet in packets_of(one, encapsulation)]
    file = written(tmp_path / "nic.pcapng", packets)
    rows = fields(file, *(f"infiniband.{name}" for name in NAMES), "_ws.col.Info")  # fails where one is malformed
    assert len(rows) == len(packets)
    for row, packet in zip(rows, packets, strict=True):
        found = dissect(packet)
        assert found.transport is not None
        assert found.icrc_wanted is not None
        bth = found.transport.bth
        wanted: dict[str, int] = {"bth.opcode": bth.opcode, "bth.destqp": bth.destination_qp, "bth.psn": bth.psn}
        wanted["bth.padcnt"] = bth.pad_bytes
        is_known = bth.opcode not in UNKNOWN
        for header in found.transport.headers if is_known else ():
            if isinstance(header, Reth):
                wanted["reth.va"], wanted["reth.r_key"], wanted["reth.dmalen"] = header
            elif isinstance(header, Aeth):
                wanted |= {"aeth.syndrome": header.syndrome, "aeth.msn": header.msn}
            elif isinstance(header, ImmediateData):
                wanted["immdt"] = header.immediate
            elif isinstance(header, Ieth):
                wanted["ieth"] = header.remote_key
            elif isinstance(header, Deth):
                wanted |= {"deth.q_key": header.queue_key, "deth.srcqp": header.source_qp}
            elif isinstance(header, AtomicEth):
                wanted |= {"reth.va": header.virtual_address, "reth.r_key": header.remote_key}
                wanted["atomiceth.swapdt"] = header.swap_or_add
        crc, vendor, info = row[-3:]
        values = {
            name: int(value, 16 if name in {"immdt", "ieth"} else 0)
            for name, value in zip(NAMES, row[:-3], strict=False)
            if value
        }
        assert values == wanted
        assert info.startswith("Unknown OpCode") is not is_known
        assert bool(vendor) is not is_known
        assert crc.removeprefix("0x") == (found.icrc_wanted.to_bytes(4, "little").hex() if is_known else "")


def test_tshark_reads_the_global_route_header_of_rocev1(tmp_path: Path) -> None:
    packets = packets_of(CONVERSATIONS[0], ROCE_V1)
    file = written(tmp_path / "v1.pcapng", packets)
    rows = fields(file, "eth.type", "infiniband.grh.sgid", "infiniband.grh.dgid", "infiniband.grh.nxthdr")
    ends = ["::ffff:10.0.0.1", "::ffff:10.0.0.2"]
    assert {(row[0], *sorted(row[1:3]), row[3]) for row in rows} == {("0x8915", *ends, "27")}


def test_tshark_reads_the_headers_of_a_link_of_infiniband(tmp_path: Path) -> None:
    packets = packets_of(CONVERSATIONS[0], INFINIBAND_GLOBAL)
    file = written(tmp_path / "ib.pcapng", packets)
    names = ("lrh.slid", "lrh.dlid", "lrh.lnh", "lrh.pktlen", "grh.sgid", "bth.opcode", "variant.crc")
    for row, packet in zip(fields(file, *(f"infiniband.{name}" for name in names)), packets, strict=True):
        data = bytes(packet.data)
        assert sorted(int(lid, 0) for lid in row[:2]) == [0x101, 0x102]
        assert (int(row[2], 0), int(row[3], 0) * 4) == (3, len(data) - 2)
        assert row[4] in {"fe80::1", "fe80::2"}
        crc = "" if int(row[5], 0) in UNKNOWN else f"0x{data[-2:].hex()}"
        assert row[6] == crc
