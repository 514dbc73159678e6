"""Laws of iWARP: every byte arrives once and in order, and whatever arrives changes no memory that is not open."""

from __future__ import annotations

from typing import Any

from helpers.cases import case_count
from helpers.iwarp_attacker import OPEN, RIGHTS, Victim
from helpers.iwarp_pair import IwarpPair
from hypothesis import given, settings
from hypothesis import strategies as st

from weftwork.rdma.iwarp.setup import MpaOptions
from weftwork.rdma.verbs import QpState, WcStatus, WrOpcode
from weftwork.wire.ddp import DdpTagged, DdpUntagged
from weftwork.wire.mpa import MpaFrame
from weftwork.wire.rdmap import AtomicRequest, RdmapOpcode, ReadRequest, Terminate, rdmap_control

FEW = settings(max_examples=case_count(plain=25, deep=300))
MANY = settings(max_examples=case_count(plain=100, deep=1_000))
BITS32, BITS64 = (st.integers(0, (1 << bits) - 1) for bits in (32, 64))
AREA = 16_384  # bytes of each end for each purpose
OPTIONS = st.builds(MpaOptions, revision=st.sampled_from([1, 2]), markers=st.booleans(), crc=st.booleans())
KINDS = [WrOpcode.RDMA_WRITE, WrOpcode.RDMA_READ, WrOpcode.SEND, WrOpcode.RDMA_WRITE_WITH_IMM]


@FEW
@given(
    options=st.tuples(OPTIONS, OPTIONS),
    messages=st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 3000)), min_size=1, max_size=8),
    piece=st.sampled_from([50, 700, 1460, 1 << 20]),
    mss=st.sampled_from([536, 1460, 9000]),
    seed=st.integers(0, 1 << 16),
)
def test_every_byte_arrives_once(
    options: tuple[MpaOptions, MpaOptions], messages: list[tuple[WrOpcode, int]], piece: int, mss: int, seed: int
) -> None:
    """Each end has areas to write from, to write to, to read from, to read to and to receive in."""
    pair = IwarpPair(options=options, most_bytes=piece, mss=mss, seed=seed, memory_bytes=5 * AREA)
    a, b = pair.ends
    wanted = [bytearray(end.buffer) for end in pair.ends]
    at = 0
    for number, (opcode, length) in enumerate(messages):
        length = min(length, AREA - at)  # noqa: PLW2901 - the areas end
        if opcode is WrOpcode.RDMA_READ:
            pair.post(0, opcode, 3 * AREA + at, length, there=2 * AREA + at, wr_id=number)
            wanted[0][3 * AREA + at : 3 * AREA + at + length] = b.buffer[2 * AREA + at : 2 * AREA + at + length]
        elif opcode is WrOpcode.SEND:
            pair.post_recv(1, 4 * AREA + at, length)
            pair.post(0, opcode, at, length, wr_id=number)
            wanted[1][4 * AREA + at : 4 * AREA + at + length] = a.buffer[at : at + length]
        else:
            if opcode is WrOpcode.RDMA_WRITE_WITH_IMM:
                pair.post_recv(1, 0, 0)
            pair.post(0, opcode, at, length, there=AREA + at, wr_id=number)
            wanted[1][AREA + at : AREA + at + length] = a.buffer[at : at + length]
        at += length
    pair.run()
    assert [(wc.wr_id, wc.status) for wc in a.poll()] == [(number, WcStatus.SUCCESS) for number in range(len(messages))]
    assert {wc.status for wc in b.poll()} <= {WcStatus.SUCCESS}
    assert (a.buffer == wanted[0]) is True
    assert (b.buffer == wanted[1]) is True


def unharmed(victim: Victim) -> bool:
    """Whether the memory beside the open region is as it was."""
    here, before = victim.buffer, victim.before
    return here[: OPEN.start] == before[: OPEN.start] and here[OPEN.stop :] == before[OPEN.stop :]


@MANY
@given(pieces=st.lists(st.binary(max_size=300), max_size=6), starts=st.booleans())
def test_any_bytes_raise_nothing_and_change_nothing(pieces: list[bytes], starts: bool) -> None:  # noqa: FBT001
    victim = Victim(accepts=starts)
    victim.post_recv(64) if starts else None
    for piece in pieces:
        victim.send(piece)
        victim.taken()
    victim.id.peer_closed()
    victim.end.manager.take_ready()
    victim.check_unchanged()


