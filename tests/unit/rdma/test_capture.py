"""Made-up conversations and what is said about them: losses, refusals, congestion, READs, connections."""

from __future__ import annotations

import pytest
from helpers.captures import (
    PATH_MTU_BYTES,
    answer,
    bth,
    captured,
    cnp,
    frame,
    management,
    nak,
    read,
    read_response,
    write,
)

from weftwork.rdma.capture import CaptureExplainer, PacketRow
from weftwork.rdma.findings import CaptureFinding, find_trouble
from weftwork.rdma.flows import CaptureFlow, FlowKey
from weftwork.wire.cm import CmReject, CmReply, CmRequest
from weftwork.wire.extended import AethKind, Nak
from weftwork.wire.ip import ECN_CE
from weftwork.wire.opcodes import Opcode
from weftwork.wire.pcap import CapturedPacket
from weftwork.wire.pfc import PriorityPause
from weftwork.wire.rdma_ip_cm import service_of_port
from weftwork.wire.selective_nak import SelectiveNak
from weftwork.wire.transport import TransportPacket, transport_packet

A_TO_B = FlowKey("10.0.0.1", "10.0.0.2", 0x22)
B_TO_A = FlowKey("10.0.0.2", "10.0.0.1", 0x11)


def explained(frames: list[bytes]) -> tuple[list[PacketRow], CaptureExplainer]:
    seen = CaptureExplainer()
    return [row for packet in captured(frames) for row in seen.explain(packet)], seen


def flow(seen: CaptureExplainer, key: FlowKey = A_TO_B) -> CaptureFlow:
    return seen.flows.by_key[key]


def kinds(seen: CaptureExplainer) -> list[tuple[str, int | None]]:
    return [(finding.kind, finding.first_packet) for finding in find_trouble(seen)]


def test_a_clean_write_has_no_trouble() -> None:
    rows, seen = explained([*write("a", 0xFFFFFE, 4), answer("b", 1)])
    assert [row.name for row in rows] == [
        "RC WRITE first",
        "RC WRITE middle",
        "RC WRITE middle",
        "RC WRITE last",
        "RC ACK",
    ]
    assert [row.notes for row in rows] == [()] * 5
    assert rows[0].detail == "1024 B at 0x7f0000 key 0x1234"
    assert rows[3].detail == "asks for an ACK"
    assert rows[4].detail == "MSN 1"
    assert [row.psn for row in rows] == [0xFFFFFE, 0xFFFFFF, 0, 1, 1]
    assert [row.time_ns for row in rows] == [0, 1_000, 2_000, 3_000, 4_000]
    found = flow(seen)
    assert (found.messages, found.payload_bytes, found.acks) == (1, 4 * PATH_MTU_BYTES, 1)
    assert find_trouble(seen) == []


def test_a_loss_is_told_with_the_nak_and_what_was_sent_again() -> None:
    packets = write("a", 100, 6)
    rows, seen = explained([*packets[:2], *packets[3:], nak("b", 102), *packets[2:], answer("b", 105)])
    assert rows[2].notes == ("1 PSN missing in front of it",)
    assert rows[5].notes == ("PSN sequence error, wants PSN 0x66",)
    assert rows[5].name == "RC NAK"
    assert [row.notes for row in rows[6:10]] == [("sent again",)] * 4
    found = flow(seen)
    assert (found.sent_again, found.missing, found.messages, found.acks) == (4, 0, 1, 1)
    assert find_trouble(seen) == [
        CaptureFinding(
            "lost",
            "1 NAK with PSN sequence error, 4 packets sent again in 10.0.0.1 -> 10.0.0.2 QP 0x22: "
            "packets are lost or overtake each other",
            6,
        )
    ]


def test_a_selective_nak_is_told_with_what_is_kept() -> None:
    packets = write("a", 100, 6)
    told = TransportPacket(bth("b", Opcode.ACKNOWLEDGE, 102), (SelectiveNak(1, 3).aeth(),))
    rows, seen = explained([*packets[:2], *packets[3:], frame("b", told), packets[2], answer("b", 105)])
    assert rows[5].notes == ("PSN sequence error, wants PSN 0x66, keeps 3 from PSN 0x67 on",)
    assert rows[6].notes == ("sent again",)
    assert kinds(seen) == [("lost", 6)]
    assert flow(seen).sent_again == 1


