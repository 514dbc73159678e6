"""Send work requests in progress: number and content of their packets.

Source: IBTA vol. 1, 9.2.1 (opcodes), 9.4 (operations), annex A19 (FLUSH and ATOMIC WRITE).
Leaves out: when a packet goes, and what comes back: see `requester`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from weftwork.base.errors import UsageError
from weftwork.base.grammar import plural
from weftwork.rdma.receive_queue import Scatter, refused_pieces_text
from weftwork.rdma.verbs import ATOMIC_BYTES, AccessFlags, QpType, SendFlags, SendWr, WcOpcode, WcStatus, WrOpcode
from weftwork.wire.extended import AtomicEth, Feth, Ieth, ImmediateData, Reth
from weftwork.wire.opcodes import Opcode

if TYPE_CHECKING:
    from weftwork.rdma.memory import MemoryTable, ProtectionDomain

__all__ = ["COMPLETES_AS", "RequestPacket", "SendEntry", "refused_text"]

MOST_MESSAGE_BYTES: Final = 1 << 31  # IBTA vol. 1, 9.7.2: a message has 0 to 2^31 bytes
MOST_PSNS: Final = 1 << 22  # chosen: of a message; half of those that can be told from old ones (IBTA vol. 1, 9.7.1)

# First, middle, last and only packet of a message.
_MESSAGES: Final = {
    WrOpcode.SEND: (Opcode.SEND_FIRST, Opcode.SEND_MIDDLE, Opcode.SEND_LAST, Opcode.SEND_ONLY),
    WrOpcode.SEND_WITH_IMM: (
        *(Opcode.SEND_FIRST, Opcode.SEND_MIDDLE),
        *(Opcode.SEND_LAST_IMMEDIATE, Opcode.SEND_ONLY_IMMEDIATE),
    ),
    WrOpcode.SEND_WITH_INV: (
        *(Opcode.SEND_FIRST, Opcode.SEND_MIDDLE),
        *(Opcode.SEND_LAST_INVALIDATE, Opcode.SEND_ONLY_INVALIDATE),
    ),
    WrOpcode.RDMA_WRITE: (Opcode.WRITE_FIRST, Opcode.WRITE_MIDDLE, Opcode.WRITE_LAST, Opcode.WRITE_ONLY),
    WrOpcode.RDMA_WRITE_WITH_IMM: (
        *(Opcode.WRITE_FIRST, Opcode.WRITE_MIDDLE),
        *(Opcode.WRITE_LAST_IMMEDIATE, Opcode.WRITE_ONLY_IMMEDIATE),
    ),
}
_ASKS: Final = {
    WrOpcode.RDMA_READ: Opcode.READ_REQUEST,
    WrOpcode.ATOMIC_CMP_AND_SWP: Opcode.COMPARE_SWAP,
    WrOpcode.ATOMIC_FETCH_AND_ADD: Opcode.FETCH_ADD,
    WrOpcode.FLUSH: Opcode.FLUSH,
    WrOpcode.ATOMIC_WRITE: Opcode.ATOMIC_WRITE,
}
_KNOWN_FLAGS: Final = int(sum(SendFlags))
_FENCE_FLAG: Final = int(SendFlags.FENCE)
_SIGNALED_FLAG: Final = int(SendFlags.SIGNALED)
_SOLICITED_FLAG: Final = int(SendFlags.SOLICITED)
_INLINE_FLAG: Final = int(SendFlags.INLINE)
ATOMICS: Final = frozenset({WrOpcode.ATOMIC_CMP_AND_SWP, WrOpcode.ATOMIC_FETCH_AND_ADD})
_WRITES: Final = frozenset({WrOpcode.RDMA_WRITE, WrOpcode.RDMA_WRITE_WITH_IMM})
_WITH_IMMEDIATE: Final = frozenset({WrOpcode.SEND_WITH_IMM, WrOpcode.RDMA_WRITE_WITH_IMM})
_INLINE: Final = frozenset({*_MESSAGES, WrOpcode.ATOMIC_WRITE})
_LOCAL: Final = frozenset({WrOpcode.LOCAL_INV, WrOpcode.BIND_MW})  # without a packet
_WINDOW_RIGHTS: Final = AccessFlags.REMOTE_WRITE | AccessFlags.REMOTE_READ | AccessFlags.REMOTE_ATOMIC
# IBTA vol. 1, table 35: operations of a transport service.
ALLOWED: Final = {
    QpType.RC: frozenset({*_MESSAGES, *_ASKS, *_LOCAL}),
    QpType.UC: frozenset({WrOpcode.SEND, WrOpcode.SEND_WITH_IMM, *_WRITES, *_LOCAL}),
    QpType.UD: frozenset({WrOpcode.SEND, WrOpcode.SEND_WITH_IMM}),
}
COMPLETES_AS: Final = {
    WrOpcode.SEND: WcOpcode.SEND,
    WrOpcode.SEND_WITH_IMM: WcOpcode.SEND,
    WrOpcode.SEND_WITH_INV: WcOpcode.SEND,
    WrOpcode.RDMA_WRITE: WcOpcode.RDMA_WRITE,
    WrOpcode.RDMA_WRITE_WITH_IMM: WcOpcode.RDMA_WRITE,
    WrOpcode.RDMA_READ: WcOpcode.RDMA_READ,
    WrOpcode.ATOMIC_CMP_AND_SWP: WcOpcode.COMP_SWAP,
    WrOpcode.ATOMIC_FETCH_AND_ADD: WcOpcode.FETCH_ADD,
    WrOpcode.LOCAL_INV: WcOpcode.LOCAL_INV,
    WrOpcode.BIND_MW: WcOpcode.BIND_MW,
    WrOpcode.FLUSH: WcOpcode.FLUSH,
    WrOpcode.ATOMIC_WRITE: WcOpcode.ATOMIC_WRITE,
}


class RequestPacket(NamedTuple):
    """A packet without its BTH.

    Parameters
    ----------
    opcode : of a reliable connection
    headers : extended headers, encoded
    pieces : payload
    payload_bytes : of the pieces
    ends_message : the last packet of its message
    """

    opcode: int
    headers: bytes
    pieces: tuple[memoryview, ...]
    payload_bytes: int
    ends_message: bool


class SendEntry:
    """A posted send work request.

    Attributes
    ----------
    length : bytes of the message, or to be read
    awaits_response : data has to come back, an ACK alone does not do
    first_psn : not wrapped; -1 before the first packet is sent
    packets : PSNs that it takes; 0 of a local operation
    received : packets of its response so far
    is_asked : it awaits a response and is on its way
    is_fenced, is_signaled, is_solicited : as its flags say
    error : it cannot be sent, for this reason
    """

    def __init__(self, wr: SendWr, path_mtu: int) -> None:
        self.wr: Final = wr
        self.length: Final = message_bytes(wr)
        self.awaits_response: Final = wr.opcode in _ASKS
        self.first_psn = -1
        self.received = 0
        self.is_asked = False
        flags = int(wr.flags)  # since operations on flags take long
        self.is_fenced: Final = bool(flags & _FENCE_FLAG)
        self.is_signaled: Final = bool(flags & _SIGNALED_FLAG)
        self.is_solicited: Final = bool(flags & _SOLICITED_FLAG)
        self.error: WcStatus | None = None
        self.data: Scatter | None = None
        self._mtu: Final = path_mtu
        self.packets: Final = 0 if wr.opcode in _LOCAL else max(1, -(-self.length // path_mtu))

    @property
    def end_psn(self) -> int:
        """PSN behind its last packet."""
        return self.first_psn + self.packets

    @property
    def reads(self) -> bool:
        """Whether the response brings bytes of memory."""
        return self.wr.opcode is WrOpcode.RDMA_READ

    @property
    def is_answered(self) -> bool:
        """Whether only an ACK is missing."""
        return not self.awaits_response or self.received == self.packets

    def execute_here(self, memory: MemoryTable, pd: ProtectionDomain, qp_num: int) -> WcStatus:
        """Do a local operation; returns its status."""
        wr = self.wr
        if wr.opcode is WrOpcode.BIND_MW and wr.window is not None and wr.bind is not None:
            region, place = wr.bind.region, (wr.bind.addr, wr.bind.length)
            is_own = wr.window.pd is pd
            is_done = is_own and memory.bind(wr.window, region, place, wr.bind.access, qp_num, rkey=wr.rkey)
        else:
            is_done = memory.invalidate(pd, wr.invalidate_rkey, qp_num)
        return WcStatus.SUCCESS if is_done else WcStatus.MW_BIND_ERR

    def copy_inline(self, memory: MemoryTable, pd: ProtectionDomain) -> None:
        """Copy the memory now; UsageError if it is not readable."""
        if self.wr.inline_data is not None:
            self.data = Scatter([memoryview(self.wr.inline_data)])
            return
        if not self.find_memory(memory, pd) or self.data is None:
            raise UsageError("sg_list: found memory that is not registered in this domain")
        self.data = Scatter([memoryview(b"".join(self.data.pieces))])

    def find_memory(self, memory: MemoryTable, pd: ProtectionDomain) -> bool:
        """Look the memory up when the request starts; False if not permitted."""
        if self.data is not None:
            return True
        access = (
            AccessFlags.LOCAL_WRITE
            if self.wr.opcode in ATOMICS or self.wr.opcode is WrOpcode.RDMA_READ
            else AccessFlags(0)
        )
        pieces = [memory.local(pd, sge, access) for sge in self.wr.sg_list]
        found = [piece for piece in pieces if piece is not None]
        self.data = Scatter(found)
        return len(found) == len(pieces)

    def local_error(self, service: QpType) -> WcStatus | None:
        """Local error of a request that no peer may see, or None."""
        is_eight = self.wr.opcode in ATOMICS or self.wr.opcode is WrOpcode.ATOMIC_WRITE
        is_long = self.packets > MOST_PSNS or self.length > MOST_MESSAGE_BYTES
        if is_long or (service is QpType.UD and self.packets > 1):
            return WcStatus.LOC_LEN_ERR
        return WcStatus.LOC_LEN_ERR if is_eight and self.length != ATOMIC_BYTES else None

    def packet(self, index: int) -> RequestPacket:
        """Packet ``index`` of the request.

        Of a READ it is the request for all responses from there on.
        """
        if self.awaits_response:
            return self.question(index, self.packets)
        size_bytes = min(self._mtu, self.length - index * self._mtu)
        is_first, is_last = index == 0, index == self.packets - 1
        row = _MESSAGES[self.wr.opcode]
        opcode = row[3] if is_first and is_last else row[0] if is_first else row[2] if is_last else row[1]
        headers = b""
        if is_first and self.wr.opcode in _WRITES:
            headers = Reth(self.wr.remote_addr, self.wr.rkey, self.length).encode()
        if is_last and self.wr.opcode in _WITH_IMMEDIATE:
            headers += ImmediateData(self.wr.imm_data).encode()
        elif is_last and self.wr.opcode is WrOpcode.SEND_WITH_INV:
            headers += Ieth(self.wr.invalidate_rkey).encode()
        return RequestPacket(opcode, headers, self._bytes(index * self._mtu, size_bytes), size_bytes, is_last)

    @property
    def middle_opcode(self) -> int:
        """Opcode of a middle packet of a data message."""
        return _MESSAGES[self.wr.opcode][1]

    def middle(self, index: int, count: int) -> memoryview | None:
        """Payload of ``count`` full packets from ``index`` on.

        None if it is in several pieces or empty.
        """
        if self.awaits_response or self.data is None or len(self.data.pieces) != 1:
            return None
        return self.data.pieces[0][index * self._mtu : (index + count) * self._mtu]

    def question(self, start: int, end: int) -> RequestPacket:
        """Request for the responses from ``start`` to ``end``.

        READ alone has several responses.
        """
        wr, done_bytes = self.wr, start * self._mtu
        pieces: tuple[memoryview, ...] = ()
        if wr.opcode is WrOpcode.RDMA_READ:
            size_bytes = min(self.length, end * self._mtu) - done_bytes
            headers = Reth(wr.remote_addr + done_bytes, wr.rkey, size_bytes).encode()
        elif wr.opcode is WrOpcode.ATOMIC_CMP_AND_SWP:
            headers = AtomicEth(wr.remote_addr, wr.rkey, wr.swap, wr.compare_add).encode()
        elif wr.opcode is WrOpcode.ATOMIC_FETCH_AND_ADD:
            headers = AtomicEth(wr.remote_addr, wr.rkey, wr.compare_add, 0).encode()
        elif wr.opcode is WrOpcode.FLUSH:
            flush = Feth(placement=wr.flush_placement, selectivity=wr.flush_selectivity)
            headers = flush.encode() + Reth(wr.remote_addr, wr.rkey, wr.flush_bytes).encode()
        else:
            headers = Reth(wr.remote_addr, wr.rkey, ATOMIC_BYTES).encode()
            pieces = self._bytes(0, ATOMIC_BYTES)
        return RequestPacket(_ASKS[wr.opcode], headers, pieces, sum(map(len, pieces)), ends_message=True)

    def _bytes(self, offset: int, size_bytes: int) -> tuple[memoryview, ...]:
        return self.data.read(offset, size_bytes) if self.data is not None and size_bytes else ()


def message_bytes(wr: SendWr) -> int:
    """Bytes that a request sends, or that it reads."""
    return sum(sge.length for sge in wr.sg_list) if wr.inline_data is None else len(wr.inline_data)


def refused_text(wr: SendWr, service: QpType, max_sge: int, max_inline_data: int) -> str | None:
    """Why a request is refused, or None."""
    if wr.opcode not in ALLOWED[service]:
        return f"opcode: found {wr.opcode.name}, which {service.name} does not have"
    if len(wr.sg_list) > max_sge:
        return f"sg_list: found {plural(len(wr.sg_list), 'element')}, wanted at most {max_sge}"
    if service is QpType.UD and wr.ah is None:
        return "ah: found none, wanted the address handle of the receiver"
    return (
        refused_pieces_text(wr.sg_list)
        or _refused_flags_text(wr, max_inline_data)
        or _refused_numbers_text(wr)
        or (_refused_bind_text(wr) if wr.bind is not None or wr.opcode is WrOpcode.BIND_MW else None)
    )


def _refused_flags_text(wr: SendWr, max_inline_data: int) -> str | None:
    flags = int(wr.flags)
    if flags & ~_KNOWN_FLAGS:
        return f"flags: found the unknown bits {flags & ~_KNOWN_FLAGS:#x}, wanted members of SendFlags"
    if flags & _INLINE_FLAG and (wr.opcode not in _INLINE or message_bytes(wr) > max_inline_data):
        size = f"{wr.opcode.name} of {message_bytes(wr)} bytes"
        return f"flags: found INLINE for {size}, wanted at most {max_inline_data} to send"
    if wr.inline_data is not None and (wr.sg_list or not flags & _INLINE_FLAG):
        return "inline_data: found it with other memory or without the flag INLINE, wanted it alone with the flag"
    return None


def _refused_bind_text(wr: SendWr) -> str | None:
    bind = wr.bind
    if wr.window is None or bind is None:
        return "window, bind: found none, wanted both for BIND_MW"
    if int(bind.access) & ~int(_WINDOW_RIGHTS):
        return f"access: found {bind.access!r}, wanted remote write, read and atomic at most"
    if bind.length < 0 or bind.addr < 0 or bind.addr + bind.length > 1 << 64:
        return f"bind: found {bind.length} bytes at {bind.addr}, wanted a range below 2^64"
    return None


def _refused_numbers_text(wr: SendWr) -> str | None:
    """The number of a request that does not fit its field, in words."""
    words = wr.imm_data | wr.rkey | wr.invalidate_rkey | wr.remote_qkey | wr.flush_bytes
    long_words = wr.remote_addr | wr.compare_add | wr.swap
    if words >> 32 or long_words >> 64 or wr.remote_qpn >> 24:  # of a negative number bits are left too
        return _misfit_text(wr)
    if wr.opcode is WrOpcode.FLUSH and (wr.flush_placement >> 4 or wr.flush_selectivity >> 2):
        return _misfit_text(wr)
    if wr.opcode is WrOpcode.RDMA_READ and wr.remote_addr + message_bytes(wr) > 1 << 64:
        return f"remote_addr: found {wr.remote_addr} and {message_bytes(wr)} bytes to read, which pass 2^64"
    return None


def _misfit_text(wr: SendWr) -> str | None:
    """The number of a request that does not fit its field, in words."""
    for name, value, bits in (
        *(("imm_data", wr.imm_data, 32), ("rkey", wr.rkey, 32), ("invalidate_rkey", wr.invalidate_rkey, 32)),
        *(("remote_addr", wr.remote_addr, 64), ("compare_add", wr.compare_add, 64), ("swap", wr.swap, 64)),
        *(("remote_qpn", wr.remote_qpn, 24), ("remote_qkey", wr.remote_qkey, 32), ("flush_bytes", wr.flush_bytes, 32)),
        *(("flush_placement", wr.flush_placement, 4), ("flush_selectivity", wr.flush_selectivity, 2)),
    ):
        if not 0 <= value < 1 << bits:
            return f"{name}: found {value}, wanted {bits} bits"
    return None
