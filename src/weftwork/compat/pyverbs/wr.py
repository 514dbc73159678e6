"""Work requests.

Source: pyverbs, wr.pyx (names); libibverbs, struct ibv_send_wr and ibv_recv_wr.
Leaves out: segmentation offload; extended reliable connections.
"""

from __future__ import annotations

import ctypes
from errno import ENOMEM
from socket import ntohl
from typing import TYPE_CHECKING, Final, TypeVar

from weftwork.compat.pyverbs.base import PyverbsCM, inc_rkey
from weftwork.compat.pyverbs.libibverbs_enums import ibv_send_flags, ibv_wr_opcode
from weftwork.compat.pyverbs.pyverbs_error import PyverbsRDMAError, PyverbsUserError, not_supported, refused_as
from weftwork.rdma.verbs import MwBind, RecvWr, SendFlags, SendWr, Sge, WrOpcode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weftwork.compat.pyverbs.addr import AH
    from weftwork.compat.pyverbs.mr import MW, MWBindInfo

__all__ = ["SGE", "RecvWR", "SendWR", "send_flags_to_str"]

_WITHOUT_MEMORY: Final = (ibv_wr_opcode.IBV_WR_LOCAL_INV, ibv_wr_opcode.IBV_WR_BIND_MW)
_INVALIDATES: Final = (ibv_wr_opcode.IBV_WR_LOCAL_INV, ibv_wr_opcode.IBV_WR_SEND_WITH_INV)
_ATOMICS: Final = (ibv_wr_opcode.IBV_WR_ATOMIC_CMP_AND_SWP, ibv_wr_opcode.IBV_WR_ATOMIC_FETCH_AND_ADD)
_WITH_IMMEDIATE: Final = (ibv_wr_opcode.IBV_WR_SEND_WITH_IMM, ibv_wr_opcode.IBV_WR_RDMA_WRITE_WITH_IMM)
_OPCODES: Final = frozenset(int(opcode) for opcode in WrOpcode)


class SGE(PyverbsCM):
    """A piece of memory.

    Parameters
    ----------
    addr : address in this process
    length : bytes
    lkey : local key of its region
    """

    def __init__(self, addr: int, length: int, lkey: int) -> None:
        self.addr = addr
        self.length = length
        self.lkey = lkey

    def read(self, length: int, offset: int) -> bytes:
        """Bytes of the piece."""
        return ctypes.string_at(self.addr + offset, length)

    @property
    def entry(self) -> Sge:
        """The piece, for the NIC."""
        return Sge(int(self.addr), int(self.length), int(self.lkey))

    def __str__(self) -> str:
        return _rows({"Address": hex(self.addr), "Length": self.length, "Key": hex(self.lkey)})


class RecvWR(PyverbsCM):
    """A receive.

    Parameters
    ----------
    wr_id : returned in the completion
    num_sge : pieces of memory
    sg : the pieces
    next_wr : posted together with this one
    """

    def __init__(
        self, wr_id: int = 0, num_sge: int = 0, sg: Sequence[SGE] | None = None, next_wr: RecvWR | None = None
    ) -> None:
        self.wr_id = wr_id
        self.num_sge = num_sge
        self.pieces = list(sg or ())
        self.next_wr = next_wr

    def become(self, other: RecvWR) -> None:
        """Take the content of the request that failed."""
        self.wr_id, self.num_sge, self.pieces, self.next_wr = other.wr_id, other.num_sge, other.pieces, other.next_wr

    @property
    def request(self) -> RecvWr:
        """The receive, for the NIC."""
        return RecvWr(wr_id=int(self.wr_id), sg_list=tuple(sge.entry for sge in self.pieces[: self.num_sge]))

    def __str__(self) -> str:
        return _rows({"WR ID": self.wr_id, "Num SGE": self.num_sge})


