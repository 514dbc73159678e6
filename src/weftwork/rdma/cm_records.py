"""Records of the connection manager: parameters, agreements, events, and refusals.

Source: librdmacm's rdma_cma.h (struct rdma_conn_param, enum rdma_cm_event_type); IBTA vol. 1, 12.6.7.2 (reasons)
and 12.11.2.3 (statuses), by the names of enum ib_cm_rej_reason and enum ib_cm_sidr_status in Linux' ib_cm.h.
Leaves out: events of address and route resolution, multicast and device removal, which need no message.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TYPE_CHECKING

from weftwork.rdma.verbs import INFINITE_RNR_RETRY, AccessFlags

if TYPE_CHECKING:
    from weftwork.rdma.cm_id import CmId
    from weftwork.rdma.cm_services import CmServiceId

__all__ = [
    "AgreedConnection",
    "CmEvent",
    "CmEventType",
    "CmRejReason",
    "CmServiceEvent",
    "CmServiceStatus",
    "ConnParam",
]


class CmRejReason(IntEnum):
    """Reasons of a REJ that this manager sends or explains (enum ib_cm_rej_reason)."""

    NO_QP = 1
    NO_RESOURCES = 3
    TIMEOUT = 4
    UNSUPPORTED = 5
    INVALID_COMM_ID = 6
    INVALID_SERVICE_ID = 8
    INVALID_TRANSPORT_TYPE = 9
    STALE_CONN = 10
    INVALID_GID = 12
    INVALID_MTU = 26
    INSUFFICIENT_RESP_RESOURCES = 27
    CONSUMER_DEFINED = 28


class CmServiceStatus(IntEnum):
    """Statuses of a SIDR_REP (enum ib_cm_sidr_status)."""

    SUCCESS = 0
    UNSUPPORTED = 1
    REJECT = 2
    NO_QP = 3
    REDIRECT = 4
    UNSUPPORTED_VERSION = 5


class CmEventType(Enum):
    """Kind of a connection event (enum rdma_cm_event_type)."""

    CONNECT_REQUEST = "a peer asks for a connection"
    CONNECT_RESPONSE = "the peer agrees, and this end has to move its queue pair and to confirm"
    CONNECT_ERROR = "this end could not set the connection up"
    UNREACHABLE = "the peer does not answer"
    REJECTED = "the peer refused"
    ESTABLISHED = "the connection is ready"
    DISCONNECTED = "the connection is closed"
    TIMEWAIT_EXIT = "no packet of the connection is on its way any more: its queue pair may be used again"


@dataclass(frozen=True, kw_only=True, slots=True)
class ConnParam:
    """Parameters of a connection wanted by this end (struct rdma_conn_param).

    Parameters
    ----------
    private_data : for the peer, at most 56 bytes to connect and 196 to accept, 8 fewer with ``selective_repeat``
    responder_resources : READs and atomics that this end takes at once
    initiator_depth : READs and atomics that this end asks for at once
    retry_count : attempts of both ends after a timeout or a gap, 0 to 7; the active side's counts
    rnr_retry_count : attempts of the peer after an RNR NAK of this end, 0 to 7; 7 never gives up
    timeout : both ends send again after 4.096 us x 2^timeout; the active side's counts
    path_mtu : most bytes in a packet, or None for the manager's; the active side's counts
    qp_access_flags : what the peer may do; None leaves it as the queue pair has it, which is nothing by default
    selective_repeat : ask for Weftwork's selective repeat; it is agreed on where both ends ask
    answer_wait_ps : time in which the peer has to answer a request, all tries together; None for the manager's
    cm_retries : how many times a request without an answer goes again, 0 to 15; None: as many as the time allows
    moves_qp : the manager takes the queue pair to INIT, RTS and ERR; otherwise the user does, by the agreed attributes
    """

    private_data: bytes = b""
    responder_resources: int = 16  # chosen: what current adapters offer (max_qp_rd_atom of mlx5)
    initiator_depth: int = 16
    retry_count: int = 7
    rnr_retry_count: int = INFINITE_RNR_RETRY
    timeout: int = 14
    path_mtu: int | None = None
    qp_access_flags: AccessFlags | None = None
    selective_repeat: bool = False
    answer_wait_ps: int | None = None
    cm_retries: int | None = None
    moves_qp: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class AgreedConnection:
    """Agreed parameters of a connection, as seen by this end.

    Parameters
    ----------
    remote_qp_num : queue pair of the peer
    rq_psn, sq_psn : first PSN of the peer and of this end
    path_mtu : most bytes in a packet
    max_rd_atomic : READs and atomics in flight from here
    max_dest_rd_atomic : READs and atomics accepted from the peer
    retry_cnt, rnr_retry, timeout : see `QpAttr`
    selective_repeat : both ends asked for it
    """

    remote_qp_num: int
    rq_psn: int
    sq_psn: int
    path_mtu: int
    max_rd_atomic: int
    max_dest_rd_atomic: int
    retry_cnt: int
    rnr_retry: int
    timeout: int
    selective_repeat: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class CmEvent:
    """An event of the connection manager (struct rdma_cm_event).

    Parameters
    ----------
    event_type : what happened
    id : the conversation; a new one for a request
    private_data : of the peer, filled with zeros to the size of its field; empty where none came
    status : reason of a refusal, see `CmRejReason`; 0 otherwise
    """

    event_type: CmEventType
    id: CmId
    private_data: bytes = b""
    status: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class CmServiceEvent:
    """An event of a datagram service (struct rdma_cm_event with its rdma_ud_param).

    Parameters
    ----------
    event_type : CONNECT_REQUEST at the side that listens; ESTABLISHED, REJECTED or UNREACHABLE at the side that asks;
        CONNECT_ERROR for a request that waited too long
    id : the resolution; a new one for a request
    private_data : of the peer, filled with zeros to the size of its field; empty where none came
    status : reason of a refusal, see `CmServiceStatus`; 0 otherwise
    qp_num, queue_key : of the service, with ESTABLISHED
    """

    event_type: CmEventType
    id: CmServiceId
    private_data: bytes = b""
    status: int = 0
    qp_num: int = 0
    queue_key: int = 0
