"""DCQCN by the constants of its paper at 40 Gb/s, held to the fixed point of its fluid model; fairness and convergence.

Source: Zhu et al., CoNEXT 2016, doi:10.1145/2999572.2999593, and its authors' program, jitupadhye-zz/rdma,
fluidmodel/dcqcn/dcqcn2.m and fluid2_test.m: equations and constants; docs/models/dcqcn.md derives the fixed point.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from helpers.figures import Show

from weftwork.store.runs import Run
from weftwork.study.prepare.prepare import read_scenario
from weftwork.study.record.run import run_scenario

PAYLOAD_BYTES, WIRE_BYTES = 1024, 1024 + 62 + 20  # of a packet: data, and with headers and the gap
LINE_PPS = 40e9 / 8 / WIRE_BYTES
STEP_PPS = 40e6 / 8 / WIRE_BYTES  # R_AI
BYTES_PACKETS = 10e6 / PAYLOAD_BYTES  # B
CNP_S, ALPHA_S, TIMER_S = 50e-6, 55e-6, 55e-6  # tau, tau', T
FAST = 5  # F
GAIN = 1 / 256  # g
KMIN_KB, KMAX_KB, PMAX = 5.0, 200.0, 0.01
SCENARIO = """schema: 3
name: long flows
fabric:
  topology: leaf-spine
  leaves: 1
  spines: 1
  hosts_per_leaf: 11
  link_rate: 40Gbps
  link_delay: 1us
  switch: {buffer: 32MB, ecn: {kmin: 5KB, kmax: 200KB, pmax: 0.01, at: dequeue}}
