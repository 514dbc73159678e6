"""Captured frames: both engines note the same, they add up to the counters of the port, and nothing else moves."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from laws.scenarios import random_plan

from weftwork.engine import packet
from weftwork.engine.capture import CaptureRequest
from weftwork.engine.outcome import Outcome
from weftwork.engine.reference import simulation as reference
from weftwork.engine.rows.outcome import CAPTURE_KINDS

# Plans 5, 22, 25 and 56 are longer than all of these together. The last ones have REQUESTs, CNPs and PROBEs.
SEEDS = (*range(5), *range(6, 22), 23, 24, *range(26, 30), 37, 44, 45, 76, 82, 100)
LONG_SEED = 82  # its plan takes two seconds by the reference
SMALL_SEEDS = (3, 7, 19)
ALL = 10_000_000
SEEN_AT_LEAST = {"DATA": 1_000, "ACK": 500, "NAK": 20, "CNP": 20, "CREDIT": 20, "PROBE": 1, "REQUEST": 5, "PAUSE": 50,
                 "telemetry": 500}  # fmt: skip

pytestmark = pytest.mark.sanitize


def _all_ports(seed: int, limit: int = ALL) -> CaptureRequest:
    ports = range(len(random_plan(seed).port_peer))
    return CaptureRequest(ports=tuple(ports), packet_limit=limit)


def _captured(seed: int, request: CaptureRequest) -> Outcome:
    return packet.run(random_plan(seed), capture=request)


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=[pytest.mark.deep] if seed == LONG_SEED else []) for seed in SEEDS]
)
def test_both_engines_capture_the_same_and_nothing_moves(seed: int) -> None:
    plan, request = random_plan(seed), _all_ports(seed)
    silent, ours = packet.run(plan), packet.run(plan, capture=request)
    meant = reference.run(plan, capture=request)
    assert ours.digest() == meant.digest() == silent.digest()
    assert len(silent.captured) == 0
    names = ours.captured.dtype.names or ()
    different = [name for name in names if not np.array_equal(ours.captured[name], meant.captured[name])]
    assert not different
    assert ours.captured_left_out == meant.captured_left_out == 0
    kinds = ours.captured["kind"]
    is_frame = kinds >= CAPTURE_KINDS.index("PAUSE")
    for counter, chosen, weights in (
        ("frames", ~is_frame, np.ones(len(kinds), np.int64)),
        ("bytes", ~is_frame, ours.captured["size_bytes"]),
    ):
        sums = np.zeros(len(ours.ports), np.int64)
        np.add.at(sums, ours.captured["port"][chosen], weights[chosen])
        assert sums.tolist() == ours.ports[counter].tolist()
    quanta = is_frame & (ours.captured["amount"] > 0) & (kinds == CAPTURE_KINDS.index("PAUSE"))
    assert quanta.sum() == ours.ports["pauses_sent"].sum()
    assert (kinds == CAPTURE_KINDS.index("LINK CREDIT")).sum() == ours.ports["credit_frames"].sum()


def test_the_plans_above_have_frames_of_every_kind() -> None:
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        rows = _captured(seed, _all_ports(seed)).captured
        seen.update(CAPTURE_KINDS[kind] for kind in rows["kind"].tolist())
        seen["telemetry"] += int(rows["hop_count"].sum())
    assert {kind: seen[kind] for kind, least in SEEN_AT_LEAST.items() if seen[kind] < least} == {}


@pytest.mark.parametrize("seed", SMALL_SEEDS)
def test_a_limit_keeps_the_earliest_of_both_directions(seed: int) -> None:
    plan = random_plan(seed)
    everything = _captured(seed, _all_ports(seed)).captured
    assert np.all(np.diff(everything["at_ps"]) >= 0)
    busiest = int(np.bincount(everything["port"]).argmax())
    ends = (busiest, int(plan.port_peer[busiest]))
    of_link = everything[np.isin(everything["port"], ends)]
    for run in (packet.run, reference.run):
        kept = run(plan, capture=CaptureRequest(ports=ends, packet_limit=5))
        assert np.array_equal(kept.captured, of_link[:5])
        assert kept.captured_left_out == len(of_link) - 5
