"""Memory of the other end: what it offers, receives, reads and sends, with canaries between.

The judgement compares all of it with what it was, and with what the script should have made of it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from weftwork.rdma.peer.scripted import ALL_RIGHTS
from weftwork.rdma.peer.workload import bytes_of, end_counts, peer_bytes, request_bytes, with_added
from weftwork.rdma.region import LocalRange
from weftwork.rdma.verbs import ATOMIC_BYTES, AccessFlags

if TYPE_CHECKING:
    from weftwork.rdma.memory import ProtectionDomain
    from weftwork.rdma.nic import RdmaNic
    from weftwork.rdma.peer.script import PeerScript

__all__ = ["EndMemory"]

_CANARY_BYTES: Final = 4096  # chosen: a page on both sides of the offered memory
_RIGHTS: Final = {
    "write": AccessFlags.REMOTE_WRITE,
    "read": AccessFlags.REMOTE_READ,
    "atomic": AccessFlags.REMOTE_ATOMIC,
}


class EndMemory:
    """One buffer: canary, offered memory, canary, receives, canary, sink of READs and atomics, canary.

    Parameters
    ----------
    script : that the memory is for
    nic : registers it
    pd : protection domain of the connection

    Attributes
    ----------
    data : bytes to send
    receives : a place for each receive
    sink : where READs and atomics put what they get, or None
    """

    def __init__(self, script: PeerScript, nic: RdmaNic, pd: ProtectionDomain) -> None:
        self._script: Final = script
        self._nic: Final = nic
        end = script.end
        offered_bytes, receive_bytes = end.offers_bytes or 0, end.receives * end.receive_bytes
        sink_bytes = end.times * request_bytes(script) if end.does in {"read", "fetch-add"} else 0
        self._offered_at: Final = _CANARY_BYTES
        self._receives_at: Final = self._offered_at + offered_bytes + _CANARY_BYTES
        self._sink_at: Final = self._receives_at + receive_bytes + _CANARY_BYTES
        self._sink_bytes: Final = sink_bytes
        before = bytearray(bytes_of("canary", self._sink_at + sink_bytes + _CANARY_BYTES))
        if end_counts(script):
            before[self._offered_at : self._offered_at + ATOMIC_BYTES] = bytes(ATOMIC_BYTES)
        self._before: Final = bytes(before)
        self._buffer: Final = before
        view = memoryview(before)
        self._shared: list[LocalRange] = []
        if offered_bytes:
            offered = view[self._offered_at : self._offered_at + offered_bytes]
            rights = AccessFlags.LOCAL_WRITE
            for right in end.rights:
                rights |= _RIGHTS[right]
            self._shared = [self._registered(pd, offered, rights)]
            self._shared.append(self._registered(nic.alloc_pd(), offered, ALL_RIGHTS))
        self.receives: list[LocalRange] = []
        if receive_bytes:
            places = view[self._receives_at : self._receives_at + receive_bytes]
            whole = self._registered(pd, places, AccessFlags.LOCAL_WRITE)
            size_bytes = end.receive_bytes
            self.receives += [whole[n * size_bytes : (n + 1) * size_bytes] for n in range(end.receives)]
        self.sink: LocalRange | None = None
        if sink_bytes:
            place = view[self._sink_at : self._sink_at + sink_bytes]
            self.sink = self._registered(pd, place, AccessFlags.LOCAL_WRITE)
        data = bytearray(bytes_of("end", max(request_bytes(script), ATOMIC_BYTES)))
        self.data: Final = self._registered(pd, data, AccessFlags.LOCAL_WRITE)

    def _registered(self, pd: ProtectionDomain, buffer: bytearray | memoryview, access: AccessFlags) -> LocalRange:
        region = self._nic.memory.register(pd, buffer, access)
        return LocalRange(region, region.addr, region.length)

    def handles(self) -> bytes:
        """The offered memory and that of another domain, for the private data; empty without."""
        return b"".join(shared.remote.encode() for shared in self._shared)

    def value(self) -> int:
        """First 8 bytes of the offered memory."""
        return int.from_bytes(self._buffer[self._offered_at : self._offered_at + ATOMIC_BYTES], sys.byteorder)

    def fetched(self) -> tuple[int, ...]:
        """Values that atomics have returned."""
        if self._script.end.does != "fetch-add":
            return ()
        starts = range(self._sink_at, self._sink_at + self._sink_bytes, ATOMIC_BYTES)
        return tuple(int.from_bytes(self._buffer[at : at + ATOMIC_BYTES], sys.byteorder) for at in starts)

    def outcome(self) -> str:
        """``unchanged``, ``written`` as the script should have written it, or ``other``."""
        if self._buffer == self._before:
            return "unchanged"
        return "written" if self._buffer == self._expected() else "other"

    def _expected(self) -> bytes:
        """Memory after the workload and all requests of the peer."""
        script, end = self._script, self._script.end
        memory = bytearray(self._before)
        if end.does == "read":
            sink = slice(self._sink_at, self._sink_at + self._sink_bytes)
            memory[sink] = bytes_of("peer", peer_bytes(script))[: self._sink_bytes]
        data = bytes_of("data", max([step.size_bytes or 0 for step in script.peer] + [ATOMIC_BYTES]))
        receive_at = self._receives_at
        for step in script.peer:
            for _ in range(step.times):
                at, size_bytes = self._offered_at + (step.address_by or 0), step.size_bytes or 0
                if step.do == "write":
                    memory[at : at + size_bytes] = data[:size_bytes]
                elif step.do == "fetch-add":
                    memory[at : at + ATOMIC_BYTES] = with_added(bytes(memory[at : at + ATOMIC_BYTES]), 1)
                elif step.do == "send":
                    memory[receive_at : receive_at + size_bytes] = data[:size_bytes]
                    receive_at += end.receive_bytes
        return bytes(memory)
