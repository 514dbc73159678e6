"""Ends that react wrongly: the judgement names the expectation that they miss."""

from __future__ import annotations

from typing import Any

import pytest

from weftwork.rdma import inbound, nic, requester
from weftwork.rdma.memory import MemoryTable
from weftwork.rdma.peer.in_memory import SelfTest, self_test
from weftwork.rdma.peer.judge import Result, judge
from weftwork.rdma.peer.reading import find_script, parse_script, read_script
from weftwork.rdma.queue_pair import RdmaQueuePair
from weftwork.rdma.requester import RcRequester
from weftwork.rdma.responder import RcResponder
from weftwork.wire.rdma_ip_cm import PortSpace


def missed(name: str) -> list[str]:
    """Expectations of a shipped scenario that are not met."""
    return [one.says for one in self_test(read_script(find_script(name))) if one.result is Result.MISSED]


def test_an_end_that_repeats_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requester, "TIMEOUT_UNIT_PS", requester.TIMEOUT_UNIT_PS // 2)
    assert missed("lost-only") == ["The end sends the packet again after 1 to 4 timeouts."]


def test_an_end_that_repeats_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requester, "TIMEOUT_UNIT_PS", requester.TIMEOUT_UNIT_PS * 8)
    assert missed("lost-last") == ["The end sends the last packet again after 1 to 4 timeouts."]


def test_an_end_that_does_not_wait_for_a_receive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requester, "rnr_timer_us", lambda _: 10)
    says = ["The end waits 1.28 ms at least and sends from the refused packet on."]
    assert missed("rnr-then-ready") == says


def test_an_end_that_believes_a_ghost(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = RcRequester.receive

    def believes(self: RcRequester, opcode: int, psn: int, body: memoryview, now_ps: int) -> None:
        end = (self.sent_end - 1) % (1 << 24)
        taken(self, opcode, end if psn != end and self.una < self.sent_end else psn, body, now_ps)

    monkeypatch.setattr(RcRequester, "receive", believes)
    assert "The end does not believe it, and repeats after 1 to 4 timeouts." in missed("ghost-ack")
    assert "All bytes have arrived." in missed("ghost-ack")


def test_an_end_that_adds_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    def executes(self: RcResponder, shape: Any, psn: int, body: memoryview) -> None:
        self._execute(shape, psn, body)

    monkeypatch.setattr(RcResponder, "_repeat", executes)
    assert missed("duplicate-atomic") == ["The end adds once."]
    assert missed("repeated-atomic") == ["The end adds once.", "No other byte changed."]


def test_an_end_that_does_not_look_at_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    found = MemoryTable.remote

    def gives(self: MemoryTable, pd: Any, _rkey: int, addr: int, *more: Any) -> memoryview | None:
        views = [view for key in self._remote if (view := found(self, pd, key, addr, *more)) is not None]
        return views[0] if views else None

    monkeypatch.setattr(MemoryTable, "remote", gives)
    assert missed("wrong-key") == [
        "The end refuses the request.",
        "No byte changed.",
        "The queue pair of the end is in error.",
        "The request of the peer ends with REM_ACCESS_ERR.",
    ]


def test_an_end_that_does_not_check_the_icrc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nic, "is_intact", lambda *_: True)
    assert "The bytes are those of the intact packet." in missed("icrc-of-request")
    assert "The end counts the packet." in missed("icrc-of-request")


def test_an_end_that_goes_on_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RdmaQueuePair, "went_wrong", lambda *_: None)
    assert "The queue pair of the end is in error." in missed("last-without-first")


def test_an_end_that_takes_a_middle_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbound.InboundMessages, "_has_right_size", lambda *_: True)
    assert "The end refuses the packet." in missed("short-middle")
    assert "The end refuses the request." in missed("dma-length-long")


def test_an_end_that_tries_once_too_often(monkeypatch: pytest.MonkeyPatch) -> None:
    start = RcRequester.start

    def more(self: RcRequester, first_psn: int) -> None:
        start(self, first_psn)
        self._retries_left += 1

    monkeypatch.setattr(RcRequester, "start", more)
    assert missed("silence") == ["The end sends its packet four times in total."]


# The judgement itself

