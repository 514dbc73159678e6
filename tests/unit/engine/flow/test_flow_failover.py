"""Whole collectives over NIC ports, leaves and links that die, worked out on paper.

Each host has one rank and two ports, one at each of two switches, and a ring uses both alike. Where one port is gone
the other carries all of its host's bytes, so that the ring goes half as fast: what had flowed stays, what is left takes
twice as long, and between the fault and the failover nothing flows.
Source: docs/models/flow-engine.md, section "Faults".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import pytest
from helpers.tiny import BYTE_PS, DELAY_PS, Message, flow_input_of, job_of, sends, wired

from weftwork.engine.flow import run as flow
from weftwork.engine.flow.outcome import FlowOutcome
from weftwork.engine.instants import Fault
from weftwork.spec.fabric import Fabric
from weftwork.spec.job import Collect, Grid, Job, Wait

pytestmark = pytest.mark.sanitize

HOSTS = 4
PACKETS = 3_000  # that each port carries of a ring
PACKET_BYTES = 4096 + 82
FLOWING_PS = PACKETS * PACKET_BYTES * BYTE_PS
LATENCY_PS = 2 * DELAY_PS
AT_PS, RECONVERGENCE_PS, FAILOVER_PS = 20_000_000, 7_000_000, 3_000_000
UNTIL_PS = 10**11  # a hundred times as long as what ends
NEAR = 3  # picoseconds of rounding
FOLDS = ("never", "exact")
Pattern = Literal["ring", "all-to-all"]


def two_switches(*, joined_by: int = 0) -> Fabric:
    """Links ``2 h`` and ``2 h + 1`` are those of host ``h``; then cables between the two switches."""
    links = [(host, HOSTS + port) for host in range(HOSTS) for port in range(2)]
    return wired(links + [(HOSTS, HOSTS + 1)] * joined_by, hosts=HOSTS)


def collective(pattern: Pattern = "ring", amount_bytes: int = 2 * PACKETS * 4096) -> Job:
    """One call of all hosts."""
    call = Collect(
        operation="all-reduce",
        size_bytes=amount_bytes,
        group=Grid(axes=((1, HOSTS),)),
        channel=0,
        pattern=pattern,
        amount_bytes=amount_bytes,
    )
    return job_of([[[call, Wait()]]] * HOSTS, nics=[(0, 1)] * HOSTS)


def run(job: Job, faults: Sequence[Fault], *, fabric: Fabric | None = None, **options: Any) -> FlowOutcome:
    delays = {"reconvergence_delay_ps": RECONVERGENCE_PS, "failover_delay_ps": FAILOVER_PS, "until_ps": UNTIL_PS}
    return flow.run(flow_input_of(fabric or two_switches(), job, faults=faults, **delays | options))


def end_ps(outcome: FlowOutcome) -> int:
    assert outcome.packets.complete
    return outcome.packets.counters["end_ps"]


def down(link: int, at_ps: int = AT_PS) -> Fault:
    return Fault(at_ps=at_ps, event="down", link=link)


def up(link: int, at_ps: int) -> Fault:
    return Fault(at_ps=at_ps, event="up", link=link)


HALVED_PS = AT_PS + FAILOVER_PS + 2 * (FLOWING_PS - AT_PS) + LATENCY_PS


@pytest.mark.parametrize("fold", FOLDS)
@pytest.mark.parametrize("pattern", ["ring", "all-to-all"])
def test_a_collective_goes_on_at_half_its_rate_over_the_port_that_is_left(pattern: Pattern, fold: str) -> None:
    amount = 2 * PACKETS * 4096 * (HOSTS // (HOSTS - 1) if pattern == "ring" else 1)
    if pattern == "all-to-all":  # of which three quarters leave a host
        amount = amount * HOSTS // (HOSTS - 1)
    job = collective(pattern, amount)
    assert end_ps(run(job, [], fold=fold)) == pytest.approx(FLOWING_PS + LATENCY_PS, abs=NEAR)
    assert end_ps(run(job, [down(0)], fold=fold)) == pytest.approx(HALVED_PS, abs=NEAR)


@pytest.mark.parametrize("fold", FOLDS)
def test_a_leaf_that_dies_takes_one_port_of_every_host_and_costs_what_one_port_does(fold: str) -> None:
    outcome = run(collective(), [Fault(at_ps=AT_PS, event="down", switch=HOSTS)], fold=fold)
    assert end_ps(outcome) == pytest.approx(HALVED_PS, abs=NEAR)
    # what had flowed over the dead leaf stays there, the rest is that of the other one
    first = AT_PS / FLOWING_PS * PACKETS * PACKET_BYTES
    sent = outcome.link_bytes[: 2 * HOSTS].reshape(HOSTS, 2)
    assert sent[:, 0] == pytest.approx([first] * HOSTS)
    assert sent.sum(axis=1) == pytest.approx([2 * PACKETS * PACKET_BYTES] * HOSTS)


@pytest.mark.parametrize("fold", FOLDS)
def test_it_comes_home_when_the_port_is_back(fold: str) -> None:
    back_ps = AT_PS + 40_000_000
    outcome = run(collective(), [down(0), up(0, back_ps)], fold=fold)
    halved_ps = back_ps - AT_PS  # from one failover to the next
    whole_ps = AT_PS + FAILOVER_PS + halved_ps + (FLOWING_PS - AT_PS - halved_ps // 2) + LATENCY_PS
    assert end_ps(outcome) == pytest.approx(whole_ps, abs=NEAR)


@pytest.mark.parametrize("fold", FOLDS)
def test_a_link_that_flaps_faster_than_the_failover_only_stops_what_is_on_it(fold: str) -> None:
    faults = [
        fault for turn in range(3) for fault in (down(0, AT_PS + turn * 10**7), up(0, AT_PS + turn * 10**7 + 10**6))
    ]
    assert end_ps(run(collective(), faults, fold=fold)) == pytest.approx(FLOWING_PS + 3 * 10**6 + LATENCY_PS, abs=NEAR)


@pytest.mark.parametrize("fold", FOLDS)
def test_ends_with_ports_of_different_columns_meet_where_the_fabric_joins_them(fold: str) -> None:
    """Host 0 keeps its second port, host 1 its first; between the switches there are as many cables as that needs."""
    faults = [down(0), down(3)]
    apart = run(collective(), faults, fold=fold)
    assert not apart.packets.complete  # two planes: nothing leads from one to the other
    again = run(collective(), [*faults, up(0, 10 * AT_PS)], fold=fold)
    assert end_ps(again) > 10 * AT_PS
    outcome = run(collective(), faults, fabric=two_switches(joined_by=1), fold=fold)
    # all of the ring's bytes between hosts 0 and 1 cross the one cable, one hop more than others
    assert end_ps(outcome) == pytest.approx(HALVED_PS + DELAY_PS, abs=NEAR)
    assert outcome.link_bytes[4 * HOSTS :].max() > PACKETS * PACKET_BYTES


@pytest.mark.parametrize("fold", FOLDS)
def test_a_host_without_any_port_ends_its_collective_and_no_other(fold: str) -> None:
    """Hosts 0 and 1 are one group, 2 and 3 another; the first is cut off, the second moves to the other plane."""

    def call(first: int) -> Collect:
        return Collect(
            operation="all-reduce",
            size_bytes=1,
            group=Grid(axes=((1, 2),)),
            channel=0,
            pattern="ring",
            amount_bytes=2 * PACKETS * 4096,
            label=first,
        )

    job = job_of([[[call(0), Wait()]]] * HOSTS, nics=[(0, 1)] * HOSTS)
    outcome = run(job, [down(0), down(1), down(4)], fold=fold)
    assert not outcome.packets.complete
    assert outcome.activities["end_ps"].tolist() == [pytest.approx(HALVED_PS, abs=NEAR)]


@pytest.mark.parametrize("fold", FOLDS)
def test_a_collective_follows_the_routes_when_a_link_between_switches_dies(fold: str) -> None:
    """Hosts with one port on two leaves and two spines, by destination: over the spine that is left, after 7 us."""
    links = [(0, 4), (1, 4), (2, 5), (3, 5), (4, 6), (4, 7), (5, 6), (5, 7)]
    fabric = wired(links, hosts=HOSTS, rates_bps=[8 * 10**11] * 4 + [4 * 10**11] * 4)
    call = collective(amount_bytes=PACKETS * 4096)
    job = job_of([[list(call.programs[0].streams[0])]] * HOSTS)

    def follow(*faults: Fault) -> FlowOutcome:
        return run(job, faults, fabric=fabric, fold=fold, port_selection="destination-modulo")

    whole_ps = end_ps(follow())
    assert not follow(down(4), down(5)).packets.complete  # both uplinks of a leaf
    spent_ps = {end_ps(follow(down(link))) - whole_ps for link in range(4, 8)}
    assert {round(spent / RECONVERGENCE_PS, 5) for spent in spent_ps} == {0, 1}  # used by the ring or not


def test_messages_meet_over_ports_of_different_columns_too() -> None:
    job = sends(HOSTS, [Message(source=0, destination=1, size_bytes=PACKETS * 4096)])
    two = job_of([[list(stream) for stream in program.streams] for program in job.programs], nics=[(0, 1)] * HOSTS)
    outcome = run(two, [down(0), down(3)], fabric=two_switches(joined_by=1))
    (delivered_ps,) = outcome.packets.messages["delivered_at_ps"].tolist()
    left_ps = PACKETS * PACKET_BYTES * BYTE_PS - AT_PS
    behind_ps = 2 * PACKET_BYTES * BYTE_PS + 3 * DELAY_PS  # stored and forwarded at two switches
    assert delivered_ps == pytest.approx(AT_PS + FAILOVER_PS + left_ps + behind_ps, rel=1e-4)
