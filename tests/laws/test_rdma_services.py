"""Datagram services over a bad wire: the side that asks hears one answer, the true one, and nothing is kept."""

from __future__ import annotations

from helpers.cases import case_count
from helpers.cm_pair import PORT, CmPair
from helpers.rdma_pair import SECOND_PS, BadWire
from hypothesis import given, settings
from hypothesis import strategies as st

from weftwork.rdma.cm_records import CmEventType, CmServiceEvent, CmServiceStatus
from weftwork.rdma.cm_services import CmServiceId
from weftwork.wire.rdma_ip_cm import PortSpace

E = CmEventType
CHANCES = st.sampled_from([0.0, 0.05, 0.3, 0.6])
BAD_WIRES = st.builds(
    BadWire, loss=CHANCES, reorder=CHANCES, duplicate=CHANCES, corrupt=CHANCES, seed=st.integers(0, 1 << 16)
)


@settings(max_examples=case_count(plain=60, deep=400))
@given(wire=BAD_WIRES, answers=st.lists(st.integers(2, 1 << 23) | st.none(), min_size=1, max_size=6))
def test_a_question_hears_the_answer_of_the_peer_once(wire: BadWire, answers: list[int | None]) -> None:
    pair = CmPair(wire)
    pair.cms[1].listen(PORT, space=PortSpace.UDP)
    asked = [pair.cms[0].services.ask(pair.addresses[1], PORT, bytes([number])) for number in range(len(answers))]
    heard: dict[CmServiceId, list[CmServiceEvent]] = {one: [] for one in asked}
    asks = 0
    is_over = False
    while not is_over:
        is_over = pair.wire.run(pair.wire.now_ps + SECOND_PS // 10)
        while (request := pair.cms[1].services.next_event()) is not None:
            is_over = False
            asks += request.event_type is E.CONNECT_REQUEST
            answer = answers[request.private_data[0]]
            if answer is None:
                request.id.reject(request.private_data[:1])
            else:
                request.id.accept(answer, answer ^ 0xFF, request.private_data[:1])
        while (event := pair.cms[0].services.next_event()) is not None:
            heard[event.id].append(event)
    for number, (one, answer) in enumerate(zip(asked, answers, strict=True)):
        (event,) = heard[one]
        if event.event_type is E.UNREACHABLE:
            assert wire.loss + wire.corrupt > 0
            continue
        assert event.private_data[0] == number
        if answer is None:
            assert (event.event_type, event.status) == (E.REJECTED, CmServiceStatus.REJECT)
        else:
            assert (event.event_type, event.qp_num, event.queue_key) == (E.ESTABLISHED, answer, answer ^ 0xFF)
    assert asks <= len(answers)  # a question that comes again is answered without the user
    assert pair.left_over() == []
