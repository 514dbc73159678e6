"""A scenario is a record: it prints as what it holds, and nobody changes it."""

from __future__ import annotations

import pytest

from weftwork.spec.scenario.scenario import Scenario, loads

SMALL = """schema: 3
fabric: {topology: fat-tree, tiers: 2, radix: 4, link_rate: 100Gbps}
traffic: {pattern: permutation, size: 1MiB}
"""


def test_a_scenario_prints_and_is_frozen() -> None:
    scenario = loads(SMALL)
    assert isinstance(scenario, Scenario)
    assert "link_rate_bps=100000000000" in repr(scenario)
    with pytest.raises(ValueError, match="frozen"):
        scenario.name = "other"
