"""A peer of an iWARP end that says what it likes, byte by byte."""

from __future__ import annotations

import random
from typing import Any

from helpers.iwarp_pair import MSS, PORT, IwarpEnd

from weftwork.rdma.cm_records import ConnParam
from weftwork.rdma.iwarp.conversation import IwarpCmId
from weftwork.rdma.iwarp.framing import FpduReader, FpduWriter
from weftwork.rdma.iwarp.queue_pair import IwarpQueuePair
from weftwork.rdma.iwarp.setup import MpaOptions
from weftwork.rdma.verbs import AccessFlags, RecvWr
from weftwork.wire.ddp import DdpTagged, DdpUntagged, decode_ddp
from weftwork.wire.mpa import MpaFrame
from weftwork.wire.rdmap import RdmapOpcode, RdmapQueue, ReadRequest, Terminate, TerminateCode, rdmap_control

PEER = bytes((10, 0, 0, 9))
OPEN = range(4096, 8192)  # of the memory; the rest is a canary
DEPTH = 4
RIGHTS = AccessFlags.REMOTE_WRITE | AccessFlags.REMOTE_READ | AccessFlags.REMOTE_ATOMIC


class Victim:
    """An end with a stream to a peer, which the test plays.

    Four keys: of memory with all rights, for reading alone, for writing alone, and of another domain.
    """

    def __init__(
        self,
        *,
        options: MpaOptions | None = None,
        access: AccessFlags = RIGHTS,
        markers: bool = False,
        accepts: bool = True,
    ) -> None:
        self.end = IwarpEnd(1, options=options)
        self.end.manager.listen(PORT)
        memory, pd = self.end.nic.memory, self.end.pd
        self.buffer = bytearray(random.Random(3).randbytes(12_288))
        view = memoryview(self.buffer)[OPEN.start : OPEN.stop]
        self.open = memory.register(pd, view, RIGHTS | AccessFlags.LOCAL_WRITE)
        self.readable = memory.register(pd, bytearray(64), AccessFlags.REMOTE_READ)
        self.writable = memory.register(pd, bytearray(64), AccessFlags.REMOTE_WRITE | AccessFlags.LOCAL_WRITE)
        self.foreign = memory.register(self.end.nic.alloc_pd(), bytearray(64), RIGHTS | AccessFlags.LOCAL_WRITE)
        self.before = bytes(self.buffer)
        self.writer = FpduWriter(crc=True, markers=options is not None and options.markers)
        self.reader = FpduReader(crc=True, markers=markers)
        self.access = access
        self.id = self.arrive()
        if accepts:
            self.send(MpaFrame(is_reply=False, wants_markers=markers).encode())
            self.end.take_events()
            self.id.accept(self.end.qp, ConnParam(qp_access_flags=access, responder_resources=DEPTH))
            frame, rest = MpaFrame.decode(self.taken())
            assert frame.is_reply
            assert not rest

    def arrive(self) -> IwarpCmId:
        """A stream from the peer."""
        made = self.end.manager.accepted(PEER, PORT)
        assert made is not None
        made.opened(MSS)
        return made

    @property
    def qp(self) -> IwarpQueuePair:
        assert isinstance(self.end.qp, IwarpQueuePair)
        return self.end.qp

    def send(self, data: bytes) -> None:
        """Bytes of the peer."""
        if not self.id.is_over:
            self.id.received(memoryview(data))
        self.end.manager.take_ready()

    def taken(self) -> bytes:
        """Bytes for the peer."""
        found = b""
        while data := b"".join(self.id.bytes_to_send()):
            found += data
            self.id.bytes_sent(len(data))
        return found

    def segment(self, *pieces: bytes) -> None:
        """A segment in a right FPDU."""
        self.send(self.writer.frame(pieces))

    def tagged(self, opcode: int, stag: int, offset: int, payload: bytes = b"", **more: Any) -> None:
        header = DdpTagged(rdmap_control(opcode), stag, offset)._replace(**more)
        self.segment(header.encode(), payload)

    def untagged(self, opcode: int, queue: int, message: int, payload: bytes = b"", **more: Any) -> None:
        header = DdpUntagged(rdmap_control(opcode), 0, queue, message)._replace(**more)
        self.segment(header.encode(), payload)

    def read(self, stag: int, offset: int, size_bytes: int, *, message: int = 1, sink_offset: int = 0) -> None:
        request = ReadRequest(0x51, sink_offset, size_bytes, stag, offset)
        self.untagged(RdmapOpcode.READ_REQUEST, RdmapQueue.READ_REQUEST, message, request.encode())

    def post_recv(self, size_bytes: int) -> None:
        self.end.qp.post_recv(RecvWr(wr_id=1, sg_list=(self.end.sge(0, size_bytes),) if size_bytes else ()))

    def answers(self) -> list[tuple[DdpTagged | DdpUntagged, bytes]]:
        """Segments for the peer."""
        found = [bytes(segment) for segment in self.reader.feed(memoryview(self.taken()))]
        return [(header, bytes(rest)) for header, rest in (decode_ddp(segment) for segment in found)]

    def terminate(self) -> Terminate:
        """The Terminate that the peer gets; nothing comes behind it."""
        answers = self.answers()
        assert answers
        header, body = answers[-1]
        assert isinstance(header, DdpUntagged)
        assert (header.upper & 0xF, header.queue, header.message) == (RdmapOpcode.TERMINATE, RdmapQueue.TERMINATE, 1)
        assert self.qp.is_over
        self.send(b"anything")
        assert self.taken() == b""
        return Terminate.decode(body)[0]

    def check_refused(self, code: TerminateCode) -> Terminate:
        """The stream ended with this code, and no memory changed."""
        terminate = self.terminate()
        assert terminate.known is code
        self.check_unchanged()
        return terminate

    def check_unchanged(self) -> None:
        assert (self.buffer == self.before) is True