class SendWR(PyverbsCM):
    """A send work request.

    Parameters
    ----------
    wr_id : returned in the completion
    opcode : the operation
    num_sge : pieces of memory
    imm_data : 32 bits in network order, or the key to invalidate
    sg : the pieces
    send_flags : options
    next_wr : posted together with this one
    """

    def __init__(
        self,
        wr_id: int = 0,
        opcode: int = ibv_wr_opcode.IBV_WR_SEND,
        num_sge: int = 0,
        imm_data: int = 0,
        sg: Sequence[SGE] | None = None,
        send_flags: int = ibv_send_flags.IBV_SEND_SIGNALED,
        next_wr: SendWR | None = None,
    ) -> None:
        needs_memory = opcode not in (*_WITHOUT_MEMORY, *_INVALIDATES)
        if needs_memory and (num_sge < 1 or sg is None):
            raise PyverbsUserError("A WR needs at least one SGE")
        self.wr_id = wr_id
        self.opcode = opcode
        self.num_sge = num_sge
        self.imm_data = imm_data
        self.pieces = list(sg or ())
        self.send_flags = send_flags
        self.next_wr = next_wr
        self.ah: AH | None = None
        self._remote: dict[str, int] = {}
        self._atomic: dict[str, int] = {}
        self._datagram: dict[str, int] = {}
        self._window: MW | None = None
        self._bind_info: MWBindInfo | None = None
        self._bind_rkey = 0

    def become(self, other: SendWR) -> None:
        """Take the content of the request that failed."""
        self.__dict__.update(other.__dict__)

    @property
    def sg_list(self) -> Sequence[SGE]:
        """Pieces of memory; a piece that is set takes the place of all."""
        return self.pieces

    @sg_list.setter
    def sg_list(self, val: SGE) -> None:
        self.pieces = [val]

    def set_wr_ud(self, ah: AH, rqpn: int, rqkey: int) -> None:
        """Set the receiver of a datagram: handle, queue pair and its key."""
        self.ah = ah
        self._datagram = {"remote_qpn": rqpn, "remote_qkey": rqkey}

    def set_wr_rdma(self, rkey: int, addr: int) -> None:
        """Set the memory of the peer for WRITE and READ."""
        self._remote = {"rkey": rkey, "remote_addr": addr}

    def set_wr_atomic(self, rkey: int, addr: int, compare_add: int, swap: int = 0) -> None:
        """Set the memory of the peer and the operands of an atomic."""
        self._atomic = {"rkey": rkey, "remote_addr": addr, "compare_add": compare_add, "swap": swap}

    def set_bind_wr(self, mw: MW, bind_info: MWBindInfo) -> None:
        """Set the window of BIND_MW, and the range that it will cover."""
        self._window = mw
        self._bind_info = bind_info
        self._bind_rkey = inc_rkey(mw.rkey)

    @property
    def rkey(self) -> int:
        """Key that BIND_MW gives the window."""
        return self._bind_rkey

    def set_qp_type_xrc(self, remote_srqn: int) -> None:
        """Refuse an extended reliable connection."""
        raise not_supported(f"An XRC send to shared receive queue {remote_srqn}")

    @property
    def request(self) -> SendWr:
        """The request, for the NIC."""
        if int(self.opcode) not in _OPCODES:
            raise not_supported(f"Opcode {int(self.opcode)}")
        pieces = tuple(sge.entry for sge in self.pieces[: self.num_sge])
        is_inline = bool(self.send_flags & ibv_send_flags.IBV_SEND_INLINE)
        invalidates = self.opcode in _INVALIDATES
        place = self._atomic if self.opcode in _ATOMICS else self._remote
        bind = self._bind_info
        return SendWr(
            wr_id=int(self.wr_id),
            opcode=WrOpcode(int(self.opcode)),
            sg_list=() if is_inline else pieces,
            inline_data=b"".join(ctypes.string_at(p.addr, p.length) for p in pieces) if is_inline else None,
            flags=core_flags(self.send_flags),
            imm_data=ntohl(self.imm_data) if self.opcode in _WITH_IMMEDIATE else 0,
            invalidate_rkey=self.imm_data if invalidates else 0,
            remote_addr=place.get("remote_addr", 0),
            rkey=self._bind_rkey if bind is not None else place.get("rkey", 0),
            compare_add=place.get("compare_add", 0),
            swap=place.get("swap", 0),
            ah=self.ah.handle if self.ah is not None else None,
            remote_qpn=self._datagram.get("remote_qpn", 0),
            remote_qkey=self._datagram.get("remote_qkey", 0),
            window=self._window.window if self._window is not None else None,
            bind=core_bind(bind) if bind is not None else None,
        )

    def __str__(self) -> str:
        return _rows(
            {
                "WR ID": self.wr_id,
                "Num SGE": self.num_sge,
                "Opcode": int(self.opcode),
                "Send flags": send_flags_to_str(self.send_flags),
                "Imm Data": self.imm_data,
            }
        )


_AnyWR = TypeVar("_AnyWR", RecvWR, SendWR)


def post_chain(
    first: _AnyWR,
    bad_wr: _AnyWR | None,
    what: str,
    is_full: Callable[[], bool],
    post: Callable[[_AnyWR], None],
) -> None:
    """Post a request and those chained to it, up to the first that is refused.

    Parameters
    ----------
    first : the first request
    bad_wr : takes the content of the one that was refused
    what : words for the error
    is_full : whether the queue takes no more
    post : posts one
    """
    request: _AnyWR | None = first
    while request is not None:
        try:
            with refused_as(what):
                _post_one(request, what, is_full, post)
        except PyverbsRDMAError:
            if bad_wr is not None:
                bad_wr.become(request)
            raise
        request = request.next_wr


def _post_one(request: _AnyWR, what: str, is_full: Callable[[], bool], post: Callable[[_AnyWR], None]) -> None:
    if is_full():
        raise PyverbsRDMAError(what, ENOMEM)
    post(request)


def core_flags(flags: int) -> SendFlags:
    """Options, for the NIC; checksums of raw packets have no meaning here."""
    return SendFlags(int(flags) & 0b1111)


def core_bind(info: MWBindInfo) -> MwBind:
    """Binding of a window, for the NIC.

    A window gives rights to peers only, so local write means nothing in it.
    """
    from weftwork.compat.pyverbs.mr import window_access

    return MwBind(
        region=info.mr.region,
        addr=int(info.addr),
        length=int(info.length),
        access=window_access(info.mw_access_flags),
    )


def send_flags_to_str(flags: int) -> str:
    """Names of options, each with a space behind it."""
    return "".join(f"{flag.name} " for flag in ibv_send_flags if flags & flag)


def _rows(values: dict[str, object]) -> str:
    return "".join(f"{name:22}: {value!s:<20}\n" for name, value in values.items())
