"""The kit of wire formats: frames are as long as the engines take them."""

from __future__ import annotations

from dataclasses import replace

from weftwork.spec.scenario.choices import TRANSPORTS
from weftwork.spec.transport import Transport
from weftwork.spec.wire_format import WireFormat
from weftwork.testing.transports import wire_findings


def rocev2() -> WireFormat:
    wire = TRANSPORTS["rocev2"].wire
    assert wire is not None
    return wire


def test_frames_of_rocev2_are_as_long_as_the_engines_take_them() -> None:
    assert list(wire_findings(rocev2(), Transport())) == []


def test_a_frame_of_another_length_is_a_finding_with_both() -> None:
    found = list(wire_findings(rocev2(), Transport(ack_bytes=70, first_extra_bytes=0)))
    assert found == [
        "a message of one packet is a frame of 4174 B on the wire, and the engines take 4158 B",
        "an ACK is a frame of 66 B on the wire, and the engines take 70 B",
        "a NAK is a frame of 66 B on the wire, and the engines take 70 B",
    ]


def test_a_format_that_says_another_length_than_it_makes_is_a_finding() -> None:
    wire = replace(rocev2(), answer_frame_bytes=64, kinds=("ACK",))
    assert list(wire_findings(wire, Transport())) == ["an ACK is a frame of 66 B on the wire, and the format says 64 B"]
