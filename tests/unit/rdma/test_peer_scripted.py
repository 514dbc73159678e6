"""The scripted peer itself: what its rules and requests make of packets, as the wire sees them."""

from __future__ import annotations

import random

import pytest

from weftwork.rdma.nic import RdmaNic
from weftwork.rdma.peer.end import ScriptEnd
from weftwork.rdma.peer.in_memory import PEER_ADDRESS, SelfTest
from weftwork.rdma.peer.packet_words import words_of
from weftwork.rdma.peer.packets import SeenPacket
from weftwork.rdma.peer.reading import parse_script
from weftwork.rdma.peer.rules import RuleBook
from weftwork.rdma.peer.scripted import ScriptedPeer
from weftwork.rdma.peer.workload import bytes_of
from weftwork.wire.extended import Aeth, AethKind
from weftwork.wire.ib import CNP_BODY, Bth
from weftwork.wire.opcodes import Opcode
from weftwork.wire.transport import TransportPacket

HEAD = "schema: 1\nname: tried\nshows: It is tried.\nsource: own\n"
WRITE = "end: {does: write}\n"
EXPECT = "expect:\n  - {says: It works., see: statuses, are: [SUCCESS]}\n"


def ran(body: str) -> SelfTest:
    """A script, run to its end against Weftwork's own NIC."""
    test = SelfTest(parse_script(HEAD + body + EXPECT, "tried"))
    assert test.run()
    return test


def packets(test: SelfTest, word: str, sender: str = "peer") -> list[SeenPacket]:
    return [one for one in test.peer.report().packets if one.sender == sender and word in one.words]


def psns(test: SelfTest, word: str, sender: str = "peer") -> list[int | None]:
    return [one.psn for one in packets(test, word, sender)]


def test_behind_a_refusal_later_packets_are_dropped_without_another_word() -> None:
    rule = "rules:\n  - {from: end, psn: 2, times: 1, do: answer, answer: {kind: rnr-nak, timer: 1}}\n"
    test = ran(f"end: {{does: send, size: 8KiB}}\n{rule}")
    assert psns(test, "rnr-nak") == [2]
    assert psns(test, "nak") == []
    assert psns(test, "request", "end") == [0, 1, 2, 3, 4, 5, 6, 7, 2, 3, 4, 5, 6, 7]
    done = [one.rule for one in packets(test, "request", "end")]
    assert done == ["", "", "answer", *["refused"] * 5, *[""] * 6]
    assert [one.name for one in packets(test, "request", "end")][:2] == ["send-first", "send-middle"]


def test_behind_a_final_refusal_the_peer_takes_nothing() -> None:
    rule = "rules:\n  - {from: end, psn: 0, do: answer, answer: {kind: nak-access}}\n"
    test = ran(f"end: {{does: write, size: 1KiB, times: 4}}\n{rule}")
    assert psns(test, "response") == [0]
    assert test.peer.report().memory == "unchanged"


def test_a_held_packet_comes_behind_as_many_as_the_rule_says() -> None:
    rule = "rules:\n  - {from: peer, psn: 1, times: 1, do: hold, behind: 2}\n"
    test = ran(f"end: {{offers: 4KiB}}\npeer:\n  - {{do: write, size: 4KiB}}\n{rule}")
    assert psns(test, "request")[:4] == [0, 2, 3, 1]


def test_copies_come_behind_the_packet() -> None:
    rule = "rules:\n  - {from: peer, psn: 1, times: 1, do: duplicate, copies: 2}\n"
    test = ran(f"end: {{offers: 4KiB}}\npeer:\n  - {{do: write, size: 4KiB}}\n{rule}")
    assert psns(test, "request") == [0, 1, 1, 1, 2, 3]


@pytest.mark.parametrize("sender", ["end", "peer"])
def test_a_delay_holds_on_both_sides(sender: str) -> None:
    rule = f"rules:\n  - {{from: {sender}, times: 1, do: delay, by: 300us}}\n"
    test = ran(f"end: {{does: write, size: 1KiB}}\n{rule}")
    (asked,), (told,) = packets(test, "request", "end"), packets(test, "ack")
    assert 300_000_000 <= told.at_ps - asked.at_ps < 301_000_000


def test_silence_drops_both_directions_for_its_time() -> None:
    rule = "rules:\n  - {from: end, psn: 3, times: 1, do: silence, for: 1ms}\n"
    test = ran(f"end: {{does: write, size: 8KiB}}\n{rule}")
    assert min(one.at_ps for one in packets(test, "ack")) > 1_000_000_000
    assert psns(test, "nak") == []


def test_a_pause_lies_between_two_requests_of_the_peer() -> None:
    steps = "peer:\n  - {do: write, size: 1KiB}\n  - {do: wait, for: 5ms}\n  - {do: write, size: 1KiB}\n"
    first, second = packets(ran(f"end: {{offers: 4KiB}}\n{steps}"), "write-only")
    assert 5_000_000_000 <= second.at_ps - first.at_ps < 5_001_000_000


