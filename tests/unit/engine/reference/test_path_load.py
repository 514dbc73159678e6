"""The load of a port, smoothed over a round trip, and its way in one byte to the sender."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.by_hand import FRAME_BYTES, MTU_BYTES, answer, data
from helpers.driven_sender import ACK, drive
from helpers.hand_switch import IN, LOSSLESS, OUT, Driven

from weftwork.base.random import mix
from weftwork.engine.reference.packet import PacketKind
from weftwork.engine.reference.path_load import PortLoad, code_of, load_of

ROUND_PS = 8_000_000
RATE_BPS = 400_000_000_000  # 20 ps for a byte


def test_a_load_is_the_queue_and_what_was_sent_smoothed_over_a_round_trip() -> None:
    port = PortLoad()
    port.measure(2_000_000, 100_000, 50_000, RATE_BPS, ROUND_PS)  # half of the link, and a quarter of the pipe waits
    assert port.load == pytest.approx(0.25 * (0.5 + 0.25), rel=1e-12)
    port.measure(4_000_000, 0, 150_000, RATE_BPS, ROUND_PS)
    assert port.load == pytest.approx(0.75 * 0.1875 + 0.25 * 1.0, rel=1e-12)
    port.measure(4_000_000, 10**9, 10**9, RATE_BPS, ROUND_PS)  # no time has passed
    assert port.load == pytest.approx(0.390625, rel=1e-12)
    port.measure(20_000_000, 0, 550_000, RATE_BPS, ROUND_PS)  # two round trips count as one
    assert port.load == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize("load", [0.01, 0.5, 0.95, 1.0, 3.7])
def test_a_code_is_a_step_below_or_above_and_right_on_average(load: float) -> None:
    codes = [code_of(load, mix(number, 1, 2)) for number in range(4_000)]
    assert max(codes) - min(codes) == 1
    units = np.ceil(load * 512) / 512
    assert load_of(min(codes)) <= units < load_of(max(codes)) == pytest.approx(1.05 * load_of(min(codes)), rel=1e-12)
    assert np.mean([load_of(code) for code in codes]) == pytest.approx(units, rel=0.002)


def test_the_codes_begin_at_a_512th_and_end_near_500() -> None:
    assert [code_of(load, 0) for load in (0.0, 1e-9, 1 / 512)] == [0, 0, 0]
    assert load_of(0) == 1 / 512
    assert code_of(1e6, 0) == 255
    assert 490 < load_of(255) < 500


def test_a_packet_carries_the_largest_code_of_its_path() -> None:
    driven = Driven(path_load_ps=ROUND_PS)
    driven.holds()
    packets = driven.takes(3)
    packets[1].path_load_code = 255
    driven.lets_go(3)
    load = driven.switch.loads[OUT]
    assert load.sent_bytes == 2 * FRAME_BYTES  # what had left before the last packet
    assert load.at_ps > 0
    assert load.load > 0
    low = code_of(load.load, 2**64 - 1)
    assert packets[0].path_load_code == 0  # at the first instant nothing had been sent
    assert packets[1].path_load_code == 255
    assert packets[2].path_load_code in (low, low + 1)
    assert [packet.size_bytes for packet in packets] == [FRAME_BYTES] * 3


def test_control_packets_and_switches_that_nobody_asks_write_none() -> None:
    driven, silent = Driven(path_load_ps=ROUND_PS), Driven()
    ack = answer(PacketKind.ACK, 1, destination=1)
    driven.ports[IN].receive(ack)
    assert (ack.path_load_code, driven.switch.loads[OUT]) == (0, PortLoad())
    silent.holds(LOSSLESS)
    packets = silent.takes(2)
    silent.lets_go(2)
    assert [packet.path_load_code for packet in packets] == [0, 0]
    assert silent.switch.loads[OUT] == PortLoad()


@pytest.mark.parametrize(("asks", "is_cut", "wanted"), [(True, False, 64), (True, True, None), (False, False, None)])
def test_an_ack_tells_the_load_that_its_packet_has_brought(asks: bool, is_cut: bool, wanted: int | None) -> None:  # noqa: FBT001
    driven = drive(2 * MTU_BYTES)
    driven.sender.steps.signals.config = replace(driven.sender.steps.signals.config, has_path_load=asks)
    echo = data(0, path_load_code=64, is_cut=is_cut)
    driven.sends(2)
    driven.hears(ACK, 1, echo=echo)
    assert driven.control.heard[-1].path_load == (0.0 if wanted is None else load_of(wanted))
