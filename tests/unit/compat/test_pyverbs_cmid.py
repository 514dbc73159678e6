"""Identifiers of the connection manager: two devices of this process, and calls as a program makes them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from errno import EADDRINUSE, EADDRNOTAVAIL, ECONNREFUSED, EINVAL, ENODEV, EOPNOTSUPP

import pytest
from helpers.rdma_devices import PATIENCE_S

from weftwork.compat.pyverbs import cm_enums
from weftwork.compat.pyverbs.addr import AH
from weftwork.compat.pyverbs.cmid import CMID, AddrInfo, CMEvent, CMEventChannel, ConnParam, JoinMCAttrEx, UDParam
from weftwork.compat.pyverbs.cq import CQ
from weftwork.compat.pyverbs.libibverbs_enums import ibv_qp_attr_mask, ibv_qp_state, ibv_qp_type, ibv_wc_status
from weftwork.compat.pyverbs.librdmacm_enums import (
    RAI_PASSIVE,
    RDMA_OPTION_ID,
    RDMA_OPTION_ID_ACK_TIMEOUT,
    rdma_cm_event_type,
    rdma_cm_join_mc_attr_mask,
    rdma_cm_mc_join_flags,
    rdma_port_space,
)
from weftwork.compat.pyverbs.pyverbs_error import PyverbsRDMAError, PyverbsUserError
from weftwork.compat.pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from weftwork.compat.pyverbs.software_nics import set_devices
from weftwork.rdma.multicast import MULTICAST_QP

E, PS = rdma_cm_event_type, rdma_port_space
OWN = divmod(os.getpid() % 60_000, 250)  # of this process alone, since tests run side by side
HERE, THERE = ("127.{}.{}.{}".format(*OWN, last) for last in (61, 62))
GROUP = "230.{}.{}.61".format(*OWN)
PORT = "7471"


@pytest.fixture(autouse=True)
def devices() -> Iterator[None]:
    set_devices({"here": HERE, "there": THERE})
    yield
    set_devices(None)


@pytest.fixture
def made() -> Iterator[list[CMID]]:
    """Identifiers, which are closed behind the test, the newest first."""
    found: list[CMID] = []
    yield found
    for one in reversed(found):
        one.close()


def attr(qp_type: int = ibv_qp_type.IBV_QPT_RC) -> QPInitAttr:
    return QPInitAttr(qp_type=qp_type, cap=QPCap(max_recv_wr=4))


class End:
    """An asynchronous identifier and its channel."""

    def __init__(self, made: list[CMID], space: int = PS.RDMA_PS_TCP) -> None:
        self.channel = CMEventChannel()
        self.id = CMID(creator=self.channel, port_space=space)
        self.space = space
        self.made = made
        made.append(self.id)

    def event(self, expected: rdma_cm_event_type) -> CMEvent:
        event = CMEvent(self.channel)
        assert event.event_type == expected, event.event_str()
        event.ack_cm_event()
        return event

    def listen(self, port: str = PORT) -> None:
        self.id.bind_addr(AddrInfo(src=THERE, src_service=port, port_space=self.space, flags=RAI_PASSIVE))
        self.id.listen()

    def child(self, event: CMEvent) -> CMID:
        self.made.append(CMID(creator=event, listen_id=self.id))
        return self.made[-1]

    def resolve(self, port: str = PORT) -> None:
        self.id.resolve_addr(AddrInfo(src=HERE, dst=THERE, dst_service=port, port_space=self.space))
        self.event(E.RDMA_CM_EVENT_ADDR_RESOLVED)
        self.id.resolve_route()
        self.event(E.RDMA_CM_EVENT_ROUTE_RESOLVED)


def connect(made: list[CMID], accept: Callable[[CMID], object] | None = None) -> tuple[End, CMID, End]:
    """A connection: the active end, the passive identifier, and the listener."""
    server, client = End(made), End(made)
    server.listen()
    client.resolve()
    client.id.create_qp(attr())
    client.id.connect(ConnParam())
    child = server.child(server.event(E.RDMA_CM_EVENT_CONNECT_REQUEST))
    child.create_qp(attr())
    if accept is not None:
        accept(child)
    else:
        child.accept(ConnParam())
    return client, child, server


def test_a_connection_carries_messages_reads_and_writes(made: list[CMID]) -> None:
    client, child, server = connect(made)
    client.event(E.RDMA_CM_EVENT_ESTABLISHED)
    server.event(E.RDMA_CM_EVENT_ESTABLISHED)
    assert (client.id.dev_name, child.dev_name, client.id.port_num) == ("here", "there", 1)
    assert client.id.context is not child.context
    mine, theirs = client.id.reg_msgs(64), child.reg_write(64)
    child.post_recv(theirs)
    mine.write("hello", 5)
    client.id.post_send(mine, length=5)
    assert child.get_recv_comp().byte_len == 5
    assert client.id.get_send_comp().status == ibv_wc_status.IBV_WC_SUCCESS
    assert theirs.read(5, 0) == b"hello"
    mine.write("write", 5)
    client.id.post_write(mine, 5, theirs.buf + 8, theirs.rkey, flags=2)
    client.id.get_send_comp()
    assert theirs.read(5, 8) == b"write"
    source = child.reg_read(64)
    source.write("there", 5)
    client.id.post_read(mine, 5, source.buf, source.rkey, flags=2)
    assert client.id.get_send_comp().status == ibv_wc_status.IBV_WC_SUCCESS
    assert mine.read(5, 0) == b"there"
    client.id.disconnect()
    for end in (client, server):
        end.event(E.RDMA_CM_EVENT_DISCONNECTED)
    child.disconnect()  # once more does no harm


def test_private_data_and_options_reach_the_peer(made: list[CMID]) -> None:
    server, client = End(made), End(made)
    server.listen()
    client.resolve()
    client.id.create_qp(attr())
    client.id.set_option(RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 21, 1)
    param = ConnParam(data_len=5, resources=3, depth=2)
    param.set_private_data(b"who are you")
    client.id.connect(param)
    event = server.event(E.RDMA_CM_EVENT_CONNECT_REQUEST)
    assert event.private_data == b"who a".ljust(56, b"\0")
    child = server.child(event)
    child.create_qp(attr())
    child.set_option(RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 20, 1)
    child.accept(ConnParam(resources=1, depth=9))
    client.event(E.RDMA_CM_EVENT_ESTABLISHED)
    found = [one.query_qp(ibv_qp_attr_mask.IBV_QP_TIMEOUT)[0] for one in (client.id, child)]
    assert [one.timeout for one in found] == [21, 20]  # each end's own
    assert [(one.max_rd_atomic, one.max_dest_rd_atomic) for one in found] == [(1, 3), (3, 1)]
    for wrong in ((1, RDMA_OPTION_ID_ACK_TIMEOUT, 5, 1), (RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 32, 1)):
        with pytest.raises(PyverbsRDMAError, match="Failed to set option"):
            child.set_option(*wrong)
    with pytest.raises(PyverbsUserError, match="only RDMA_OPTION_ID_ACK_TIMEOUT"):
        child.set_option(RDMA_OPTION_ID, 0, 1, 1)


def test_a_refusal_brings_its_data(made: list[CMID]) -> None:
    client, _, _ = connect(made, lambda child: child.reject(b"not today"))
    event = client.event(E.RDMA_CM_EVENT_REJECTED)
    assert event.private_data.rstrip(b"\0") == b"not today"
    assert event.event_str() == "RDMA_CM_EVENT_REJECTED"
    client.resolve("7")
    with pytest.raises(PyverbsRDMAError, match="Failed to Connect"):  # its queue pair is in ERR
        client.id.connect()


def test_a_program_may_move_its_own_queue_pairs(made: list[CMID]) -> None:
    server, client = End(made), End(made)
    server.listen()
    client.resolve()
    qps: list[QP] = []

    def own(one: CMID) -> ConnParam:
        assert one.context is not None
        assert one.pd is not None
        cq = CQ(one.context, 8)
        qps.append(QP(one.pd, QPInitAttr(qp_type=ibv_qp_type.IBV_QPT_RC, scq=cq, rcq=cq, cap=QPCap()), QPAttr()))
        return ConnParam(qp_num=qps[-1].qp_num)

    def move(one: CMID, qp: QP) -> None:
        for state in (ibv_qp_state.IBV_QPS_INIT, ibv_qp_state.IBV_QPS_RTR, ibv_qp_state.IBV_QPS_RTS):
            qp.modify(*one.init_qp_attr(state))

    with pytest.raises(PyverbsRDMAError, match="no queue pair, and none is named"):
        client.id.connect(ConnParam())
    client.id.connect(own(client.id))
    child = server.child(server.event(E.RDMA_CM_EVENT_CONNECT_REQUEST))
    param = own(child)
    move(child, qps[1])
    child.accept(param)
    client.event(E.RDMA_CM_EVENT_CONNECT_RESPONSE)
    move(client.id, qps[0])
    client.id.establish()
    server.event(E.RDMA_CM_EVENT_ESTABLISHED)
    assert [qp.qp_state for qp in qps] == [ibv_qp_state.IBV_QPS_RTS] * 2
    assert [qp.pair.attr.dest_qp_num for qp in qps] == [qps[1].qp_num, qps[0].qp_num]
    assert qps[0].pair.attr.sq_psn == qps[1].pair.attr.rq_psn
    assert client.id.get_remote_ece().vendor_id == 0
    with pytest.raises(PyverbsRDMAError, match="Failed to Complete an active connection request"):
        client.id.establish()


@pytest.mark.parametrize("space", [PS.RDMA_PS_UDP, PS.RDMA_PS_IPOIB])
def test_a_datagram_service_names_its_queue_pair(made: list[CMID], space: int) -> None:
    server, client = End(made, space), End(made, space)
    server.listen()
    client.resolve()
    client.id.create_qp(attr(ibv_qp_type.IBV_QPT_UD))
    param = ConnParam(data_len=100)
    param.set_private_data(b"who")
    client.id.connect(param)
    event = server.event(E.RDMA_CM_EVENT_CONNECT_REQUEST)
    assert event.private_data == b"who".ljust(180, b"\0")
    child = server.child(event)
    child.create_qp(attr(ibv_qp_type.IBV_QPT_UD))
    child.accept()
    ud = UDParam(client.event(E.RDMA_CM_EVENT_ESTABLISHED))
    assert (ud.qp_num, ud.qkey) == (child.qpn, 0x01234567)
    mine, theirs = client.id.reg_msgs(64), child.reg_msgs(64)
    child.post_recv(theirs)
    mine.write("ask", 3)
    client.id.post_ud_send(mine, AH(client.id.pd, attr=ud.ah_attr), rqpn=ud.qp_num, length=3)
    client.id.get_send_comp()
    wc = child.get_recv_comp()
    assert (wc.byte_len, wc.src_qp, theirs.read(3, 40)) == (43, client.id.qpn, b"ask")
    back = AH(child.pd, wc=wc, grh=theirs.buf, port_num=1)
    client.id.post_recv(mine)
    child.post_ud_send(theirs, back, rqpn=wc.src_qp, length=5)
    assert client.id.get_recv_comp().byte_len == 45


def test_a_datagram_service_may_refuse(made: list[CMID]) -> None:
    server, client = End(made, PS.RDMA_PS_UDP), End(made, PS.RDMA_PS_UDP)
    server.listen()
    client.resolve()
    client.id.connect()
    server.child(server.event(E.RDMA_CM_EVENT_CONNECT_REQUEST)).reject(b"no")
    event = client.event(E.RDMA_CM_EVENT_UNREACHABLE)  # as librdmacm tells it
    assert (event.private_data[:2], event.happening.status) == (b"no", 2)


def test_members_of_a_group_hear_its_datagrams(made: list[CMID]) -> None:
    ends = [End(made, PS.RDMA_PS_UDP) for _ in range(2)]
    attrs = []
    for number, end in enumerate(ends):
        end.id.bind_addr(AddrInfo(src=HERE))
        end.id.resolve_addr(AddrInfo(src=HERE, dst=GROUP))
        end.event(E.RDMA_CM_EVENT_ADDR_RESOLVED)
        end.id.create_qp(attr(ibv_qp_type.IBV_QPT_UD))
        if number == 0:
            end.id.join_multicast(addr=AddrInfo(src=GROUP))
        else:
            mask = rdma_cm_join_mc_attr_mask.RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS
            flags = rdma_cm_mc_join_flags.RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER
            end.id.join_multicast(mc_attr=JoinMCAttrEx(AddrInfo(src=GROUP), mask, flags))
        attrs.append(UDParam(end.event(E.RDMA_CM_EVENT_MULTICAST_JOIN)))
    assert {one.qp_num for one in attrs} == {MULTICAST_QP}
    regions = [end.id.reg_msgs(64) for end in ends]
    for end, region in zip(ends, regions, strict=True):
        end.id.post_recv(region)
    sent = ends[1].id.reg_msgs(8)
    sent.write("all", 3)
    ah = AH(ends[1].id.pd, attr=attrs[1].ah_attr)
    ends[1].id.post_ud_send(sent, ah, rqpn=MULTICAST_QP, length=3)
    ends[1].id.get_send_comp()
    assert ends[0].id.get_recv_comp().byte_len == 43
    assert regions[0].read(3, 40) == b"all"
    pair = ends[0].id._own_qp("").pair
    assert pair.host.groups.of(pair) != ()
    only_sends = ends[1].id._own_qp("").pair
    assert only_sends.host.groups.of(only_sends) == ()
    ends[0].id.leave_multicast(AddrInfo(src=GROUP))
    assert pair.host.groups.of(pair) == ()
    with pytest.raises(PyverbsUserError, match="must have AddrInfo or JoinMCAttrEx"):
        ends[0].id.join_multicast()
    with pytest.raises(PyverbsRDMAError, match="Failed to Join multicast"):
        ends[0].id.join_multicast(addr=AddrInfo(src=HERE))


def test_synchronous_identifiers_wait(made: list[CMID]) -> None:
    info = AddrInfo(src=THERE, src_service=PORT, port_space=PS.RDMA_PS_TCP, flags=RAI_PASSIVE)
    listener = CMID(creator=info, qp_init_attr=attr())
    made.append(listener)
    listener.listen()
    got: list[bytes] = []

    def serve() -> None:
        for _ in range(2):
            child = listener.get_request()
            child.accept()
            region = child.reg_msgs(64)
            child.post_recv(region)
            child.get_recv_comp()
            got.append(region.read(5, 0))
            child.disconnect()
            child.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    for word in ("first", "other"):
        here = AddrInfo(src=HERE, dst=THERE, dst_service=PORT, port_space=PS.RDMA_PS_TCP)
        client = CMID(creator=here, qp_init_attr=attr())
        client.connect()
        region = client.reg_msgs(64)
        region.write(word, 5)
        client.post_send(region, length=5)
        client.get_send_comp()
        client.disconnect()
        client.close()
    thread.join(PATIENCE_S)
    assert got == [b"first", b"other"]
    nobody = AddrInfo(src=HERE, dst=THERE, dst_service="7", port_space=PS.RDMA_PS_TCP)
    client = CMID(creator=nobody, qp_init_attr=attr())
    made.append(client)
    with pytest.raises(PyverbsRDMAError, match="Failed to Connect") as caught:
        client.connect()
    assert caught.value.error_code == ECONNREFUSED


def test_closing_an_identifier_tells_the_peer_and_frees_the_port(made: list[CMID]) -> None:
    client, child, server = connect(made)
    client.event(E.RDMA_CM_EVENT_ESTABLISHED)
    server.event(E.RDMA_CM_EVENT_ESTABLISHED)
    child.close()
    client.event(E.RDMA_CM_EVENT_DISCONNECTED)
    assert child.close() is None
    server.id.close()
    again = End(made)
    again.listen()
    late = End(made)
    late.resolve()
    late.id.create_qp(attr())
    late.id.connect(ConnParam())
    again.child(again.event(E.RDMA_CM_EVENT_CONNECT_REQUEST)).close()  # nobody answers it
    late.event(E.RDMA_CM_EVENT_REJECTED)


def test_mistakes_have_the_errno_of_librdmacm(made: list[CMID]) -> None:
    end = End(made)
    for code, what in (
        (EADDRNOTAVAIL, lambda: AddrInfo(src="no such host.", flags=RAI_PASSIVE)),
        (EINVAL, AddrInfo),
        (ENODEV, lambda: end.id.bind_addr(AddrInfo(src="127.0.0.77", flags=RAI_PASSIVE))),
        (EINVAL, lambda: end.id.resolve_addr(AddrInfo(src=HERE))),
        (EINVAL, end.id.resolve_route),
        (EINVAL, lambda: end.id.dev_name),
        (ENODEV, lambda: CMEvent(end.channel)),
    ):
        with pytest.raises(PyverbsRDMAError) as caught:
            what()
        assert caught.value.error_code == code
    end.listen()
    other = End(made)
    other.id.bind_addr(AddrInfo(src=THERE, src_service=PORT, flags=RAI_PASSIVE))
    for code, what in (
        (EADDRINUSE, other.id.listen),
        (EINVAL, end.id.listen),
        (EINVAL, end.id.accept),
        (EINVAL, end.id.reject),
        (EINVAL, end.id.disconnect),
        (EINVAL, lambda: end.id.init_qp_attr(ibv_qp_state.IBV_QPS_RTR)),
        (EINVAL, lambda: end.id.query_qp(0)),
        (EINVAL, lambda: end.id.get_send_comp()),  # noqa: PLW0108 - as the others
    ):
        with pytest.raises(PyverbsRDMAError) as caught:
            what()
        assert caught.value.error_code == code
    native = End(made, PS.RDMA_PS_IB)
    native.id.bind_addr(AddrInfo(src=THERE))
    with pytest.raises(PyverbsRDMAError) as caught:
        native.id.listen()
    assert caught.value.error_code == EOPNOTSUPP
    with pytest.raises(PyverbsUserError, match="listen ID not provided"):
        CMID(creator=object.__new__(CMEvent))


def test_parameters_print_as_rows() -> None:
    text = str(ConnParam(resources=3, qp_num=9))
    assert text.startswith("Connection parameters: \nresponder resources: 3   \n")
    assert "qp number: 9   \n" in text


@pytest.mark.parametrize(
    ("space", "kind"),
    [
        (rdma_port_space.RDMA_PS_TCP, ibv_qp_type.IBV_QPT_RC),
        (rdma_port_space.RDMA_PS_UDP, ibv_qp_type.IBV_QPT_UD),
    ],
)
def test_the_port_space_decides_the_type_of_the_queue_pair(space: rdma_port_space, kind: ibv_qp_type) -> None:
    """As in the example of rdma-core's Documentation/pyverbs.md, whose attributes name no type."""
    address = HERE
    info = AddrInfo(src=address, dst=address, dst_service="7471", port_space=space)
    made_with = QPInitAttr(cap=QPCap(max_recv_wr=1))
    with CMID(creator=info, qp_init_attr=made_with) as cmid:
        assert cmid.query_qp(0)[1].qp_type == kind


def test_numbers_are_there_by_the_name_of_older_releases() -> None:
    assert cm_enums.rdma_cm_event_type is rdma_cm_event_type
    assert cm_enums.RAI_PASSIVE == RAI_PASSIVE