def test_a_lost_ack_is_told_from_a_lost_packet() -> None:
    packets = write("a", 100, 2)
    _, seen = explained([*packets, *packets, answer("b", 101)])
    assert kinds(seen) == [("sent again", 3)]
    assert (flow(seen).messages, flow(seen).sent_again) == (1, 2)


def test_packets_that_overtake_each_other_are_late_and_not_sent_again() -> None:
    first, second, third = write("a", 100, 3)
    rows, seen = explained([first, third, second, answer("b", 102)])
    assert rows[2].notes == ("late: packets behind it came first",)
    assert kinds(seen) == [("late", 3)]
    assert (flow(seen).sent_again, flow(seen).missing, flow(seen).messages) == (0, 0, 1)


def test_a_gap_that_nobody_fills_is_named_last() -> None:
    packets = write("a", 100, 4)
    _, seen = explained([packets[0], packets[3]])
    assert kinds(seen) == [("gap", 2)]
    assert "2 PSNs never seen in 10.0.0.1" in find_trouble(seen)[0].text


def test_a_read_takes_psns_and_its_responses_are_held_to_them() -> None:
    frames = [read("a", 100, 1024), *read_response("b", 100, 4), *write("a", 104, 1), answer("b", 104)]
    rows, seen = explained(frames)
    assert [row.notes for row in rows] == [()] * 7
    assert (flow(seen).messages, flow(seen).payload_bytes, flow(seen).path_mtu_bytes) == (2, 1280, 256)
    # the path MTU is known now, so that the next READ takes four PSNs and no other number
    more, seen = explained([*frames, read("a", 105, 1024), *write("a", 106, 1)])
    assert more[-1].notes == ("sent again",)
    lost = [*frames[:2], *frames[3:5], read("a", 101, 768), *read_response("b", 101, 3)]
    rows, seen = explained(lost)
    assert rows[2].notes == ("1 PSN missing in front of it",)
    assert rows[4].notes == ("sent again",)
    assert [row.notes for row in rows[5:]] == [("sent again",)] * 3
    assert (flow(seen).missing, flow(seen).late) == (0, 0)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (Nak.INVALID_REQUEST, "invalid request"),
        (Nak.REMOTE_ACCESS_ERROR, "remote access error"),
        (Nak.REMOTE_OPERATIONAL_ERROR, "remote operational error"),
    ],
)
def test_a_refusal_is_named_by_its_code(code: Nak, words: str) -> None:
    _, seen = explained([*write("a", 100, 1), nak("b", 100, code)])
    assert kinds(seen) == [(words, 2)]
    assert find_trouble(seen)[0].text.startswith(f"1 request refused with {words} in 10.0.0.1 -> 10.0.0.2 QP 0x22")
    assert flow(seen).naks == {words: 1}


def test_a_receiver_without_buffers_is_told_with_its_timer() -> None:
    packets = write("a", 100, 1)
    rows, seen = explained([*packets, answer("b", 100, AethKind.RNR_NAK, 14), *packets, answer("b", 100)])
    assert rows[1].name == "RC RNR NAK"
    assert rows[1].notes == ("receiver not ready: wait 1.28 ms",)
    assert kinds(seen) == [("rnr", 2)]
    assert (flow(seen).rnr_naks, flow(seen).sent_again) == (1, 1)


def test_marks_notifications_and_pauses_are_congestion() -> None:
    marked = frame("a", transport_packet(bth("a", Opcode.SEND_ONLY, 101), payload=b"data"), ecn=ECN_CE)
    rows, seen = explained([*write("a", 100, 1), marked, answer("b", 101)])
    assert rows[1].notes == ("marked by a switch (ECN)",)
    assert kinds(seen) == [("marked", 2)]
    pause = PriorityPause(class_enable_vector=8, quanta=(0, 0, 0, 9, 0, 0, 0, 0))
    resume = PriorityPause(class_enable_vector=8, quanta=(0,) * 8)
    mac = bytes.fromhex("020000000009")
    control = [one.frame(mac).encode() for one in (pause, resume)]
    rows, seen = explained([*write("a", 100, 1), marked, answer("b", 101), cnp("b"), *control])
    assert [(row.name, row.detail) for row in rows[-2:]] == [
        ("PFC pause", "priority 3 9 quanta"),
        ("PFC resume", "priority 3 0 quanta"),
    ]
    assert rows[3].notes == ("tells QP 0x11 to slow down",)
    assert kinds(seen) == [("pause", 5), ("cnp", 4)]
    assert flow(seen).cnps == 1


