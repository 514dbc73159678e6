"""A collective algorithm in a file of the user's own: run, with a key of its own, like one of the catalogue."""

from __future__ import annotations

from pathlib import Path

import pytest

import weftwork
from weftwork.base.errors import CodeError, ConfigError
from weftwork.spec.scenario.scenario import loads
from weftwork.spec.scenario.written import dump

MINE = '''"""A ring with a software delay of its own.

Source: none. Leaves out: nothing that the ring has.
"""

from dataclasses import replace

from weftwork.spec.plug_in import DURATION, Measure, Record, row
from weftwork.workload.collectives.algorithm import Algorithm
from weftwork.workload.collectives.algorithms.ring import ALGORITHM as RING


class Keys(Record):
    """Keys of this ring."""

    delay_ps: int = row("delay", Measure(quantity=DURATION), default="1us", text="Delay of a step.", source="none")


def slower(call):
    return replace(call, step_latency_ps=call.step_latency_ps + call.options.delay_ps)


ALGORITHM = Algorithm(
    name="slow-ring",
    keys=Keys,
    operations={name: (lambda call, build=build: build(slower(call))) for name, build in RING.operations.items()},
    traffic=lambda call: RING.traffic(slower(call)),
    chain=lambda call: RING.chain(slower(call)),
    source="none",
)
'''
SCENARIO = """schema: 3
fabric: {radix: 4, tiers: 2}
collective: {algorithm: ./slow_ring.py, size: 64KiB, protocol: none}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "slow_ring.py").write_text(MINE, encoding="utf-8")
    (tmp_path / "mine.yaml").write_text(SCENARIO, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def took_ps(out: str, **overrides: str) -> int:
    run = weftwork.run("mine.yaml", out=out, overrides={f"collective.{key}": text for key, text in overrides.items()})
    return int(run.summary["completion_ps"]["value"])


@pytest.mark.usefixtures("folder")
def test_its_key_decides_how_long_it_takes() -> None:
    ring, mine = took_ps("ring", algorithm="ring"), took_ps("none", delay="0ps")
    assert mine == ring
    assert took_ps("usual") == pytest.approx(ring + 13_000_000, rel=0.01)  # between 2 x 7 steps, 1 us each
    assert took_ps("long", delay="10us") == pytest.approx(ring + 130_000_000, rel=0.01)


def test_a_scenario_keeps_the_file_and_its_keys(folder: Path) -> None:
    scenario = weftwork.read_scenario("mine.yaml", {"collective.delay": "3us"})
    assert scenario.collective is not None
    assert scenario.collective.algorithm == str(folder / "slow_ring.py")
    assert scenario.collective.options.model_dump() == {"delay_ps": 3_000_000}
    assert loads(dump(scenario)) == scenario


@pytest.mark.usefixtures("folder")
def test_a_key_of_another_algorithm_and_an_operation_that_it_lacks_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"means nothing with algorithm .*slow_ring\.py, only with hierarchical"):
        weftwork.read_scenario("mine.yaml", {"collective.inner": "ring"})
    with pytest.raises(ConfigError, match="slow-ring has no all-to-all; wanted all-reduce"):
        weftwork.prepare(weftwork.read_scenario("mine.yaml", {"collective.operation": "all-to-all"}))


def test_what_it_raises_is_told_with_its_line(folder: Path) -> None:
    (folder / "slow_ring.py").write_text(MINE.replace("call.options.delay_ps", "call.delay"), encoding="utf-8")
    with pytest.raises(CodeError, match=r"slow_ring.py, line 20: AttributeError"):
        weftwork.prepare(weftwork.read_scenario("mine.yaml"))
