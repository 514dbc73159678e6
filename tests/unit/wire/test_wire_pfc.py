"""PFC frames and the time that they pause."""

from __future__ import annotations

import pytest

from weftwork.base.clock import US_PS
from weftwork.base.errors import UsageError
from weftwork.wire.ethernet import EthernetFrame
from weftwork.wire.fields import MalformedPacket
from weftwork.wire.pfc import MAXIMUM_PAUSE_QUANTA, PFC_FRAME_BYTES, PriorityPause, pause_time_ps

SOURCE = bytes.fromhex("7cfe90643b32")
PAUSE = PriorityPause(class_enable_vector=1 << 3 | 1 << 4, quanta=(0, 0, 0, 0xFFFF, 0, 0, 0, 0))


def test_a_frame_is_64_bytes_to_the_reserved_address() -> None:
    frame = PAUSE.frame(SOURCE).encode()
    assert len(frame) == PFC_FRAME_BYTES
    assert frame[:18].hex() == "0180c2000001" + "7cfe90643b32" + "8808" + "0101" + "0018"
    assert frame[18:34].hex() == "000000000000ffff0000000000000000"
    assert frame[34:60] == bytes(26)


def test_a_frame_comes_back_as_it_was() -> None:
    frame, _ = EthernetFrame.decode(PAUSE.frame(SOURCE).encode())
    record, padding = PriorityPause.decode(frame.payload)
    assert record == PAUSE
    assert bytes(padding) == bytes(26)
    assert [priority for priority in range(8) if record.is_enabled(priority)] == [3, 4]


@pytest.mark.parametrize("priority", range(8))
def test_bit_p_of_the_vector_means_priority_p(priority: int) -> None:
    one = PriorityPause(class_enable_vector=1 << priority, quanta=(1, 1, 1, 1, 1, 1, 1, 1))
    assert [other for other in range(8) if one.is_enabled(other)] == [priority]


def test_the_pause_of_a_whole_link_is_refused() -> None:
    with pytest.raises(MalformedPacket, match="found MAC control opcode 0x0001, wanted 0x0101"):
        PriorityPause.decode(bytes.fromhex("0001") + bytes(44))


def test_a_quantum_is_512_bit_times() -> None:
    assert pause_time_ps(1, 10_000_000_000) == 51_200
    assert pause_time_ps(1, 800_000_000_000) == 640
    assert pause_time_ps(0, 400_000_000_000) == 0
    assert pause_time_ps(MAXIMUM_PAUSE_QUANTA, 100_000_000_000) // US_PS == 335


@pytest.mark.parametrize(
    "pause",
    [
        PriorityPause(class_enable_vector=0x10000, quanta=(0,) * 8),
        PriorityPause(class_enable_vector=0, quanta=(0, 0, 0, 0, 0, 0, 0, 0x10000)),
        PriorityPause(class_enable_vector=0, quanta=(0,) * 7),  # type: ignore[arg-type]
    ],
)
def test_a_field_that_does_not_fit_is_the_callers_mistake(pause: PriorityPause) -> None:
    with pytest.raises(UsageError):
        pause.encode()


def test_quanta_beyond_the_field_have_no_time() -> None:
    with pytest.raises(UsageError):
        pause_time_ps(MAXIMUM_PAUSE_QUANTA + 1, 100_000_000_000)
