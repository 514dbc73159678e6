"""Charts over time measure a link by the rate that it had: one that a fault slows is busy, not idle."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.pages import simulated

from weftwork.report.link_rates import LinkRates
from weftwork.report.over_time import read_over_time
from weftwork.report.slow_flows import slow_flows
from weftwork.store.runs import Run

SLOWED = (
    "traffic: {pattern: incast, senders: 1, size: 4MB}\n"
    "faults: [{at: 20us, link: host0-leaf0, event: degrade, fraction: 0.25, for: 400us}]"
)


@pytest.fixture(scope="module")
def slowed(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return simulated(tmp_path_factory.mktemp("slowed"), SLOWED)


def test_a_flow_that_is_alone_on_a_slow_link_filled_it(slowed: Run) -> None:
    """At the nominal rate its port would seem to have stood idle for most of the time."""
    (slow,) = slow_flows(slowed, read_over_time(slowed))
    last = next(hop for hop in slow.hops or () if hop.name == "leaf0->host0")
    assert last.own_ps is not None
    assert last.own_ps + (last.others_ps or 0) > 0.9 * slow.took_ps


def test_what_a_port_can_send_is_the_sum_over_its_rates() -> None:
    steps = {3: (np.array([0, 10, 30]), np.array([8 * 10**12, 0, 4 * 10**12]))}  # 1, 0 and 0.5 B/ps
    rates = LinkRates(nominal_bps={3: 8 * 10**12, 4: 16 * 10**12}, steps=steps)
    assert rates.could_bytes(3, np.array([0, 5, 20, 40, 60])).tolist() == pytest.approx([5, 5, 5, 10])
    assert rates.could_bytes(4, np.array([0, 5, 20])).tolist() == pytest.approx([10, 30])
    assert rates.mean_bps(3, 0, 40) == pytest.approx(15 / 40 * 8e12)
    assert rates.mean_bps(3, 10, 30) == 0
    assert rates.mean_bps(4, 7, 7) == 16e12
