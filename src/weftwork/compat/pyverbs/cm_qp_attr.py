"""Attributes of queue pairs that the connection manager knows.

Source: librdmacm, rdma_init_qp_attr(3); Linux drivers/infiniband/core/cm.c (which attributes each state needs).
Leaves out: the queue pairs, see `cmid`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.compat.pyverbs.addr import GID, AHAttr, GlobalRoute
from weftwork.compat.pyverbs.libibverbs_enums import ibv_access_flags, ibv_mtu, ibv_qp_attr_mask, ibv_qp_state
from weftwork.compat.pyverbs.qp_attr import QPAttr
from weftwork.compat.pyverbs.software_nics import gid_of
from weftwork.rdma.cm_services import UDP_QUEUE_KEY
from weftwork.rdma.verbs import QpState

if TYPE_CHECKING:
    from weftwork.rdma.cm_records import AgreedConnection

__all__ = ["connected_attributes", "datagram_attributes", "init_attributes", "route_to"]

_M: Final = ibv_qp_attr_mask
_INIT: Final = _M.IBV_QP_STATE | _M.IBV_QP_PKEY_INDEX | _M.IBV_QP_PORT
_RTR: Final = (
    _M.IBV_QP_STATE
    | _M.IBV_QP_AV
    | _M.IBV_QP_PATH_MTU
    | _M.IBV_QP_DEST_QPN
    | _M.IBV_QP_RQ_PSN
    | _M.IBV_QP_MAX_DEST_RD_ATOMIC
    | _M.IBV_QP_MIN_RNR_TIMER
)
_RTS: Final = (
    _M.IBV_QP_STATE
    | _M.IBV_QP_SQ_PSN
    | _M.IBV_QP_TIMEOUT
    | _M.IBV_QP_RETRY_CNT
    | _M.IBV_QP_RNR_RETRY
    | _M.IBV_QP_MAX_QP_RD_ATOMIC
)
_REMOTE: Final = (
    ibv_access_flags.IBV_ACCESS_REMOTE_WRITE
    | ibv_access_flags.IBV_ACCESS_REMOTE_READ
    | ibv_access_flags.IBV_ACCESS_REMOTE_ATOMIC
)


def route_to(address: bytes) -> AHAttr:
    """Address handle of an IP address."""
    return AHAttr(is_global=1, gr=GlobalRoute(dgid=GID.of_bytes(gid_of(address)), hop_limit=64))


def _of(state: QpState) -> QPAttr:
    return QPAttr(qp_state=ibv_qp_state(int(state)))


def init_attributes() -> tuple[QPAttr, int]:
    """Attributes of a connected queue pair for INIT, and which of them count."""
    attr = _of(QpState.INIT)
    attr.qp_access_flags = _REMOTE
    return attr, int(_INIT | _M.IBV_QP_ACCESS_FLAGS)


def datagram_attributes(state: QpState) -> tuple[QPAttr, int]:
    """Attributes of a datagram queue pair for a state, and which of them count."""
    attr = _of(state)
    attr.qkey = UDP_QUEUE_KEY
    masks = {QpState.INIT: _INIT | _M.IBV_QP_QKEY, QpState.RTS: _M.IBV_QP_STATE | _M.IBV_QP_SQ_PSN}
    return attr, int(masks.get(state, _M.IBV_QP_STATE))


def connected_attributes(
    state: QpState, address: bytes, agreed: AgreedConnection, timeout: int | None
) -> tuple[QPAttr, int]:
    """Attributes of a connected queue pair for RTR or RTS, and which of them count.

    Parameters
    ----------
    state : RTR or RTS
    address : of the peer, 4 or 16 bytes in network order
    agreed : with the peer
    timeout : code of this end's own time until a packet goes again, or None
    """
    attr = _of(state)
    attr.ah_attr = route_to(address)
    attr.path_mtu = ibv_mtu[f"IBV_MTU_{agreed.path_mtu}"]
    attr.dest_qp_num = agreed.remote_qp_num
    attr.timeout = timeout if timeout is not None else agreed.timeout
    attr.retry_cnt, attr.rnr_retry = agreed.retry_cnt, agreed.rnr_retry
    for name in ("rq_psn", "sq_psn", "max_rd_atomic", "max_dest_rd_atomic"):
        setattr(attr, name, getattr(agreed, name))
    return attr, int(_RTR if state is QpState.RTR else _RTS)
