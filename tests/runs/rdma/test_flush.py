"""FLUSH to persistence: for mapped files alone, and answered when the file has the bytes."""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Any

import pytest
from helpers.rdma_pair import ALL, Pair

from weftwork.base.errors import UsageError
from weftwork.rdma.memory import MemoryRegion
from weftwork.rdma.verbs import AccessFlags, WcStatus, WrOpcode
from weftwork.wire.extended import FlushPlacement
from weftwork.wire.opcodes import Opcode

PERSISTENT = ALL | AccessFlags.FLUSH_PERSISTENT
BOTH = FlushPlacement.PERSISTENCE | FlushPlacement.GLOBAL_VISIBILITY
PAGE = mmap.PAGESIZE


class WatchedMap(mmap.mmap):
    """A mapped file that notes its flushes, and how many packets were on the wire by then."""

    pair: Pair
    flushed: list[tuple[int, int, int]]
    fails = False

    def flush(self, offset: int = 0, size: int = 0) -> None:
        self.flushed.append((offset, size, len(self.pair.sent)))
        if self.fails:
            raise OSError("the disk is gone")
        super().flush(offset, size)


def mapped(file: Path, kind: type[mmap.mmap] = mmap.mmap, **more: Any) -> Any:
    file.write_bytes(bytes(4 * PAGE))
    descriptor = os.open(file, os.O_RDWR)
    try:
        return kind(descriptor, 4 * PAGE, **more)
    finally:
        os.close(descriptor)


def pair_and_region(file: Path, **attr: Any) -> tuple[Pair, WatchedMap, MemoryRegion]:
    pair = Pair(**({"qp_access_flags": PERSISTENT} | attr))
    watched = mapped(file, WatchedMap)
    watched.pair, watched.flushed = pair, []
    return pair, watched, pair.nics[1].memory.register(pair.pds[1], watched, PERSISTENT)


def flush(pair: Pair, region: MemoryRegion, offset: int, size: int, **more: Any) -> WcStatus:
    more = {"flush_placement": BOTH} | more
    place = {"remote_addr": region.addr + offset, "rkey": region.rkey}
    pair.post(0, WrOpcode.FLUSH, 9, flush_bytes=size, **place, **more)
    assert pair.run()
    (wc,) = (wc for wc in pair.poll(0) if wc.wr_id == 9)
    return wc.status


@pytest.mark.parametrize("attr", [{}, {"selective_repeat": True}])
def test_what_is_written_is_in_the_file_before_the_answer(tmp_path: Path, attr: dict[str, Any]) -> None:
    pair, watched, region = pair_and_region(tmp_path / "file", **attr)
    pair.buffers[0][:8] = b"for good"
    place = {"remote_addr": region.addr + PAGE + 100, "rkey": region.rkey}
    pair.post(0, WrOpcode.RDMA_WRITE, 1, sg_list=(pair.sge(0, 0, 8),), **place)
    assert flush(pair, region, PAGE + 100, 8) is WcStatus.SUCCESS
    assert watched.flushed == [(PAGE, 108, 2)]  # whole pages; WRITE and FLUSH were on the wire, and no answer
    assert [datagram.parts[0][0] for datagram in pair.sent[:2]] == [Opcode.WRITE_ONLY, Opcode.FLUSH]
    assert (tmp_path / "file").read_bytes()[PAGE + 100 : PAGE + 108] == b"for good"
    assert pair.qps[1].counters["persistent_flushes"] == 1


def test_the_whole_region_is_flushed_where_that_is_asked(tmp_path: Path) -> None:
    pair, watched, region = pair_and_region(tmp_path / "file")
    assert flush(pair, region, 0, 0, flush_selectivity=1) is WcStatus.SUCCESS
    assert flush(pair, region, 0, 64, flush_placement=FlushPlacement.GLOBAL_VISIBILITY) is WcStatus.SUCCESS
    assert [call[:2] for call in watched.flushed] == [(0, 4 * PAGE)]


def test_a_part_of_a_map_is_flushed_at_its_place(tmp_path: Path) -> None:
    pair, watched, _ = pair_and_region(tmp_path / "file")
    part = pair.nics[1].memory.register(pair.pds[1], memoryview(watched)[PAGE + 8 :], PERSISTENT)
    assert flush(pair, part, PAGE, 16) is WcStatus.SUCCESS
    assert [call[:2] for call in watched.flushed] == [(2 * PAGE, 24)]


def test_a_flush_whose_answer_is_lost_is_made_again(tmp_path: Path) -> None:
    pair, watched, region = pair_and_region(tmp_path / "file")
    pair.drop = {1}
    assert flush(pair, region, 0, 64) is WcStatus.SUCCESS
    assert len(watched.flushed) == 2


def test_a_disk_that_fails_is_told(tmp_path: Path) -> None:
    pair, watched, region = pair_and_region(tmp_path / "file")
    watched.fails = True
    assert flush(pair, region, 0, 64) is WcStatus.REM_OP_ERR


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"offset": -1}, WcStatus.REM_ACCESS_ERR),
        ({"size": 4 * PAGE + 1}, WcStatus.REM_ACCESS_ERR),
        ({"flush_placement": 0}, WcStatus.REM_INV_REQ_ERR),
    ],
)
def test_a_flush_of_what_is_not_there_is_refused(tmp_path: Path, more: dict[str, int], status: WcStatus) -> None:
    pair, watched, region = pair_and_region(tmp_path / "file")
    assert flush(pair, region, more.pop("offset", 0), more.pop("size", 8), **more) is status
    assert watched.flushed == []


def test_a_queue_pair_and_a_region_without_the_right_refuse(tmp_path: Path) -> None:
    pair, watched, region = pair_and_region(tmp_path / "file", qp_access_flags=ALL)
    assert flush(pair, region, 0, 8) is WcStatus.REM_INV_REQ_ERR
    pair = Pair(qp_access_flags=PERSISTENT)
    assert flush(pair, pair.mrs[1], 0, 8) is WcStatus.REM_ACCESS_ERR
    assert watched.flushed == []


def test_memory_that_cannot_persist_is_refused(tmp_path: Path) -> None:
    pair = Pair()
    buffers = {
        "plain": bytearray(64),
        "anonymous": mmap.mmap(-1, PAGE),
        "private": mapped(tmp_path / "private", flags=mmap.MAP_PRIVATE),
        "copy": mapped(tmp_path / "copy", access=mmap.ACCESS_COPY),
    }
    for buffer in buffers.values():
        with pytest.raises(UsageError, match="FLUSH_PERSISTENT"):
            pair.nics[1].memory.register(pair.pds[1], buffer, PERSISTENT)
    pair.nics[1].memory.register(pair.pds[1], mapped(tmp_path / "shared"), PERSISTENT)
