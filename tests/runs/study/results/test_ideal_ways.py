"""Ideal times under k-shortest routing: the first way of a flow that keeps to one, all ways of one that is sprayed."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.tiny import Message, flow_input_of, sends, wired

from weftwork.engine.flow import run as flow
from weftwork.spec.fabric import Fabric
from weftwork.spec.routing import Routing
from weftwork.spec.transport import Transport
from weftwork.study.results.ideal import ideal_times_ps

G = 1_000_000_000
PACKETS = 256
SPRAYED = {"path_selection": "spray", "transport": Transport(reorder_tolerant=True)}


def triangle() -> Fabric:
    """Hosts 0 and 1 of 200 Gb/s at switches 2 and 3, which one link of 100 Gb/s joins, and two by switch 4."""
    links = [(0, 2), (1, 3), (2, 3), (2, 4), (4, 3)]
    return wired(links, hosts=2, rates_bps=[200 * G, 200 * G, 100 * G, 100 * G, 100 * G])


def ideal_and_real_us(paths: int, **settings: object) -> tuple[float, float]:
    """Of one message from host 0 to host 1."""
    job = sends(2, [Message(source=0, destination=1, size_bytes=PACKETS * 4_096)])
    made = flow_input_of(triangle(), job, with_ideal=True, routing=Routing(paths=paths), **settings)  # type: ignore[arg-type]
    row = flow.run(made).packets.messages[0]
    ideal = ideal_times_ps(made, np.array([0]), np.array([1]), np.array([PACKETS * 4_096]))
    return int(ideal[0]) / 1e6, (int(row["delivered_at_ps"]) - int(row["posted_at_ps"])) / 1e6


def test_a_flow_on_one_way_is_held_to_the_shortest() -> None:
    shortest, _ = ideal_and_real_us(0)
    of_two, real = ideal_and_real_us(2)
    assert of_two == shortest
    # its entropy is odd or even, and takes it over one or over two links
    assert real >= shortest * (1 - 1e-6)


def test_a_sprayed_flow_is_held_to_all_its_ways_together() -> None:
    """The two ways carry 200 Gb/s, so that the bytes take half as long as over the one link."""
    shortest, _ = ideal_and_real_us(0, **SPRAYED)
    ideal, real = ideal_and_real_us(2, **SPRAYED)
    frame_bits = (4_096 + Transport().data_overhead_bytes + Transport().interframe_bytes) * 8
    assert shortest - ideal == pytest.approx(PACKETS * frame_bits / (200 * G) * 1e6, rel=0.02)
    assert shortest > real >= ideal