def test_a_packet_with_a_wrong_icrc_counts_for_nothing_else() -> None:
    packets = write("a", 100, 2)
    damaged = bytearray(packets[0])
    damaged[90] ^= 4
    rows, seen = explained([bytes(damaged), *packets, answer("b", 101)])
    assert rows[0].notes[0].startswith("ICRC is 0x")
    assert kinds(seen) == [("icrc", 1)]
    assert (flow(seen).wrong_icrc, flow(seen).sent_again, flow(seen).payload_bytes) == (1, 0, 2 * PATH_MTU_BYTES)


def test_of_two_connections_an_answer_goes_to_the_one_that_sent_its_psn() -> None:
    """An ACK does not name the queue pair that it answers; its PSN does, or the REQ and the REP before."""
    second = [
        frame("a", transport_packet(bth("a", Opcode.SEND_ONLY, psn)._replace(destination_qp=0x33), payload=b"data"))
        for psn in (5_000, 5_001)
    ]
    _, seen = explained([*write("a", 100, 2), *second, nak("b", 101)])
    assert (flow(seen).naks.total(), flow(seen, A_TO_B._replace(destination_qp=0x33)).naks.total()) == (1, 0)
    _, seen = explained([*write("a", 100, 2), nak("b", 9_000)])
    assert seen.unmatched == {"RC ACK": 1}
    request = CmRequest(local_comm_id=1, local_qpn=0x11, starting_psn=900)
    reply = CmReply(local_comm_id=2, remote_comm_id=1, local_qpn=0x22, starting_psn=100)
    rows, seen = explained([management("a", request), management("b", reply), write("a", 100, 3)[1], cnp("b"), *second])
    assert [row.name for row in rows[:2]] == ["CM REQ", "CM REP"]
    assert [row.detail for row in rows[:2]] == [
        "RC from QP 0x11, first PSN back 0x384",
        "from QP 0x22, first PSN back 0x64",
    ]
    assert rows[2].notes == ("1 PSN missing in front of it",)
    assert flow(seen).cnps == 1


def test_what_is_cut_short_is_counted_and_no_fault_of_a_packet() -> None:
    packet = write("a", 100, 1)[0]
    seen = CaptureExplainer()
    (row,) = seen.explain(CapturedPacket(0, packet[:100], len(packet)))
    assert row.notes == ("cut short by the capture, ICRC not checked",)
    (row,) = seen.explain(CapturedPacket(0, packet[:60], len(packet)))
    assert row.notes == ("not read to its end: RDMA: captured 18 of 28 bytes of headers from BTH on",)
    (row,) = seen.explain(CapturedPacket(0, b"", 0))
    assert (row.name, row.detail) == ("other", "Ethernet: found 0 bytes, wanted at least 14")
    assert kinds(seen) == []
    assert [(key.reason, group.frames) for key, group in seen.coverage.cut.items()] == [
        ("behind their headers", 1),
        ("inside the headers of RDMA", 1),
    ]
    assert [key.reason for key in seen.coverage.passed_over] == ["Ethernet that cannot be read"]
    assert (seen.coverage.rdma_packets, seen.coverage.rdma_read, seen.coverage.icrc_unchecked) == (2, 1, {"cut": 2})


def test_a_packet_that_is_whole_and_cannot_be_read_is_a_finding() -> None:
    data = bytearray(write("a", 100, 1)[0])
    data[42] = 0xC5
    _, seen = explained([bytes(data), *write("a", 100, 1)])
    assert kinds(seen) == [("icrc", 1), ("unread", 1)]
    assert (seen.coverage.icrc_wrong, seen.coverage.icrc_right) == (1, 1)


