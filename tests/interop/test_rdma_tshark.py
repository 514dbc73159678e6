"""tshark opens a capture of every operation of the NIC without a malformed packet, and reads what was meant."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.captures import captured, write_capture
from helpers.rdma_captures import CONVERSATIONS, frames_of
from helpers.rdma_pair import Pair
from helpers.tshark import NEEDS_TSHARK, fields

from weftwork.wire.dissection import dissect
from weftwork.wire.extended import Aeth, AtomicEth, Deth, Ieth, ImmediateData, Reth
from weftwork.wire.opcodes import Opcode

pytestmark = NEEDS_TSHARK
UNKNOWN = {Opcode.CNP, Opcode.FLUSH, Opcode.ATOMIC_WRITE}  # to tshark 4.0, which shows all behind BTH in one piece
NAMES = ["bth.opcode", "bth.destqp", "bth.psn", "bth.padcnt", "reth.va", "reth.r_key", "reth.dmalen"]
NAMES += ["aeth.syndrome", "aeth.msn", "immdt", "ieth", "deth.q_key", "deth.srcqp", "atomiceth.swapdt"]
NAMES += ["invariant.crc", "vendor"]


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda one: one.__name__)
def test_tshark_reads_what_the_nic_says(conversation: Callable[[], Pair], tmp_path: Path) -> None:
    frames = frames_of(conversation)
    file = write_capture(tmp_path / "nic.pcapng", frames)
    rows = fields(file, *(f"infiniband.{name}" for name in NAMES), "_ws.col.Info")  # fails where one is malformed
    assert len(rows) == len(frames)
    for row, packet in zip(rows, captured(frames), strict=True):
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
