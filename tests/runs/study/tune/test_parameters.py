"""From `--parameter` texts to ranges: globs, bounds, whole numbers, words, and every mistake at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.sweeps import SCENARIO

from weftwork.study.prepare.prepare import read_scenario
from weftwork.study.tune.keys import TunableKey, keys_of
from weftwork.study.tune.parameters import TuneSpace, space_of

CONTROL = "transport.congestion_control"


ECN = "fabric.switch.ecn"


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TunableKey]:
    return keys_in(tmp_path_factory.mktemp("tune"), SCENARIO.replace("fixed-window", "dcqcn"))


def keys_in(folder: Path, text: str) -> dict[str, TunableKey]:
    (folder / "a.yaml").write_text(text)
    return keys_of(read_scenario(folder / "a.yaml"))


def ranges(space: TuneSpace) -> dict[str, tuple[float, float]]:
    return {one.key.rpartition(".")[2]: (one.low, one.high) for one in space.keys if not one.choices}


def test_a_range_is_an_eighth_to_eight_times_the_value_within_the_bounds_of_its_row(
    known: dict[str, TunableKey],
) -> None:
    space = space_of(known, [f"{CONTROL}.g", f"{CONTROL}.increase_timer_ps", f"{ECN}.pmax", "fabric.switch.alpha"])
    found = ranges(space)
    assert found["increase_timer_ps"] == (37_500_000, 2_400_000_000)
    assert found["g"] == (pytest.approx(1 / 256 / 8, rel=0.002), pytest.approx(1 / 32, rel=0.002))
    assert found["pmax"] == (0.025, 1.0)  # not 1.6: its row ends at 1
    assert found["alpha"] == (pytest.approx(0.125 / 8, rel=0.002), 1.0)
    assert all(one.is_log for one in space.keys)


def test_one_threshold_alone_keeps_its_side_of_the_other(tmp_path: Path) -> None:
    text = SCENARIO.replace("link_rate: 100Gbps", "link_rate: 100Gbps, switch: {ecn: {kmin: 100KB, kmax: 150KB}}")
    known = keys_in(tmp_path, text)
    assert ranges(space_of(known, [f"{ECN}.kmin"]))["kmin"] == (12_500, 150_000)
    assert ranges(space_of(known, [f"{ECN}.kmax"]))["kmax"] == (100_000, 1_200_000)


def test_a_policy_of_ones_own_is_tuned_by_its_rows(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(Path("examples/my_cc.py").read_text())
    known = keys_in(tmp_path, SCENARIO.replace("fixed-window", "./mine.py"))
    assert space_of(known, [f"{CONTROL}.*"]).keys


def test_a_bound_of_the_row_cuts_a_range(known: dict[str, TunableKey]) -> None:
    (one,) = space_of(known, [f"{CONTROL}.alpha_timer_ps"]).keys
    assert one.low == 125_000  # an eighth of 1 us
    (other,) = space_of(known, [f"{CONTROL}.alpha_initial"]).keys
    assert (other.low, other.high, other.is_log) == (0.125, 1, False)