@pytest.mark.parametrize("payload_bytes", [9_000, 3 * 1_040])
def test_behind_a_frame_of_several_packets_that_was_cut_no_order_is_known(payload_bytes: int) -> None:
    """Segmentation offload and a snap length together: how many PSNs the frame took, the capture does not say."""
    train = frame("a", TransportPacket(bth("a", Opcode.SEND_FIRST, 100), payload=bytes(payload_bytes)))
    seen = CaptureExplainer()
    seen.explain(CapturedPacket(0, train[:96], len(train)))
    for data in write("a", 107, 2):
        seen.explain(CapturedPacket(0, data, len(data)))
    assert kinds(seen) == []
    assert flow(seen).missing == 0


def test_details_of_other_packets() -> None:
    rows, _ = explained(
        [management("a", CmReject(reason=28)), frame("a", TransportPacket(bth("a", Opcode.SEND_ONLY, 1)))]
    )
    assert (rows[0].name, rows[0].detail, rows[0].payload_bytes) == ("CM REJ", "reason 28", 256)
    assert (rows[1].name, rows[1].detail, rows[1].payload_bytes) == ("RC SEND only", "", 0)


def told(seen: CaptureExplainer, kind: str) -> list[str]:
    return [finding.text for finding in find_trouble(seen) if finding.kind == kind]


def test_a_refusal_names_who_refused_whom_at_which_port() -> None:
    request = CmRequest(local_comm_id=5, service_id=service_of_port(7_471), local_qpn=0x11)
    refusal = CmReject(remote_comm_id=5, reason=8)
    _, seen = explained([management("a", request), management("b", refusal)])
    assert told(seen, "rejected") == [
        "10.0.0.2 refused 1 connection of 10.0.0.1 to port 7471: INVALID_SERVICE_ID, nobody listens there"
    ]
    assert kinds(seen)[0] == ("rejected", 2)
    _, seen = explained([management("b", CmReject(remote_comm_id=9, reason=28))] * 2)
    assert told(seen, "rejected") == ["10.0.0.2 refused 2 connections of 10.0.0.1: CONSUMER_DEFINED"]
    _, seen = explained([management("b", CmReject(remote_comm_id=9, reason=99))])
    assert told(seen, "rejected") == ["10.0.0.2 refused 1 connection of 10.0.0.1: reason 99"]


def test_an_end_that_says_nothing_more_is_named_with_the_time_since() -> None:
    message, more = write("a", 100, 2), write("a", 102, 2)
    _, seen = explained([*message, answer("b", 101), *more, *more * 3])
    (silent,) = told(seen, "silent")
    assert silent == (
        "10.0.0.2 said nothing after 0.000 s, while a packet of 10.0.0.1 -> 10.0.0.2 QP 0x22 was sent again 3 times:"
        " its process has ended, or no packet comes back"
    )
    assert told(seen, "sent again") == []
    _, seen = explained(more * 4)
    assert told(seen, "silent")[0].startswith("10.0.0.2 said nothing at all, while")


@pytest.mark.parametrize("times", [1, 2])
def test_a_lost_answer_is_no_silence(times: int) -> None:
    message = write("a", 100, 9)
    _, seen = explained([*message, *message * times])
    assert told(seen, "silent") == []
    _, seen = explained([*message, *message * 4, answer("b", 108)])
    assert told(seen, "silent") == []
    assert len(told(seen, "sent again")) == 1


def test_packets_from_another_port_are_told_where_few_come_from_it() -> None:
    frames = write("a", 100, 19)
    forged = frame("a", TransportPacket(bth("a", Opcode.SEND_ONLY, 50)), port=50_000)
    _, seen = explained([*frames, forged])
    (ports,) = told(seen, "ports")
    assert ports == (
        "1 packet of 10.0.0.1 -> 10.0.0.2 QP 0x22 came from UDP port 50000, the others from 49443: somebody else may"
        " have sent them"
    )
    assert ("ports", 20) in kinds(seen)
    sprayed = [
        frame("a", TransportPacket(bth("a", Opcode.SEND_ONLY, 100 + number)), port=50_000 + number % 4)
        for number in range(20)
    ]
    assert told(explained(sprayed)[1], "ports") == []
