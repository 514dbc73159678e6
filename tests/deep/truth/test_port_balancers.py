"""Balancers that decide at the switch, against what their papers say and against the statistics of collisions.

`benchmarks/balancers_switch.py` has the set-ups and their sources; docs/models/load-balancing-switch.md has its tables.
Leaves out: DRILL's and WCMP's published factors, whose set-ups could not be read.
"""

from __future__ import annotations

import pytest
from balancers_switch import LOADS, PERMUTATION, asymmetric, collisions, permutation, planes, table, weighted
from helpers.figures import Show


def test_conga_beats_ecmp_with_a_failed_link_and_letflow_comes_near(show: Show) -> None:
    """CONGA's abstract: five times the flow completion time of ECMP; LetFlow's: within 10 to 20 % of CONGA."""
    ecmp = asymmetric("ecmp", ms=1_000)
    conga, letflow = (asymmetric(name, ms=1_000, variant="paper") for name in ("conga", "letflow"))
    show(f"ECMP / CONGA published 5, here {ecmp / conga:.2f}, {ecmp / conga / 5 - 1:+.0%}")
    show(f"LetFlow / CONGA published 1.1 to 1.2, here {letflow / conga:.2f}")
    assert ecmp / conga == pytest.approx(5, rel=0.3)
    assert 1 <= letflow / conga < 1.3


def test_wcmp_divides_by_weight(show: Show) -> None:
    """Three standard deviations of 2,048 flows are 0.031."""
    found = weighted()
    show(f"share of weight 2 of 3: 0.667, here {found:.3f}, {found - 2 / 3:+.3f}")
    assert found == pytest.approx(2 / 3, abs=0.031)


def test_two_planes_balance_the_ports_of_a_nic(show: Show) -> None:
    """HPN: without them the two downlinks differ up to 3 times, and the queue there is longer by 91.8 %."""
    (joined, long_kb), (two, short_kb) = planes(is_dual=False), planes(is_dual=True)
    show(f"downlinks published 3 and 1, here {joined:.2f} ({joined / 3 - 1:+.0%}) and {two:.2f}")
    show(f"queue published -91.8 %, here {short_kb / long_kb - 1:+.1%} ({long_kb:.0f} kB to {short_kb:.0f} kB)")
    assert joined == pytest.approx(3, rel=0.35)
    assert two == 1
    assert short_kb < 0.1 * long_kb


@pytest.mark.parametrize(("size", "flows"), [(size, flows) for size, row in PERMUTATION.items() for flows in row])
def test_a_permutation_collides_as_known(size: int, flows: int, show: Show) -> None:
    known = PERMUTATION[size][flows]
    found, error = collisions(size, flows, 20 if size * flows < 512 else 6)
    show(f"{size} leaves, {flows} flows of a host: known {known:.2f}, here {found:.2f}, {found / known - 1:+.1%}")
    assert found == pytest.approx(known, abs=3.5 * error + 0.05)  # known: of 300 and more seeds, to two digits


@pytest.mark.parametrize(("ratio", "links"), [(ratio, links) for ratio, row in LOADS.items() for links in row])
def test_hashed_flows_collide_as_known(ratio: int, links: int, show: Show) -> None:
    known = LOADS[ratio][links]
    found = table(ratio * links, links, 20)
    show(f"{ratio} flows of a link, {links} links: known {known:.2f}, here {found:.2f}, {found / known - 1:+.1%}")
    assert found == pytest.approx(known, rel=0.15)


def test_sprays_balance_uplinks_and_looks_at_queues_keep_them_short(show: Show) -> None:
    found = {name: permutation(name) for name in ("ecmp", "spray", "round-robin", "drill", "adaptive", "least-loaded")}
    for name, (slowdown, spread, queue_kb) in found.items():
        show(f"{name}: last byte {slowdown:.2f}, imbalance {spread:.3f}, longest queue {queue_kb:.0f} kB")
    assert found["ecmp"][1] > 0.5
    assert all(found[name][1] < 0.06 for name in found if name != "ecmp")
    assert found["drill"][2] < 0.25 * found["spray"][2]
    assert found["adaptive"][2] < 0.5 * found["spray"][2]
