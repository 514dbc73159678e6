"""Losses on flows: the closed forms of one flow, and what they leave alone."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest
from helpers.tiny import Message, flow_input_of, pair, sends, star
from numpy.typing import NDArray
from scipy.stats import poisson

from weftwork.engine.flow import run as flow
from weftwork.engine.flow.losses import mean_maximum, quantile_of_maximum
from weftwork.engine.instants import Fault
from weftwork.spec.transport import Transport
from weftwork.topology.build import fabric_of

MIB = 1 << 20
US_PS = 1_000_000
BYTE_PS = 20  # at 400 Gb/s
DELAY_PS = 5 * US_PS
TIMEOUT_PS = 200 * US_PS
FRAME_PS = (4096 + 62 + 20) * BYTE_PS
ROUND_PS = 2 * DELAY_PS + FRAME_PS + (66 + 20) * BYTE_PS


def taken_ps(size_bytes: int, *, faults: tuple[Fault, ...] = (), most: bool = False, **transport: Any) -> int:
    """When a message over one lossy link is delivered."""
    wire = Transport(first_extra_bytes=0, retransmission_timeout_ps=TIMEOUT_PS, **transport)
    job = sends(2, [Message(source=0, destination=1, size_bytes=size_bytes)])
    engine_input = flow_input_of(pair(delays_ps=[DELAY_PS]), job, transport=wire, faults=faults)
    if most:
        engine_input = engine_input.loss_bounds()[1]
    return int(flow.run(engine_input).packets.messages["delivered_at_ps"][0])


def lossy(loss: float, at_ps: int = 0) -> tuple[Fault, ...]:
    return (Fault(at_ps=at_ps, event="lossy", link=0, loss=loss),)


@pytest.mark.parametrize("loss", [1e-6, 1e-4, 1e-2])
def test_a_long_flow_has_the_goodput_of_go_back_n(loss: float) -> None:
    """Bertsekas and Gallager, section 2.4.2, whole packets, and a timeout where a packet or its NAK is lost again."""
    size_bytes = 64 * MIB
    packets = size_bytes // 4096
    window = math.floor(ROUND_PS / FRAME_PS) + 2
    alone_ps = taken_ps(size_bytes)
    timeouts = packets * loss * (loss + loss) + loss
    expected_ps = (alone_ps - DELAY_PS) * (1 + loss / (1 - loss) * window) + DELAY_PS + timeouts * TIMEOUT_PS
    assert taken_ps(size_bytes, faults=lossy(loss)) == pytest.approx(expected_ps, rel=2e-3)


def test_selective_repeat_sends_one_packet_again_and_repairs_the_last_round_trip() -> None:
    size_bytes, loss = 64 * MIB, 1e-3
    alone_ps = taken_ps(size_bytes, recovery="selective-repeat")

    repaired_ps = loss / (1 - loss) * ROUND_PS / FRAME_PS * ROUND_PS / 2
    expected_ps = (alone_ps - DELAY_PS) / (1 - loss) + DELAY_PS + repaired_ps + loss * TIMEOUT_PS
    assert taken_ps(size_bytes, faults=lossy(loss), recovery="selective-repeat") == pytest.approx(expected_ps, rel=1e-5)


@pytest.mark.parametrize(("transport", "kept"), [({"recovery": "timeout"}, 0), ({"reorder_tolerant": True}, 128)])
def test_every_loss_waits_for_a_timeout_where_no_nak_tells_of_it(transport: dict[str, Any], kept: int) -> None:
    """One timeout repairs all losses among packets that the receiver keeps, half of the message on average."""
    size_bytes, loss = MIB, 1e-3
    waited_ps = taken_ps(size_bytes, faults=lossy(loss), **transport) - taken_ps(size_bytes, **transport)
    assert waited_ps == pytest.approx(256 * loss / (1 - loss) * (TIMEOUT_PS + ROUND_PS) / (1 + loss * kept), rel=1e-3)


def test_a_link_that_becomes_lossy_slows_down_what_is_left() -> None:
    size_bytes, loss = 64 * MIB, 1e-2
    alone_ps, whole_ps = taken_ps(size_bytes), taken_ps(size_bytes, faults=lossy(loss))
    half = taken_ps(size_bytes, faults=lossy(loss, alone_ps // 2))
    assert half == pytest.approx((alone_ps + whole_ps) / 2, rel=1e-2)
    mended = taken_ps(size_bytes, faults=(*lossy(loss), *lossy(0.0, alone_ps // 4)))
    assert alone_ps < mended < half


def test_nothing_that_is_lost_is_nothing_that_it_costs() -> None:
    assert taken_ps(MIB, faults=lossy(0.0)) == taken_ps(MIB)


def test_a_flow_beside_the_lossy_link_is_not_slower() -> None:
    job = sends(4, [Message(source=0, destination=1, size_bytes=MIB), Message(source=2, destination=3, size_bytes=MIB)])
    alone, beside = (
        flow.run(flow_input_of(star(4), job, faults=faults)).packets.messages["delivered_at_ps"]
        for faults in ((), lossy(1e-2))
    )
    assert beside[0] > alone[0]
    assert beside[1] == alone[1]


def test_corruption_costs_as_much_as_loss() -> None:
    job, fabric = sends(2, [Message(source=0, destination=1, size_bytes=MIB)]), pair()
    lost, corrupted, both = (
        flow.run(flow_input_of(replace(fabric, links=_with(fabric.links, **kinds)), job)).packets.messages[
            "delivered_at_ps"
        ][0]
        for kinds in ({"loss": 1e-2}, {"corruption": 1e-2}, {"loss": 1e-2, "corruption": 1e-2})
    )
    assert lost == corrupted < both


@pytest.mark.parametrize(("port_selection", "crossing"), [("ecmp", 16 * (1 - (1 - 1 / 16) ** 2)), ("spray", 7)])
def test_a_sprayed_flow_crosses_the_lossy_link_of_any_of_its_ways(port_selection: str, crossing: float) -> None:
    """Rare losses cost each that happens: flows that can have them, times what one of them has.

    Hashed, a flow has one of 16 links up and one of 16 down. Sprayed, the flows of one leaf in four cross the lossy
    link up, and those to one leaf in four the lossy link down.
    """
    fabric = fabric_of(topology="leaf-spine", leaves=4, spines=4, hosts_per_leaf=4)
    job = sends(16, [Message(source=rank, destination=(rank + 4) % 16, size_bytes=MIB) for rank in range(16)])
    wire = Transport(first_extra_bytes=0, reorder_tolerant=True)
    fault = Fault(at_ps=0, event="lossy", link=fabric.link("leaf0-spine0"), loss=1e-6)
    losses = flow_input_of(fabric, job, transport=wire, faults=(fault,), port_selection=port_selection).losses
    assert losses.rules["end_waits"][0] == pytest.approx(crossing, rel=1e-3)


def _with(links: NDArray[np.void], **kinds: float) -> NDArray[np.void]:
    links = links.copy()
    for kind, value in kinds.items():
        links[kind] = value
    return links


def test_the_slowest_of_a_thousand_runs_is_slower_than_the_mean() -> None:
    mean_ps, most_ps = (taken_ps(MIB, faults=lossy(1e-2), most=most) for most in (False, True))
    assert most_ps > mean_ps + TIMEOUT_PS / 2  # two timeouts among 100 runs, and one of 1,000 has one at least


DRAWS: Final = 2_000  # chosen: SciPy takes 60 us for each where a million are expected


@pytest.mark.parametrize("mean", [1e-6, 0.3, 40.0, 1e6])
@pytest.mark.parametrize("count", [1, 7, 1_000])
def test_the_largest_of_poisson_numbers(mean: float, count: int) -> None:
    evenly = (np.arange(DRAWS) + 0.5) / DRAWS  # as a draw of so many, without its chance
    draws = poisson.ppf(evenly ** (1 / count), mean)  # one flow has at most the maximum of all
    found = mean_maximum(count, mean)
    assert mean * (1 - 1e-9) <= found <= count * mean * (1 + 1e-9)
    assert found == pytest.approx(draws.mean(), rel=0.01, abs=5 * max(1e-3, math.sqrt(found / DRAWS)))
    assert abs(quantile_of_maximum(count, mean, 0.999) - np.quantile(draws, 0.999)) <= 1 + 0.1 * math.sqrt(mean)