def test_a_changed_packet_of_the_end_reaches_the_peer_with_a_right_icrc() -> None:
    rule = "rules:\n  - {from: end, times: 1, do: set, set: {payload: 512B, dma_length: 512B}}\n"
    test = ran(f"end: {{does: write, size: 1KiB}}\n{rule}")
    peer = test.peer.report()
    assert test.peer.nic.counters == {}
    assert peer.memory == "other"  # a half of it
    assert bytes(test.peer._memory[:512]) == bytes_of("end", 512)


def test_a_second_connection_is_refused() -> None:
    test = ran(WRITE)
    nic = RdmaNic(bytes((192, 0, 2, 9)), random=random.Random(9))
    other = ScriptEnd(parse_script(HEAD + WRITE + EXPECT, "tried"), nic, PEER_ADDRESS)
    for one, to in ((other, test.peer), (test.peer, other)):
        for datagram in one.datagrams_to_send(test.now_ps, 16):
            to.receive(datagram._replace(parts=(bytes(datagram.payload()),)), test.now_ps)
    assert other.report().failure == "the peer refused (CONSUMER_DEFINED)"


def test_a_peer_without_a_connection_has_nothing_to_say() -> None:
    peer = ScriptedPeer(
        parse_script(HEAD + WRITE + EXPECT, "tried"), RdmaNic(bytes((10, 0, 0, 1)), random=random.Random(1))
    )
    assert peer.next_timer_ps() is None
    assert peer.datagrams_to_send(0) == []
    report = peer.report()
    assert (report.is_connected, report.packets, report.timeout_ps) == (False, (), None)


# Rules and words


def seen(psn: int, word: str = "write") -> SeenPacket:
    words = frozenset({"any", "request", word})
    return SeenPacket(at_ps=0, sender="end", words=words, psn=psn, psn_on_wire=psn, payload_bytes=0)


def test_a_rule_takes_its_packets_from_the_nth_on() -> None:
    book = RuleBook(
        parse_script(HEAD + WRITE + "rules:\n  - {from: end, nth: 2, times: 2, do: drop}\n" + EXPECT, "tried")
    )
    assert [book.take(seen(0)) is not None for _ in range(5)] == [False, True, True, False, False]
    assert book.applied == [2]


def test_the_first_rule_decides_and_the_others_count_all_the_same() -> None:
    rules = "rules:\n  - {from: end, times: 1, do: drop}\n  - {from: end, nth: 2, times: 1, do: silence}\n"
    book = RuleBook(parse_script(HEAD + WRITE + rules + EXPECT, "tried"))
    taken = [book.take(seen(0)) for _ in range(3)]
    assert [rule.do if rule is not None else None for rule in taken] == ["drop", "silence", None]


def test_draws_follow_from_the_seed() -> None:
    def draws(seed: int) -> list[bool]:
        text = f"seed: {seed}\nrules:\n  - {{from: end, chance: 0.5, do: drop}}\n"
        book = RuleBook(parse_script(HEAD + WRITE + text + EXPECT, "tried"))
        return [book.take(seen(0)) is not None for _ in range(64)]

    assert draws(1) == draws(1) != draws(2)
    assert 16 < sum(draws(1)) < 48


@pytest.mark.parametrize(
    ("opcode", "headers", "words"),
    [
        (Opcode.SEND_ONLY_IMMEDIATE, (), {"request", "send", "send-only-immediate"}),
        (Opcode.READ_REQUEST, (), {"request", "read-request"}),
        (Opcode.READ_RESPONSE_LAST, (), {"response", "read-response", "read-response-last"}),
        (Opcode.ATOMIC_ACKNOWLEDGE, (Aeth(AethKind.ACK, 31, 1),), {"response", "atomic-acknowledge"}),
        (Opcode.ACKNOWLEDGE, (Aeth(AethKind.ACK, 31, 1),), {"response", "ack"}),
        (Opcode.ACKNOWLEDGE, (Aeth(AethKind.RNR_NAK, 3, 1),), {"response", "rnr-nak"}),
        (Opcode.ACKNOWLEDGE, (Aeth(AethKind.NAK, 2, 1),), {"response", "nak", "nak-access"}),
        (Opcode.ACKNOWLEDGE, (Aeth(AethKind.NAK, 9, 1),), {"response", "nak"}),
        (Opcode.CNP, (), {"cnp"}),
    ],
)
def test_words_of_a_packet(opcode: Opcode, headers: tuple[Aeth, ...], words: set[str]) -> None:
    payload = CNP_BODY if opcode is Opcode.CNP else b""
    assert words_of(TransportPacket(Bth(opcode, 5, 0), headers, payload)) == {"any", *words}
