"""One workload over real UDP sockets and over a simulated fabric: the NICs send the same packets, byte for byte.

Both runs have the same addresses, memory, keys, queue pair numbers and PSNs. ACKs may be coalesced as time goes by, so
of them the highest PSN counts. Where requests overlap, so does the MSN in a response, which counts messages by then.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from helpers.rdma_ends import Connection, RdmaEnd, connect
from helpers.rdma_wires import RecordingNic, SocketWire, Wire, recording_nics, simulated_wire

from weftwork.rdma.verbs import WcStatus, WrOpcode
from weftwork.wire.ib import BTH_BYTES, Bth, psn_compare
from weftwork.wire.icrc import ICRC_BYTES
from weftwork.wire.opcodes import SHAPES, Opcode

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sockets with an IPv4 identification of 0 are Linux's")

W = WrOpcode
MEMORY_BYTES = 1 << 18
# Places in the memory of both ends: what is sent and read is never written, what is written is never sent.
SENT, WRITTEN, RECEIVED, READ, COUNTER, RESULT = 0, 1 << 17, 200_000, 230_000, 250_000, 250_008
BUFFERS = [bytearray(MEMORY_BYTES) for _ in range(2)]  # of every run: their addresses are in the packets
SLOW_TIMEOUT = 20  # 4.3 s: on a busy machine, nothing is sent twice
_AETH = slice(BTH_BYTES, BTH_BYTES + 4)


class Step(NamedTuple):
    """A request; a receive of as many bytes is posted for it where it needs one."""

    opcode: WrOpcode
    length: int = 0
    needs_receive: bool = False
    more: tuple[tuple[str, Any], ...] = ()

    def post(self, connection: Connection) -> None:
        if self.needs_receive:
            connection.post_receive(RECEIVED, self.length)
        here, there = SENT, WRITTEN
        if self.opcode is W.RDMA_READ:
            here, there = READ, SENT
        elif self.opcode in {W.ATOMIC_CMP_AND_SWP, W.ATOMIC_FETCH_AND_ADD}:
            here, there = RESULT, COUNTER
        connection.post(self.opcode, here, self.length, there, **dict(self.more))


def steps() -> Iterator[Step]:
    for length in (0, 1, 5, 1024, 1025, 20_000):
        yield Step(W.SEND, length, needs_receive=True)
        yield Step(W.RDMA_WRITE, length)
        yield Step(W.RDMA_READ, length)
    yield Step(W.SEND_WITH_IMM, 3_000, needs_receive=True, more=(("imm_data", 0x1234_5678),))
    yield Step(W.RDMA_WRITE_WITH_IMM, 2_048, needs_receive=True, more=(("imm_data", 9),))
    yield Step(W.ATOMIC_FETCH_AND_ADD, 8, more=(("compare_add", 5),))
    yield Step(W.ATOMIC_CMP_AND_SWP, 8, more=(("compare_add", 0), ("swap", 7)))
    yield Step(W.ATOMIC_WRITE, 8)
    yield Step(W.FLUSH, more=(("flush_bytes", 64),))
    yield Step(W.RDMA_WRITE, 60_000)


Script = Callable[[Wire, Connection], None]


def one_after_the_other(wire: Wire, forth: Connection) -> None:
    """Each end in turn posts a request and waits for its end."""
    for count, step in enumerate(steps(), start=1):
        for connection in (forth, forth.back):
            step.post(connection)
            assert wire.wait_for(lambda connection=connection, count=count: sent(connection) == count)


def all_at_once(wire: Wire, forth: Connection) -> None:
    """Both ends post everything and wait."""
    for step in steps():
        for connection in (forth, forth.back):
            step.post(connection)
    total = sum(1 for _ in steps())
    assert wire.wait_for(lambda: sent(forth) == sent(forth.back) == total)


def sent(connection: Connection) -> int:
    """Requests of this end that are done, each with success."""
    done = [wc for wc in connection.end.cq._entries if wc.opcode < 128]
    assert all(wc.status is WcStatus.SUCCESS for wc in connection.end.cq._entries)
    return len(done)


class Run(NamedTuple):
    """What two NICs sent, and what their memory held in the end."""

    payloads: list[list[bytes]]
    memory: list[bytes]
    retried: int


def run_over(open_wire: Callable[[list[RecordingNic]], Any], script: Script) -> Run:
    nics = recording_nics(addresses())
    ends = [RdmaEnd(nic, buffer, seed) for seed, (nic, buffer) in enumerate(zip(nics, BUFFERS, strict=True))]
    forth = connect(*ends, path_mtu=1024, timeout=SLOW_TIMEOUT)
    wire = open_wire(nics)
    try:
        script(wire, forth)
    finally:
        if isinstance(wire, SocketWire):
            wire.close()
    retried = sum(qp.counters.total() for qp in (forth.qp, forth.peer_qp))
    payloads = [[payload for _, payload in nic.handed_out] for nic in nics]
    return Run(payloads, [bytes(buffer) for buffer in BUFFERS], retried)


def addresses() -> list[bytes]:
    """Two addresses of this machine that no other process of the tests takes."""
    high, low = os.getpid() >> 8 & 0xFF, os.getpid() & 0xFF
    return [bytes((127, 16 + (os.getpid() >> 16 & 0x3F) * 2 + at, high, low)) for at in (0, 1)]


def split(payloads: list[bytes]) -> tuple[list[bytes], list[bytes], int]:
    """Requests, responses other than ACKs, and the highest PSN that an ACK acknowledged."""
    requests, responses, highest = [], [], None
    for payload in payloads:
        bth, _ = Bth.decode(payload)
        if bth.opcode == Opcode.ACKNOWLEDGE:
            is_higher = highest is None or psn_compare(bth.psn, highest) > 0
            highest = bth.psn if is_higher else highest
        else:
            (responses if SHAPES[bth.opcode].is_response else requests).append(payload)
    assert highest is not None
    return requests, responses, highest


def without_msn(payload: bytes) -> bytes:
    """A response without the count of messages, and without the ICRC over it."""
    bth, _ = Bth.decode(payload)
    if bth.opcode == Opcode.READ_RESPONSE_MIDDLE:
        return payload
    return payload[: _AETH.start + 1] + payload[_AETH.stop : -ICRC_BYTES]


def both(script: Script) -> tuple[Run, Run]:
    runs = run_over(SocketWire, script), run_over(simulated_wire, script)
    assert [run.retried for run in runs] == [0, 0]
    assert runs[0].memory == runs[1].memory
    return runs


def test_one_request_at_a_time_gives_the_same_bytes() -> None:
    over_sockets, simulated = both(one_after_the_other)
    for real, virtual in zip(over_sockets.payloads, simulated.payloads, strict=True):
        assert split(real) == split(virtual)


def test_everything_at_once_gives_the_same_requests_and_responses() -> None:
    over_sockets, simulated = both(all_at_once)
    for real, virtual in zip(over_sockets.payloads, simulated.payloads, strict=True):
        requests, responses, highest = split(real)
        virtual_requests, virtual_responses, virtual_highest = split(virtual)
        assert requests == virtual_requests
        assert [without_msn(one) for one in responses] == [without_msn(one) for one in virtual_responses]
        assert highest == virtual_highest


def test_the_workload_has_every_operation_and_reaches_the_memory() -> None:
    run = run_over(simulated_wire, one_after_the_other)
    for at in (0, 1):
        memory, other = run.memory[at], run.memory[1 - at]
        requests, responses, highest = split(run.payloads[at])
        assert highest == Bth.decode(split(run.payloads[1 - at])[0][-1])[0].psn  # that of the last WRITE
        assert {Bth.decode(one)[0].opcode for one in requests} >= {
            *(Opcode.SEND_FIRST, Opcode.SEND_MIDDLE, Opcode.SEND_LAST, Opcode.SEND_ONLY, Opcode.SEND_LAST_IMMEDIATE),
            *(Opcode.WRITE_FIRST, Opcode.WRITE_MIDDLE, Opcode.WRITE_LAST, Opcode.WRITE_ONLY, Opcode.READ_REQUEST),
            *(Opcode.WRITE_LAST_IMMEDIATE, Opcode.COMPARE_SWAP, Opcode.FETCH_ADD, Opcode.FLUSH, Opcode.ATOMIC_WRITE),
        }
        assert {Bth.decode(one)[0].opcode for one in responses} == {
            *(Opcode.READ_RESPONSE_FIRST, Opcode.READ_RESPONSE_MIDDLE, Opcode.READ_RESPONSE_LAST),
            *(Opcode.READ_RESPONSE_ONLY, Opcode.ATOMIC_ACKNOWLEDGE),
        }
        assert memory[WRITTEN : WRITTEN + 60_000] == other[SENT : SENT + 60_000]
        assert memory[READ : READ + 20_000] == other[SENT : SENT + 20_000]
