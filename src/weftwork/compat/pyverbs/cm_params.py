"""Parameters of the connection manager.

Source: pyverbs, cmid.pyx (names); librdmacm, rdma_connect(3), rdma_join_multicast_ex(3).
Leaves out: flow control of hardware, which no RoCE device has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.compat.pyverbs.base import PyverbsObject
from weftwork.rdma.cm_records import ConnParam as CoreParam
from weftwork.rdma.verbs import AccessFlags

if TYPE_CHECKING:
    from weftwork.compat.pyverbs.addr import AHAttr
    from weftwork.compat.pyverbs.cm_address import AddrInfo
    from weftwork.compat.pyverbs.cm_events import CMEvent

__all__ = ["ConnParam", "JoinMCAttrEx", "UDParam", "core_param"]

_MOST_RETRIES: Final = 7  # IBTA vol. 1, 12.7.38: three bits


class ConnParam(PyverbsObject):
    """Parameters of a connection.

    Parameters
    ----------
    resources, depth : READs and atomics that this end takes, and asks for, at once
    flow_control : ignored
    retry, rnr_retry : attempts after a timeout, and after an RNR NAK; 7 at most
    srq : whether the queue pair has a shared receive queue; the queue pair itself knows
    qp_num : queue pair that the program moves, where the identifier has none
    data_len : room for private data
    """

    def __init__(
        self,
        resources: int = 1,
        depth: int = 1,
        flow_control: int = 0,
        retry: int = 5,
        rnr_retry: int = 5,
        srq: int = 0,
        qp_num: int = 0,
        data_len: int = 0,
    ) -> None:
        self.responder_resources = resources
        self.initiator_depth = depth
        self.flow_control = flow_control
        self.retry_count = retry
        self.rnr_retry_count = rnr_retry
        self.srq = srq
        self.qpn = qp_num
        self._room_bytes = data_len
        self._data = b""

    @property
    def private_data(self) -> bytes:
        """Bytes for the peer."""
        return self._data

    def set_private_data(self, data: bytes) -> None:
        """Set the bytes for the peer; those that do not fit the room are cut off."""
        if data and self._room_bytes:
            self._data = bytes(data[: self._room_bytes])

    def __str__(self) -> str:
        rows = {
            "responder resources": self.responder_resources,
            "initiator depth": self.initiator_depth,
            "flow control": self.flow_control,
            "retry count": self.retry_count,
            "rnr retry count": self.rnr_retry_count,
            "srq": self.srq,
            "qp number": self.qpn,
        }
        return "Connection parameters: \n" + "".join(f"{name:<4}: {value:<4}\n" for name, value in rows.items())


def core_param(param: ConnParam | None, timeout: int | None, *, moves_qp: bool) -> CoreParam:
    """Parameters, for the NIC.

    Parameters
    ----------
    param : of the program; None for the largest of everything, as librdmacm takes them
    timeout : code of the time until a packet goes again, or None
    moves_qp : the manager moves the queue pair
    """
    known = CoreParam(moves_qp=moves_qp)
    resources = param.responder_resources if param is not None else known.responder_resources
    access = AccessFlags.REMOTE_WRITE
    if resources:  # as cm_init_qp_init_attr in Linux drivers/infiniband/core/cm.c
        access |= AccessFlags.REMOTE_READ | AccessFlags.REMOTE_ATOMIC
    return CoreParam(
        private_data=param.private_data if param is not None else b"",
        responder_resources=resources,
        initiator_depth=param.initiator_depth if param is not None else known.initiator_depth,
        retry_count=min(param.retry_count, _MOST_RETRIES) if param is not None else known.retry_count,
        rnr_retry_count=min(param.rnr_retry_count, _MOST_RETRIES) if param is not None else known.rnr_retry_count,
        timeout=timeout if timeout is not None else known.timeout,
        qp_access_flags=access,
        moves_qp=moves_qp,
    )


class JoinMCAttrEx(PyverbsObject):
    """Attributes of a multicast group to join.

    Parameters
    ----------
    addr : its address, as source
    comp_mask : attributes that count, bits of ``rdma_cm_join_mc_attr_mask``
    join_flags : kind of the member, one of ``rdma_cm_mc_join_flags``
    """

    def __init__(self, addr: AddrInfo, comp_mask: int = 0, join_flags: int = 0) -> None:
        self.addr = addr
        self.comp_mask = comp_mask
        self.join_flags = join_flags


class UDParam(PyverbsObject):
    """Receiver of datagrams that an event names.

    Parameters
    ----------
    cm_event : that tells of a datagram service or a joined group
    """

    def __init__(self, cm_event: CMEvent) -> None:
        self._ud = cm_event.happening.ud

    @property
    def qp_num(self) -> int:
        """Queue pair."""
        return self._ud.qp_num

    @property
    def qkey(self) -> int:
        """Key that datagrams have to bring."""
        return self._ud.qkey

    @property
    def ah_attr(self) -> AHAttr:
        """Address, as a copy."""
        return self._ud.ah_attr.copied()
