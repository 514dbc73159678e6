"""Refusals have the numbers of errno that programs test for."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

import pytest
from helpers.pyverbs_ends import DEVICE, SIZE, End, own_address, pair

from weftwork.base.errors import ConfigError
from weftwork.compat.pyverbs.addr import AH, GID, AHAttr, GlobalRoute
from weftwork.compat.pyverbs.cq import CQ, CQEX, CqInitAttrEx
from weftwork.compat.pyverbs.device import DM, AllocDmAttr, Context, get_device_list
from weftwork.compat.pyverbs.flow import Flow, FlowAttr
from weftwork.compat.pyverbs.libibverbs_enums import (
    IBV_LINK_LAYER_ETHERNET,
    ibv_access_flags,
    ibv_create_cq_wc_flags,
    ibv_device_cap_flags,
    ibv_gid_type,
    ibv_qp_attr_mask,
    ibv_qp_state,
    ibv_qp_type,
    ibv_rereg_mr_flags,
)
from weftwork.compat.pyverbs.mem_alloc import free, posix_memalign, read
from weftwork.compat.pyverbs.mr import MR, MW, MWBind, MWBindInfo
from weftwork.compat.pyverbs.pd import PD
from weftwork.compat.pyverbs.pyverbs_error import PyverbsRDMAError, PyverbsUserError
from weftwork.compat.pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from weftwork.compat.pyverbs.software_nics import set_devices
from weftwork.compat.pyverbs.srq import SRQ, SrqAttr, SrqInitAttr
from weftwork.compat.pyverbs.wr import RecvWR, SendWR
from weftwork.compat.pyverbs.xrcd import XRCD, XRCDInitAttr

if TYPE_CHECKING:
    from collections.abc import Callable

LOCAL_WRITE = ibv_access_flags.IBV_ACCESS_LOCAL_WRITE


def code_of(call: Callable[[], object]) -> int:
    with pytest.raises(PyverbsRDMAError) as refused:
        call()
    return refused.value.error_code


def test_a_full_receive_queue_has_no_memory() -> None:
    end = End(cap=QPCap(max_recv_wr=2))
    end.receive()
    end.receive()
    failed = RecvWR(wr_id=9, num_sge=1, sg=[end.piece()])
    bad = RecvWR()
    assert code_of(lambda: end.qp.post_recv(failed, bad)) == errno.ENOMEM
    assert bad.wr_id == 9


def test_a_send_before_rts_is_invalid() -> None:
    end = End()
    assert code_of(lambda: end.qp.post_send(SendWR(num_sge=1, sg=[end.piece()]))) == errno.EINVAL


def test_too_many_pieces_are_invalid() -> None:
    client, _ = pair()
    two = [client.piece(0, 1), client.piece(1, 1)]
    assert code_of(lambda: client.qp.post_send(SendWR(num_sge=2, sg=two))) == errno.EINVAL
    assert code_of(lambda: client.qp.post_recv(RecvWR(num_sge=2, sg=two))) == errno.EINVAL


def test_a_change_of_state_names_what_it_misses() -> None:
    end = End()
    with pytest.raises(PyverbsRDMAError, match="IBV_QP_DEST_QPN") as refused:
        end.qp.modify(
            QPAttr(qp_state=ibv_qp_state.IBV_QPS_RTR), ibv_qp_attr_mask.IBV_QP_STATE | ibv_qp_attr_mask.IBV_QP_AV
        )
    assert refused.value.error_code == errno.EINVAL
    assert end.qp.qp_state == ibv_qp_state.IBV_QPS_INIT


def test_an_address_without_a_gid_is_invalid() -> None:
    end = End()
    with pytest.raises(PyverbsRDMAError, match="Failed to create AH"):
        AH(end.pd, attr=AHAttr(is_global=0))
    with pytest.raises(PyverbsUserError):
        AHAttr(is_global=1)


@pytest.mark.parametrize(
    "make",
    [
        lambda end: XRCD(end.context, XRCDInitAttr(0, 0, 0)),
        lambda end: DM(end.context, AllocDmAttr(64)),
        lambda end: Flow(end.qp, FlowAttr()),
        lambda end: MR(end.pd, 0, LOCAL_WRITE, implicit=True),
        lambda end: MR(end.pd, 64, LOCAL_WRITE | ibv_access_flags.IBV_ACCESS_FLUSH_PERSISTENT),
        lambda end: MR(end.pd, 64, LOCAL_WRITE | ibv_access_flags.IBV_ACCESS_ZERO_BASED),
        lambda end: QP(end.pd, QPInitAttr(qp_type=ibv_qp_type.IBV_QPT_RAW_PACKET, scq=end.cq, rcq=end.cq)),
        lambda end: CQEX(end.context, CqInitAttrEx(wc_flags=ibv_create_cq_wc_flags.IBV_WC_EX_WITH_CVLAN)),
        lambda end: end.qp.modify(QPAttr(), ibv_qp_attr_mask.IBV_QP_RATE_LIMIT),
        lambda end: end.context.query_rt_values_ex(),
        lambda end: Context(name=end.context.name, cmd_fd=3),
        lambda end: PD(end.context, handle=1),
    ],
)
def test_what_a_software_nic_lacks_is_not_supported(make: Callable[[End], object]) -> None:
    end = End()
    assert code_of(lambda: make(end)) == errno.EOPNOTSUPP


@pytest.mark.parametrize(
    "make",
    [
        lambda end: MR(end.pd, 64, ibv_access_flags.IBV_ACCESS_REMOTE_WRITE),
        lambda end: MW(end.pd, 3),
        lambda end: CQ(end.context, end.context.query_device().max_cqe + 1),
        lambda end: CQ(end.context, 8, comp_vector=1),
        lambda end: QP(end.pd, QPInitAttr(qp_type=2, scq=end.cq, rcq=end.cq, cap=QPCap(max_send_wr=0xFFFFFFFF))),
        lambda end: QP(end.pd, QPInitAttr(qp_type=2, cap=QPCap())),
        lambda end: SRQ(end.pd, SrqInitAttr(SrqAttr(max_wr=0))),
        lambda end: end.context.query_port(2),
        lambda end: end.context.query_gid(1, 8),
        lambda end: end.qp.bind_mw(MW(end.pd, 2), MWBind(MWBindInfo(end.mr, end.mr.buf, 8, 0), 2)),
    ],
)
def test_a_wrong_argument_is_invalid(make: Callable[[End], object]) -> None:
    end = End()
    assert code_of(lambda: make(end)) == errno.EINVAL


def test_queries_answer_from_the_limits_of_the_nic() -> None:
    end = End()
    attr, limits = end.context.query_device(), end.context.nic.device.nic.limits
    assert (attr.max_qp, attr.max_cqe, attr.max_sge, attr.max_qp_wr) == (
        *(limits.max_qp, limits.max_cqe),
        *(limits.max_sge, limits.max_qp_wr),
    )
    assert attr.device_cap_flags & ibv_device_cap_flags.IBV_DEVICE_MEM_WINDOW_TYPE_2B
    assert not attr.device_cap_flags & ibv_device_cap_flags.IBV_DEVICE_XRC
    assert end.context.query_device_ex().max_dm_size == 0
    assert end.context.query_port(1).link_layer == IBV_LINK_LAYER_ETHERNET
    assert "Max QP" in str(attr).title().replace("Qp", "QP")


def test_the_first_gids_are_the_mapped_address() -> None:
    with Context(name=DEVICE) as context:
        octets = bytes(int(part) for part in own_address().split("."))
        for index in range(8):
            mapped = bytes(10) + b"\xff\xff" + octets
            assert context.query_gid(1, index).raw == (mapped if index < 4 else bytes(16))
        entries = context.query_gid_table(8)
        assert [entry.gid_index for entry in entries] == [0, 1, 2, 3]
        assert {entry.gid_type for entry in entries} == {ibv_gid_type.IBV_GID_TYPE_ROCE_V2}
        assert {entry.gid_str() for entry in entries} == {str(context.query_gid(1, 0))}
        assert code_of(lambda: context.query_gid_ex(1, 4)) == errno.ENODATA
        assert code_of(lambda: context.query_gid_table(3)) == -errno.EINVAL


# rdma_check_ah_attr in Linux verbs.c, rdma_get_gid_attr in cache.c: what of an address is refused, with which number
ADDRESSES = [
    ({"is_global": 0}, {}, errno.EINVAL),
    ({"port_num": 0}, {}, errno.EINVAL),
    ({"port_num": 2}, {}, errno.EINVAL),
    ({}, {"sgid_index": 4}, errno.ENODATA),
    ({}, {"sgid_index": 7}, errno.ENODATA),
    ({}, {"sgid_index": 8}, errno.EINVAL),
    ({}, {"sgid_index": 255}, errno.EINVAL),
    ({}, {"dgid": GID()}, errno.EINVAL),
    *(({}, {"sgid_index": index}, 0) for index in range(4)),
]


@pytest.mark.parametrize(("attr", "route", "code"), ADDRESSES)
def test_addresses_are_taken_and_refused_as_by_the_kernel(
    attr: dict[str, int], route: dict[str, Any], code: int
) -> None:
    end = End()
    there = {"dgid": end.context.query_gid(1, 0), **route}
    address = AHAttr(**{"is_global": 1, "port_num": 1, **attr, "gr": GlobalRoute(**there)})
    wanted = QPAttr()
    wanted.dest_qp_num, wanted.ah_attr = 5, address
    rc = QPInitAttr(qp_type=ibv_qp_type.IBV_QPT_RC, scq=end.cq, rcq=end.cq, cap=QPCap())

    def connect() -> None:
        QP(end.pd, rc, QPAttr()).to_rts(wanted)

    for make in (connect, lambda: AH(end.pd, attr=address)):
        if code:
            assert code_of(make) == code
        else:
            make()


def test_memory_of_the_program_is_registered_where_it_is() -> None:
    end = End()
    address = posix_memalign(64)
    with MR(end.pd, 64, LOCAL_WRITE, address=address) as region:
        assert (region.buf, region.length) == (address, 64)
        region.write("in place", 8)
        assert read(address, 8) == b"in place"
        with pytest.raises(PyverbsUserError):
            region.write("x" * 65, 65)
        with pytest.raises(PyverbsUserError):
            region.read(1, 64)
    free(address)


def test_a_region_that_is_registered_again_keeps_its_keys() -> None:
    end = End()
    keys = end.mr.lkey, end.mr.rkey
    address, other = posix_memalign(128), PD(end.context)
    end.mr.rereg(
        ibv_rereg_mr_flags.IBV_REREG_MR_CHANGE_TRANSLATION
        | ibv_rereg_mr_flags.IBV_REREG_MR_CHANGE_PD
        | ibv_rereg_mr_flags.IBV_REREG_MR_CHANGE_ACCESS,
        other,
        address,
        128,
        LOCAL_WRITE,
    )
    assert (end.mr.lkey, end.mr.rkey, end.mr.buf, end.mr.length) == (*keys, address, 128)
    end.pd.close()
    assert end.mr.is_open
    other.close()
    assert not end.mr.is_open
    free(address)


def test_relaxed_ordering_is_taken() -> None:
    end = End()
    assert MR(end.pd, 64, LOCAL_WRITE | ibv_access_flags.IBV_ACCESS_RELAXED_ORDERING).length == 64


def test_devices_are_those_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    set_devices(None)
    monkeypatch.setenv("WEFTWORK_PYVERBS_DEVICES", "left=127.0.0.2, right=127.0.0.3")
    assert [device.name for device in get_device_list()] == [b"left", b"right"]
    assert code_of(lambda: Context(name="weft0")) == -1
    monkeypatch.setenv("WEFTWORK_PYVERBS_DEVICES", "127.0.0.2")
    with pytest.raises(ConfigError, match="wanted NAME=ADDRESS"):
        get_device_list()
    with pytest.raises(ConfigError, match="wanted an IP address"):
        set_devices({"left": "localhost"})


def test_an_address_of_another_machine_cannot_be_opened() -> None:
    set_devices({DEVICE: "192.0.2.1"})
    with pytest.raises(PyverbsRDMAError, match="Failed to open device weft0"):
        Context(name=DEVICE)


def test_a_completion_queue_does_not_shrink_below_its_content() -> None:
    client, server = pair()
    for number in range(3):
        server.receive(number * 8, 8)
        client.qp.post_send(SendWR(num_sge=1, sg=[client.piece(0, 8)]))
    for number in range(3):
        assert client.context.nic.device.wait(lambda: len(client.cq.queue) == 3, 60.0), number
    assert code_of(lambda: client.cq.resize(2)) == errno.EINVAL
    client.cq.resize(3)
    assert client.cq.cqe == 3
    assert client.mr.length == SIZE
