"""From `--parameter` texts to ranges: globs, bounds, whole numbers, words, and every mistake at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.sweeps import SCENARIO
from hypothesis import given
from hypothesis import strategies as st

from weftwork.base.errors import ConfigError
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


def test_thresholds_that_are_left_out_are_searched_around_what_they_amount_to(known: dict[str, TunableKey]) -> None:
    space = space_of(known, [f"{ECN}.*"])
    # 100 KB and 400 KB x 100 / 25 Gb/s
    assert ranges(space)["kmin"] == (50_000, 3_200_000)
    assert ranges(space)["kmax"] == (200_000, 12_800_000)
    assert known[f"{ECN}.kmin"].before == "not set"


def test_headroom_that_is_left_out_is_searched_around_what_the_engine_takes(known: dict[str, TunableKey]) -> None:
    (one,) = space_of(known, ["fabric.switch.headroom"]).keys
    # three frames, a pause frame and both ways of the link (weftwork.engine.headroom)
    assert 20_000 < one.low * 8 < 60_000


def test_a_star_stands_for_one_name_and_skips_what_has_no_range(known: dict[str, TunableKey]) -> None:
    space = space_of(known, [f"{CONTROL}.*"])
    assert {one.key.rpartition(".")[0] for one in space.keys} == {CONTROL}
    assert {key.rpartition(".")[2] for key in space.unread} == {"cnp_interval_ps", "increase_bytes", "window_bdps"}
    assert all("it has no default range" in why for why in space.unread.values())
    assert {one.key for one in space_of(known, ["fabric.switch.*"]).keys}.isdisjoint({f"{ECN}.kmin"})


def test_words_and_flags_are_choices(known: dict[str, TunableKey]) -> None:
    space = space_of(known, [f"{ECN}.at", f"{CONTROL}.hyper_grows", f"{CONTROL}.fast_steps=1,3,5"])
    assert {one.key.rpartition(".")[2]: one.choices for one in space.keys} == {
        "at": ("enqueue", "dequeue"), "hyper_grows": ("false", "true"), "fast_steps": ("1", "3", "5"),
    }  # fmt: skip
    assert space.settings({f"{ECN}.at": 1, f"{CONTROL}.hyper_grows": 0, f"{CONTROL}.fast_steps": 2}) == {
        f"{ECN}.at": "dequeue", f"{CONTROL}.hyper_grows": "false", f"{CONTROL}.fast_steps": "5",
    }  # fmt: skip


def test_a_range_of_ones_own_stands_above_that_of_a_pattern(known: dict[str, TunableKey]) -> None:
    for texts in ([f"{ECN}.*", f"{ECN}.kmin=10KB..40KB"], [f"{ECN}.kmin=10KB..40KB", f"{ECN}.*"]):
        assert ranges(space_of(known, texts))["kmin"] == (10_000, 40_000)


def test_small_whole_numbers_are_drawn_evenly_and_stay_whole(known: dict[str, TunableKey]) -> None:
    (one,) = space_of(known, [f"{CONTROL}.fast_steps"]).keys
    assert (one.low, one.high, one.is_log) == (0, 8, False)
    assert {one.known.write(one.value(place / 40)) for place in range(41)} == {str(number) for number in range(9)}


def test_the_values_of_the_file_come_back_from_their_places(known: dict[str, TunableKey]) -> None:
    space = space_of(known, [f"{CONTROL}.*", f"{ECN}.*", "fabric.switch.alpha"])
    places = space.places_before()
    assert places is not None
    found = space.settings(places)
    for key, text in found.items():
        now = known[key].now
        assert text == known[key].before if now is None else known[key].read(text) == pytest.approx(now, rel=0.005)


def test_a_value_that_is_none_of_the_choices_has_no_place(known: dict[str, TunableKey]) -> None:
    assert space_of(known, [f"{CONTROL}.fast_steps=3,5"]).places_before() is None


@given(st.lists(st.floats(0, 1), min_size=4, max_size=4))
def test_every_place_is_a_value_within_its_range_and_kmin_is_never_above_kmax(
    known: dict[str, TunableKey], shares: list[float]
) -> None:
    texts = [f"{ECN}.kmax", f"{ECN}.kmin", f"{ECN}.pmax", f"{CONTROL}.ai_rate_bps=1Mbps..1Gbps"]
    space = space_of(known, texts)
    found = space.settings({one.key: share for one, share in zip(space.keys, shares, strict=True)})
    values = {key: known[key].read(text) for key, text in found.items()}
    assert all(one.low <= values[one.key] <= one.high for one in space.keys)
    assert values[f"{ECN}.kmin"] <= values[f"{ECN}.kmax"]


def test_all_mistakes_are_told_at_once_with_the_nearest_fix(known: dict[str, TunableKey]) -> None:
    texts = [
        "transport.congestion_controll.*", f"{ECN}.kmn", "fabric.switch.alpha=3..1", f"{ECN}.at=enqueue,now",
        "fabric.switch.buffer=1MB..2Mb", f"{ECN}.pmax=0.1..2", f"{CONTROL}.window_bdps", f"{CONTROL}.g=",
        f"{ECN}.kmin=1KB..2KB", f"{ECN}.kmin=1KB..3KB",
    ]  # fmt: skip
    with pytest.raises(ConfigError) as wrong:
        space_of(known, texts)
    told = [str(one) for one in wrong.value.mistakes]
    wanted = [
        f"did you mean '{CONTROL}.*'?", f"did you mean '{ECN}.kmin'?", "found '3..1', wanted a low end below the high",
        "found 'now', wanted enqueue, dequeue", "did you mean '2MB'?", "found '2', wanted a number from 0 to 1",
        "is 0.0, so it has no default range; give --parameter KEY=LOW..HIGH", "found '', wanted LOW..HIGH",
        "found two ranges for this key",
    ]  # fmt: skip
    assert len(told) == len(wanted)
    for text, part in zip(told, wanted, strict=True):
        assert part in text


@pytest.mark.parametrize(
    ("texts", "part"),
    [([], "missing: nothing to tune"), ([f"{CONTROL}.win*_bdps"], "none of the keys has a range")],
)
def test_nothing_to_tune_is_refused(known: dict[str, TunableKey], texts: list[str], part: str) -> None:
    with pytest.raises(ConfigError, match=part):
        space_of(known, texts)


def test_how_a_run_is_computed_is_not_tuned(known: dict[str, TunableKey]) -> None:
    assert not [key for key in known if key.startswith(("engine", "schema"))]
    assert "transport.force" not in known
