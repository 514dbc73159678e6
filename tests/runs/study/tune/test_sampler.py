"""Optuna behind its interface: it finds known optima, repeats itself, and is asked for where it is missing."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from helpers.sweeps import SCENARIO
from helpers.tunings import RandomSampler

from weftwork.base.errors import ConfigError
from weftwork.study.prepare.prepare import read_scenario
from weftwork.study.tune.keys import keys_of
from weftwork.study.tune.parameters import TuneSpace, space_of
from weftwork.study.tune.question import TuneQuestion
from weftwork.study.tune.sampler import Sampler, TreeSampler, refuse_without_optuna
from weftwork.study.tune.search import BATCH, run_tune


@pytest.fixture
def optuna() -> None:
    pytest.importorskip("optuna", reason="Optuna comes with the extra 'plan'")


def test_without_optuna_the_package_to_install_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    there = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "optuna" else there(name, *more)
    )
    with pytest.raises(ConfigError, match=r"install it with: pip install 'weftwork\[plan\]'"):
        refuse_without_optuna()
    (tmp_path / "a.yaml").write_text(SCENARIO)
    question = TuneQuestion(files=(tmp_path / "a.yaml",), parameters=("fabric.switch.alpha",))
    with pytest.raises(ConfigError, match="Optuna, which chooses the values, is not installed"):
        run_tune(question, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


KEYS = ("fabric.switch.ecn.kmin", "fabric.switch.ecn.kmax", "fabric.switch.alpha", "fabric.switch.ecn.at")


@pytest.fixture
def space(tmp_path: Path) -> TuneSpace:
    (tmp_path / "a.yaml").write_text(SCENARIO)
    return space_of(keys_of(read_scenario(tmp_path / "a.yaml")), KEYS)


def score(places: Mapping[str, float]) -> float:
    """Least, 1, at a place of every number and at the second word."""
    wanted = dict(zip(KEYS, (0.2, 0.7, 0.5), strict=False))
    return 1 + sum((places[key] - at) ** 2 for key, at in wanted.items()) + (places[KEYS[3]] != 1)


def search(
    sampler: Sampler, trials: int, function: Callable[[Mapping[str, float]], float | None] = score
) -> list[float]:
    """Ask for batches, as a tuning does; returns the scores in their order."""
    found = []
    while len(found) < trials:
        batch = [sampler.ask() for _ in range(BATCH)]
        for number, places in batch:
            value = function(places)
            sampler.tell(number, value)
            found.append(math.inf if value is None else value)
    return found


@pytest.mark.extra
@pytest.mark.usefixtures("optuna")
def test_the_tree_comes_nearer_to_a_known_optimum_than_luck(space: TuneSpace) -> None:
    tree = [min(search(TreeSampler(space, seed), 80)) - 1 for seed in range(5)]
    luck = [min(search(RandomSampler(space, seed), 80)) - 1 for seed in range(5)]
    assert sum(tree) < 0.6 * sum(luck)
    assert max(tree) < 0.05


@pytest.mark.extra
@pytest.mark.usefixtures("optuna")
def test_the_tree_repeats_itself_and_starts_from_what_it_is_told(space: TuneSpace) -> None:
    made = [TreeSampler(space) for _ in range(3)]
    for sampler in made[:2]:
        sampler.add({KEYS[0]: 0.2, KEYS[1]: 0.7, KEYS[2]: 0.5, KEYS[3]: 1}, 1.0)
    first, second, third = (search(sampler, 40) for sampler in made)
    assert first == second
    assert first != third
    assert made[0].label.startswith("Optuna 5")


@pytest.mark.extra
@pytest.mark.usefixtures("optuna")
def test_choices_without_a_score_are_left_alone(space: TuneSpace) -> None:
    """Everything is refused on one side: the tree asks for it less and less."""
    refused: list[bool] = []

    def half(places: Mapping[str, float]) -> float | None:
        refused.append(places[KEYS[0]] > 0.5)
        return None if refused[-1] else score(places)

    search(TreeSampler(space), 96, half)
    assert sum(refused[-40:]) < sum(refused[:40]) / 2
