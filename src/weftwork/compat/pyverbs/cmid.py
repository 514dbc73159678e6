"""Identifiers of the connection manager: connections, datagram services and multicast groups.

An identifier with an event channel is asynchronous: the program takes its events. An identifier made from an address is
synchronous: its calls wait.
Source: pyverbs, cmid.pyx (names); librdmacm, rdma_cm(7).
Leaves out: native service IDs (RDMA_PS_IB); extended connection establishment, since there are no options of a vendor.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from errno import ECONNREFUSED, EINVAL, EIO, ETIMEDOUT
from typing import TYPE_CHECKING, Final

from weftwork.compat.pyverbs.base import PyverbsCM
from weftwork.compat.pyverbs.cm_address import AddrInfo, Endpoint, device_of
from weftwork.compat.pyverbs.cm_agent import EventQueue, Happening, UdAnswer, agent_of, core_space, event_of
from weftwork.compat.pyverbs.cm_events import CMEvent, CMEventChannel
from weftwork.compat.pyverbs.cm_params import ConnParam, JoinMCAttrEx, UDParam, core_param
from weftwork.compat.pyverbs.cm_qp_attr import connected_attributes, datagram_attributes, init_attributes, route_to
from weftwork.compat.pyverbs.cq import CQ, WC, CompChannel
from weftwork.compat.pyverbs.device import Context
from weftwork.compat.pyverbs.libibverbs_enums import (
    ibv_access_flags,
    ibv_qp_attr_mask,
    ibv_send_flags,
)
from weftwork.compat.pyverbs.librdmacm_enums import (
    RDMA_OPTION_ID,
    RDMA_OPTION_ID_ACK_TIMEOUT,
    rdma_cm_event_type,
    rdma_cm_join_mc_attr_mask,
    rdma_cm_mc_join_flags,
    rdma_port_space,
)
from weftwork.compat.pyverbs.mr import MR
from weftwork.compat.pyverbs.pd import PD
from weftwork.compat.pyverbs.pyverbs_error import PyverbsError, PyverbsRDMAError, PyverbsUserError, refused_as
from weftwork.compat.pyverbs.qp_attr import ECE, QPAttr, QPInitAttr
from weftwork.compat.pyverbs.queue_pair import QP
from weftwork.compat.pyverbs.software_nics import SoftwareNic, open_nic
from weftwork.compat.pyverbs.wr import core_flags
from weftwork.rdma.cm_id import CmId
from weftwork.rdma.cm_records import CmEventType
from weftwork.rdma.cm_services import UDP_QUEUE_KEY, CmServiceId
from weftwork.rdma.cm_states import PENDING
from weftwork.rdma.multicast import MULTICAST_QP
from weftwork.rdma.verbs import QpState, QpType, RecvWr, SendFlags, SendWr, Sge, WrOpcode

if TYPE_CHECKING:
    from weftwork.compat.pyverbs.addr import AH
    from weftwork.compat.pyverbs.cm_agent import CmAgent
    from weftwork.compat.pyverbs.cq import CQEX
    from weftwork.rdma.cm_records import AgreedConnection, CmEvent, CmServiceEvent
    from weftwork.rdma.queue_pair import RdmaQueuePair

__all__ = ["CMID", "AddrInfo", "CMEvent", "CMEventChannel", "ConnParam", "JoinMCAttrEx", "UDParam"]

_BACKLOG: Final = 64  # chosen: where the program asks for none
_LONGEST_TIMEOUT: Final = 31  # IBTA vol. 1, 12.7.34: five bits
_E: Final = rdma_cm_event_type
_M: Final = ibv_qp_attr_mask
_SIGNALED: Final = ibv_send_flags.IBV_SEND_SIGNALED
_FAILURES: Final = {_E.RDMA_CM_EVENT_REJECTED: ECONNREFUSED, _E.RDMA_CM_EVENT_UNREACHABLE: ETIMEDOUT}


class CMID(PyverbsCM):
    """An identifier: one end of a connection, a listener, or an end of datagrams.

    Parameters
    ----------
    creator : addresses for a synchronous identifier, an event channel, or the event of a request
    qp_init_attr : of the queue pair of a synchronous identifier
    pd : its protection domain; None makes one
    port_space : kind of the service, with an event channel
    listen_id : the listener, with an event

    Attributes
    ----------
    ctx, pd : context and protection domain, or None before an address is known
    queue : its events
    """

    closes = 2

    def __init__(
        self,
        creator: AddrInfo | CMEventChannel | CMEvent | None = None,
        qp_init_attr: QPInitAttr | None = None,
        pd: PD | None = None,
        port_space: int = rdma_port_space.RDMA_PS_TCP,
        listen_id: CMID | None = None,
    ) -> None:
        self.ctx: Context | None = None
        self.pd: PD | None = pd
        self._given_pd: Final = pd
        self.event_channel: CMEventChannel | None = None
        self.queue = EventQueue()
        self._space = rdma_port_space(int(port_space))
        self._nic: SoftwareNic | None = None
        self._qp: QP | None = None
        self._cqs: tuple[CQ, CQ] | None = None
        self._init_attr = qp_init_attr
        self._source: Endpoint | None = None
        self._destination: Endpoint | None = None
        self._port: int | None = None  # on which it listens
        self._conversation: CmId | CmServiceId | None = None
        self._groups: set[bytes] = set()
        self._timeout: int | None = None
        self._ece = ECE()
        self._owns_context = False
        self._is_open = True
        if isinstance(creator, AddrInfo):
            self._begin(creator)
        elif isinstance(creator, CMEventChannel):
            self.event_channel, self.queue = creator, creator.queue
        elif isinstance(creator, CMEvent):
            self._follow(creator, listen_id)
        elif creator is not None:
            raise PyverbsError(f"Cannot create CM ID from {type(creator)}")

    def _begin(self, info: AddrInfo) -> None:
        """Do all steps of a synchronous identifier up to its queue pair (rdma_create_ep)."""
        self._space = info.port_space
        self._init_attr = info.typed(self._init_attr)
        self._source, self._destination = info.source, info.destination
        self._bind(info.source, info.destination)
        if not info.is_passive:
            self._open_context()
            if self._init_attr is not None:
                self.create_qp(self._init_attr)

    def _follow(self, event: CMEvent, listen_id: CMID | None) -> None:
        """Take the request of an event."""
        if listen_id is None:
            raise PyverbsUserError("listen ID not provided")
        if event.happening.conversation is None:
            raise PyverbsUserError(f"found the event {event.event_str()}, wanted a request")
        self.event_channel, self.queue = listen_id.event_channel, listen_id.queue
        self.ctx, self.pd = listen_id.ctx, listen_id.pd
        self._take(event.happening.conversation, listen_id)

    def _take(self, conversation: CmId | CmServiceId, listen_id: CMID) -> None:
        self._space, self._init_attr = listen_id._space, listen_id._init_attr
        self._hold(listen_id.device_name)
        self._converse(conversation)

    # Device

    @property
    def device_name(self) -> str:
        """Name of the device; PyverbsRDMAError before an address is known."""
        return self._device().name

    dev_name = device_name

    @property
    def port_num(self) -> int:
        """Port of the device."""
        return 1

    @property
    def context(self) -> Context | None:
        """Context, or None."""
        return self.ctx

    @property
    def qpn(self) -> int | None:
        """Number of the queue pair, or None."""
        return self._qp.qp_num if self._qp is not None else None

    def _device(self) -> SoftwareNic:
        if self._nic is None:
            raise PyverbsRDMAError("Failed to find the device (the identifier has no address yet)", EINVAL)
        return self._nic

    @property
    def _agent(self) -> CmAgent:
        return agent_of(self._device())

    def _bind(self, source: Endpoint | None, destination: Endpoint | None) -> None:
        """Choose the device."""
        if self._nic is None:
            self._hold(device_of(source, destination))

    def _hold(self, name: str) -> None:
        with refused_as(f"Failed to open device {name}"):
            self._nic = open_nic(name)
        self.queue.watch(self._nic)
        agent_of(self._nic)

    def _open_context(self) -> None:
        if self.ctx is None:
            self._owns_context = True
            Context(cmid=self)
        if self.pd is None:
            PD(self)

    # Addresses

    def bind_addr(self, lai: AddrInfo) -> None:
        """Set the address of this end."""
        if lai.source is None:
            raise PyverbsRDMAError("Failed to Bind ID (no source address is given)", EINVAL)
        self._source = lai.source
        self._bind(lai.source, None)
        self._open_context()

    def resolve_addr(self, rai: AddrInfo, timeout_ms: int = 2000) -> None:  # noqa: ARG002 - it takes no time
        """Choose the device for a peer; the event ADDR_RESOLVED follows."""
        if rai.destination is None:
            raise PyverbsRDMAError("Failed to Resolve Address (no destination is given)", EINVAL)
        self._source = self._source or rai.source
        self._destination = rai.destination
        self._bind(rai.source, rai.destination)
        self.queue.put(Happening(kind=_E.RDMA_CM_EVENT_ADDR_RESOLVED))

    def resolve_route(self, timeout_ms: int = 2000) -> None:  # noqa: ARG002 - as above
        """Do nothing, since the system routes; the event ROUTE_RESOLVED follows."""
        self._peer("Failed to Resolve Route")
        self._open_context()
        self.queue.put(Happening(kind=_E.RDMA_CM_EVENT_ROUTE_RESOLVED))

    def _peer(self, what: str) -> Endpoint:
        if self._destination is None:
            raise PyverbsRDMAError(f"{what} (the address of the peer is not resolved)", EINVAL)
        return self._destination

    # Connections

    def listen(self, backlog: int = 0) -> None:
        """Accept requests; each brings the event CONNECT_REQUEST."""
        port = self._source.port if self._source is not None else 0
        if self._port is not None:
            raise PyverbsRDMAError("Listen Failed (the identifier listens already)", EINVAL)
        space = core_space(self._space)
        self._port = self._agent.listen(port, space, backlog if backlog > 0 else _BACKLOG, self._note_request)

    def _note_request(self, event: CmEvent | CmServiceEvent) -> None:
        kind = _E.RDMA_CM_EVENT_CONNECT_REQUEST
        self.queue.put(Happening(kind=kind, private_data=event.private_data, conversation=event.id))

    def get_request(self) -> CMID:
        """Wait for a request of a synchronous listener; returns its identifier."""
        happening = self.queue.get()
        if happening.conversation is None:
            raise PyverbsRDMAError("Failed to get request, no connection established", EINVAL)
        child = CMID()
        child._take(happening.conversation, self)
        if self._given_pd is not None:
            child.ctx, child.pd = self._given_pd.ctx, self._given_pd
        child._open_context()
        self.ctx, self.pd = child.ctx, child.pd
        if self._init_attr is not None:
            child.create_qp(self._init_attr)
        return child

    def connect(self, param: ConnParam | None = None) -> None:
        """Ask the peer; ESTABLISHED, CONNECT_RESPONSE, REJECTED or UNREACHABLE follows."""
        peer = self._peer("Failed to Connect")
        agent, space = self._agent, core_space(self._space)
        device = agent.device
        with refused_as("Failed to Connect"), device.lock:
            if self._space == rdma_port_space.RDMA_PS_TCP:
                qp, moves_qp = self._connected_pair(param, "Failed to Connect")
                address = device.port.resolve(peer.packed, peer.port)
                made = core_param(param, self._timeout, moves_qp=moves_qp)
                self._converse(agent.manager.connect(address, peer.port, qp, made))
            else:
                address = device.port.resolve(peer.packed, peer.port, space)
                data = param.private_data if param is not None else b""
                self._converse(agent.datagrams.services.ask(address, peer.port, data, space))
            device.kick()
        self._wait_for(_E.RDMA_CM_EVENT_ESTABLISHED, "Failed to Connect")

    def accept(self, param: ConnParam | None = None) -> None:
        """Accept a request; ESTABLISHED follows for a connection, and nothing for a datagram service."""
        conversation, device = self._conversation, self._agent.device
        data = param.private_data if param is not None else b""
        with refused_as("Failed to Accept Connection"), device.lock:
            if isinstance(conversation, CmServiceId):
                number = self.qpn or (param.qpn if param is not None else 0)
                conversation.accept(number, UDP_QUEUE_KEY, data)
                device.kick()
                return
            if conversation is None:
                raise PyverbsRDMAError("Failed to Accept Connection (there is no request)", EINVAL)
            qp, moves_qp = self._connected_pair(param, "Failed to Accept Connection")
            conversation.accept(qp, core_param(param, None, moves_qp=moves_qp))
            if moves_qp and self._timeout is not None:  # this end's own, set with RTS
                qp.attr = replace(qp.attr, timeout=self._timeout)
            device.kick()
        self._wait_for(_E.RDMA_CM_EVENT_ESTABLISHED, "Failed to Accept Connection")

    def _connected_pair(self, param: ConnParam | None, what: str) -> tuple[RdmaQueuePair, bool]:
        """Queue pair for a connection, and whether the manager moves it."""
        if self._qp is not None:
            return self._qp.pair, True
        found = self._device().device.nic.find_qp(param.qpn) if param is not None else None
        if found is None:
            raise PyverbsRDMAError(f"{what} (the identifier has no queue pair, and none is named)", EINVAL)
        return found, False

    def reject(self, private_data: bytes | None = None) -> None:
        """Refuse a request."""
        device = self._agent.device
        with refused_as("Failed to Reject Connection"), device.lock:
            if self._conversation is None:
                raise PyverbsRDMAError("Failed to Reject Connection (there is no request)", EINVAL)
            self._conversation.reject(private_data or b"")
            device.kick()

    def establish(self) -> None:
        """Confirm CONNECT_RESPONSE, once the program has moved its queue pair."""
        device = self._agent.device
        with refused_as("Failed to Complete an active connection request"), device.lock:
            if not isinstance(self._conversation, CmId):
                raise PyverbsRDMAError("Failed to Complete an active connection request", EINVAL)
            self._conversation.establish()
            device.kick()

    def disconnect(self) -> None:
        """Close the connection; DISCONNECTED follows."""
        device = self._agent.device
        with refused_as("Failed to Disconnect"), device.lock:
            if not isinstance(self._conversation, CmId):
                raise PyverbsRDMAError("Failed to Disconnect (there is no connection)", EINVAL)
            self._conversation.disconnect()
            device.kick()
        self._wait_for(_E.RDMA_CM_EVENT_DISCONNECTED, "Failed to Disconnect")

    def _converse(self, conversation: CmId | CmServiceId) -> None:
        self._conversation = conversation
        self._agent.hear(conversation, self._note)

    def _note(self, event: CmEvent | CmServiceEvent) -> None:
        """Take an event of the conversation."""
        kind, ud = event_of(event.event_type), UdAnswer()
        if isinstance(event.id, CmServiceId):
            if event.event_type is CmEventType.REJECTED:  # as cma_sidr_rep_handler in Linux cma.c
                kind = _E.RDMA_CM_EVENT_UNREACHABLE
            elif event.event_type is CmEventType.ESTABLISHED:
                ud = UdAnswer(ah_attr=route_to(event.id.address), qp_num=event.qp_num, qkey=event.queue_key)
        self.queue.put(Happening(kind=kind, private_data=event.private_data, status=event.status, ud=ud))

    def _wait_for(self, wanted: rdma_cm_event_type, what: str) -> None:
        """Wait for the end of a call of a synchronous identifier."""
        while self.event_channel is None:
            happening = self.queue.get()
            if happening.kind == wanted:
                return
            if happening.kind in _FAILURES:
                raise PyverbsRDMAError(f"{what} (status {happening.status})", _FAILURES[happening.kind])
            if happening.kind != _E.RDMA_CM_EVENT_TIMEWAIT_EXIT:  # of an earlier connection
                raise PyverbsRDMAError(f"{what} ({happening.kind.name})", EIO)

    # Multicast

    def join_multicast(
        self,
        addr: AddrInfo | None = None,
        mc_attr: JoinMCAttrEx | None = None,
        context: int = 0,  # noqa: ARG002
    ) -> None:
        """Join a group with the queue pair; MULTICAST_JOIN follows.

        Parameters
        ----------
        addr : of the group, as source
        mc_attr : the same with a kind of membership
        context : kept by nobody
        """
        if addr is None and mc_attr is None:
            raise PyverbsUserError("Join to multicast must have AddrInfo or JoinMCAttrEx arguments")
        flags = 0
        if mc_attr is not None:
            addr = mc_attr.addr
            if mc_attr.comp_mask & rdma_cm_join_mc_attr_mask.RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS:
                flags = int(mc_attr.join_flags)
        group = self._group(addr, "Failed to Join multicast")
        nic = self._device()
        if self._qp is not None and flags != rdma_cm_mc_join_flags.RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER:
            with refused_as("Failed to Join multicast"):
                nic.device.attach_mcast(self._qp.pair, group)
            self._groups.add(group)
        ud = UdAnswer(ah_attr=route_to(group), qp_num=MULTICAST_QP, qkey=UDP_QUEUE_KEY)
        self.queue.put(Happening(kind=_E.RDMA_CM_EVENT_MULTICAST_JOIN, ud=ud))
        self._wait_for(_E.RDMA_CM_EVENT_MULTICAST_JOIN, "Failed to Join multicast")

    def leave_multicast(self, addr: AddrInfo) -> None:
        """Leave a group."""
        group = self._group(addr, "Failed to leave multicast")
        if self._qp is not None and group in self._groups:
            with refused_as("Failed to leave multicast"):
                self._device().device.detach_mcast(self._qp.pair, group)
            self._groups.discard(group)

    @staticmethod
    def _group(addr: AddrInfo | None, what: str) -> bytes:
        if addr is None or addr.source is None:
            raise PyverbsRDMAError(f"{what} (no address is given)", EINVAL)
        return addr.source.packed

    # Options of the connection

    def set_option(self, level: int, optname: int, optval: int, optlen: int) -> None:
        """Set the code of the time until this end sends a packet again."""
        if optname != RDMA_OPTION_ID_ACK_TIMEOUT:
            raise PyverbsUserError("Currently only RDMA_OPTION_ID_ACK_TIMEOUT is supported in Pyverbs.")
        if level != RDMA_OPTION_ID or optlen != 1 or not 0 <= optval <= _LONGEST_TIMEOUT:
            raise PyverbsRDMAError("Failed to set option", EINVAL)
        self._timeout = optval

    def set_local_ece(self, ece: ECE) -> None:
        """Set options of a vendor; there are none, so only no options are taken."""
        if ece.vendor_id:
            raise PyverbsRDMAError("Failed to set local ECE", EINVAL)
        self._ece = ece

    def get_remote_ece(self) -> ECE:
        """Options of the vendor that the peer has sent: none."""
        return ECE()

    # Queue pair

    def create_qp(self, qp_init: QPInitAttr) -> None:
        """Make the queue pair; it takes receives, and for datagrams it is ready.

        Completion queues are made where ``qp_init`` names none.
        """
        if self.pd is None or self.ctx is None:
            raise PyverbsRDMAError("Failed to Create QP (the identifier has no domain yet)", EINVAL)
        attr = copy.copy(qp_init)
        if attr.send_cq is None or attr.recv_cq is None:
            sizes = (attr.cap.max_send_wr, attr.cap.max_recv_wr)
            send, receive = (CQ(self.ctx, max(1, size), None, CompChannel(self.ctx), 0) for size in sizes)
            attr.send_cq = attr.send_cq or send
            attr.recv_cq = attr.recv_cq or receive
        qp = QP(self.pd, attr)
        qp_init.cap = attr.cap
        if qp.pair.qp_type is QpType.UD:
            start = QPAttr()
            start.qkey = UDP_QUEUE_KEY
            qp.to_rts(start)
        else:
            self._nic_modify(qp)
        self._qp = qp

    @staticmethod
    def _nic_modify(qp: QP) -> None:
        with refused_as("Failed to Create QP"):
            qp.nic.device.modify_qp(qp.pair, QpState.INIT)

    def _own_qp(self, what: str) -> QP:
        if self._qp is None:
            raise PyverbsRDMAError(f"{what} (the identifier has no queue pair)", EINVAL)
        return self._qp

    def query_qp(self, attr_mask: int) -> tuple[QPAttr, QPInitAttr]:
        """Attributes of the queue pair."""
        return self._own_qp("Failed to query QP").query(attr_mask)

    def init_qp_attr(self, qp_state: int) -> tuple[QPAttr, int]:
        """Attributes for a queue pair that the program moves.

        Parameters
        ----------
        qp_state : wanted: INIT, RTR or RTS

        Returns
        -------
        the attributes, and which of them count
        """
        state = QpState(int(qp_state))
        if self._space != rdma_port_space.RDMA_PS_TCP:
            return datagram_attributes(state)
        if state is QpState.INIT:
            return init_attributes()
        agreed = self._agreed()
        if state not in {QpState.RTR, QpState.RTS} or agreed is None or not isinstance(self._conversation, CmId):
            raise PyverbsRDMAError("Failed to get QP attributes", EINVAL)
        return connected_attributes(state, self._conversation.address, agreed, self._timeout)

    def _agreed(self) -> AgreedConnection | None:
        """Agreement of the connection; of a request, what it would be."""
        conversation = self._conversation
        if not isinstance(conversation, CmId):
            return None
        with self._agent.device.lock:
            if conversation.agreed is None and not conversation.is_active:
                return conversation.offered(core_param(None, None, moves_qp=False))
            return conversation.agreed

    # Memory and work

    def reg_msgs(self, size: int) -> MR:
        """Register memory for messages."""
        return MR(self, size, ibv_access_flags.IBV_ACCESS_LOCAL_WRITE)

    def reg_read(self, size: int = 0) -> MR:
        """Register memory that the peer may read."""
        return MR(self, size, ibv_access_flags.IBV_ACCESS_LOCAL_WRITE | ibv_access_flags.IBV_ACCESS_REMOTE_READ)

    def reg_write(self, size: int = 0) -> MR:
        """Register memory that the peer may write."""
        return MR(self, size, ibv_access_flags.IBV_ACCESS_LOCAL_WRITE | ibv_access_flags.IBV_ACCESS_REMOTE_WRITE)

    def post_recv(self, mr: MR, length: int | None = None) -> None:
        """Post a receive into a region."""
        qp = self._own_qp("Failed to Post Receive")
        with refused_as("Failed to Post Receive"):
            qp.nic.device.post_recv(qp.pair, RecvWr(wr_id=0, sg_list=(_piece(mr, length),)))

    def post_send(self, mr: MR, flags: int = _SIGNALED, length: int | None = None) -> None:
        """Post a message."""
        self._post("Failed to Post Send", mr, length, flags, opcode=WrOpcode.SEND)

    def post_read(self, mr: MR, length: int, remote_addr: int, rkey: int, flags: int = 0) -> None:
        """Post a READ of memory of the peer."""
        remote = {"remote_addr": int(remote_addr), "rkey": int(rkey)}
        self._post("Failed to Post Read", mr, length, flags, opcode=WrOpcode.RDMA_READ, **remote)

    def post_write(self, mr: MR, length: int, remote_addr: int, rkey: int, flags: int = 0) -> None:
        """Post a WRITE into memory of the peer."""
        remote = {"remote_addr": int(remote_addr), "rkey": int(rkey)}
        self._post("Failed to Post Write", mr, length, flags, opcode=WrOpcode.RDMA_WRITE, **remote)

    def post_ud_send(self, mr: MR, ah: AH, rqpn: int = 0, flags: int = _SIGNALED, length: int | None = None) -> None:
        """Post a datagram to a queue pair of a peer, or of a group."""
        to = {"ah": ah.handle, "remote_qpn": rqpn, "remote_qkey": UDP_QUEUE_KEY}
        self._post("Failed to Post Send", mr, length, flags, opcode=WrOpcode.SEND, **to)

    def _post(self, what: str, mr: MR, length: int | None, flags: int, **request: object) -> None:
        qp = self._own_qp(what)
        options = core_flags(flags)
        with refused_as(what):
            qp.post_request(SendWr(wr_id=0, sg_list=(_piece(mr, length),), flags=SendFlags(options), **request))  # type: ignore[arg-type]

    def get_recv_comp(self) -> WC:
        """Wait for the next completion of a receive."""
        return self._completion(self._own_qp("Failed to retrieve receive completion").rcq)

    def get_send_comp(self) -> WC:
        """Wait for the next completion of a send."""
        return self._completion(self._own_qp("Failed to retrieve send completion").scq)

    @staticmethod
    def _completion(cq: CQ | CQEX) -> WC:
        device, queue = cq.nic.device, cq.queue
        with refused_as("Failed to retrieve a completion"):
            while True:
                device.wait_cq(queue)
                found = device.poll_cq(queue)
                if found:
                    return WC.of(found[0])

    # The end

    def close(self) -> None:
        """Leave the groups, end the conversation and release the objects of the identifier."""
        if not self._is_open:
            return
        self._is_open = False
        self.close_children()
        nic, self._nic = self._nic, None
        if nic is not None and nic.is_here:
            agent = agent_of(nic)
            with agent.device.lock:
                if self._port is not None:
                    agent.forget_listener(self._port, core_space(self._space))
                if self._conversation is not None:
                    agent.forget(self._conversation)
                    _end(self._conversation)
                    agent.device.kick()
        if self._qp is not None:
            self._qp.close()
        if self._owns_context and self.ctx is not None:
            self.ctx.close()
        if nic is not None:
            nic.release()

    def __del__(self) -> None:
        if hasattr(self, "_is_open"):
            self.close()


def _end(conversation: CmId | CmServiceId) -> None:
    """Tell the peer that this end goes."""
    if isinstance(conversation, CmServiceId):
        conversation.close()
    elif conversation.state in PENDING:
        conversation.reject()
    else:
        conversation.disconnect()


def _piece(mr: MR, length: int | None) -> Sge:
    """The first bytes of a region, or all."""
    return Sge(mr.buf, length or mr.length, mr.lkey)
