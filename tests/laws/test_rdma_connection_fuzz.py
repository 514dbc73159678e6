"""Whatever messages of connection management arrive: nothing is raised, little is kept, and strangers end nothing."""

from __future__ import annotations

from helpers.cases import case_count
from helpers.cm_pair import PORT, CmPair
from helpers.rdma_attacker import STRANGER
from hypothesis import given, settings
from hypothesis import strategies as st

from weftwork.rdma.cm_id import CmId
from weftwork.rdma.queue_pair import NicLimits
from weftwork.rdma.verbs import QpState
from weftwork.wire.cm import (
    CmDisconnectReply,
    CmDisconnectRequest,
    CmReady,
    CmReject,
    CmReply,
    CmRequest,
    CmServiceReply,
    CmServiceRequest,
    CmWait,
    decode_cm,
    encode_cm,
)
from weftwork.wire.rdma_ip_cm import PortSpace

MANY = settings(max_examples=case_count(plain=100, deep=500))
LIMITS = NicLimits(max_cm_id=16, max_cm_pending=8)
SERVICE = 0x1060000 | PORT  # RDMA IP CM service: TCP port space, as in annex A11
UDP_SERVICE = 0x1110000 | PORT
HEADER_BYTES = 24  # of a MAD; its fields choose the message
MAD_BYTES = 256


@st.composite
def messages(draw: st.DrawFn, ids: list[int], qp_num: int, heard: list[bytes]) -> bytes:
    """A message that was heard, or one that names what exists or something else; with some bytes changed."""
    comm_id, peer_id = draw(st.permutations(ids))[:2]
    if draw(st.integers(0, 2)) == 0:
        comm_id, peer_id = (draw(st.sampled_from([*ids, 0, 77]) | st.integers(0, (1 << 32) - 1)) for _ in range(2))
    both = {"local_comm_id": comm_id, "remote_comm_id": peer_id}
    made = draw(
        st.sampled_from(
            [
                CmRequest(local_comm_id=comm_id, service_id=SERVICE, local_qpn=5, transport_service=0, path_mtu=1),
                CmReply(**both, local_qpn=5),
                CmReady(**both),
                CmReject(**both, reason=draw(st.integers(0, 40))),
                CmDisconnectRequest(**both, remote_qpn=draw(st.sampled_from([qp_num, 5]))),
                CmDisconnectReply(**both),
                CmWait(**both, message_received=draw(st.integers(0, 3))),
                CmServiceRequest(request_id=comm_id, service_id=draw(st.sampled_from([SERVICE, UDP_SERVICE]))),
                CmServiceReply(request_id=comm_id, service_qpn=5),
            ]
        )
    )
    mad = bytearray(
        draw(
            st.sampled_from(
                [*heard, encode_cm(made, draw(st.sampled_from([decode_cm(heard[0])[0].transaction] * 3 + [0])))]
            )
        )
    )
    assert len(mad) == MAD_BYTES
    changed = st.dictionaries(st.integers(HEADER_BYTES, MAD_BYTES - 1), st.integers(0, 255), min_size=1, max_size=4)
    if draw(st.booleans()):
        for at, value in draw(changed).items():
            mad[at] = value
    if draw(st.integers(0, 19)) == 0:
        mad[draw(st.integers(0, HEADER_BYTES - 1))] ^= 1 << draw(st.integers(0, 7))
    is_cut = draw(st.integers(0, 19)) == 0
    return bytes(mad[: draw(st.sampled_from([0, 24, 100, 252]))] if is_cut else mad)


def known(*conversations: CmId) -> list[int]:
    return [conversation.local_comm_id for conversation in conversations]


@MANY
@given(is_established=st.booleans(), is_peer=st.booleans(), data=st.data())
def test_forged_messages_raise_nothing_and_leave_little(
    *, is_established: bool, is_peer: bool, data: st.DataObject
) -> None:
    pair = CmPair(limits=LIMITS)
    pair.cms[1].listen(PORT, space=PortSpace.UDP)
    mine, theirs = pair.establish() if is_established else pair.request()
    pair.cms[0].services.ask(pair.addresses[1], PORT)
    asked = pair.cms[1].services.ask(pair.addresses[0], PORT)
    pair.soon()
    ids = [*known(mine, theirs), asked.request_id]
    source = pair.addresses[0] if is_peer else STRANGER
    qp = theirs.qp
    number = qp.qp_num if qp is not None else 9
    heard = [bytes(one.payload()[20:-4]) for one in pair.wire.sent if one.source == pair.addresses[0]]
    for _ in range(data.draw(st.integers(1, 12))):
        pair.forge(
            1,
            data.draw(messages(ids, number, heard)),
            source=source,
            source_qp=data.draw(st.sampled_from([1, 1, 1, 2])),
        )
        if data.draw(st.booleans()):
            pair.soon()
    pair.take(1)
    assert len(pair.cms[1]._ids) <= LIMITS.max_cm_id
    assert len(pair.cms[1]._pending) <= LIMITS.max_cm_pending
    assert len(pair.cms[1].services.kept) <= LIMITS.max_cm_id
    assert len(pair.cms[1].services._waiting) <= LIMITS.max_cm_pending
    if is_established and not is_peer:
        assert qp is not None
        assert qp.state is QpState.RTS
        assert theirs.state is mine.state