@st.composite
def segments(draw: st.DrawFn, victim: Victim) -> list[bytes]:
    """Segments whose fields are right, nearly right or anything."""
    found = []
    keys = [victim.open.rkey, victim.open.lkey, victim.foreign.rkey, victim.readable.rkey, victim.writable.rkey]
    near = [victim.open.addr + delta for delta in (-1, 0, 8, len(OPEN) - 8, len(OPEN), len(OPEN) + 1)]
    stag, place = st.sampled_from(keys) | BITS32, st.sampled_from(near) | BITS64
    size = st.sampled_from([0, 8, 64, len(OPEN), len(OPEN) + 1]) | BITS32
    number = st.sampled_from([1, 2, 3]) | BITS32
    for _ in range(draw(st.integers(1, 6))):
        opcode = draw(st.sampled_from(RdmapOpcode) | st.integers(0, 15))
        upper = rdmap_control(opcode, draw(st.sampled_from([1, 1, 1, 0])))
        last = draw(st.booleans())
        body = draw(
            st.binary(max_size=64)
            | st.builds(ReadRequest, BITS32, BITS64, size, stag, place).map(ReadRequest.encode)
            | st.tuples(st.sampled_from([0, 2, 1]), BITS32, stag, place, BITS64).map(
                lambda one: AtomicRequest(*one).encode()
            )
            | st.tuples(*[st.integers(0, 15)] * 3).map(lambda one: Terminate(*one).encode())
        )
        header: Any = DdpTagged(upper, draw(stag), draw(place), last)
        if draw(st.booleans()):
            queue = draw(st.sampled_from([0, 1, 2, 3]) | BITS32)
            header = DdpUntagged(upper, draw(BITS32), queue, draw(number), draw(st.sampled_from([0, 8])), last)
        found.append(header.encode() + body)
    return found


@MANY
@given(data=st.data())
def test_segments_raise_nothing_and_stay_in_the_open_region(data: st.DataObject) -> None:
    victim = Victim(access=RIGHTS)
    victim.post_recv(64)
    for segment in data.draw(segments(victim)):
        victim.segment(segment)
        victim.answers()
    assert unharmed(victim)
    assert victim.qp.state in {QpState.RTS, QpState.ERR}


@FEW
@given(changes=st.lists(st.tuples(st.floats(0, 1), st.integers(1, 255)), min_size=1, max_size=3), cut=st.floats(0, 1))
def test_a_changed_stream_raises_nothing_and_stays_in_the_open_region(
    changes: list[tuple[float, int]], cut: float
) -> None:
    """The stream of an honest peer, with some bytes changed; the CRC is off, so that the changes are seen."""
    victim = Victim(options=MpaOptions(crc=False), accepts=False)
    victim.send(MpaFrame(is_reply=False, wants_crc=False).encode())
    victim.end.take_events()
    victim.id.accept(victim.qp)
    victim.qp.attr = victim.qp.attr.__class__(qp_access_flags=RIGHTS, max_dest_rd_atomic=4)
    victim.writer._crc = False  # type: ignore[misc]
    victim.taken()
    victim.post_recv(64)
    stream = b""
    for header, body in (
        (DdpTagged(rdmap_control(RdmapOpcode.WRITE), victim.open.rkey, victim.open.addr), b"first" * 10),
        (DdpUntagged(rdmap_control(RdmapOpcode.SEND), 0, 0, 1), b"second" * 10),
        (
            DdpUntagged(rdmap_control(RdmapOpcode.READ_REQUEST), 0, 1, 1),
            ReadRequest(5, 0, 64, victim.open.rkey, victim.open.addr).encode(),
        ),
        (DdpTagged(rdmap_control(RdmapOpcode.WRITE), victim.open.rkey, victim.open.addr + 100), b"third" * 10),
    ):
        stream += victim.writer.frame((header.encode(), body))
    changed = bytearray(stream)
    for where, by in changes:
        changed[min(int(where * len(changed)), len(changed) - 1)] ^= by
    at = int(cut * len(changed))
    for piece in (changed[:at], changed[at:]):
        victim.send(bytes(piece))
        victim.taken()
    assert unharmed(victim)
