"""Losses on flows against the mean of packet runs, on the scenarios that docs/models/flow-losses.md prints."""

from __future__ import annotations

import flow_losses
import pytest

SCENARIOS, SEEDS = 50, 20


@pytest.mark.deep
@pytest.mark.parametrize("number", range(SCENARIOS))
def test_flows_are_within_the_bound_or_tell_the_range(number: int) -> None:
    row = flow_losses.measure(flow_losses.drawn(number), SEEDS)
    assert row.holds, row


@pytest.mark.deep
@pytest.mark.parametrize("number", range(0, SCENARIOS, 4))
def test_sprayed_flows_are_within_the_bound_or_tell_the_range(number: int) -> None:
    row = flow_losses.measure(flow_losses.sprayed(number), SEEDS)
    assert row.holds, row