transport: {congestion_control: {name: dcqcn, variant: paper}, mtu: 1024}
traffic: {pattern: incast, senders: 2, receiver: 0, size: 20GB}
engine: {until: 200ms, record: {ports: ["leaf0->host0"], flows: all, every: 50us}}
"""


def balance(p: float, rate_pps: float) -> float:
    """Cuts less increases of a flow that meets marks with this probability; 0 at the fixed point."""
    cuts = 1 - (1 - p) ** (CNP_S * rate_pps)
    alpha = 1 - (1 - p) ** (ALPHA_S * rate_pps)
    by_bytes = p / ((1 - p) ** -BYTES_PACKETS - 1)
    by_timer = p / ((1 - p) ** (-TIMER_S * rate_pps) - 1)
    additive = by_bytes * (1 - p) ** (FAST * BYTES_PACKETS) + by_timer * (1 - p) ** (FAST * TIMER_S * rate_pps)
    return cuts**2 * alpha - CNP_S**2 * STEP_PPS * rate_pps * (by_bytes + by_timer) * additive


def fixed_point(flows: int) -> float:
    """The probability of a mark at which nothing changes, by bisection."""
    low, high = 1e-9, 0.5
    for _ in range(100):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if balance(middle, LINE_PPS / flows) < 0 else (low, middle)
    return low


def queue_kb(p: float) -> float:
    """Where RED marks with that probability."""
    return KMIN_KB + p / PMAX * (KMAX_KB - KMIN_KB)


@dataclass(kw_only=True)
class Alone:
    """A flow that meets marks at random and no queue: section 3.1 of the paper of 2015, event by event."""

    rate_pps: float
    target_pps: float
    alpha: float = 0.2
    steps: tuple[int, int] = (0, 0)

    def cut(self) -> None:
        self.target_pps = self.rate_pps
        self.rate_pps *= 1 - self.alpha / 2
        self.alpha += GAIN * (1 - self.alpha)
        self.steps = (0, 0)

    def increase(self, by_timer: int) -> None:
        if max(self.steps) >= FAST:
            self.target_pps = min(self.target_pps + STEP_PPS, LINE_PPS)
        self.rate_pps = (self.rate_pps + self.target_pps) / 2
        self.steps = (self.steps[0] + by_timer, self.steps[1] + 1 - by_timer)


def mean_rate_pps(p: float, flows: int, *, seconds: float) -> float:
    """Mean rate of that flow, from C/N on."""
    luck = random.Random(flows)
    flow = Alone(rate_pps=LINE_PPS / flows, target_pps=LINE_PPS / flows)
    now = sent = counted = cnp_at = 0.0
    alpha_at, timer_at = ALPHA_S, TIMER_S
    to_mark = luck.expovariate(p)
    while now < seconds:
        spans = (to_mark / flow.rate_pps, alpha_at - now, timer_at - now, (BYTES_PACKETS - counted) / flow.rate_pps)
        span = min(spans)
        packets = span * flow.rate_pps
        now, sent, counted, to_mark = now + span, sent + packets, counted + packets, to_mark - packets
        which = spans.index(span)
        if which == 0:
            to_mark = luck.expovariate(p)
            if now >= cnp_at:
                flow.cut()
                counted, cnp_at, alpha_at, timer_at = 0.0, now + CNP_S, now + ALPHA_S, now + TIMER_S
        elif which == 1:
            flow.alpha *= 1 - GAIN
            alpha_at += ALPHA_S
        elif which == 2:
            flow.increase(1)
            timer_at += TIMER_S
        else:
            flow.increase(0)
            counted = 0.0
    return sent / now


def ran(folder: Path, **changes: str) -> Run:
    file = folder / "long.yaml"
    file.write_text(SCENARIO, encoding="utf-8")
    told = {key.replace("__", "."): text for key, text in changes.items()}
    out = folder / f"run{len(list(folder.iterdir()))}"
    return run_scenario(read_scenario(file, told), out=out, what_if="none")


def queues_kb(run: Run) -> np.ndarray:
    """Samples of the queue from 40 ms on."""
    rows = run.query("select value from series where kind = 'queue_bytes' and at_ps > 40e9").to_pylist()
    return np.array([row["value"] for row in rows]) / 1e3


@pytest.mark.parametrize("flows", [2, 4, 10])
def test_the_mean_queue_is_near_that_of_the_fluid(tmp_path: Path, show: Show, flows: int) -> None:
    wanted = queue_kb(fixed_point(flows))
    found = queues_kb(ran(tmp_path, traffic__senders=str(flows))).mean()
    show(f"{flows} flows: {found:.1f} kB, fixed point {wanted:.1f} kB")
    assert 1.05 < found / wanted < 1.3


def test_the_fixed_point_has_a_longer_queue_for_more_flows() -> None:
    assert [round(queue_kb(fixed_point(flows)), 1) for flows in (2, 4, 10)] == [21.8, 45.7, 135.0]


@pytest.mark.parametrize("flows", [2, 4, 10])
def test_the_fluid_asks_for_fewer_marks_than_cuts_one_by_one_do(show: Show, flows: int) -> None:
    p = fixed_point(flows)
    at_point, above = (mean_rate_pps(share * p, flows, seconds=10) * flows / LINE_PPS for share in (1, 1.25))
    show(f"{flows} flows: {at_point:.3f} x C/N at p*, {above:.3f} x at 1.25 p*")
    assert 1.15 < at_point < 1.25
    assert 0.97 < above < 1.03


def test_marks_at_enqueue_let_ten_flows_swing(tmp_path: Path, show: Show) -> None:
    late = queues_kb(ran(tmp_path, traffic__senders="10", fabric__switch__ecn__at="enqueue"))
    early = queues_kb(ran(tmp_path, traffic__senders="10"))
    show(
        f"10 flows: 5 and 95 % of samples below {np.percentile(late, [5, 95])} kB, at dequeue {np.percentile(early, 5)}"
    )
    assert np.percentile(late, 5) < KMIN_KB
    assert np.percentile(late, 95) > KMAX_KB
    assert np.percentile(early, 5) > 50
    assert late.mean() < 0.6 * early.mean()


def jain(rates: np.ndarray) -> np.ndarray:
    """Of each row."""
    index: np.ndarray = rates.sum(axis=-1) ** 2 / (rates.shape[-1] * (rates**2).sum(axis=-1))
    return index


def settled(run: Run, flows: int) -> tuple[int, float]:
    """Milliseconds after the last start from which Jain's index over 1 ms stays above 0.95; the index from then on."""
    rows = run.query(
        "select place as flow, floor(at_ps / 1e9) as slot, avg(value) as mean from series where kind = 'rate_bps'"
        " and at_ps >= (select max(start_ps) from flows) group by flow, slot order by slot, flow"
    ).to_pylist()
    whole = len(rows) // flows * flows
    rates = np.array([row["mean"] for row in rows[:whole]]).reshape(-1, flows)
    unfair = np.flatnonzero(jain(rates) < 0.95)
    first = int(unfair[-1]) + 1 if len(unfair) else 0
    return first, float(jain(rates[first:].mean(axis=0)))


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    ("control", "rate", "ecn"),
    [("{name: dcqcn, variant: paper}", "40Gbps", ""), ("dcqcn", "100Gbps", "{}")],
    ids=["paper", "default"],
)
def test_flows_that_start_apart_become_equal(
    tmp_path: Path, show: Show, control: str, rate: str, ecn: str, seed: int
) -> None:
    changes = {
        "transport__congestion_control": control, "fabric__link_rate": rate, "engine__until": "250ms",
        "traffic__start_jitter": "100ms", "engine__record__ports": "none", "engine__seed": str(seed),
    } | ({"fabric__switch__ecn": ecn} if ecn else {})  # fmt: skip
    two, five = (settled(ran(tmp_path, traffic__senders=str(flows), **changes), flows) for flows in (2, 5))
    show(f"{control} at {rate}: two settled after {two[0]} ms, Jain {two[1]:.4f}; five {five[0]} ms, {five[1]:.4f}")
    assert two[1] > 0.995
    assert five[1] > 0.98
    assert five[0] <= 60
