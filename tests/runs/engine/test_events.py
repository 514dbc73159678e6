"""Events with their instants: recorded where asked for, in step with the counters, at no cost to the result."""

from __future__ import annotations

import numpy as np
import pytest
from laws.scenarios import random_plan

from weftwork.engine import packet
from weftwork.engine.packet_input import DROP_REASONS
from weftwork.engine.rows.outcome import EVENT_KINDS

SEEDS = (0, 7, 20, 22, 26, 97)
PLENTY = 1_000_000


@pytest.mark.parametrize("seed", SEEDS)
def test_events_add_up_to_the_counters_and_change_nothing(seed: int) -> None:
    """Each pause, resume, mark and drop of the counters has its row, ordered by instant; the digest stays the same."""
    engine_input = random_plan(seed)
    silent, told = packet.run(engine_input), packet.run(engine_input, event_limit=PLENTY)
    assert silent.digest() == told.digest()
    assert len(silent.events) == 0
    assert np.all(np.diff(told.events["at_ps"]) >= 0)
    for kind, counts in (
        ("pause", told.ports["pauses_sent"]), ("resume", told.ports["resumes_sent"]), ("mark", told.ports["marks"]),
    ):  # fmt: skip
        rows = told.events[told.events["kind"] == EVENT_KINDS.index(kind)]
        assert np.array_equal(np.bincount(rows["place"], minlength=len(counts)), counts)
    drops = told.events[told.events["kind"] == EVENT_KINDS.index("drop")]
    for index, reason in enumerate(DROP_REASONS):
        assert np.count_nonzero(drops["detail"] == index) == told.counters[f"drop_{reason}"]
    timeouts = np.count_nonzero(told.events["kind"] == EVENT_KINDS.index("timeout"))
    assert timeouts == told.counters["timeouts"]


def test_the_chosen_plans_have_something_to_tell() -> None:
    """Without events the test above could not fail."""
    kinds = {int(kind) for seed in SEEDS for kind in packet.run(random_plan(seed), event_limit=PLENTY).events["kind"]}
    assert kinds == set(range(len(EVENT_KINDS)))


def test_a_limit_is_kept_and_what_is_left_out_is_counted() -> None:
    """The first rows that fit are kept; the rest is a number."""
    engine_input = random_plan(SEEDS[-1])
    everything = packet.run(engine_input, event_limit=PLENTY)
    limit = len(everything.events) // 2
    some = packet.run(engine_input, event_limit=limit)
    assert len(some.events) == limit
    assert some.events_left_out == len(everything.events) - limit
