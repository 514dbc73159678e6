"""A tuning of a formula or of real runs: the optimum, the gain on fresh seeds, and noise that is called noise."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from helpers.sweeps import SCENARIO
from helpers.tunings import Formula, RandomSampler, formula, here

import weftwork
from weftwork.base.errors import ConfigError
from weftwork.report.page_tune import tune_page
from weftwork.report.tune_words import tune_verdict, tune_warnings, tuned_comment
from weftwork.spec.tuning import TuneResult
from weftwork.store.tunings import read_tuning, trials_table, write_tuning
from weftwork.study.tune.question import TuneQuestion
from weftwork.study.tune.search import BATCH, TuneRun, run_tune

KMIN, ALPHA = "fabric.switch.ecn.kmin", "fabric.switch.alpha"
RANGES = (f"{KMIN}=1KB..1MB", f"{ALPHA}=0.01..1")

Tune = Callable[..., TuneRun]


@pytest.fixture
def tune(tmp_path: Path) -> Tune:
    """Tune the tiny scenario in a folder of its own, by random draws."""
    file = tmp_path / "tiny.yaml"
    file.write_text(SCENARIO)

    def run(*parameters: str, files: int = 1, sampler: Any = RandomSampler, out: str = "out", **more: Any) -> TuneRun:
        others = [tmp_path / f"tiny-{number}.yaml" for number in range(1, files)]
        for other in others:
            other.write_text(SCENARIO.replace("name: tiny", f"name: {other.stem}"))
        asked = {"trials": 40, "seeds": 2, "fresh": 4} | {key: more.pop(key) for key in tuple(more) if key in KEYS}
        question = TuneQuestion(files=(file, *others), parameters=parameters or RANGES, **asked)
        return run_tune(question, out=tmp_path / out, sampler=sampler, outcomes=here, **more)

    return run


KEYS = {"trials", "seeds", "fresh", "objective", "maximises", "settings"}


def kmin(settings: Mapping[str, str], before: float = 400.0) -> float:
    """Kmin of a trial in KB; that of the file follows from 100 Gb/s."""
    text = settings.get(KMIN)
    if text is None:
        return before
    return float(text.removesuffix("MB")) * 1000 if text.endswith("MB") else float(text.rstrip("KB") or 0)


def valley(settings: Mapping[str, str], seed: int) -> float:
    """Least at 20 KB, and the same for every seed; alpha does nothing."""
    del seed
    return 1e6 * (1 + math.log(kmin(settings) / 20) ** 2)


def result_of(found: TuneRun) -> TuneResult:
    assert found.result is not None
    assert found.end == "done"
    return found.result


def test_the_optimum_of_a_known_function_is_found_and_its_gain_is_that_of_the_formula(tune: Tune) -> None:
    with formula(valley):
        result = result_of(tune())
    best = result.trials[result.best]
    assert kmin(best.values) == pytest.approx(20, rel=0.5)
    gain = 1 - valley(best.values, 0) / valley({}, 0)
    assert result.gain is not None
    assert (result.gain.mean, result.gain.low, result.gain.high) == pytest.approx((gain, gain, gain))
    assert result.scenarios[0].before == pytest.approx(valley({}, 0))
    assert result.scenarios[0].after == pytest.approx(valley(best.values, 0))
    of = {one.key: one for one in result.parameters}
    assert of[KMIN].share_of_gain == pytest.approx(1)
    assert of[ALPHA].loss is not None
    assert of[ALPHA].loss.mean == pytest.approx(0)
    assert of[KMIN].before == "not set (400KB)"
    assert (of[KMIN].share or 0) > 3 * (of[ALPHA].share or 0)
    said = " ".join(tune_verdict(result))
    assert "over 4 fresh seeds" in said
    assert f"{KMIN} matters most (not set (400KB) to {best.values[KMIN]})" in said
    assert "all of the gain" in said
    assert "alpha could keep the old value" in said
    assert "noise" not in said


def noise(settings: Mapping[str, str], seed: int) -> float:
    """Nothing that a parameter does; every pair of values and seed draws its own luck."""
    return 1e6 * (1 + 0.1 * random.Random(f"{sorted(settings.items())} {seed}").random())


def test_a_flat_objective_ends_in_noise_or_in_no_gain(tune: Tune) -> None:
    verdicts, looks = [], []
    for first in range(8):
        with formula(lambda settings, seed, first=first: noise(settings, seed + 1000 * first)):
            result = result_of(tune(out=f"flat-{first}"))
        looks.append(min(one.score or 9.0 for one in result.trials))
        said = " ".join(tune_verdict(result))
        verdicts.append("noise" in said or "no better on fresh seeds" in said)
    assert min(looks) < 0.96  # the luckiest of 40 trials looks more than 4 % better than the file
    assert sum(verdicts) >= 7  # at 95 % one in twenty may look clear


def test_the_seeds_that_measure_the_gain_have_chosen_nothing(tune: Tune) -> None:
    asked: list[tuple[str, int, tuple[int, ...]]] = []
    with formula(valley, asked):
        result = result_of(tune())
    seeds = {folder: {seed for name, _, span in asked if name == folder for seed in span} for folder, _, _ in asked}
    assert seeds == {"runs": {0, 1}, "finalists": {2, 3}, "fresh": {4, 5, 6, 7}}
    assert (result.seeds, result.finalist_seeds, result.fresh_seeds) == ((1, 2), (3, 4), (5, 6, 7, 8))
    assert next(number for folder, number, _ in asked if folder == "finalists") == 0
    assert result.best in result.finalists
    assert result.runs == sum(len(span) for _, _, span in asked)


def test_a_batch_is_asked_for_before_any_of_it_is_told(tune: Tune) -> None:
    made: list[RandomSampler] = []

    def sampler(space: Any) -> RandomSampler:
        made.append(RandomSampler(space))
        return made[-1]

    with formula(valley):
        result_of(tune(sampler=sampler, trials=1 + BATCH + 3))
    names = [name for name, _ in made[0].heard]
    assert names == ["add", *["ask"] * BATCH, *["tell"] * BATCH, *["ask"] * 3, *["tell"] * 3]


def test_a_refused_choice_is_a_trial_without_a_score(tune: Tune) -> None:
    def half(settings: Mapping[str, str], seed: int) -> float | None:
        return None if kmin(settings) < 20 else valley(settings, seed)

    made: list[RandomSampler] = []
    with formula(half):
        result = result_of(tune(sampler=lambda space: made.append(RandomSampler(space)) or made[-1]))
    refused = [one for one in result.trials if one.status == "refused"]
    assert refused
    assert all(one.score is None and one.reason == "the formula says no" for one in refused)
    assert sum(told[1] is None for name, told in made[0].heard if name == "tell") == len(refused)  # type: ignore[index]
    assert any("have no result to judge" in one for one in tune_warnings(result))
    assert kmin(result.trials[result.best].values) >= 20


def test_values_that_were_tried_are_not_run_again(tune: Tune) -> None:
    asked: list[tuple[str, int, tuple[int, ...]]] = []
    with formula(lambda _, seed: 1e6 + seed, asked):
        result = result_of(tune("fabric.switch.ecn.at", trials=20))
    assert [number for folder, number, _ in asked if folder == "runs"] == [0, next(
        one.number for one in result.trials if one.values.get("fabric.switch.ecn.at") == "dequeue"
    )]  # fmt: skip
    enqueued = [one for one in result.trials[1:] if one.values["fabric.switch.ecn.at"] == "enqueue"]
    assert enqueued
    assert all(one.same_as == 0 for one in enqueued)  # the value of the file
    assert result.best == 0


def test_where_more_is_better_the_largest_wins(tune: Tune) -> None:
    with formula(valley, goodput_bps=lambda settings, seed: 1e15 / valley(settings, seed)):
        result = result_of(tune(objective="goodput_bps"))
    assert result.is_larger_better
    assert kmin(result.trials[result.best].values) == pytest.approx(20, rel=0.5)
    assert result.gain is not None
    assert result.gain.mean > 5
    assert "% more (95 % interval" in tune_verdict(result)[0]
    with formula(valley):
        worst = result_of(tune(objective="completion_ps", maximises=True, out="most"))
    assert kmin(worst.trials[worst.best].values) > 500


def test_other_numbers_that_pay_for_the_gain_are_named(tune: Tune) -> None:
    with formula(valley, pauses=lambda settings, seed: (30 if settings else 20) + seed % 2, drops=lambda *_: 0):
        result = result_of(tune())
    assert [(one.name, one.before, one.after) for one in result.others] == [("pauses", 20.5, 30.5)]
    assert "pauses got worse: from 20.5 to 30.5" in tune_warnings(result)
    with formula(valley, pauses=lambda settings, seed: (10 if settings else 20) + seed % 2):
        assert not result_of(tune(out="better")).others


def test_a_best_value_at_the_end_of_its_range_is_named(tune: Tune) -> None:
    with formula(lambda settings, _: 1e6 * kmin(settings)):
        result = result_of(tune(f"{KMIN}=300KB..500KB", trials=200))
    assert result.parameters[0].end == "low"
    assert any("lies at the low end of its range, 300KB to 500KB" in one for one in tune_warnings(result))
    with formula(lambda settings, _: 2 - float(settings.get("fabric.switch.ecn.pmax", "0.2"))):
        bounded = result_of(tune("fabric.switch.ecn.pmax=0.5..1", trials=200, out="bounded"))
    assert bounded.parameters[0].end == ""  # a probability goes no higher


def test_an_objective_of_0_with_the_values_of_the_file_is_judged_in_its_own_unit(tune: Tune) -> None:
    with formula(valley, pauses=lambda settings, seed: 0 if not settings else 3 + seed):
        result = result_of(tune(objective="pauses"))
    assert (result.is_ratio, result.best) == (False, 0)
    assert result.trials[1].score == 3.5
    with (
        formula(valley, pauses=lambda *_: 0),
        pytest.raises(ConfigError, match="add a constant, such as '1 \\+ pauses'"),
    ):
        tune(objective="pauses", files=2, out="two")


def test_several_scenarios_are_joined_by_the_geometric_mean_of_their_ratios(tune: Tune) -> None:
    with formula(valley):
        result = result_of(tune(files=2))
    gain = 1 - valley(result.trials[result.best].values, 0) / valley({}, 0)
    assert result.gain is not None
    assert result.gain.mean == pytest.approx(gain)
    assert [one.tuned for one in result.scenarios] == ["tuned-1.yaml", "tuned-2.yaml"]
    assert "on geometric average" in tune_verdict(result)[0]


def test_one_fresh_seed_makes_no_statement_on_noise(tune: Tune) -> None:
    with formula(valley):
        result = result_of(tune(fresh=1))
    assert result.gain is not None
    assert result.gain.is_clear is None
    assert any("the noise is unknown" in one for one in tune_warnings(result))


@pytest.mark.parametrize(
    ("more", "part"),
    [
        ({"trials": 1}, "--trials.*found 1, wanted 2 or more"),
        ({"seeds": 0}, "--seeds.*found 0, wanted 1 or more"),
        ({"seeds": 2**30}, "wanted none above"),
        ({"objective": "pause"}, "did you mean 'pauses'"),
        ({"objective": "completion_ps / (pauses - pauses)"}, "divides by 0"),
        ({"settings": {"engine.until": "1us"}}, "a run is stopped, so its numbers are partial"),
        ({"settings": {"fabric.switch.ecn.kmim": "1KB"}}, "unknown key"),
    ],
)
def test_what_cannot_be_tuned_is_refused(tune: Tune, more: dict[str, Any], part: str) -> None:
    with pytest.raises(ConfigError, match=part):
        tune(**{"seeds": 1, "fresh": 1, "trials": 3} | more)


def test_files_that_do_not_share_the_parameters_are_refused(tmp_path: Path) -> None:
    files = [tmp_path / "a.yaml", tmp_path / "b.yaml"]
    for file, control in zip(files, ("dcqcn", "swift"), strict=True):
        file.write_text(SCENARIO.replace("fixed-window", control))
    question = TuneQuestion(files=tuple(files), parameters=("transport.congestion_control.g",))
    with pytest.raises(ConfigError, match=r"is not a key of .*b\.yaml, but all files must have the parameters"):
        run_tune(question, out=tmp_path / "out", sampler=RandomSampler, outcomes=here)


def test_real_runs_go_on_where_they_were_and_the_tuned_scenario_gives_the_bits_of_its_trial(
    tune: Tune, tmp_path: Path
) -> None:
    window = "transport.congestion_control.window_bytes=5KB..500KB"
    first = tune(window, trials=3, seeds=1, fresh=2)
    assert (first.kept, first.end) == (0, "done")
    again = tune(window, trials=3, seeds=1, fresh=2)
    assert again.kept == again.runs == first.runs
    assert again.result == first.result
    more = tune(window, trials=5, seeds=1, fresh=2)
    assert more.kept >= 3
    result = result_of(more)
    assert result.trials[:3] == result_of(first).trials
    assert more.result is not None
    (text,) = more.tuned.values()
    (tmp_path / "tuned.yaml").write_text(tuned_comment(result, "tiny.yaml") + text)
    seed = result.seeds[0]
    run = weftwork.run(tmp_path / "tuned.yaml", out=tmp_path / "run", overrides={"engine.seed": str(seed)})
    (folder,) = (tmp_path / "out/runs").glob(f"{result.best:06d}-*")
    assert run.provenance["digest"] == weftwork.open_run(folder).provenance["digest"]
    page = tune_page(result, "out", "weftwork tune")
    assert all(one.key in page for one in result.parameters)
    assert tune_verdict(result)[0].split(":")[0] in page
    write_tuning(tmp_path / "out", result, more.tuned)
    assert read_tuning(tmp_path / "out") == result
    assert trials_table(result).num_rows == 5


def test_another_tuning_in_the_folder_is_refused(tune: Tune) -> None:
    with formula(valley):
        tune(trials=2)
        with pytest.raises(ConfigError, match="holds another tuning"):
            tune(f"{KMIN}=1KB..2MB", trials=2)
        assert tune(trials=4).trials == 4  # more trials go on


def test_a_tuning_that_has_not_ended_has_no_result(tmp_path: Path) -> None:
    (tmp_path / "tune.json").write_text("{}")
    with pytest.raises(ConfigError, match="continue with: weftwork tune FILE"):
        read_tuning(tmp_path)


def test_a_formula_is_no_float_by_chance() -> None:
    values: Formula = valley
    assert values({KMIN: "20KB"}, 1) == 1e6
    assert kmin({KMIN: "1MB"}) == 1000
