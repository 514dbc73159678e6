"""What a run records over time: fewer bins where there are very many ports."""

from __future__ import annotations

import pytest

from weftwork.spec.scenario.scenario import loads
from weftwork.study.prepare.prepare import known_names, prepare
from weftwork.study.prepare.recording import LEAST_BINS, TIMELINE_BINS, TIMELINE_ROWS, recording

SCENARIO = "{schema: 1, fabric: {topology: leaf-spine, hosts: 8, radix: 8}, traffic: {pattern: permutation}}"


@pytest.mark.parametrize(("rows", "bins"), [(TIMELINE_ROWS, TIMELINE_BINS), (32 * 100, 100), (32, LEAST_BINS)])
def test_ports_times_bins_are_bounded(rows: int, bins: int, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = prepare(loads(SCENARIO, known=known_names()))
    assert len(prepared.fabric.ports.node) == 32
    monkeypatch.setattr("weftwork.study.prepare.recording.TIMELINE_ROWS", rows)
    series = recording(prepared.scenario, prepared.fabric, prepared.job)
    assert series is not None
    assert series.timeline_bins == bins
