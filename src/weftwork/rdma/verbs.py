"""Records of the verbs: queue pair types, work requests, completions, rights, attributes.

Source: IBTA vol. 1, chapters 10 and 11, by the names and numbers of rdma-core's libibverbs/verbs.h.
Leaves out: what the verbs do; extended reliable connections, raw packets, on-demand paging.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import TYPE_CHECKING, Final

from weftwork.wire.ib import DEFAULT_PARTITION_KEY

if TYPE_CHECKING:
    from weftwork.rdma.memory import MemoryRegion, MemoryWindow

__all__ = [
    "ATOMIC_BYTES",
    "INFINITE_RNR_RETRY",
    "AccessFlags",
    "AddressHandle",
    "MwBind",
    "QpAttr",
    "QpState",
    "QpType",
    "RecvWr",
    "SendFlags",
    "SendWr",
    "Sge",
    "Wc",
    "WcOpcode",
    "WcStatus",
    "WrOpcode",
    "inc_rkey",
]

ATOMIC_BYTES: Final = 8  # IBTA vol. 1, 9.4.5
INFINITE_RNR_RETRY: Final = 7  # IBTA vol. 1, 9.7.5.2.8


class QpType(IntEnum):
    """Transport service of a queue pair (enum ibv_qp_type)."""

    __hash__ = int.__hash__  # that of an Enum takes long

    RC = 2
    UC = 3
    UD = 4


class QpState(IntEnum):
    """State of a queue pair (enum ibv_qp_state)."""

    __hash__ = int.__hash__  # that of an Enum takes long

    RESET = 0
    INIT = 1
    RTR = 2
    RTS = 3
    SQD = 4
    SQE = 5
    ERR = 6


class AccessFlags(IntFlag):
    """Rights on memory or of a peer (enum ibv_access_flags).

    They are beside local read, or those that a queue pair gives its peer.
    """

    LOCAL_WRITE = 1
    REMOTE_WRITE = 2
    REMOTE_READ = 4
    REMOTE_ATOMIC = 8
    MW_BIND = 16
    FLUSH_GLOBAL = 1 << 8
    FLUSH_PERSISTENT = 1 << 9


class SendFlags(IntFlag):
    """Options of a send work request (enum ibv_send_flags)."""

    FENCE = 1
    SIGNALED = 2
    SOLICITED = 4
    INLINE = 8


class WrOpcode(IntEnum):
    """Operation of a send work request (enum ibv_wr_opcode)."""

    __hash__ = int.__hash__  # that of an Enum takes long

    RDMA_WRITE = 0
    RDMA_WRITE_WITH_IMM = 1
    SEND = 2
    SEND_WITH_IMM = 3
    RDMA_READ = 4
    ATOMIC_CMP_AND_SWP = 5
    ATOMIC_FETCH_AND_ADD = 6
    LOCAL_INV = 7
    BIND_MW = 8
    SEND_WITH_INV = 9
    FLUSH = 14
    ATOMIC_WRITE = 15


class WcStatus(IntEnum):
    """Final status of a work request (enum ibv_wc_status)."""

    __hash__ = int.__hash__  # that of an Enum takes long

    SUCCESS = 0
    LOC_LEN_ERR = 1
    LOC_QP_OP_ERR = 2
    LOC_PROT_ERR = 4
    WR_FLUSH_ERR = 5
    MW_BIND_ERR = 6
    BAD_RESP_ERR = 7
    LOC_ACCESS_ERR = 8
    REM_INV_REQ_ERR = 9
    REM_ACCESS_ERR = 10
    REM_OP_ERR = 11
    RETRY_EXC_ERR = 12
    RNR_RETRY_EXC_ERR = 13


class WcOpcode(IntEnum):
    """Operation that completed (enum ibv_wc_opcode)."""

    SEND = 0
    RDMA_WRITE = 1
    RDMA_READ = 2
    COMP_SWAP = 3
    FETCH_ADD = 4
    BIND_MW = 5
    LOCAL_INV = 6
    FLUSH = 8
    ATOMIC_WRITE = 9
    RECV = 128
    RECV_RDMA_WITH_IMM = 129


_NO_FLAGS: Final = SendFlags(0)
_NO_ACCESS: Final = AccessFlags(0)


@dataclass(frozen=True, slots=True)
class Sge:
    """A piece of registered memory (struct ibv_sge).

    Parameters
    ----------
    addr : address in this process
    length : bytes
    lkey : local key of the region
    """

    addr: int
    length: int
    lkey: int


@dataclass(frozen=True, kw_only=True, slots=True)
class AddressHandle:
    """Destination of a datagram (struct ibv_ah_attr).

    Parameters
    ----------
    address : IP address of the peer, 4 or 16 bytes in network order
    dscp : of the IP header
    """

    address: bytes
    dscp: int = 0


def inc_rkey(rkey: int) -> int:
    """Key for the next binding of a type 2 window.

    The consumer owns its lowest byte (IBTA vol. 1, 10.6.7.2).

    Examples
    --------
    >>> hex(inc_rkey(0x123456FF))
    '0x12345600'
    """
    return rkey & ~0xFF | (rkey + 1) & 0xFF


@dataclass(frozen=True, kw_only=True, slots=True)
class MwBind:
    """Binding of a memory window (struct ibv_mw_bind_info).

    Parameters
    ----------
    region : that the range lies in, with the right ``MW_BIND``
    addr, length : of the range; a length of 0 unbinds a window of type 1
    access : rights of the peer: remote write, read and atomic
    """

    region: MemoryRegion
    addr: int
    length: int
    access: AccessFlags


@dataclass(frozen=True, kw_only=True, slots=True)
class SendWr:
    """A send work request (struct ibv_send_wr).

    Parameters
    ----------
    wr_id : returned in the completion
    opcode : the operation
    sg_list : memory to read, or to write for READ and atomics
    inline_data : bytes to send instead, with ``INLINE``; they need no region
    flags : of the request; ``INLINE`` copies the memory as it is posted
    imm_data : 32 bits, of the operations with immediate
    invalidate_rkey : key that SEND_WITH_INV and LOCAL_INV invalidate
    remote_addr, rkey : memory of the peer, of WRITE, READ, atomics and FLUSH; of BIND_MW the new key, see `inc_rkey`
    window, bind : of BIND_MW
    compare_add, swap : 64 bits each: to compare or to add, and the new value
    ah, remote_qpn, remote_qkey : receiver of a datagram
    flush_bytes : size of the range of a FLUSH
    flush_placement, flush_selectivity : see ``weftwork.wire.extended.Feth``
    """

    wr_id: int
    opcode: WrOpcode
    sg_list: tuple[Sge, ...] = ()
    inline_data: bytes | None = None
    flags: SendFlags = _NO_FLAGS
    imm_data: int = 0
    invalidate_rkey: int = 0
    remote_addr: int = 0
    rkey: int = 0
    compare_add: int = 0
    swap: int = 0
    ah: AddressHandle | None = None
    remote_qpn: int = 0
    remote_qkey: int = 0
    flush_bytes: int = 0
    flush_placement: int = 1
    flush_selectivity: int = 0
    window: MemoryWindow | None = None
    bind: MwBind | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RecvWr:
    """A receive work request (struct ibv_recv_wr).

    Parameters
    ----------
    wr_id : returned in the completion
    sg_list : memory to write; of datagrams the first 40 bytes are for the IP header
    """

    wr_id: int
    sg_list: tuple[Sge, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Wc:
    """A work completion (struct ibv_wc).

    Parameters
    ----------
    wr_id : of the work request
    status : how it ended; of the rest only ``qp_num`` holds after an error
    opcode : the operation
    qp_num : of this end
    byte_len : bytes received or read
    imm_data : 32 bits, or None where the message brought none
    invalidated_rkey : key that the message has invalidated, or None
    src_qp : sender of a datagram
    has_grh : 40 bytes with the IP header lie in front of the payload
    solicited : the sender asked for an event
    """

    wr_id: int
    status: WcStatus
    opcode: WcOpcode
    qp_num: int
    byte_len: int = 0
    imm_data: int | None = None
    invalidated_rkey: int | None = None
    src_qp: int = 0
    has_grh: bool = False
    solicited: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class QpAttr:
    """Attributes of a queue pair (struct ibv_qp_attr).

    Parameters
    ----------
    remote_address : IP address of the peer, 4 or 16 bytes in network order; unused by UD
    dest_qp_num : queue pair of the peer, 24 bits
    path_mtu : payload of a full packet in bytes
    rq_psn, sq_psn : first PSN to expect and to send, 24 bits
    max_rd_atomic, max_dest_rd_atomic : READs and atomics in flight from here, and accepted from the peer
    min_rnr_timer : code of the pause that a peer makes when no receive is posted
    timeout : a request without an answer is sent again after 4.096 us x 2^timeout; 0 never
    retry_cnt : attempts after a timeout or a gap, 0 to 7
    rnr_retry : attempts after an RNR NAK, 0 to 7; 7 never gives up
    qp_access_flags : what the peer may do
    pkey : partition key
    qkey : admits datagrams, 32 bits
    selective_repeat : send again what is lost alone; a private option of RC that both ends have to have
    """

    remote_address: bytes = b""
    dest_qp_num: int = 0
    path_mtu: int = 1024
    rq_psn: int = 0
    sq_psn: int = 0
    max_rd_atomic: int = 1
    max_dest_rd_atomic: int = 1
    min_rnr_timer: int = 12
    timeout: int = 14
    retry_cnt: int = 7
    rnr_retry: int = INFINITE_RNR_RETRY
    qp_access_flags: AccessFlags = _NO_ACCESS
    pkey: int = DEFAULT_PARTITION_KEY
    qkey: int = 0
    selective_repeat: bool = False
