"""Charts over time measure a link by the rate that it had: one that a fault slows is busy, not idle."""

from __future__ import annotations

import json
from base64 import b64decode

import numpy as np
import pytest
from helpers.gallery import Gallery
from helpers.pages import simulated
from helpers.shown import charts, section, value_of

from weftwork.base.clock import US_PS
from weftwork.report.link_rates import LinkRates
from weftwork.report.over_time import read_over_time
from weftwork.report.page import run_page
from weftwork.report.slow_flows import slow_flows
from weftwork.store.runs import Run

SLOWED = (
    "traffic: {pattern: incast, senders: 1, size: 4MB}\n"
    "faults: [{at: 20us, link: host0-leaf0, event: degrade, fraction: 0.25, for: 400us}]"
)


GBPS = 10**9


@pytest.fixture(scope="module")
def slowed(gallery: Gallery) -> Run:
    return simulated(gallery, SLOWED)


def test_the_table_of_rates_has_what_a_fault_changed_and_nothing_else(slowed: Run) -> None:
    rows = slowed.query("select name, at_ps, rates.rate_bps from rates join links using (port) order by name, at_ps")
    steps = [(0, 100 * GBPS), (20 * US_PS, 25 * GBPS), (420 * US_PS, 100 * GBPS)]
    wanted = [(name, *step) for name in ("host0->leaf0", "leaf0->host0") for step in steps]
    assert [tuple(row.values()) for row in rows.to_pylist()] == wanted


def test_a_link_without_faults_has_no_rows(gallery: Gallery) -> None:
    assert gallery("lone").table("rates").num_rows == 0


def test_a_link_at_a_quarter_of_its_rate_is_busy_in_its_chart_and_its_heat_map(slowed: Run) -> None:
    over_time = read_over_time(slowed)
    assert over_time is not None
    port = slowed.query("select port from links where name = 'leaf0->host0'")["port"].to_numpy()
    shares = over_time.utilisation(port)[0]
    at_ps = (over_time.edges_ps[1:] + over_time.edges_ps[:-1]) / 2
    inside = (at_ps > 60 * US_PS) & (at_ps < 400 * US_PS)
    assert inside.sum() > 10
    assert shares[inside].mean() > 0.97  # a packet counts where its sending begins, so that single bins differ
    assert shares[inside].min() > 0.5
    part = section(run_page(slowed), "links")
    (chart,) = (one for one in charts(part) if one.label.startswith("Utilisation, leaf \u2192 host"))
    told = np.array([value_of(text) for text in chart.lines["busiest at each time"]])
    assert told[inside] == pytest.approx(shares[inside], abs=0.005)
    (cells,) = (one for one in part.all(kind="cells") if "leaf0->host0" in one.attributes["data-rows"])
    names = json.loads(cells.attributes["data-rows"])
    drawn = np.frombuffer(b64decode(cells.attributes["data-shares"]), np.uint8).reshape(len(names), -1)
    row = drawn[names.index("leaf0->host0")]
    assert names[0] == "leaf0->host0"  # the busiest on top
    assert row[inside].mean() > 0.95 * row.max()


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
