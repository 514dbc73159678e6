"""Digests of all examples and of the benchmarks' rows: a change that says that it moves no result moves none of these.

A digest is SHA-256 over completion times and counters of a run (`weftwork.engine.digest`). What takes seconds is in
tests/deep/examples/test_digests.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.digests import LONG, SCENARIOS, SMALL, Check, check_scenario, digest_of_row


@pytest.mark.parametrize("scenario", [name for name in SCENARIOS if name not in LONG])
def test_a_scenario_of_the_examples_keeps_its_digest(scenario: str, tmp_path: Path, check_golden: Check) -> None:
    check_scenario(scenario, tmp_path, check_golden)


@pytest.mark.parametrize("name", SMALL)
def test_a_small_row_of_the_packet_engine_keeps_its_digest(name: str, check_golden: Check) -> None:
    check_golden(f"digests/packet_engine/{name}.txt", f"{digest_of_row(name)}\n")
