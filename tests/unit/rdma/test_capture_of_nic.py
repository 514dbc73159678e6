"""What two NICs say to each other, captured: every operation is there, every ICRC is right, and it is explained."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from helpers.captures import captured
from helpers.rdma_captures import (
    CONVERSATIONS,
    frames_of,
    into_nowhere,
    misaligned,
    reliable,
    with_a_loss,
    without_a_receive,
    without_access,
)
from helpers.rdma_pair import Pair

from weftwork.rdma.capture import CaptureExplainer, PacketRow
from weftwork.wire.dissection import dissect
from weftwork.wire.extended import Aeth, AethKind, Nak
from weftwork.wire.ib import CNP_BODY, Bth, cnp_bth
from weftwork.wire.opcodes import SHAPES, Opcode, TransportService

FRAMES = {conversation.__name__: frames_of(conversation) for conversation in CONVERSATIONS}


EVERY_FRAME = [frame for frames in FRAMES.values() for frame in frames]


def explained(name: str) -> list[PacketRow]:
    seen = CaptureExplainer()
    return [row for packet in captured(FRAMES[name]) for row in seen.explain(packet)]


def test_every_opcode_and_every_refusal_is_among_them() -> None:
    opcodes, refusals = set(), set()
    for packet in captured(EVERY_FRAME):
        transport = dissect(packet).transport
        assert transport is not None
        opcodes.add(transport.bth.opcode)
        aeth = transport.find(Aeth)
        if aeth is not None and aeth.kind is not AethKind.ACK:
            refusals.add((aeth.kind, Nak(aeth.value) if aeth.kind is AethKind.NAK else None))
    services = {TransportService.RC, TransportService.UC, TransportService.UD, TransportService.CNP}
    assert opcodes == {code for code, shape in SHAPES.items() if shape.service in services}
    assert refusals == {(AethKind.RNR_NAK, None)} | {
        (AethKind.NAK, code) for code in Nak if code is not Nak.INVALID_RD_REQUEST
    }


def test_what_goes_well_stands_out_nowhere() -> None:
    for name in ("reliable", "unreliable", "datagrams", "over_ipv6"):
        assert [row.notes for row in explained(name) if row.notes] == []
    names = [row.name for row in explained(reliable.__name__)]
    assert {"RC FLUSH", "RC ATOMIC WRITE", "RC COMPARE SWAP", "RC FETCH ADD", "RC ATOMIC ACK"} < set(names)


@pytest.mark.parametrize(
    ("conversation", "notes"),
    [
        (with_a_loss, "PSN sequence error"),
        (without_a_receive, "receiver not ready"),
        (without_access, "remote access error"),
        (misaligned, "invalid request"),
        (into_nowhere, "remote operational error"),
    ],
)
def test_what_goes_wrong_is_named(conversation: Callable[[], Pair], notes: str) -> None:
    said = [note for row in explained(conversation.__name__) for note in row.notes]
    assert any(notes in note for note in said), said


def test_marks_and_their_cnps_are_named() -> None:
    rows = explained("congested")
    # the ACK is marked too, and answered by a CNP; a CNP is never answered
    ends = [(row.name, row.source[-1]) for row in rows[3:]]
    assert ends == [("CNP", "2"), ("RC ACK", "2"), ("CNP", "1")]
    assert all(row.notes for row in rows)


# NVIDIA, "RoCEv2 CNP Packet Format Example": from BTH to ICRC; the headers in front are in a picture alone.
PUBLISHED_CNP = bytes.fromhex("8100ffff400000d200000000" + 16 * "00" + "e42dad81")


def test_the_published_cnp_is_that_of_the_codec_and_is_explained() -> None:
    assert PUBLISHED_CNP[:-4] == cnp_bth(0xD2).encode() + CNP_BODY
    assert Bth.decode(PUBLISHED_CNP)[0].becn
    sample = next(frame for frame in FRAMES["congested"] if frame[42] == Opcode.CNP)
    assert len(sample[42:]) == len(PUBLISHED_CNP)
    seen = CaptureExplainer()
    rows = [row for packet in captured([sample, sample[:42] + PUBLISHED_CNP]) for row in seen.explain(packet)]
    assert [(row.name, row.destination_qp) for row in rows[1:]] == [("CNP", 0xD2)]
    assert not any("ICRC" in note for note in rows[0].notes)
    # the ICRC covers addresses that were not published, so that it cannot be right behind ours
    assert any("ICRC" in note for note in rows[1].notes)
