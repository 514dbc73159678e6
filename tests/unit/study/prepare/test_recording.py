"""What a run records over time: fewer bins where there are very many ports."""

from __future__ import annotations

import pytest
from helpers.findings import sound

from weftwork.base.errors import ConfigError
from weftwork.spec.scenario.scenario import loads
from weftwork.study.prepare.prepare import known_names, prepare
from weftwork.study.prepare.recording import LEAST_BINS, TIMELINE_BINS, TIMELINE_ROWS, recording

SCENARIO = "{schema: 3, fabric: {topology: leaf-spine, hosts: 8, radix: 8}, traffic: {pattern: permutation}}"


@pytest.mark.parametrize(("rows", "bins"), [(TIMELINE_ROWS, TIMELINE_BINS), (32 * 100, 100), (32, LEAST_BINS)])
def test_ports_times_bins_are_bounded(rows: int, bins: int, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = prepare(loads(SCENARIO, known=known_names()))
    assert len(prepared.fabric.ports.node) == 32
    monkeypatch.setattr("weftwork.study.prepare.recording.TIMELINE_ROWS", rows)
    series = sound(recording, prepared.scenario, prepared.fabric, prepared.job, prepared.policies)
    assert series is not None
    assert series.timeline_bins == bins


def test_what_cannot_be_recorded_is_told_with_the_other_mistakes() -> None:
    overrides = {"engine.record": "{flows: [99], ports: [leaf9]}", "faults": "[{at: 1us, link: leaf9, event: down}]"}
    scenario = loads(SCENARIO, overrides=overrides, known=known_names())
    with pytest.raises(ConfigError) as refused:
        prepare(scenario)
    paths = [mistake.path.removeprefix("--set ") for mistake in refused.value.mistakes]
    assert paths == ["faults.0.link", "engine.record.flows", "engine.record.ports"]


def test_an_engine_that_nobody_has_is_refused() -> None:
    scenario = loads(SCENARIO, known=known_names())
    engine = scenario.engine.model_copy(update={"fidelity": "guess"})
    with pytest.raises(ConfigError, match="found 'guess', wanted packet, flow or reference"):
        prepare(scenario.model_copy(update={"engine": engine}))