SCRIPT = """
schema: 1
name: tried
shows: A packet is lost.
source: own
end: {does: write, size: 1KiB}
rules:
  - {from: end, psn: 9, do: drop}
expect:
  - {says: It works., see: statuses, are: [SUCCESS]}
"""


def test_a_rule_without_a_packet_is_told() -> None:
    judgements = self_test(parse_script(SCRIPT, "tried"))
    assert [(one.result, one.found) for one in judgements] == [
        (Result.MISSED, "no packet matched it"),
        (Result.MET, "SUCCESS"),
    ]


def test_a_peer_to_which_nobody_connects_says_so_alone_of_all_preconditions() -> None:
    script = parse_script(SCRIPT, "tried")
    idle = SelfTest(script).peer.report()
    judgements = judge(script, idle, None)
    assert [(one.says, one.result) for one in judgements] == [
        ("The end connects.", Result.MISSED),
        ("It works.", Result.OPEN),
    ]


def test_an_end_whose_peer_refuses_says_why() -> None:
    script = parse_script(SCRIPT, "tried")
    test = SelfTest(script)
    test.peer._manager._listeners[PortSpace.TCP, 7471].close()
    test.run()
    first = judge(script, None, test.end.report())[0]
    assert (first.result, first.found) == (Result.MISSED, "the peer refused (INVALID_SERVICE_ID)")


def test_a_connection_that_does_not_end_is_told() -> None:
    text = SCRIPT.replace("rules:\n  - {from: end, psn: 9, do: drop}\n", "")
    test = SelfTest(parse_script(text, "tried"))
    while not test.peer.is_connected:
        for index in (0, 1):
            test._send(index)
        test.now_ps = test._flying[0][0]
        _, _, to, datagram = test._flying.pop(0)
        (test.peer, test.end)[to].receive(datagram, test.now_ps)
    peer, end = test.reports()
    script = parse_script(text, "tried")
    for judgements in (judge(script, peer, None), judge(script, None, end)):
        assert (judgements[0].says, judgements[0].result) == ("The connection ends.", Result.MISSED)


@pytest.mark.parametrize(
    ("expectation", "result", "found"),
    [
        ("see: packets, least: 1, most: 1", Result.MET, "1 packet"),
        ("see: packets, packet: request, least: 2", Result.MISSED, "1 packet, wanted 2 or more"),
        ("see: packets, packet: any, most: 0", Result.MISSED, "1 packet, wanted 0 or fewer"),
        ("see: packets, psn: 3, least: 1", Result.MISSED, "0 packets, wanted 1 or more"),
        ("see: packets, from: peer, packet: ack, within: 1s, after: {from: end}", Result.MET, "1 packet, the first"),
        (
            "see: packets, from: peer, packet: ack, not_before: 1s, after: {from: end}",
            Result.MISSED,
            "wanted 1s or more",
        ),
        ("see: packets, within: 1s, after: {from: peer}", Result.MISSED, "no packet"),
        ("see: packets, least: 1, after: {from: peer, packet: nak}", Result.MISSED, "there was no nak of the peer"),
        ("see: statuses, are: [RETRY_EXC_ERR]", Result.MISSED, "SUCCESS, wanted RETRY_EXC_ERR"),
        ("see: received, are: []", Result.MET, "none"),
        ("see: state, is: ERR", Result.MISSED, "RTS, wanted ERR"),
        ("see: memory, is: unchanged", Result.MET, "unchanged"),
        ("see: peer-memory, is: unchanged", Result.MISSED, "written, wanted unchanged"),
        ("see: peer-value, values: [1]", Result.MISSED, "wanted 1"),
        ("see: counter, name: rnr_nak, most: 0", Result.MET, "rnr_nak is 0"),
        ("see: counter, name: rnr_nak, least: 1", Result.MISSED, "rnr_nak is 0"),
        ("see: rate, share_most: 1, after: {from: end}", Result.MISSED, "no payload in the window before"),
    ],
)
def test_a_look(expectation: str, result: Result, found: str) -> None:
    text = SCRIPT.replace("rules:\n  - {from: end, psn: 9, do: drop}\n", "")
    text = text.replace("see: statuses, are: [SUCCESS]", expectation)
    (judgement,) = self_test(parse_script(text, "tried"))
    assert judgement.result is result
    assert found in judgement.found
