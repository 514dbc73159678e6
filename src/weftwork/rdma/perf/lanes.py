"""Queue pairs of a measurement, with their memory: made, exchanged and joined at both ends.

The numbers, keys and addresses of each end go to the other in a letter, as perftest exchanges them over TCP.
Source: linux-rdma/perftest, src/perftest_communication.c (ctx_hand_shake).
Leaves out: the loops that use the queue pairs, see `streams` and `ping_pong`.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weftwork.base.errors import PeerError
from weftwork.rdma.perf.operation import PerfVerb
from weftwork.rdma.verbs import (
    AccessFlags,
    AddressHandle,
    QpAttr,
    QpState,
    QpType,
    RecvWr,
    SendFlags,
    SendWr,
    Sge,
    WcOpcode,
    WcStatus,
    WrOpcode,
)
from weftwork.rdma.work import WorkError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from weftwork.rdma.completion import CompletionQueue
    from weftwork.rdma.connection import RdmaConnection
    from weftwork.rdma.device import RdmaDevice
    from weftwork.rdma.memory import MemoryRegion
    from weftwork.rdma.perf.plan import PerfPlan
    from weftwork.rdma.queue_pair import RdmaQueuePair
    from weftwork.rdma.verbs import Wc

__all__ = ["PerfLane", "PerfLanes"]

_GRH_BYTES: Final = 40  # IBTA vol. 1, 11.4.2.1: in front of a received datagram
_ALIGNMENT: Final = 64  # chosen: a line of the cache, and enough for atomics
_QKEY: Final = 0x11111111  # DEF_QKEY of perftest_resources.h
_ACCESS: Final = (
    AccessFlags.LOCAL_WRITE | AccessFlags.REMOTE_WRITE | AccessFlags.REMOTE_READ | AccessFlags.REMOTE_ATOMIC
)
_OPCODES: Final = {
    PerfVerb.WRITE: WrOpcode.RDMA_WRITE,
    PerfVerb.READ: WrOpcode.RDMA_READ,
    PerfVerb.SEND: WrOpcode.SEND,
}
_ATOMICS: Final = {"fetch-add": WrOpcode.ATOMIC_FETCH_AND_ADD, "cmp-swap": WrOpcode.ATOMIC_CMP_AND_SWP}


@dataclass(slots=True)
class PerfLane:
    """A queue pair with its memory, and its peer.

    Parameters
    ----------
    qp, psn : of this end
    at_bytes : its part of both buffers
    out_mr, in_mr : that part, registered in the domain of the queue pair
    peer_qp, peer_psn : of the peer
    peer_addr, peer_rkey : memory of the peer that WRITE, READ and atomics use
    posted, completed : messages so far
    """

    qp: RdmaQueuePair
    psn: int
    at_bytes: int
    out_mr: MemoryRegion
    in_mr: MemoryRegion
    peer_qp: int = 0
    peer_psn: int = 0
    peer_addr: int = 0
    peer_rkey: int = 0
    posted: int = 0
    completed: int = 0


class PerfLanes:
    """All queue pairs of one end.

    Parameters
    ----------
    connection : over which the ends exchange their numbers
    plan : of the measurement
    joined : connections whose queue pairs are used, where the plan has them joined by the connection manager

    Attributes
    ----------
    device, plan : as given
    outgoing, incoming : memory that requests take or fill, and memory that the peer fills
    send_cq, recv_cq : completion queues of all queue pairs
    path_mtu : largest that fits at this end, or the plan's
    local_address : of this end
    """

    def __init__(self, connection: RdmaConnection, plan: PerfPlan, joined: Sequence[RdmaConnection] = ()) -> None:
        self.device: Final[RdmaDevice] = connection.device
        self.plan: Final = plan
        self._remote: Final = ip_address(connection.remote_address).packed
        self._joined: Final = tuple(joined)
        is_datagram = plan.qp_type is QpType.UD
        stride = max(plan.sizes) + (_GRH_BYTES if is_datagram else 0)
        stride = -(-stride // _ALIGNMENT) * _ALIGNMENT
        self._grh_bytes: Final = _GRH_BYTES if is_datagram else 0
        device = self.device
        self.local_address: Final = str(ip_address(device.port.address))
        pd = device.alloc_pd()
        self.outgoing: Final[NDArray[np.uint8]] = np.zeros(stride * plan.qps, np.uint8)
        self.incoming: Final[NDArray[np.uint8]] = np.zeros(stride * plan.qps, np.uint8)
        self.send_cq: Final[CompletionQueue] = device.create_cq(plan.tx_depth * plan.qps + plan.qps)
        self.recv_cq: Final[CompletionQueue] = device.create_cq(plan.rx_depth * plan.qps)
        self.lanes: Final[list[PerfLane]] = []
        for number in range(plan.qps):
            if joined:
                qp = joined[number].qp
                device.on_completion(joined[number].cq, self._sorter(joined[number].cq))
            else:
                qp = device.create_qp(pd, plan.qp_type, (self.send_cq, self.recv_cq), max_recv_wr=plan.rx_depth)
            part = slice(number * stride, (number + 1) * stride)
            out_mr = device.reg_mr(qp.pd, self.outgoing[part])
            in_mr = device.reg_mr(qp.pd, self.incoming[part], _ACCESS)
            self.lanes.append(PerfLane(qp, device.nic.random_psn(), part.start, out_mr, in_mr))
        self.path_mtu = plan.path_mtu or device.port.path_mtu(self._remote)

    def _sorter(self, cq: CompletionQueue) -> Callable[[], None]:
        """A function that sorts completions of a connection into the two queues of all."""

        def sort() -> None:
            for wc in cq.poll(len(cq)):
                (self.recv_cq if wc.opcode >= WcOpcode.RECV else self.send_cq).add(wc)

        return sort

    def describe(self) -> dict[str, Any]:
        """Numbers, keys and addresses for the peer."""
        lanes = [[lane.qp.qp_num, lane.psn, lane.in_mr.addr, lane.in_mr.rkey] for lane in self.lanes]
        return {"lanes": lanes, "path_mtu": self.path_mtu}

    def join(self, peer: object) -> None:
        """Learn the memory of the peer, and take all queue pairs to RTS.

        Parameters
        ----------
        peer : what the other end has described

        Raises
        ------
        PeerError : it does not fit
        """
        try:
            described, path_mtu = peer["lanes"], int(peer["path_mtu"])  # type: ignore[index]
            for lane, numbers in zip(self.lanes, described, strict=True):
                lane.peer_qp, lane.peer_psn, lane.peer_addr, lane.peer_rkey = map(int, numbers)
        except (KeyError, TypeError, ValueError) as error:
            raise PeerError(
                "the peer described its queue pairs in another way; use one version at both ends"
            ) from error
        self.path_mtu = min(self.path_mtu, path_mtu)
        depth = self.plan.outstanding
        for lane in () if self._joined else self.lanes:
            attr = QpAttr(
                remote_address=self._remote,
                dest_qp_num=lane.peer_qp,
                path_mtu=self.path_mtu,
                rq_psn=lane.peer_psn,
                sq_psn=lane.psn,
                max_rd_atomic=depth,
                max_dest_rd_atomic=depth,
                qp_access_flags=_ACCESS if self.plan.qp_type is not QpType.UD else AccessFlags(0),
                qkey=_QKEY,
            )
            for state in (QpState.INIT, QpState.RTR, QpState.RTS):
                self.device.modify_qp(lane.qp, state, attr)

    def request(self, lane: PerfLane, size_bytes: int, completes: int) -> SendWr:
        """A work request that can be posted again and again.

        Parameters
        ----------
        lane : that posts it
        size_bytes : of the message
        completes : messages that its completion stands for, its ``wr_id``; 0 asks for no completion
        """
        plan = self.plan
        flags = SendFlags.SIGNALED if completes else SendFlags(0)
        if plan.halves and size_bytes <= plan.inline_bytes:
            flags |= SendFlags.INLINE
        sge = Sge(lane.out_mr.addr, size_bytes, lane.out_mr.lkey)
        is_datagram = plan.qp_type is QpType.UD
        is_send = plan.verb is PerfVerb.SEND
        return SendWr(
            wr_id=completes,
            opcode=_ATOMICS[plan.atomic] if plan.verb is PerfVerb.ATOMIC else _OPCODES[plan.verb],
            sg_list=(sge,),
            flags=flags,
            remote_addr=0 if is_send else lane.peer_addr,
            rkey=0 if is_send else lane.peer_rkey,
            compare_add=1,
            ah=AddressHandle(address=self._remote) if is_datagram else None,
            remote_qpn=lane.peer_qp if is_datagram else 0,
            remote_qkey=_QKEY if is_datagram else 0,
        )

    def receive(self, lane: PerfLane, number: int) -> RecvWr:
        """A receive for any size of the plan, which can be posted again and again.

        Its ``wr_id`` is the number of its lane.
        """
        sge = Sge(lane.in_mr.addr, max(self.plan.sizes) + self._grh_bytes, lane.in_mr.lkey)
        return RecvWr(wr_id=number, sg_list=(sge,))

    def checked(self, completions: list[Wc]) -> list[Wc]:
        """The completions, if all are successes; otherwise the first failure as a `WorkError`."""
        for wc in completions:
            if wc.status is not WcStatus.SUCCESS:
                raise WorkError(wc, self.device.port_error(is_silent=wc.status is WcStatus.RETRY_EXC_ERR))
        return completions

    def close(self) -> None:
        """Release everything; requests on their way end."""
        device = self.device
        if device.is_closed:
            return
        for connection in self._joined:
            connection.close()
        for lane in self.lanes:
            if not self._joined:
                device.destroy_qp(lane.qp)
            for region in (lane.out_mr, lane.in_mr):
                device.dereg_mr(region)
        device.destroy_cq(self.send_cq)
        device.destroy_cq(self.recv_cq)
